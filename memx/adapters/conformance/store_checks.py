"""Checks of what the store shows: is it there, whole, in order, with dates, names and sources, and nobody else's?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from memx.adapters.conformance.bench import Bench, carriers, everything
from memx.adapters.conformance.report import CheckFailed, NotApplicable
from memx.adapters.conformance.talk import LONG_CHARS, MANY, Said, long_talk, many, other_talk, scripts
from memx.adapters.contract import MemoryAdapter
from memx.model import Fact, Session, Turn

#: Page sizes that systems use; a store that shows exactly so many facts was cut.
_PAGE_SIZES = frozenset({10, 20, 25, 50, 100, 200})
#: How many turns show whether a system keeps each; neither it nor its half is a page size.
_SOME = 46
#: How long facts are waited for that should be there already, to tell "too early" from "never", in seconds.
_LATE_S = 2.0


def stored(bench: Bench) -> str:
    """What was said is in the store once wait_until_ready returns."""
    entity_id, said = bench.main()
    facts = bench.facts(entity_id)
    if not facts:
        raise CheckFailed(f"{len(said)} turns went in, wait_until_ready returned, and {_late(bench, entity_id)}")
    found = [one for one in said if carriers(one, facts)]
    if not found:
        raise CheckFailed(f"{len(facts)} facts are stored and none holds a name that was said, such as {said[0].token}")
    if bench.verbatim():
        return f"{len(facts)} facts for {len(said)} turns, word for word"
    lost = ", ".join(one.token for one in said if one not in found)
    return f"{len(facts)} facts for {len(said)} turns, in its own words" + (f"; not kept: {lost}" if lost else "")


def isolation(bench: Bench) -> str:
    """Nothing of one entity is shown or found under another."""
    first, said = bench.main()
    second, others = bench.entity("b"), other_talk()
    bench.store(others, second)
    for entity_id, own, foreign in ((first, said, others), (second, others, said)):
        facts = bench.facts(entity_id)
        for one in foreign:
            if leaked := carriers(one, facts):
                raise CheckFailed(f"export_state of one entity shows a fact of another: '{leaked[0].content[:60]}'")
            for found in bench.search(one, entity_id):
                if one.token.casefold() in found.content.casefold():
                    raise CheckFailed(f"a search in one entity finds a fact of another: '{found.content[:60]}'")
        if not any(carriers(one, facts) for one in own):
            raise CheckFailed("an entity lost its own facts when another one was stored")
    both = {fact.fact_id for fact in bench.facts(first)} & {fact.fact_id for fact in bench.facts(second)}
    shared = f"; {len(both)} fact ids stand in both" if both else ""
    return f"two entities, {len(said) + len(others)} searches across{shared}"


def order(bench: Bench) -> str:
    """What was said first is stored as earlier."""
    placed = _placed(bench)
    # Listing order tells of order only where no times do.
    times = [fact.created_at for _, fact in placed]
    if all(time is not None for time in times) and len({*times}) > 1:
        by_time = sorted(range(len(placed)), key=lambda i: (_utc(times[i]), i))
        if by_time == list(range(len(placed))):
            return "created_at rises with the turns"
        a, b = next((i, j) for i, j in pairwise(by_time) if i > j)
        raise CheckFailed(
            f"turn {placed[b][0].turn_id} was said before {placed[a][0].turn_id} and its created_at is later "
            f"({times[b]} and {times[a]})"
        )
    entity_id, _ = bench.main()
    listed = [fact.fact_id for fact in bench.facts(entity_id)]
    places = [listed.index(fact.fact_id) for _, fact in placed]
    if places == sorted(places):
        return "facts are listed as they were said"
    raise NotApplicable("facts carry no times that differ, and the listing has an order of its own")


def dates(bench: Bench) -> str:
    """The date on which something was said can be read off the fact."""
    placed = _placed(bench)
    lost = [(one, fact) for one, fact in placed if not _dated(one.at, fact)]
    if not lost:
        return f"on {len(placed)} of {len(placed)} facts"
    one, fact = lost[0]
    raise CheckFailed(
        f"{len(lost)} of {len(placed)} facts tell nowhere when they were said: turn {one.turn_id} of {one.at:%Y-%m-%d}"
        f" became '{fact.content[:60]}', created_at {fact.created_at}"
    )


def names(bench: Bench) -> str:
    """The name of who said something can be read off the fact."""
    placed = _placed(bench)
    lost = [(one, fact) for one, fact in placed if one.turn.speaker.casefold() not in everything(fact).casefold()]
    if not lost:
        return f"on {len(placed)} of {len(placed)} facts"
    one, fact = lost[0]
    raise CheckFailed(
        f"{len(lost)} of {len(placed)} facts lost their speaker: {one.turn.speaker}'s turn became '{fact.content[:60]}'"
    )


def sources(bench: Bench) -> str:
    """A fact names the turn that it came from, where the system can carry that."""
    placed = _placed(bench)
    told = [(one, fact) for one, fact in placed if fact.source_turn_ids]
    if not told:
        raise NotApplicable("no fact names its turn; diagnosis goes by sessions and wording instead")
    wrong = [(one, fact) for one, fact in told if one.turn_id not in fact.source_turn_ids]
    if wrong:
        one, fact = wrong[0]
        raise CheckFailed(
            f"{len(wrong)} of {len(told)} facts name another turn: '{fact.content[:50]}' was said in {one.turn_id}, "
            f"source_turn_ids says {', '.join(fact.source_turn_ids[:4])}"
        )
    return f"on {len(told)} of {len(placed)} facts"


def paging(bench: Bench) -> str:
    """export_state shows the whole store, however large: 250 turns in, nothing cut off."""
    said, entity_id = many(), bench.entity("many")
    if not bench.verbatim():
        _keeps_each(bench, said[:_SOME])
    bench.store(said, entity_id)
    facts = bench.facts(entity_id)
    shown = _shown(said, facts)
    kept = len(shown)
    ids = len({fact.fact_id for fact in facts})
    if ids < len(facts):
        raise CheckFailed(f"{len(facts)} facts with only {ids} ids: rows come twice")
    if kept == MANY:
        return f"{len(facts)} facts for {MANY} turns"
    missing = ", ".join(one.token for one in said if one not in shown)[:60]
    if bench.verbatim() or len(facts) in _PAGE_SIZES:
        raise CheckFailed(f"{len(facts)} facts show {kept} of {MANY} turns; missing: {missing}")
    raise NotApplicable(f"the system keeps what it chooses: {len(facts)} facts show {kept} of {MANY} turns")


def _shown(said: Sequence[Said], facts: Sequence[Fact]) -> list[Said]:
    """What of it the facts name."""
    text = "\n".join(fact.content for fact in facts).casefold()
    return [one for one in said if one.token.casefold() in text]


def _keeps_each(bench: Bench, some: list[Said]) -> None:
    """Ends the check where a few turns show that the system drops turns: a model at work on all would tell no more."""
    entity_id = bench.entity("some")
    bench.store(some, entity_id)
    facts = bench.facts(entity_id)
    kept = len(_shown(some, facts))
    if kept < len(some) and len(facts) not in _PAGE_SIZES:
        raise NotApplicable(f"the system keeps what it chooses: {len(facts)} facts show {kept} of {len(some)} turns")


def unicode_text(bench: Bench) -> str:
    """Text in any script, quotes, tags and line breaks come back as they went in."""
    said, entity_id = scripts(), bench.entity("scripts")
    bench.store(said, entity_id)
    facts = bench.facts(entity_id)
    bench.search(said[0], entity_id)
    lost = [one for one in said if not any(one.turn.content in fact.content for fact in facts)]
    if not lost:
        return "unchanged"
    if bench.verbatim():
        near = carriers(lost[0], facts) or facts[said.index(lost[0]) :][: len(facts) == len(said)]
        became = f" became {near[0].content[:70]!r}" if near else " is gone"
        raise CheckFailed(f"{lost[0].turn.content[:50]!r}{became}")
    if not facts:
        raise CheckFailed(f"nothing is stored of {len(said)} turns in several scripts")
    raise NotApplicable("the system stores its own words; it took them without an error")


def long_text(bench: Bench) -> str:
    """A turn of 20,000 characters is kept from its beginning to its end."""
    said, entity_id = long_talk(), bench.entity("long")
    bench.store(said, entity_id)
    facts = bench.facts(entity_id)
    text = "\n".join(fact.content for fact in facts)
    ends = [name for name in ("Aldersprig", "Zumbrevale") if name in text]
    if len(ends) == 2:
        return f"{sum(len(fact.content) for fact in facts):,} characters in {len(facts)} facts"
    if bench.verbatim():
        longest = max((len(fact.content) for fact in facts), default=0)
        raise CheckFailed(
            f"a turn of {len(said[0].turn.content):,} characters was cut; the longest fact has {longest:,}"
        )
    raise NotApplicable(f"the system stores its own words; of a turn of {LONG_CHARS:,} characters {len(facts)} facts")


def empty_turn(bench: Bench) -> str:
    """A turn without text, as datasets have them for pictures, breaks nothing."""
    entity_id = bench.entity("empty")
    at = datetime(2023, 5, 1, 9)
    turns = (Turn("e:1", "Priyanka", "user", "", at), Turn("e:2", "Tobias", "assistant", "I saw Farrowick.", at))
    bench.adapter.ingest_session(Session("e", entity_id, turns, at))
    bench.adapter.wait_until_ready(entity_id, bench.timeout_s)
    if not bench.facts(entity_id):
        raise CheckFailed("the turn beside it was lost")
    return "taken"


def unknown_entity(bench: Bench) -> str:
    """An entity that nothing was stored under is empty, not an error."""
    entity_id = bench.entity("nobody")
    facts = bench.facts(entity_id)
    if facts:
        raise CheckFailed(f"export_state shows {len(facts)} facts")
    found = bench.search(other_talk()[0], entity_id)
    if found:
        raise CheckFailed(f"a search finds {len(found)} facts")
    return "empty"


def reset(bench: Bench) -> str:
    """reset forgets one entity and no other."""
    adapter = bench.adapter
    if type(adapter).reset is MemoryAdapter.reset:
        raise NotApplicable(
            "reset() is not implemented: each run has namespaces of its own, and --cleanup deletes none"
        )
    gone, kept, said = bench.entity("gone"), bench.entity("kept"), other_talk()
    bench.store(said, gone)
    bench.store(said, kept)
    adapter.reset(gone)
    adapter.reset(bench.entity("never-stored"))
    if left := bench.facts(gone):
        raise CheckFailed(f"{len(left)} facts are left: '{left[0].content[:60]}'")
    if any(bench.search(one, gone) for one in said):
        raise CheckFailed("the store is empty, and a search still finds facts")
    if not bench.facts(kept):
        raise CheckFailed("another entity was emptied too")
    bench.store(said, gone)
    if not bench.facts(gone):
        raise CheckFailed("nothing can be stored under the entity any more")
    return "one entity emptied, used again; the other untouched"


def _late(bench: Bench, entity_id: str) -> str:
    """What becomes of a store that is empty when it should not be."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < _LATE_S:
        if facts := bench.facts(entity_id):
            return f"the first of {len(facts)} facts appeared {waited:.1f} s later: it is not ready when it says so"
        time.sleep(_LATE_S / 20)
    return "nothing is stored"


def _placed(bench: Bench) -> list[tuple[Said, Fact]]:
    """Each turn with the fact that carries it, in the order of the talk.

    Raises:
        NotApplicable: no fact can be traced to a turn.
    """
    entity_id, said = bench.main()
    facts = bench.facts(entity_id)
    found = [(one, carried[0]) for one in said if (carried := carriers(one, facts))]
    if not found:
        raise NotApplicable("no fact can be traced to what was said")
    return found


def _dated(at: datetime, fact: Fact) -> bool:
    created = fact.created_at
    # A store of another zone may show the evening before or the morning after.
    if created is not None and abs(_utc(created) - _utc(at)) <= timedelta(hours=26):
        return True
    return any(form in everything(fact) for form in _forms(at))


def _forms(at: datetime) -> Sequence[str]:
    month = f"{at:%B}"
    day = at.day
    return (f"{at:%Y-%m-%d}", f"{day} {month} {at.year}", f"{day} {month}, {at.year}", f"{month} {day}, {at.year}")


def _utc(time: datetime | None) -> datetime:
    if time is None:
        return datetime.max.replace(tzinfo=UTC)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
