"""The judge audit: right and wrong answers of known kind are planted, and the judge's mistakes counted.

Right answers are the gold, reworded; wrong ones hold another question's gold, a changed number or date, a denial, two
answers at once, a vague remark, unrelated talk, or a wrong value hidden in a long reply.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memx.adapters.contract import Dataset
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.side_by_side import side_by_side
from memx.engine.summary import Share
from memx.errors import UsageError
from memx.model import Candidate, CandidateSource, Case, Outcome, Question, Verdict
from memx.text.words import stems

_NUMBER = re.compile(r"\d+")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_VAGUE = "They talked about it at some point, and it seemed to matter to them."


@dataclass(frozen=True, slots=True)
class Planted:
    """One planted answer: its kind, and whether the judge should accept it."""

    kind: str
    right: bool
    question: Question
    answer: str


@dataclass(frozen=True, slots=True)
class JudgeAudit:
    """What a judge made of the planted answers: by kind, whether it is right, and (kind's accepted, asked)."""

    judge: str
    dataset: str
    seed: int
    accepted: dict[tuple[str, bool], Share]
    unjudged: int

    @property
    def false_rejects(self) -> Share:
        """Right answers that were not accepted."""
        return self._total(right=True)

    @property
    def false_accepts(self) -> Share:
        """Wrong answers that were accepted."""
        return self._total(right=False)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """False accepts, wrong answers planted, false rejects, right answers planted."""
        accepts, rejects = self.false_accepts, self.false_rejects
        return accepts.n, accepts.d, rejects.n, rejects.d

    def _total(self, *, right: bool) -> Share:
        shares = [share for (_, is_right), share in self.accepted.items() if is_right is right]
        accepted, asked = sum(s.n for s in shares), sum(s.d for s in shares)
        return Share(asked - accepted if right else accepted, asked)

    def text(self) -> str:
        """The report as plain lines, with 95 % Wilson intervals."""
        lines = [
            f"judge {self.judge} on {self.dataset}, seed {self.seed}",
            f"  false rejects {_percent(self.false_rejects)}   false accepts {_percent(self.false_accepts)}"
            f"   unjudged {self.unjudged}",
            "",
            "  planted                              accepted                  should be",
        ]
        for (kind, right), share in self.accepted.items():
            lines.append(f"  {kind:<34}  {_percent(share):<26}{'all' if right else 'none'}")
        return "\n".join(lines)


def audit_judge(
    judge: Judge, dataset: Dataset, *, seed: int = 0, limit: int | None = None, concurrency: int = 4
) -> JudgeAudit:
    """Plant answers to a dataset's answerable questions and count what the judge accepts.

    Args:
        limit: questions to plant answers for, drawn at random; None for all.

    Raises:
        UsageError: the dataset has no question with an answer.
    """
    planted = list(plant(dataset.cases(), random.Random(seed), limit))
    if not planted:
        raise UsageError(f"dataset {dataset.info.name} has no question with an answer", "Take another dataset.")
    verdicts = list(side_by_side(lambda one: _verdict(judge, one), planted, concurrency))
    counts: dict[tuple[str, bool], list[int]] = {}
    unjudged = 0
    for one, verdict in zip(planted, verdicts, strict=True):
        if verdict.outcome not in (Outcome.PASS, Outcome.FAIL):
            unjudged += 1
            continue
        found = counts.setdefault((one.kind, one.right), [0, 0])
        found[0] += verdict.outcome is Outcome.PASS
        found[1] += 1
    accepted = {key: Share(n, d) for key, (n, d) in counts.items()}
    return JudgeAudit(judge.name, dataset.info.name, seed, accepted, unjudged)


def plant(cases: Iterable[Case], dice: random.Random, limit: int | None = None) -> Iterator[Planted]:
    """The planted answers, question by question."""
    asked = [(case, q) for case in cases for q in case.questions if q.gold.strip() and not q.abstention]
    if limit is not None and limit < len(asked):
        asked = dice.sample(asked, limit)
    golds = [question.gold for _, question in asked]
    for case, question in asked:
        for kind, right, write in _KINDS:
            answer = write(question, golds, case, dice)
            if answer is not None:
                yield Planted(kind, right, question, answer)


def _verdict(judge: Judge, one: Planted) -> Verdict:
    return judge.judge(JudgeItem(one.question, Candidate(one.answer, CandidateSource.MODEL)))


_Write = Callable[[Question, Sequence[str], Case, random.Random], str | None]


def _other(question: Question, golds: Sequence[str], case: Case, dice: random.Random) -> str | None:
    """The gold of another question that shares no content word with this one's."""
    own = set(stems(question.gold))
    for _ in range(20):
        other = dice.choice(golds)
        found = set(stems(other))
        if found and not own & found and len(found) <= 3 * max(1, len(own)):
            return other
    return None


def _or_other(question: Question, golds: Sequence[str], case: Case, dice: random.Random) -> str | None:
    other = _other(question, golds, case, dice)
    return other and f"{question.gold.rstrip('.')} or {other}"


def _changed(question: Question, golds: Sequence[str], case: Case, dice: random.Random) -> str | None:
    """The gold with a number or month replaced; None where it has neither."""
    month = next((name for name in _MONTHS if re.search(rf"\b{name}\b", question.gold)), None)
    if month is not None:
        # Half a year on, so that no reading of "early" or "late" makes both right.
        return question.gold.replace(month, _MONTHS[(_MONTHS.index(month) + 6) % 12])
    match = _NUMBER.search(question.gold)
    if match is None:
        return None
    value = int(match.group())
    return f"{question.gold[: match.start()]}{value + max(3, value // 3)}{question.gold[match.end() :]}"


def _hidden(question: Question, golds: Sequence[str], case: Case, dice: random.Random) -> str | None:
    wrong = _changed(question, golds, case, dice) or _other(question, golds, case, dice)
    turns = _other_turns(case, question)
    if wrong is None or len(turns) < 6:
        return None
    talk = dice.sample(turns, 6)
    return " ".join([*talk[:3], f"So the answer is {wrong}.", *talk[3:]])


def _unrelated(question: Question, golds: Sequence[str], case: Case, dice: random.Random) -> str | None:
    turns = _other_turns(case, question)
    return " ".join(dice.sample(turns, 10)) if len(turns) >= 10 else None


def _other_turns(case: Case, question: Question) -> list[str]:
    turns = (turn for session in case.sessions for turn in session.turns)
    return [turn.content for turn in turns if turn.turn_id not in question.evidence]


_KINDS: tuple[tuple[str, bool, _Write], ...] = (
    ("gold as it is", True, lambda q, golds, case, dice: q.gold),
    ("gold in a sentence", True, lambda q, golds, case, dice: f"From what was said, the answer is {q.gold}"),
    ("gold in lower case, no full stop", True, lambda q, golds, case, dice: q.gold.lower().rstrip(".")),
    ("another question's gold", False, _other),
    ("a changed number or date", False, _changed),
    ("a denial of the gold", False, lambda q, golds, case, dice: f"It was not {q.gold}"),
    ("the gold or something else", False, _or_other),
    ("vague", False, lambda q, golds, case, dice: _VAGUE),
    ("ten unrelated turns", False, _unrelated),
    ("a wrong value in a long reply", False, _hidden),
)


def _percent(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"{share.value * 100:.1f} % ({low * 100:.1f} to {high * 100:.1f})"
