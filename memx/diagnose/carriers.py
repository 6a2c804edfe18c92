"""The relevance ladder: which stored facts carry a piece of evidence, and which rung decided it.

In order: provenance (the fact names the turn, or its session is known and its words are the turn's), text (wording and
values), embeddings. No rung asks whether a fact *looks relevant* to the question; each asks whether it carries *this
turn's* content, which is what the trail of a piece is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from memx.diagnose.contract import Embed, History
from memx.diagnose.details import COPY, Held, held, overlap
from memx.diagnose.lexicon import Lexicon, Read, turn_text
from memx.diagnose.links import Link, TurnLinks, statements
from memx.diagnose.pieces import Piece
from memx.model import Case, DecidedBy, Fact

if TYPE_CHECKING:
    import numpy as np

# Chosen on LoCoMo conversations 1-5 with their extracted facts; reported on 6-10 by benchmarks/diagnosis.py.
_ODDS_OF_ASKED = 2.5  # log-odds that a fact comes from a turn gain by holding all of the question's words
_ODDS_OF_DETAIL = 1.5  # and by holding all of the asked detail instead of none
_LEAST_ODDS = -1.75  # where nothing comes nearer: one in seven
_LOST_ODDS = 0.0  # the same for a fact that lost the detail: what else tells that it is about this turn?
_SURE_ODDS = 3.0  # a fact this sure carries the turn beside any other
_BESIDE_ODDS = 3.0  # and so does it beside a fact that repeats or names the turn
_BEHIND = 1.0  # a fact less sure than that carries it only this little behind the best one
_OUTWEIGHS = 3.0  # a fact that lost the detail decides when it leads by this much the facts that hold it
_AS_GOOD = -0.1  # lead from which a fact may come from a turn as well as from the best one
_ALL_BUT = 0.9  # score from which a fact is a turn's text, as good as word for word
_LOOSE = 0.5  # score below which wording links a fact to no turn for certain
_VERBATIM_WORDS = 4  # words from which a turn that stands whole inside a longer fact is no accident
_COPY_THAT_DENIES = 0.9  # share of a turn's words from which a text says the same or the opposite
_SAME_MEANING = 0.7  # cosine of a paraphrase


@dataclass(frozen=True, slots=True)
class Carriage:
    """Which facts carry a piece.

    Attributes:
        carriers: facts that carry it, best first: active before retired, then by how much of the detail they hold.
        lost: facts from the right place that lost the detail, with what is missing.
        decided_by: the rung that decided it, for a piece that nothing carries the last one tried.
        odds: log-odds of the likeliest fact by wording; None where wording did not decide.
    """

    carriers: tuple[Fact, ...]
    lost: tuple[tuple[Fact, Held], ...]
    decided_by: DecidedBy
    share: float = 1.0
    odds: float | None = None

    @property
    def unsure(self) -> bool:
        """True where a model could know better: nothing was found, or wording alone found it and not for certain."""
        if not self.carriers and not self.lost:
            return True
        return self.odds is not None and self.odds < _SURE_ODDS

    @property
    def active(self) -> tuple[Fact, ...]:
        """The carriers that the store holds to be true now."""
        return tuple(fact for fact in self.carriers if fact.active)


@dataclass(slots=True)
class FactIndex:
    """The facts of a store, linked to the turns they came from.

    Attributes:
        by_turn: facts by the turn that their provenance names.
        unsourced: facts whose provenance names no turn of the case.
        facts: all of them.
        by_term: positions in ``facts`` by the words they have.
        by_text: links by turn that the wording of unsourced facts makes.
        sessions: the session that brought each fact, by fact id, as far as known.
    """

    by_turn: Mapping[str, list[Fact]]
    unsourced: tuple[Fact, ...]
    facts: tuple[Fact, ...]
    by_term: Mapping[str, list[int]]
    by_text: dict[str, list[tuple[Fact, Link]]] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)


class Ladder:
    """Links facts to the turns of one case, whatever store they are in; what it has read it remembers."""

    def __init__(self, case: Case, embed: Embed | None = None) -> None:
        self._embed = embed
        self._turns = case.turns()
        self._session_of = case.session_of()
        self.lexicon = lexicon = Lexicon(self._turns.values())
        self._reads = {turn_id: lexicon.read(turn_text(turn)) for turn_id, turn in self._turns.items()}
        self._links = TurnLinks(case, lexicon, self._reads)
        self._vectors: dict[str, np.ndarray[Any, Any]] = {}

    def index(self, facts: Iterable[Fact], sessions: Mapping[str, str] | None = None) -> FactIndex:
        """Sort facts by provenance, and those without by the turns whose words they have.

        Args:
            sessions: the session that brought each fact, by fact id (:func:`sessions_of_facts`).
        """
        sessions = sessions or {}
        by_turn: dict[str, list[Fact]] = defaultdict(list)
        by_term: dict[str, list[int]] = defaultdict(list)
        unsourced = []
        facts = tuple(facts)
        for position, fact in enumerate(facts):
            named = [one for one in dict.fromkeys(fact.source_turn_ids) if one in self._turns]
            for one in named:
                by_turn[one].append(fact)
            if not named:
                unsourced.append(fact)
            for one in self.lexicon.read(fact.content).terms:
                by_term[one].append(position)
        index = FactIndex(by_turn, tuple(unsourced), facts, by_term, sessions=sessions)
        for fact in unsourced:
            for link in self._links.of(fact.content, sessions.get(fact.fact_id)):
                index.by_text.setdefault(link.turn_id, []).append((fact, link))
        return index

    def carriage(self, piece: Piece, index: FactIndex) -> Carriage:
        """The facts that carry a piece."""
        if piece.turn is None:
            return self._by_gold(piece, index.facts)
        named = self._sort(piece, index.by_turn.get(piece.turn_id, ()), DecidedBy.PROVENANCE)
        rarest = min(piece.detail.said.terms, key=lambda one: len(index.by_term.get(one, ())), default=None)
        near = index.facts if rarest is None else [index.facts[one] for one in index.by_term.get(rarest, ())]
        copies = self._sort(piece, [fact for fact in near if self._repeats(piece, fact)], DecidedBy.TEXT)
        if named.carriers or copies.carriers:
            # The turn may be stored more than once, raw and extracted; whichever of its facts comes back will do.
            return _together(named, copies, self._by_text(piece, index, beside=True))
        if not index.unsourced:
            return named if named.lost else Carriage((), copies.lost, DecidedBy.PROVENANCE)
        by_text = self._by_text(piece, index)
        if by_text.carriers or not self._embed:
            return replace(by_text, lost=named.lost or by_text.lost)
        by_meaning = self._by_meaning(piece, index)
        lost = named.lost or by_text.lost or by_meaning.lost
        return Carriage(by_meaning.carriers, lost, by_meaning.decided_by, by_meaning.share)

    def short_list(self, piece: Piece, index: FactIndex, length: int) -> list[Fact]:
        """The facts without provenance that come nearest to a piece: by what their wording links them to, by the words
        they share with it, and by embedding."""
        linked = sorted(index.by_text.get(piece.turn_id, ()), key=lambda pair: -pair[1].odds)[: length // 2]
        said = piece.detail.said
        scored = [(overlap(self.lexicon.read(fact.content), said, self.lexicon), fact) for fact in index.unsourced]
        scored.sort(key=lambda pair: (-pair[0], pair[1].content, pair[1].fact_id))
        by_words = [fact for share, fact in scored[:length] if share > 0]
        by_meaning: list[Fact] = []
        if self._embed and piece.turn is not None:
            says = f"{piece.turn.speaker}: {piece.text}"
            told = [fact for fact in index.unsourced if fact.content.strip()]
            vectors = self.vectors([says, *(fact.content for fact in told)])
            told.sort(key=lambda fact: (-float(vectors[says] @ vectors[fact.content]), fact.content, fact.fact_id))
            by_meaning = told[:length]
        mixed = [fact for pair in zip_longest(by_words, by_meaning) for fact in pair if fact]
        return list({fact.fact_id: fact for fact in [*(fact for fact, _ in linked), *mixed]}.values())[:length]

    def comes_from(self, piece: Piece, fact: Fact) -> bool:
        """True when provenance, or else the fact's wording, says that it comes from the piece's turn."""
        named = [one for one in fact.source_turn_ids if one in self._turns]
        if named:
            return piece.turn_id in named
        return any(link.turn_id == piece.turn_id and link.lead >= _AS_GOOD for link in self._links.of(fact.content))

    def keeps(self, piece: Piece, fact: Fact) -> bool:
        """True when a fact comes from the piece's turn and has lost nothing that a paraphrase does not explain."""
        if self._repeats(piece, fact):
            return True
        if not self.comes_from(piece, fact) or self._denies(piece, fact):
            return False
        if piece.detail.empty:
            return not self._altered(piece, fact)
        return not held(piece.detail, fact.content, self.lexicon).lost

    def support(self, fact: Fact) -> float:
        """How far the conversation says what a fact says, 0..1: 1 for a turn stored word for word."""
        return max((link.score for link in self._links.of(fact.content)), default=0.0)

    def says_so(self, fact: Fact) -> bool:
        """True when the conversation says what a fact says: one of the turns it names does, or it all but is a turn."""
        links = self._links.of(fact.content)
        named = {one for one in fact.source_turn_ids if one in self._turns}
        if named:
            return any(link.turn_id in named for link in links)
        return any(link.score >= _ALL_BUT for link in links)

    # ------------------------------------------------------------------------------------------------------- rungs

    def _by_text(self, piece: Piece, index: FactIndex, *, beside: bool = False) -> Carriage:
        """Facts whose words are the turn's rather than any other turn's, the more so the more they say of what is
        asked; and facts of which the same holds, but for a lost detail.

        Args:
            beside: facts beside others that carry the piece for certain: those alone that are as sure.
        """
        carrying: list[tuple[float, Fact]] = []
        lost: list[tuple[float, Fact]] = []
        for fact, link in index.by_text.get(piece.turn_id, ()):
            read = self.lexicon.read(fact.content)
            odds = link.odds + _ODDS_OF_ASKED * overlap(read, piece.detail.asked, self.lexicon)
            holds = held(piece.detail, fact.content, self.lexicon)
            if holds.lost:
                lost.append((odds, fact))
            else:
                share = self._about(piece, read) if piece.detail.empty else holds.share
                carrying.append((odds + _ODDS_OF_DETAIL * (share - 0.5), fact))
        if beside:
            sure = [fact for odds, fact in carrying if odds >= _BESIDE_ODDS]
            return self._sort(piece, sure, self._text_rung(sure, index))
        best = max((odds for odds, _ in carrying), default=_LEAST_ODDS)
        worst = max((odds for odds, _ in lost), default=_LEAST_ODDS)
        least = max(_LEAST_ODDS, min(best - _BEHIND, _SURE_ODDS))
        own = [fact for odds, fact in carrying if odds >= least]
        gone = [fact for odds, fact in lost if odds >= _LOST_ODDS]
        if own and worst - best < _OUTWEIGHS:
            found = self._sort(piece, own, self._text_rung(own, index))
            if found.carriers:
                return replace(found, odds=best)
        found = self._sort(piece, gone or own, self._text_rung([*own, *gone], index))
        return replace(found, odds=max(best, worst))

    def _about(self, piece: Piece, read: Read) -> float:
        """The weighted share of what of the turn matters that a text has, 0..1."""
        whole = self.lexicon.weight(piece.detail.focus)
        return self.lexicon.weight(piece.detail.focus & read.terms) / whole if whole else 0.5

    @staticmethod
    def _text_rung(facts: Sequence[Fact], index: FactIndex) -> DecidedBy:
        """Provenance when snapshots per session say where all of the facts came from."""
        known = bool(facts) and all(fact.fact_id in index.sessions for fact in facts)
        return DecidedBy.PROVENANCE if known else DecidedBy.TEXT

    def _by_meaning(self, piece: Piece, index: FactIndex) -> Carriage:
        """Facts that no wording links to a turn, compared by the cosine of their embeddings."""
        assert self._embed is not None and piece.turn is not None
        loose = [fact for fact in index.unsourced if fact.content.strip() and self.support(fact) < _LOOSE]
        if not loose:
            return Carriage((), (), DecidedBy.TEXT)
        says = f"{piece.turn.speaker}: {piece.text}"
        vectors = self.vectors([says, *(fact.content for fact in loose)])
        near = []
        for fact in loose:
            cosine = float(vectors[says] @ vectors[fact.content])
            if cosine >= _SAME_MEANING:
                near.append(fact)
        return self._sort(piece, near, DecidedBy.EMBEDDING)

    def _by_gold(self, piece: Piece, facts: Sequence[Fact]) -> Carriage:
        """Facts that state a part of the gold answer, for a question without evidence turns."""
        stating = []
        for fact in facts:
            read = self.lexicon.read(fact.content)
            asked = overlap(read, piece.detail.said, self.lexicon)
            if piece.detail.empty:
                if asked >= COPY:
                    stating.append(fact)
            elif held(piece.detail, fact.content, self.lexicon).share >= 0.99 and asked >= 0.4:
                stating.append(fact)
        return self._sort(piece, stating, DecidedBy.TEXT)

    def _sort(self, piece: Piece, facts: Iterable[Fact], rung: DecidedBy) -> Carriage:
        carrying: list[tuple[float, Fact]] = []
        lost: list[tuple[Fact, Held]] = []
        for fact in facts:
            # A store that shows no content can only be believed about where its facts came from.
            holds = held(piece.detail, fact.content, self.lexicon) if fact.content.strip() else Held(1.0, False, ())
            if holds.lost or self._vague(piece, fact) or self._denies(piece, fact):
                lost.append((fact, holds))
            else:
                carrying.append((holds.share, fact))
        if piece.detail.empty and any(self._exact(piece, fact) for _, fact in carrying):
            # Nothing tells which words matter; beside the turn itself, a copy with other words in it is an altered one.
            altered = [(share, fact) for share, fact in carrying if self._altered(piece, fact)]
            lost.extend((fact, Held(share, True, ())) for share, fact in altered)
            carrying = [pair for pair in carrying if pair not in altered]
        best = max((share for share, _ in carrying), default=0.0)
        # Several facts may come from one turn; those that hold much less of the detail are about something else.
        kept = [(share, fact) for share, fact in carrying if share >= 0.7 * best]
        kept.sort(key=lambda pair: (not pair[1].active, -pair[0], pair[1].content, pair[1].fact_id))
        return Carriage(tuple(fact for _, fact in kept), tuple(lost), rung, best)

    # ------------------------------------------------------------------------------------------------------ wording

    def _repeats(self, piece: Piece, fact: Fact) -> bool:
        """True when the turn stands in the fact word for word; of a turn of few words, as a statement by itself that no
        other turn makes."""
        said, told = piece.detail.said.plain, self.lexicon.read(fact.content).plain
        if not said or said not in told:
            return False
        if said.count(" ") + 1 >= _VERBATIM_WORDS or len(told) - len(said) <= 24:
            return True
        speaker = self.lexicon.read(piece.turn.speaker).plain if piece.turn else ""
        whole = {said, f"{speaker} {said}"}
        return self._links.alone(said) and any(
            self.lexicon.read(part).plain in whole for part in statements(fact.content)
        )

    def _exact(self, piece: Piece, fact: Fact) -> bool:
        said, told = piece.detail.said.plain, self.lexicon.read(fact.content).plain
        return bool(said) and said in told

    def _altered(self, piece: Piece, fact: Fact) -> bool:
        """True for a copy of the turn that misses some of its words and has others instead."""
        read, said = self.lexicon.read(fact.content), piece.detail.said
        new = read.terms - said.terms - self.lexicon.speakers
        return COPY <= overlap(read, said, self.lexicon) < 0.999 and bool(new)

    def _vague(self, piece: Piece, fact: Fact) -> bool:
        """True for a text that shares nothing with its turn but the speakers' names."""
        read = self.lexicon.read(fact.content)
        told = read.terms - self.lexicon.speakers
        if not fact.content.strip() or piece.turn is None or read.plain == piece.detail.said.plain:
            return False
        previous = self._links.previous.get(piece.turn_id)
        near = piece.detail.said.terms | (previous.terms if previous else frozenset())
        return bool(piece.detail.said.terms - self.lexicon.speakers) and not told & near

    def _denies(self, piece: Piece, fact: Fact) -> bool:
        """True for a copy of the turn that says the opposite; what a longer fact denies elsewhere does not count."""
        said = piece.detail.said
        if (
            self._repeats(piece, fact)
            or overlap(self.lexicon.read(fact.content), said, self.lexicon) < _COPY_THAT_DENIES
        ):
            return False
        told = [self.lexicon.read(part) for part in statements(fact.content)]
        about = [read for read in told if overlap(said, read, self.lexicon) >= COPY] or told
        return any(read.negated for read in about) != said.negated

    # ---------------------------------------------------------------------------------------------------- embedding

    def vectors(self, texts: Sequence[str]) -> Mapping[str, np.ndarray[Any, Any]]:
        """The unit vectors of texts, each embedded once."""
        assert self._embed is not None
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if fresh:
            self._vectors.update(zip(fresh, self._embed(fresh), strict=True))
        return self._vectors


def _together(*found: Carriage) -> Carriage:
    """What several rungs found as one: each fact once, active before retired, the firmer rung first."""
    firm = next(one for one in found if one.carriers)
    facts: dict[str, Fact] = {}
    for fact in (fact for one in found for fact in one.carriers):
        facts.setdefault(fact.fact_id, fact)
    carriers = sorted(facts.values(), key=lambda fact: not fact.active)
    return Carriage(tuple(carriers), found[0].lost, firm.decided_by, firm.share)


def sessions_of_facts(history: History) -> dict[str, str]:
    """The session whose ingest brought each fact, as far as snapshots per session, or its metadata, tell."""
    found: dict[str, str] = {}
    known = {fact.fact_id for fact in history.before.facts}
    for session_id, snapshot in history.by_session:
        for fact in snapshot.facts:
            if fact.fact_id not in known:
                known.add(fact.fact_id)
                found[fact.fact_id] = session_id
    ids = {session.session_id for session in history.case.sessions}
    for fact in history.after.facts:
        named = fact.metadata.get("session_id")
        if fact.fact_id not in found and isinstance(named, str) and named in ids:
            found[fact.fact_id] = named
    return found
