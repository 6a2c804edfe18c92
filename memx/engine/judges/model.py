"""The judge that asks a language model, by a prompt of its own for each dataset and category."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memx.engine.answers.context import shown_date
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.judges.ordering import event_order_score
from memx.engine.judges.rubrics import Rubric, is_abstention, nuggets_of, rubric_for
from memx.engine.judges.voting import Vote, VoteCounter, VoteStats, majority
from memx.engine.prompts import Prompts, fields_in, fill, hash_texts
from memx.errors import InputError, UnreadableReply, UsageError
from memx.llm.client import LLM
from memx.llm.reading import Unread, as_score, read_list, read_object, read_verdict
from memx.model import Candidate, CandidateSource, Decider, Outcome, Question, Turn, Verdict

#: Raised with every change of a prompt's meaning, so that verdicts of two versions are not taken for one judge's.
PROMPT_VERSION = 1
#: A graded reply passes above this score: more of the rubric is met than not, and an order is better than chance.
PASS_ABOVE = 0.5
NUGGET_SCORES = (0.0, 0.5, 1.0)
#: Room for a reply, in tokens: one sentence and a verdict; then so many more for each nugget.
VERDICT_TOKENS = 300
NUGGET_TOKENS = 80

_OWN_FIELDS = ("question", "gold", "candidate", "category", "asked_at")
_OUR_TAGS = re.compile(r"<(/?)(question|gold|candidate|list|turns|trap)>", re.IGNORECASE)


class ModelJudge(Judge):
    """Asks a model whether a candidate answers its question.

    Args:
        dataset_name: picks the prompts, with each question's category.
        votes: so many replies are asked for, and the majority decides; an odd number.
        confirm_fails: a FAIL is asked about once more, and if that gives PASS a third time, which decides.
        prompt_file: a prompt of the user's own for every question, with ``{question}``, ``{gold}`` and
            ``{candidate}`` (and if wanted ``{category}`` and ``{asked_at}``); the form of the reply is added to it.

    Raises:
        UsageError: an even number of votes.
        InputError: the prompt file is missing or lacks a field.
    """

    decider = Decider.MODEL

    def __init__(
        self,
        llm: LLM,
        *,
        dataset_name: str = "",
        votes: int = 1,
        confirm_fails: bool = False,
        prompt_file: Path | None = None,
    ) -> None:
        if votes < 1 or votes % 2 == 0:
            raise UsageError(f"--votes is an odd number, not {votes}", "Take 1, 3 or 5.")
        self.name = llm.model
        self._llm = llm
        self._dataset = dataset_name
        self._votes = votes
        self._confirm = confirm_fails
        self._own = _own_prompt(prompt_file) if prompt_file is not None else None
        self._prompts = Prompts("memx.engine.judges")
        self._counter = VoteCounter()
        self.prompt_sha256 = self._hash()

    def preflight(self) -> None:
        """Try key and model once."""
        self._llm.preflight()

    @property
    def stats(self) -> VoteStats:
        """How the votes so far agree with each other."""
        return self._counter.stats

    def judge(self, item: JudgeItem) -> Verdict:
        """The verdict; on a graded question with its score.

        Raises:
            ModelError: no verdict could be had; an ``UnreadableReply`` keeps the last reply's text.
        """
        candidate = item.candidate
        if candidate.source is CandidateSource.RETRIEVED and is_abstention(item.question):
            return Verdict(Outcome.UNJUDGED, Decider.MEMX, "retrieved text cannot refuse, which is the right answer")
        if not candidate.text.strip() and not is_abstention(item.question):
            return Verdict(Outcome.FAIL, Decider.RULE, "the candidate is empty")
        votes = self._collect(item)
        decided = majority(votes)
        confirmed = overturned = False
        if decided is not None and not decided.passed and self._confirm:
            confirmed = True
            more = [self._vote(item, "confirm 1")]
            if more[0].passed:
                more.append(self._vote(item, "confirm 2"))
            overturned = more[-1].passed
            votes = [*votes, *more]
            if overturned:
                decided = Vote(True, f"{more[-1].why} (first judged FAIL, then PASS twice)", more[-1].score)
        self._counter.count(votes, confirmed=confirmed, overturned=overturned)
        if decided is None:
            return Verdict(Outcome.UNJUDGED, Decider.MODEL, f"the {len(votes)} votes are tied")
        outcome = Outcome.PASS if decided.passed else Outcome.FAIL
        return Verdict(outcome, Decider.MODEL, decided.why, decided.score)

    def _collect(self, item: JudgeItem) -> list[Vote]:
        """All votes that could be read, as long as one could."""
        votes: list[Vote] = []
        unreadable: UnreadableReply | None = None
        for number in range(self._votes):
            try:
                # The first vote has no salt, so that it is the one that a run without votes has in its cache.
                votes.append(self._vote(item, f"vote {number + 1}" if number else ""))
            except UnreadableReply as error:
                unreadable = error
        if not votes and unreadable is not None:
            raise unreadable
        return votes

    def _vote(self, item: JudgeItem, salt: str) -> Vote:
        if self._own is not None:
            return self._binary(fill(self._own, _fields(item.question, item.candidate)), "", salt)
        rubric = rubric_for(self._dataset, item.question, item.candidate.source)
        if rubric in (Rubric.NUGGETS, Rubric.ORDERING):
            return self._graded(rubric, item, salt)
        material = self._prompts.fill(
            "material", {**_fields(item.question, item.candidate), "more": _more(rubric, item)}
        )
        return self._binary(material, self._prompts.text(rubric), salt)

    def _binary(self, user: str, system: str, salt: str) -> Vote:
        form = self._prompts.text("reply_verdict")
        read, _ = self._llm.ask(
            _messages(system, user, form),
            read_verdict,
            purpose="judge",
            reminder=self._prompts.text("reminder_verdict"),
            max_tokens=VERDICT_TOKENS,
            json_mode=True,
            salt=salt,
        )
        return Vote(read.passed, read.why or "the judge gave no reason")

    def _graded(self, rubric: Rubric, item: JudgeItem, salt: str) -> Vote:
        """BEAM's rubrics: the mean over nuggets, or the order of events."""
        nuggets = nuggets_of(item.question)
        fields = {
            **_fields(item.question, item.candidate),
            "list": "\n".join(f"{number}. {_untagged(nugget)}" for number, nugget in enumerate(nuggets, 1)),
        }
        reader: Callable[[str], Vote] = _nugget_reader(nuggets) if rubric is Rubric.NUGGETS else _order_reader(nuggets)
        count = {"count": str(len(nuggets))}
        vote, _ = self._llm.ask(
            _messages(
                self._prompts.text(rubric),
                self._prompts.fill("material_list", fields),
                self._prompts.fill(f"reply_{rubric}", count),
            ),
            reader,
            purpose="judge",
            reminder=self._prompts.fill(f"reminder_{rubric}", count),
            max_tokens=VERDICT_TOKENS + NUGGET_TOKENS * len(nuggets),
            json_mode=True,
            salt=salt,
        )
        return vote

    def _hash(self) -> str:
        forms = ["reply_verdict", "reminder_verdict", "material"]
        if self._own is None:
            graded = [f"{part}_{kind}" for part in ("reply", "reminder") for kind in (Rubric.NUGGETS, Rubric.ORDERING)]
            forms += [*Rubric, *graded, "material_list"]
        texts = {name: self._prompts.text(name) for name in forms}
        return hash_texts({**texts, "dataset": self._dataset, "own": self._own or "", "version": str(PROMPT_VERSION)})


