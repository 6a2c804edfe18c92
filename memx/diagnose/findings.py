"""What is odd about the material itself: named findings that lower the confidence and never decide a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from memx.diagnose.contract import History
from memx.model import Fact, Retrieved

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One oddity; ``penalty`` 0..1 is how much confidence it costs, ``cap`` the most that is left with it."""

    text: str
    penalty: float = 0.0
    cap: float = 1.0


def store_findings(history: History) -> list[Finding]:
    """Repeated ids, empty content, supersedes links that point nowhere or in a circle, provenance that names no turn,
    and facts that the last session's snapshot had and the final one lacks."""
    facts = history.after.facts
    by_id = history.after.by_id()
    found: list[Finding] = []
    if not facts:
        found.append(
            Finding("the store shows no fact at all after ingest: export_state may not see what is stored", 0.2)
        )
    ids = Counter(str(fact.metadata.get("repeated_id") or fact.fact_id) for fact in facts)
    repeated = [fact_id for fact_id, count in ids.items() if count > 1]
    if repeated:
        found.append(Finding(f"{_count(repeated, 'fact id')} more than once in the snapshot: {_some(repeated)}", 0.1))
    empty = [fact.fact_id for fact in facts if not fact.content.strip()]
    if facts and len(empty) == len(facts):
        found.append(Finding("the snapshot shows no fact's content: only provenance and ids can be compared", 0.2, 0.5))
    elif empty:
        found.append(Finding(f"{_count(empty, 'fact')} with empty content: {_some(empty)}", 0.05))
    nowhere = [f"{fact.fact_id} -> {old}" for fact in facts for old in fact.supersedes if old not in by_id]
    if nowhere:
        found.append(Finding(f"{_count(nowhere, 'supersedes link')} to no fact of the store: {_some(nowhere)}"))
    circle = circular(facts)
    if circle:
        shown = circle if len(circle) <= 5 else (*circle[:3], f"... {len(circle) - 4} more ...", circle[-1])
        found.append(Finding(f"supersedes links run in a circle: {' -> '.join(shown)}; they are not believed", 0.1))
    turns = history.case.turns()
    strange = [fact.fact_id for fact in facts if fact.source_turn_ids and not set(fact.source_turn_ids) & turns.keys()]
    if strange:
        found.append(
            Finding(f"{_count(strange, 'fact')} whose source turn ids name no turn of the case: {_some(strange)}")
        )
    if history.by_session:
        gone = sorted(history.by_session[-1][1].by_id().keys() - by_id.keys())
        if gone:
            text = f"{_count(gone, 'fact')} of the last session's snapshot are not in the final one: {_some(gone)}"
            found.append(Finding(text, 0.1))
        missing = {session.session_id for session in history.case.sessions} - {name for name, _ in history.by_session}
        if missing:
            found.append(
                Finding(f"no snapshot after session {_some(sorted(missing))}: what it changed is not known", 0.05)
            )
    return found


def retrieval_findings(retrieved: Sequence[Retrieved], known: Collection[str]) -> list[Finding]:
    """Ids that the search returns and no snapshot shows, and rows that it returns twice."""
    found: list[Finding] = []
    ids = [row.fact_id for row in retrieved]
    strangers = list(dict.fromkeys(fact_id for fact_id in ids if fact_id not in known))
    if strangers:
        text = f"search and export disagree: {len(strangers)} of {len(set(ids))} retrieved ids are in no snapshot"
        found.append(Finding(f"{text} ({_some(strangers)})", 0.15))
    repeated = [fact_id for fact_id, count in Counter(ids).items() if count > 1]
    if repeated:
        found.append(Finding(f"the search returned {_count(repeated, 'fact')} more than once: {_some(repeated)}"))
    return found


def believed(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts of a snapshot as far as they can be believed: a row that repeats id and content once, and no supersedes
    links that run in a circle, since of a circle nobody can say what is current."""
    once = tuple({(fact.fact_id, fact.content): fact for fact in reversed(tuple(facts))}.values())[::-1]
    if not circular(once):
        return once
    links: dict[str, set[str]] = {}
    for fact in once:
        links.setdefault(fact.fact_id, set()).update(fact.supersedes)
    inside = {fact_id for fact_id, old in links.items() if old}
    while inside:
        # What no link leaves or reaches is in no circle; taking it away may free others.
        reached = {old for fact_id in inside for old in links[fact_id]}
        left = {fact_id for fact_id in inside & reached if links[fact_id] & inside}
        if left == inside:
            break
        inside = left
    return tuple(
        replace(fact, supersedes=tuple(old for old in fact.supersedes if old not in inside))
        if fact.fact_id in inside
        else fact
        for fact in once
    )


def circular(facts: Sequence[Fact]) -> tuple[str, ...]:
    """The ids of one circle of supersedes links, its first repeated at the end; empty when there is none."""
    links: dict[str, tuple[str, ...]] = {}
    for fact in facts:
        if fact.supersedes:
            links.setdefault(fact.fact_id, fact.supersedes)
    done: set[str] = set()
    for start in links:
        path: list[str] = []
        stack = [(start, iter(links[start]))] if start not in done else []
        path_ids = {start}
        path.append(start)
        while stack:
            node, following = stack[-1]
            step = next((one for one in following if one in links and one not in done), None)
            if step is None:
                done.add(node)
                path_ids.discard(node)
                path.pop()
                stack.pop()
            elif step in path_ids:
                return (*path[path.index(step) :], step)
            else:
                path.append(step)
                path_ids.add(step)
                stack.append((step, iter(links[step])))
    return ()


def _count(what: Sequence[object], noun: str) -> str:
    return f"{len(what)} {noun}" + ("" if len(what) == 1 else "s")


def _some(ids: Sequence[str]) -> str:
    rest = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
