"""The judge that needs no model: fixed rules over the values that texts name."""

from __future__ import annotations

from dataclasses import replace

from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.judges.meaning import require_model, same_meaning
from memx.model import CandidateSource, Decider, Outcome, Verdict
from memx.text.answers import Match, match_answer, match_refusal


class OfflineJudge(Judge):
    """Judges answers by normalised values, dates, numbers, lists, negation, yes and no, refusals and synonyms.

    An abstention question is passed by a refusal, or by denying what it takes for granted. A retrieval-only candidate
    is judged by whether the needed evidence was retrieved, and, since retrieved text cannot refuse, is UNJUDGED where a
    refusal is the right answer. An empty answer fails, also there: who says nothing has refused nothing.

    Args:
        strict: UNJUDGED instead of a verdict that would be a guess.
        embeddings: ask the built-in embedding model where an answer lacks words of the gold answer, and nothing else
            speaks against it; without, rules alone decide.
    """

    name = "offline"
    decider = Decider.RULE

    def __init__(self, *, strict: bool = False, embeddings: bool = True) -> None:
        self.strict = strict
        self.embeddings = embeddings

    def preflight(self) -> None:
        """See that the embedding model is there."""
        if self.embeddings:
            require_model()

    def judge(self, item: JudgeItem) -> Verdict:
        """The verdict on one answered question, whatever the texts hold.

        Raises:
            EmbeddingError: the built-in embedding model is not installed.
        """
        question, candidate = item.question, item.candidate
        if candidate.source is CandidateSource.RETRIEVED:
            if question.abstention:
                return self._verdict(
                    Outcome.UNJUDGED, "a refusal was the right answer, and retrieved text cannot refuse"
                )
            from memx.engine.judges.retrieval import judge_retrieved

            return judge_retrieved(item)
        if question.abstention:
            found = match_refusal(question.text, candidate.text, str(question.metadata.get("trap") or ""))
        else:
            found = match_answer(question.text, question.gold, candidate.text, question.asked_at)
            if found.reworded and self.embeddings and same_meaning(question.text, question.gold, candidate.text):
                found = Match(True, f"{found.why}, but means the gold answer by its embedding", sure=False)
            if "preference" in question.category:  # LongMemEval: the gold is a rubric, no answer
                found = replace(found, sure=False)
        if self.strict and not found.sure:
            leaning = "it would pass" if found.holds else "it would fail"
            return self._verdict(Outcome.UNJUDGED, f"the rules are not sure ({leaning}): {found.why}")
        return self._verdict(Outcome.PASS if found.holds else Outcome.FAIL, found.why)

    def _verdict(self, outcome: Outcome, why: str) -> Verdict:
        return Verdict(outcome, self.decider, why)