def _messages(system: str, user: str, form: str) -> list[Mapping[str, str]]:
    instructions = f"{system}\n\n{form}".strip()
    return [{"role": "system", "content": instructions}, {"role": "user", "content": user}]


def _fields(question: Question, candidate: Candidate) -> dict[str, str]:
    return {
        "question": _untagged(question.text) or "(not given)",
        "gold": _untagged(question.gold),
        "candidate": _untagged(candidate.text) or "(nothing was said)",
        "category": question.category,
        "asked_at": f"Asked on {shown_date(question.asked_at)}." if question.asked_at else "",
    }


def _more(rubric: Rubric, item: JudgeItem) -> str:
    """What only some prompts show: the trap of an adversarial question, the turns that hold the answer."""
    trap = item.question.metadata.get("trap")
    if rubric is Rubric.ADVERSARIAL and trap:
        return f"<trap>{_untagged(str(trap))}</trap>"
    if rubric is Rubric.RETRIEVED and item.evidence:
        return "<turns>\n" + "\n".join(_turn_line(turn) for turn in item.evidence) + "\n</turns>"
    return ""


def _turn_line(turn: Turn) -> str:
    said = f"{turn.speaker}: {_untagged(turn.content)}"
    return f"[{shown_date(turn.at)}] {said}" if turn.at else said


def _untagged(text: str) -> str:
    """The text without our own tags, so that no candidate can close its own and speak as the judge's instructions."""
    return _OUR_TAGS.sub(r"(\1\2)", text).strip()


def _nugget_reader(nuggets: tuple[str, ...]) -> Callable[[str], Vote]:
    def read(text: str) -> Vote:
        scores = [as_score(value, NUGGET_SCORES) for value in read_list(text, "nuggets", len(nuggets))]
        mean = sum(scores) / len(scores)
        short = [_cut(nugget) for nugget, score in zip(nuggets, scores, strict=True) if score < 1]
        why = f"{sum(scores):g} of {len(scores)} nuggets met"
        return Vote(mean > PASS_ABOVE, f"{why}; short of: {'; '.join(short)}" if short else why, mean)

    return read


def _order_reader(events: tuple[str, ...]) -> Callable[[str], Vote]:
    def read(text: str) -> Vote:
        reply = read_object(text, "positions")
        places = read_list(text, "positions", len(events))
        listed = _whole(reply.get("listed"))
        positions = [None if place is None else _whole(place) for place in places]
        taken = [place for place in positions if place is not None]
        if len(set(taken)) != len(taken) or any(not 1 <= place <= listed for place in taken):
            raise Unread(f"positions are different numbers from 1 to {listed}")
        score = event_order_score(positions, listed)
        shown = ", ".join("-" if place is None else str(place) for place in positions)
        why = f"{len(taken)} of {len(events)} events listed, at places {shown} of {listed}: order score {score:.2f}"
        return Vote(score > PASS_ABOVE, why, score)

    return read


def _whole(value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Unread(f"{value!r} is no whole number") from None
    if isinstance(value, bool) or not 0 <= number <= 10_000 or number != int(number):
        raise Unread(f"{value!r} is no whole number")
    return int(number)


def _cut(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _own_prompt(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", "Give a prompt by --judge-prompt.", path=path) from None
    except UnicodeDecodeError:
        raise InputError("is no UTF-8 text", path=path) from None
    missing = [name for name in ("candidate", "gold") if name not in fields_in(text)]
    if missing:
        needs = " and ".join(f"{{{name}}}" for name in missing)
        fields = ", ".join(f"{{{name}}}" for name in _OWN_FIELDS)
        raise InputError(f"the judge prompt lacks {needs}", f"Its fields are {fields}.", path=path)
    return text
