"""A model for cognee behind the loopback server: graphs and summaries by the rules of ``fact_rules``.

python -m tests.cognee_llm --port 8123
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from tests.fact_rules import claims
from tests.fake_openai import FakeOpenAI, Request


def cognee_model(port: int = 0) -> FakeOpenAI:
    """The loopback server with this model and the vectors of memx's own embedder."""
    from memx.memory.embedding import minilm

    return FakeOpenAI(remember, embed=minilm().embed, port=port)


def remember(body: Request) -> str:
    """The reply to one call of cognee: the schema that it asks for stands in the system prompt."""
    system, text = (str(body["messages"][place]["content"]) for place in (0, -1))
    if '"title": "KnowledgeGraph"' in system:
        return json.dumps(_graph(text))
    summary = " ".join(told.sentence for told in claims(text)) or text
    return json.dumps({"summary": summary, "description": summary})


def _graph(text: str) -> dict[str, Any]:
    nodes: dict[str, dict[str, str]] = {}
    edges = []
    for told in claims(text):
        if told.subject and told.target and told.relation:
            for name in (told.subject, told.target):
                nodes[name] = {"id": name, "name": name, "type": "Entity", "description": name}
            ends = {"source_node_id": told.subject, "target_node_id": told.target}
            edges.append({**ends, "relationship_name": told.relation.lower(), "description": told.sentence})
    return {"nodes": list(nodes.values()), "edges": edges}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with cognee_model(parser.parse_args().port) as server:
        print(server.base_url, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
