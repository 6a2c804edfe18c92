"""The judge of retrieval-only runs: was every needed evidence turn among the retrieved facts?

Where neither the memory system nor a model gives an answer, the candidate is the retrieved text itself. Asking whether
it "contains the gold" would fail every question whose answer must be inferred, and pass gold words that stand anywhere;
the evidence annotation tells what a reader would have needed.
"""

from __future__ import annotations

from memx.diagnose.answers import read_answer
from memx.diagnose.details import COPY, detail_of, held, overlap
from memx.diagnose.lexicon import Lexicon, turn_text
from memx.engine.judges.contract import JudgeItem
from memx.model import Decider, Outcome, Retrieved, Turn, Verdict

_MOSTLY_FROM = 0.6  # share of a fact's words that are the turn's, for a paraphrase that holds the asked detail


def judge_retrieved(item: JudgeItem) -> Verdict:
    """PASS when every evidence turn is carried by a retrieved fact, FAIL naming those that are not.

    A fact carries a turn when its provenance names the turn (``item.sources``, or ``source_turn_ids`` in the fact's
    metadata) and it still holds the turn's part of the gold; without provenance, when it repeats or paraphrases the
    turn. Without evidence turns the gold must stand in the retrieved text.
    """
    question = item.question
    stale = set(question.metadata.get("stale_evidence", ()))
    evidence = [turn for turn in item.evidence if turn.turn_id not in stale] or list(item.evidence)
    lexicon = Lexicon(evidence, (row.content for row in item.retrieved))
    if not evidence:
        return _by_gold(item, lexicon)
    missing = [turn for turn in evidence if not _carried(turn, item, lexicon)]
    came = len(evidence) - len(missing)
    found = f"{came} of {len(evidence)} evidence turns are among the {len(item.retrieved)} retrieved facts"
    score = came / len(evidence)
    if missing:
        names = ", ".join(turn.turn_id for turn in missing)
        return Verdict(Outcome.FAIL, Decider.RULE, f"{found}; missing: {names}", score)
    return Verdict(Outcome.PASS, Decider.RULE, found, score)


def _by_gold(item: JudgeItem, lexicon: Lexicon) -> Verdict:
    question = item.question
    if not question.gold.strip() or question.abstention:
        return Verdict(Outcome.UNJUDGED, Decider.RULE, "no evidence turn and no gold answer to look for")
    if read_answer(question, question.gold, item.candidate, lexicon).holds_gold:
        return Verdict(
            Outcome.PASS, Decider.RULE, "no evidence turn to look for; the retrieved text contains the gold", 1.0
        )
    return Verdict(Outcome.FAIL, Decider.RULE, "no evidence turn to look for; the retrieved text lacks the gold", 0.0)


def _carried(turn: Turn, item: JudgeItem, lexicon: Lexicon) -> bool:
    wanted = "" if item.question.abstention else item.question.gold
    detail = detail_of(turn_text(turn), turn.at, item.question.text, wanted, lexicon)
    for row in item.retrieved:
        sources = _sources(row, item)
        holds = held(detail, row.content, lexicon)
        if turn.turn_id in sources:
            if not holds.lost:
                return True
            continue
        read = lexicon.read(row.content)
        if detail.said.plain and detail.said.plain in read.plain:
            return True
        if sources or holds.lost:
            continue
        full = not detail.empty and holds.share > 0.99
        if overlap(read, detail.said, lexicon) >= COPY or (
            full and overlap(detail.said, read, lexicon) >= _MOSTLY_FROM
        ):
            return True
    return False


def _sources(row: Retrieved, item: JudgeItem) -> tuple[str, ...]:
    named = item.sources.get(row.fact_id) or row.metadata.get("source_turn_ids") or ()
    return tuple(str(one) for one in named) if isinstance(named, (list, tuple)) else ()
