"""A model for memory systems behind the loopback server: extracts facts by the rules of ``fact_rules``.

It serves the calls that mem0 (extraction), graphiti (structured output) and langmem (tool calls) really make, reading
the conversation out of their own prompts; embeddings are real MiniLM vectors.

with memory_server() as server:
    ...  # server.base_url

python -m tests.memory_llm --port 8123
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from tests.fact_rules import Claim, claim, claims
from tests.fake_openai import FakeOpenAI, Message, Request

_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")


def memory_server(
    faults: Sequence[str] | Callable[[int], str] = (), embedding_faults: Sequence[str] = (), port: int = 0
) -> FakeOpenAI:
    """The loopback server with this model and the vectors of memx's own embedder."""
    from memx.memory.embedding import minilm

    embed = minilm().embed
    return FakeOpenAI(remember, faults=faults, embed=embed, embedding_faults=embedding_faults, port=port)


def remember(body: Request) -> str | Message:
    """The reply to one call of a memory system."""
    schema = (body.get("response_format") or {}).get("json_schema")
    if schema:
        return json.dumps(_GRAPHITI[schema["name"]](_prompt(body)))
    if body.get("tools"):
        return _langmem(body)
    return json.dumps(_mem0(_prompt(body)))


def _prompt(body: Request) -> str:
    return "\n".join(str(message["content"] or "") for message in body["messages"])


def _between(text: str, start: str, end: str) -> str:
    found = re.search(f"{re.escape(start)}(.*?){re.escape(end)}", text, re.DOTALL)
    return found.group(1).strip() if found else ""


# ----------------------------------------------------------------------------------------------------------------- mem0


def _mem0(prompt: str) -> dict[str, Any]:
    """New facts of the new messages; what an existing memory says already is left out."""
    asked = prompt[prompt.rindex("## Summary\n") :]
    known = {memory["text"] for memory in json.loads(_between(asked, "## Existing Memories\n", "\n\n") or "[]")}
    said_on = _date_of(asked.partition("## Custom Instructions")[2])
    new = []
    for message in _messages(_between(asked, "## New Messages\n", "\n\n## Observation Date")):
        new += [told.sentence for told in claims(message, said_on=said_on) if told.sentence not in known]
    return {"memory": [{"id": str(place), "text": text} for place, text in enumerate(dict.fromkeys(new))]}


def _messages(text: str) -> list[str]:
    return [
        part.strip() for part in re.split(r"^(?:user|assistant|system): ", text, flags=re.MULTILINE) if part.strip()
    ]


def _date_of(text: str) -> date | None:
    found = _DATE.search(text)
    return date.fromisoformat(found.group(1)) if found else None


# ------------------------------------------------------------------------------------------------------------- graphiti


def _said_now(prompt: str) -> str:
    for tag in ("CURRENT MESSAGE", "CURRENT_MESSAGE", "TEXT"):
        said = _between(prompt, f"<{tag}>", f"</{tag}>")
        if said:
            return said
    return ""


def _told(prompt: str) -> list[Claim]:
    reference = _date_of(_between(prompt, "<REFERENCE_TIME>", "</REFERENCE_TIME>"))
    return [told for line in _said_now(prompt).splitlines() for told in claims(line, said_on=reference) if told.target]


def _entities(prompt: str) -> dict[str, Any]:
    names = dict.fromkeys(name for told in _told(prompt) for name in (told.subject, told.target))
    return {"extracted_entities": [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in names]}


def _edges(prompt: str) -> dict[str, Any]:
    moment = _between(prompt, "<REFERENCE_TIME>", "</REFERENCE_TIME>").partition("#")[0].strip() or None
    return {
        "edges": [
            {
                "source_entity_name": told.subject,
                "target_entity_name": told.target,
                "relation_type": told.relation,
                "fact": told.sentence,
                "valid_at": moment,
                "invalid_at": None,
                "episode_indices": [0],
            }
            for told in _told(prompt)
        ]
    }


def _resolve_edge(prompt: str) -> dict[str, Any]:
    """Which known facts the new one repeats, and which it makes untrue."""
    new = claim(_between(prompt, "<NEW FACT>", "</NEW FACT>"))
    known = _facts(_between(prompt, "<EXISTING FACTS>", "</EXISTING FACTS>"))
    others = _facts(_between(prompt, "<FACT INVALIDATION CANDIDATES>", "</FACT INVALIDATION CANDIDATES>"))
    return {
        "duplicate_facts": [place for place, fact in known if fact == new.sentence],
        "contradicted_facts": [place for place, fact in (*known, *others) if new.contradicts(claim(fact))],
    }


def _facts(listed: str) -> list[tuple[int, str]]:
    return [(row["idx"], row["fact"]) for row in ast.literal_eval(listed or "[]")]


def _resolve_nodes(prompt: str) -> dict[str, Any]:
    new = json.loads(_between(prompt, "<ENTITIES>", "</ENTITIES>") or "[]")
    old = json.loads(_between(prompt, "<EXISTING ENTITIES>", "</EXISTING ENTITIES>") or "[]")
    places = {entity["name"].casefold(): entity["candidate_id"] for entity in reversed(old)}
    return {
        "entity_resolutions": [
            {
                "id": entity["id"],
                "name": entity["name"],
                "duplicate_candidate_id": places.get(entity["name"].casefold(), -1),
            }
            for entity in new
        ]
    }


_GRAPHITI: dict[str, Callable[[str], dict[str, Any]]] = {
    "ExtractedEntities": _entities,
    "ExtractedEdges": _edges,
    "EdgeDuplicate": _resolve_edge,
    "NodeResolutions": _resolve_nodes,
    "SummarizedEntities": lambda prompt: {"summaries": []},
    "EdgeTimestamps": lambda prompt: {"valid_at": None, "invalid_at": None},
}


# -------------------------------------------------------------------------------------------------------------- langmem


def _langmem(body: Request) -> Message:
    """A new memory for each new fact; the memory that a fact makes untrue is patched in place."""
    prompt = _prompt(body)
    known = {
        identity: ast.literal_eval(content)["content"]
        for identity, content in re.findall(r"<instance id=(\S+)[^>]*>\n(.*?)\n</instance>", prompt, re.DOTALL)
    }
    calls = []
    for line in _between(prompt, "<session_", "</session_").splitlines():
        for told in claims(line, said_on=_date_of(line)):
            if told.sentence in known.values():
                continue
            old = next((identity for identity, text in known.items() if told.contradicts(claim(text))), "")
            if old:
                patch = {"op": "replace", "path": "/content", "value": told.sentence}
                edit = {"json_doc_id": old, "planned_edits": "one has taken the other's place", "patches": [patch]}
                calls.append(("PatchDoc", edit))
            else:
                calls.append(("Memory", {"content": told.sentence}))
    return (
        {"content": "", "tool_calls": [_call(place, *call) for place, call in enumerate(calls)]}
        if calls
        else {"content": "Nothing to remember."}
    )


def _call(place: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{place}", "type": "function", "function": function}


def main() -> None:
    """Serve until interrupted; prints the base URL first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    server = memory_server(port=parser.parse_args().port)
    print(server.base_url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
