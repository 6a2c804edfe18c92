"""Facts that disagree with the fact a question needs: same subject and attribute, another value.

Two facts that agree are no rivals, however alike: a repeated fact, a paraphrase, a raw turn beside the fact extracted
from it, the several hops of a multi-hop question. What makes a rival is a *value put in the place of the asked one*:

* annotated: the dataset says that a later turn replaced this one's value;
* linked: the current fact supersedes it;
* a copy: it says what the current fact says but for the asked detail, in whose place something else stands;
* a statement: it answers the question's own words with a value of the asked kind that is not the gold's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memx.diagnose.answers import Answer
from memx.diagnose.carriers import Carriage, FactIndex, Ladder
from memx.diagnose.details import held, meet, overlap
from memx.diagnose.lexicon import Lexicon
from memx.diagnose.pieces import Needed, Piece
from memx.model import Fact, Question
from memx.text.dates import dates_in
from memx.text.lists import items

# Chosen on LoCoMo conversations 0-4 so that their 1,000 questions give no rival in a store without faults.
_FRAME = 0.75  # share of a carrier's weighted words, the asked detail aside, that a copy of it has
_OWN_FRAME = 0.85  # the same for a fact that comes from the carrier's own turn, which may be a lossy paraphrase
_FRAME_WORDS = 3  # least words of such a frame, speakers' names aside
_FRAME_RARITY = 1.5  # least weight of such a frame, in units of the case's rarest word: greetings weigh less
_ANSWERED_FRAME = 0.5  # share of such a frame that is enough for a fact whose value the answer took
_ANSWERED_RARITY = 0.6  # least weight of the words it shares, in units of the rarest word
_NEW = 0.5  # most of a copy's weight that may be new
_LINKED_ASKED = 0.6  # the same for both facts of a supersedes link
_SAME_BUT_NOT = 0.85  # share of words, both ways, at which a text with a "not" more denies the other
_SUPPORTED = 0.6  # link score from which a fact is the conversation's own word
_ASKED = 0.8  # share of a question's weighted words that a statement about it has


@dataclass(frozen=True, slots=True)
class Rival:
    """A fact that disagrees with one that carries a piece.

    Attributes:
        kind: ``annotated``, ``linked``, ``copy`` or ``statement``.
        linked: a supersedes link joins it to the current fact, or to one that says the same.
    """

    fact: Fact
    against: Fact
    piece: Piece
    kind: str
    linked: bool


class Rivals:
    """Looks for rivals in one store; built once per store."""

    def __init__(self, index: FactIndex, ladder: Ladder) -> None:
        self._index = index
        self._facts = facts = index.facts
        self._ladder = ladder
        self._lexicon: Lexicon = ladder.lexicon
        self._by_id = {fact.fact_id: fact for fact in reversed(facts)}
        #: Supersedes links whose two facts are both active.
        self._links = [
            (fact, self._by_id[old])
            for fact in facts
            for old in fact.supersedes
            if fact.active and old in self._by_id and self._by_id[old].active
        ]
        self._replaced_by: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            for old in fact.supersedes:
                self._replaced_by[old].append(fact)

    def of(self, question: Question, needed: Needed, carriages: Sequence[Carriage], answer: Answer) -> list[Rival]:
        """The rivals of every carried piece, active and retired ones."""
        carrying = {fact.fact_id for carriage in carriages for fact in carriage.carriers}
        same_text = {self._plain(fact) for carriage in carriages for fact in carriage.carriers}
        found: dict[str, tuple[Fact, Fact, Piece, str]] = {}

        def add(fact: Fact, against: Fact, piece: Piece, kind: str) -> None:
            if fact.fact_id != against.fact_id and self._plain(fact) != self._plain(against):
                found.setdefault(fact.fact_id, (fact, against, piece, kind))

        pairs = [
            (piece, carriage) for piece, carriage in zip(needed.pieces, carriages, strict=True) if carriage.carriers
        ]
        for piece, carriage in pairs:
            current = carriage.carriers[0]
            stating = not piece.detail.empty or all(other.detail.empty for other, _ in pairs)
            for old in self._annotated(needed) if stating else ():
                if old.fact_id not in carrying or not self._holds(piece, old):
                    add(old, current, piece, "annotated")
            for carrier in carriage.carriers:
                for old_id in carrier.supersedes:
                    linked = self._by_id.get(old_id)
                    if linked and not self._agrees(piece, linked, carrier):
                        add(linked, carrier, piece, "linked")
        for piece, _ in pairs:
            for new, old in self._links:
                if self._about(question, piece, new, old) and not self._agrees(piece, old, new):
                    add(old, new, piece, "linked")
        for piece, carriage in pairs:
            for carrier in carriage.carriers[:2]:
                for fact in self._copies(piece, carrier, answer):
                    if fact.fact_id not in carrying and not self._ladder.keeps(piece, fact):
                        add(fact, carrier, piece, "copy")
        if pairs and not question.abstention:
            piece, carriage = next((pair for pair in pairs if not pair[0].detail.empty), pairs[0])
            against = carriage.carriers[0]
            one_value = len(pairs) == 1 and len(items(needed.gold)) == 1
            for fact in self._statements(question, needed, piece, against, carrying | same_text, answer, one_value):
                add(fact, against, piece, "statement")
        return self._with_links(found.values(), carriages)

    # ----------------------------------------------------------------------------------------------------- kinds

    def _annotated(self, needed: Needed) -> list[Fact]:
        return [fact for stale in needed.stale for fact in self._ladder.carriage(stale, self._index).carriers]

    def _copies(self, piece: Piece, carrier: Fact, answer: Answer) -> list[Fact]:
        """Facts with the carrier's words but for the asked detail, and other words in its place."""
        detail, mine = piece.detail, self._lexicon.read(carrier.content)
        frame = mine.terms - detail.terms - self._lexicon.speakers
        if detail.dates:
            at = detail.at
            frame -= self._lexicon.read(" ".join(date.text for date in dates_in(carrier.content, at))).terms
        if not frame:
            return []
        sure = len(frame) >= _FRAME_WORDS and self._lexicon.weight(frame) >= _FRAME_RARITY * self._lexicon.rarest
        found = []
        for fact, share in self._near(frame, _ANSWERED_FRAME):
            read = self._lexicon.read(fact.content)
            if read.plain == mine.plain:
                continue
            # Where the answer took the value of a fact that the conversation does not say, fewer words need to agree.
            shared = self._lexicon.weight(frame & read.terms)
            telling = shared >= _ANSWERED_RARITY * self._lexicon.rarest and not self._ladder.says_so(fact)
            taken = telling and answer.takes(fact.content, carrier.content)
            if not (sure and share >= _FRAME) and not taken:
                continue
            if share < _OWN_FRAME and self._ladder.comes_from(piece, fact):
                continue
            new = read.terms - mine.terms
            if self._lexicon.weight(new) > _NEW * self._lexicon.weight(read.terms) and not taken:
                continue
            alike = min(overlap(read, mine, self._lexicon), overlap(mine, read, self._lexicon)) >= _SAME_BUT_NOT
            denies = read.negated != mine.negated and alike
            if denies or (new and self._replaced(piece, fact, carrier, answer)):
                found.append(fact)
        return found

    def _replaced(self, piece: Piece, fact: Fact, carrier: Fact, answer: Answer) -> bool:
        """True when something else stands where the carrier has the asked detail."""
        detail, read, mine = piece.detail, self._lexicon.read(fact.content), self._lexicon.read(carrier.content)
        gone = mine.values - read.values - self._lexicon.speakers
        other_value = bool(gone) and bool(read.values - mine.values - self._lexicon.speakers)
        if detail.empty:
            # Nothing tells which words of the turn the answer rests on: only another number or name disagrees.
            return other_value
        holds = held(detail, fact.content, self._lexicon)
        if holds.share > 0.5 and not (other_value and detail.values & gone):
            return False
        # What the conversation itself says in like words disagrees by another value, or because the answer took it.
        own_word = self._ladder.support(fact) >= _SUPPORTED
        return not own_word or other_value or answer.takes(fact.content, carrier.content)

    def _statements(
        self,
        question: Question,
        needed: Needed,
        piece: Piece,
        against: Fact,
        carrying: set[str],
        answer: Answer,
        one_value: bool,
    ) -> list[Fact]:
        """Facts that answer the question's words with another value: one that the conversation does not say and the
        answer took, or, for a question with one value, another of the gold's kind."""
        asked = self._lexicon.read(question.text)
        gold = self._lexicon.read(needed.gold)
        if len(asked.terms - self._lexicon.speakers) < 2:
            return []
        found = []
        gold_dates = dates_in(needed.gold)
        for fact, _ in self._near(asked.terms, _ASKED):
            read = self._lexicon.read(fact.content)
            if fact.fact_id in carrying or read.plain in carrying or fact.content.rstrip().endswith("?"):
                continue
            if gold.terms & (read.terms - asked.terms):
                continue
            taken = answer.takes(fact.content, against.content)
            if taken and not self._ladder.says_so(fact):
                found.append(fact)
                continue
            # A conversation tells of many events in like words; they disagree where the answer took one for another.
            if not one_value or (self._ladder.support(fact) >= _SUPPORTED and not taken):
                continue
            if gold_dates:
                at = piece.turn.at if piece.turn else None
                told = dates_in(fact.content, at)
                if told and not any(meet(a, b) for a in told for b in gold_dates):
                    found.append(fact)
            elif gold.values - asked.terms and read.values - asked.terms - self._lexicon.speakers:
                found.append(fact)
        return found

    # ----------------------------------------------------------------------------------------------------- helpers

    def _about(self, question: Question, piece: Piece, new: Fact, old: Fact) -> bool:
        """True when a link concerns the piece: one of its facts comes from the turn, or both answer the question."""
        if any(self._ladder.comes_from(piece, fact) for fact in (new, old)):
            return True
        asked = self._lexicon.read(question.text)
        return all(
            overlap(self._lexicon.read(fact.content), asked, self._lexicon) >= _LINKED_ASKED for fact in (new, old)
        )

    def _near(self, terms: frozenset[str], share: float) -> list[tuple[Fact, float]]:
        """Facts that hold at least this share of the weight of the terms, with the share they hold."""
        whole = self._lexicon.weight(terms)
        weights: dict[int, float] = defaultdict(float)
        for one in sorted(terms):
            weight = self._lexicon.weight(frozenset({one}))
            for position in self._index.by_term.get(one, ()):
                weights[position] += weight
        return [
            (self._facts[position], weight / whole)
            for position, weight in weights.items()
            if weight >= share * whole - 1e-9
        ]

    def _holds(self, piece: Piece, fact: Fact) -> bool:
        return not piece.detail.empty and not held(piece.detail, fact.content, self._lexicon).lost

    def _agrees(self, piece: Piece, old: Fact, new: Fact) -> bool:
        """True when a superseded fact says what the new one says: a merge of duplicates, not an update."""
        if not piece.detail.empty:
            return held(piece.detail, old.content, self._lexicon).share >= 0.99
        mine, read = self._lexicon.read(new.content), self._lexicon.read(old.content)
        return read.plain == mine.plain or read.plain in mine.plain

    def _with_links(
        self, found: Collection[tuple[Fact, Fact, Piece, str]], carriages: Sequence[Carriage]
    ) -> list[Rival]:
        """Mark who is linked: to a carrier, or as a repetition of a fact that is."""
        replaced = {old for carriage in carriages for fact in carriage.carriers for old in fact.supersedes}
        replacing = {
            new.fact_id
            for carriage in carriages
            for fact in carriage.carriers
            for new in self._replaced_by[fact.fact_id]
        }
        known = replaced | replacing | {fact.fact_id for fact, _, _, kind in found if kind == "linked"}
        texts = {self._plain(self._by_id[one]) for one in known if one in self._by_id}
        return [
            Rival(fact, against, piece, kind, fact.fact_id in known or self._plain(fact) in texts)
            for fact, against, piece, kind in found
        ]

    def _plain(self, fact: Fact) -> str:
        return self._lexicon.read(fact.content).plain
