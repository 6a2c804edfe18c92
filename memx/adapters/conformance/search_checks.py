"""Checks of what a search brings back: the right facts, no more than asked, under the ids that the store shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from memx.adapters.conformance.bench import TOP_K, Bench
from memx.adapters.conformance.report import CheckFailed, NotApplicable
from memx.adapters.conformance.talk import crowd


def readiness(bench: Bench) -> str:
    """Once wait_until_ready returns, a search finds what was said."""
    entity_id, said = bench.main()
    found = {one.token: bench.searched(one, entity_id) for one in said}
    if not any(found.values()):
        raise CheckFailed(f"{len(said)} searches, each for the words of a turn, bring nothing back")
    hits = [token for token, facts in found.items() if any(token.casefold() in f.content.casefold() for f in facts)]
    if not hits:
        raise CheckFailed(f"{len(said)} searches bring facts back, and none holds what was searched for")
    return f"{len(hits)} of {len(said)} turns are found in the top {TOP_K} when their own words are searched"


def k_respected(bench: Bench) -> str:
    """A search brings back at most as many facts as it is asked for."""
    entity_id, said = bench.main()
    if bench.adapter.ignores_top_k:
        raise NotApplicable("it declares that it ignores k")
    counts = {k: len(bench.searched(said[0], entity_id, k)) for k in (1, 3, 5)}
    for k, count in counts.items():
        if count > k:
            raise CheckFailed(f"asked for {k}, it brings {count}")
    if counts[5] == 0:
        raise CheckFailed("asked for 5, it brings nothing")
    return ", ".join(f"{k} asked, {count} came" for k, count in counts.items())


def ids_match(bench: Bench) -> str:
    """A search names facts by the ids under which export_state lists them."""
    entity_id, said = bench.main()
    listed = {fact.fact_id: fact for fact in bench.facts(entity_id)}
    found = {fact.fact_id: fact for one in said[:4] for fact in bench.searched(one, entity_id)}
    if not found:
        raise NotApplicable("the searches bring nothing back")
    unknown = [fact for fact_id, fact in found.items() if fact_id not in listed]
    if unknown:
        texts = {fact.content for fact in listed.values()}
        same = sum(1 for fact in unknown if fact.content in texts)
        raise CheckFailed(
            f"{len(unknown)} of {len(found)} found ids are not listed, such as {unknown[0].fact_id}"
            + (f"; {same} of them are listed with the same text under another id" if same else "")
        )
    return f"{len(found)} ids found, all listed"


def determinism(bench: Bench) -> str:
    """Asked twice, store and search answer the same, under the same ids."""
    entity_id, said = bench.main()
    first, second = bench.facts(entity_id), bench.facts(entity_id)
    before, after = ({fact.fact_id: fact.content for fact in facts} for facts in (first, second))
    if before.keys() != after.keys():
        changed = len(before.keys() - after.keys())
        raise CheckFailed(f"ids change between two listings: {changed} of {len(before)} are gone in the second")
    if before != after:
        raise CheckFailed("texts change between two listings of the same ids")
    for one in said[:4]:
        once, again = ([fact.fact_id for fact in bench.search(one, entity_id)] for _ in range(2))
        if once != again:
            how = "other facts" if {*once} != {*again} else "another order"
            raise CheckFailed(f"the same search twice brings {how}: {', '.join(once[:3])}; then {', '.join(again[:3])}")
    return "two listings and four searches, each twice"


def two_at_once(bench: Bench) -> str:
    """Two instances in two threads, as a run makes them, do not disturb each other."""

    def work(number: int) -> str:
        adapter = bench.make()
        try:
            said, others = crowd(number), crowd(1 - number)
            for entity_id in entities[number]:
                bench.store(said, entity_id, adapter)
            seen = [fact.content for fact in bench.facts(entity_id, adapter)]
            seen += [fact.content for one in (*said, *others) for fact in bench.search(one, entity_id, adapter=adapter)]
        finally:
            adapter.close()
        if not seen:
            return "nothing is stored when two instances store at once"
        leaked = [text for text in seen if any(one.token.casefold() in text.casefold() for one in others)]
        return f"one instance sees the other's fact '{leaked[0][:60]}'" if leaked else ""

    entities = [[bench.entity(f"thread-{number}-{round}") for round in range(3)] for number in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        trouble = next((said for said in pool.map(work, (0, 1)) if said), "")
    if trouble:
        raise CheckFailed(trouble)
    return "two instances stored and searched side by side"


def second_instance(bench: Bench) -> str:
    """What one process stored, another finds again (for --skip-ingest)."""
    if not bench.adapter.keeps_data:
        raise NotApplicable("it keeps nothing beyond its process")
    entity_id, said = bench.main()
    other = bench.make()
    try:
        before = {fact.fact_id for fact in bench.facts(entity_id)}
        after = {fact.fact_id for fact in bench.facts(entity_id, other)}
        if before != after:
            raise CheckFailed(f"{len(before - after)} of {len(before)} facts are not listed by a second instance")
        if bench.adapter.retrieves and not bench.search(said[0], entity_id, adapter=other):
            raise CheckFailed("a second instance lists the facts and finds none of them")
    finally:
        other.close()
    return f"{len(before)} facts listed and found by a second instance"
