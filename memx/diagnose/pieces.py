"""The pieces of evidence a question needs: its evidence turns, or what can be derived from the gold answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memx.diagnose.details import Detail, detail_of, meet
from memx.diagnose.lexicon import Lexicon, turn_text
from memx.model import Question, Turn
from memx.text.dates import dates_in
from memx.text.lists import items

#: A turn must hold this share of a question's weighted words to be taken for where the gold was said.
_ASKED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence.

    Attributes:
        turn_id: of the turn, or ``gold:1`` for a part of the gold answer that no turn could be found for.
        turn: None for a part of the gold answer.
        detail: the part of the answer that it states.
        derived: found by memx, not named by the dataset.
    """

    turn_id: str
    text: str
    turn: Turn | None
    detail: Detail
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Needed:
    """What a question needs.

    Attributes:
        stale: turns whose value a later turn replaced.
        dangling: evidence ids that are no turn of the case.
        corrected: the evidence is the errata's, not the dataset's.
        disputed: why the gold is in dispute; empty when it is not.
    """

    pieces: tuple[Piece, ...]
    stale: tuple[Piece, ...]
    gold: str
    dangling: tuple[str, ...] = ()
    corrected: bool = False
    disputed: str = ""


def needed_pieces(
    question: Question,
    turns: Mapping[str, Turn],
    session_of: Mapping[str, str],
    lexicon: Lexicon,
    erratum: Mapping[str, Any] | None = None,
) -> Needed:
    """The pieces of a question, its evidence corrected by the errata overlay first.

    Args:
        session_of: the session id of each turn id.
        erratum: ``kind``, and where known ``corrected_evidence`` (turn ids) and ``corrected_gold``. A kind of
            ``wrong_citation`` corrects the evidence; every other kind disputes the gold.
    """
    erratum = erratum or {}
    kind = str(erratum.get("kind") or erratum.get("error") or "")
    gold = str(erratum.get("corrected_gold") or question.gold)
    cited = list(question.evidence)
    corrected = [str(one) for one in erratum.get("corrected_evidence") or () if str(one) in turns]
    if corrected and set(corrected) != set(cited):
        cited = corrected
    else:
        corrected = []
    dangling = [one for one in cited if one not in turns]
    dangling += [str(one) for one in question.metadata.get("dangling_evidence", ()) if not corrected]
    dangling += [str(one) for one in question.metadata.get("unreadable_evidence", ()) if not corrected]
    stale_ids = [str(one) for one in question.metadata.get("stale_evidence", ()) if str(one) in turns]
    # What is asked of an abstention is a refusal, which no turn can state.
    wanted = "" if question.abstention else gold
    trap = str(question.metadata.get("trap") or "")

    def piece(turn: Turn, derived: bool = False) -> Piece:
        says = turn_text(turn)
        return Piece(turn.turn_id, says, turn, detail_of(says, turn.at, question.text, wanted, lexicon, trap), derived)

    named = [one for one in dict.fromkeys(cited) if one in turns]
    pieces = [piece(turns[one]) for one in named if one not in stale_ids] or [piece(turns[one]) for one in named]
    if not pieces and not dangling and not question.abstention:
        sessions = question.evidence_sessions
        inside = [turn for turn_id, turn in turns.items() if not sessions or session_of[turn_id] in sessions]
        pieces = _derived(question, gold, inside, lexicon)
    disputed = kind if kind and kind != "wrong_citation" else ""
    if not disputed and question.metadata.get("disputed"):
        disputed = str(question.metadata["disputed"])
    stale = tuple(piece(turns[one]) for one in dict.fromkeys(stale_ids))
    return Needed(tuple(pieces), stale, gold, tuple(dict.fromkeys(dangling)), bool(corrected), disputed)


def _derived(question: Question, gold: str, inside: Sequence[Turn], lexicon: Lexicon) -> list[Piece]:
    """One piece for each part of the gold: the turn that says it, in the question's words or as the only one; else the
    part itself."""
    asked = lexicon.read(question.text).terms
    whole = lexicon.weight(asked) or 1.0
    found: dict[str, Piece] = {}
    parts = [part for part in items(gold) if lexicon.read(part).terms - asked] or [gold]
    for number, part in enumerate(parts, 1):
        terms, dates = lexicon.read(part).terms - asked, dates_in(part)
        saying: list[tuple[float, Turn]] = []
        for one in inside:
            says = lexicon.read(turn_text(one)).terms | lexicon.read(one.speaker).terms
            said_when = dates and any(meet(a, b) for a in dates for b in dates_in(turn_text(one), one.at))
            if (terms and terms <= says) or said_when:
                saying.append((lexicon.weight(asked & says) / whole, one))
        best = max(saying, key=lambda pair: pair[0], default=None)
        telling = len(saying) == 1 and (len(terms) > 1 or bool(lexicon.read(part).values & terms))
        if best and (best[0] >= _ASKED_SHARE or telling):
            turn = best[1]
            says_so = turn_text(turn)
            detail = detail_of(says_so, turn.at, question.text, gold, lexicon)
            found.setdefault(turn.turn_id, Piece(turn.turn_id, says_so, turn, detail, derived=True))
        elif part.strip():
            text = f"{question.text} {part}"
            found[f"gold:{number}"] = Piece(
                f"gold:{number}", part, None, detail_of(text, None, question.text, part, lexicon), derived=True
            )
    return list(found.values())
