"""A model for a Hindsight server behind the loopback server: facts and observations by the rules of ``fact_rules``.

It answers the two calls that Hindsight makes while it stores: extraction of facts from a chunk, and consolidation of
new facts into observations. Embeddings are real MiniLM vectors.

python -m tests.hindsight_llm --port 8123
"""

from __future__ import annotations

import argparse
import json
import re
import time
from datetime import date
from typing import Any

from tests.fact_rules import Claim, claim, claims
from tests.fake_openai import FakeOpenAI, Request

_DAY = re.compile(r"Event Date: .*?\((\d{4}-\d{2}-\d{2})")
_FACT = re.compile(r"^\[([0-9a-f-]{36})\] (.*?)(?: \(([^()]*)\))?$", re.MULTILINE)
_MENTIONED = re.compile(r"mentioned_at=(\d{4}-\d{2}-\d{2})")


def hindsight_model(port: int = 0) -> FakeOpenAI:
    """The loopback server with this model and the vectors of memx's own embedder."""
    from memx.memory.embedding import minilm

    return FakeOpenAI(remember, embed=minilm().embed, port=port)


def remember(body: Request) -> str:
    """The reply to one call of Hindsight."""
    asked = str(body["messages"][-1]["content"])
    if "### New facts" in asked:
        return json.dumps(_consolidate(asked))
    if "Extract facts" in asked:
        return json.dumps({"facts": _extract(asked)})
    return "{}"


def _extract(asked: str) -> list[dict[str, Any]]:
    day = _DAY.search(asked)
    said_on = date.fromisoformat(day.group(1)) if day else None
    return [
        {
            "what": told.sentence,
            **dict.fromkeys(("when", "where", "who", "why"), "N/A"),
            "fact_type": "world",
            "fact_kind": "conversation",
            "entities": [name for name in (told.subject, told.target) if name],
        }
        for told in claims(asked.partition("Content:\n")[2], said_on=said_on)
    ]


def _consolidate(asked: str) -> dict[str, Any]:
    """New facts in the order they were said: one that says otherwise rewrites the observation of the same matter."""
    listed, _, existing = asked.partition("### Existing observations")
    known: list[tuple[Claim, dict[str, Any]]] = [
        (claim(row["text"]), {"observation_id": row["id"], "text": row["text"], "source_fact_ids": []})
        for row in json.loads(existing.strip() or "[]")
    ]
    creates: list[dict[str, Any]] = []
    facts = [(_day(found.group(3)), found.group(1), found.group(2)) for found in _FACT.finditer(listed)]
    for day, fact_id, text in sorted(facts):
        new = claim(text.partition(" | ")[0])
        same = next((row for older, row in known if new.contradicts(older) or new.sentence == older.sentence), None)
        if same is None:
            same = {"text": new.sentence, "source_fact_ids": []}
            creates.append(same)
        elif new.sentence not in same["text"]:
            same["text"] = f"{new.sentence} Until {day}: {same['text']}"
        same["source_fact_ids"].append(fact_id)
        same["reason"] = "the same matter" if len(same["source_fact_ids"]) > 1 else "a new matter"
        known = [(older, row) for older, row in known if row is not same] + [(new, same)]
    updates = [row for _, row in known if "observation_id" in row and row["source_fact_ids"]]
    return {"creates": creates, "updates": updates, "deletes": []}


def _day(temporal: str | None) -> str:
    found = _MENTIONED.search(temporal or "")
    return found.group(1) if found else ""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with hindsight_model(parser.parse_args().port) as server:
        print(server.base_url, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
