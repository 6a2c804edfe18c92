"""The model of rules behind ``examples/hindsight_live.py``, on prompts as a Hindsight server sends them."""

from __future__ import annotations

import json
from typing import Any

from tests.hindsight_llm import remember

GRAZ, DOG, LINZ = (f"{n}{n}{n}{n}{n}{n}{n}{n}-0000-4000-8000-000000000000" for n in "123")


def asked(prompt: str) -> Any:
    return json.loads(
        remember({"messages": [{"role": "system", "content": "..."}, {"role": "user", "content": prompt}]})
    )


def test_facts_are_extracted_from_a_chunk() -> None:
    chunk = "Extract facts from the following chunk.\n\nChunk: 1/1\nEvent Date: Friday, June 21, 2024 "
    facts = asked(f"{chunk}(2024-06-21T09:00:00+00:00)\nContext: none\n\nContent:\nLena: I moved to Linz.")["facts"]
    assert [(fact["what"], fact["fact_type"], fact["entities"]) for fact in facts] == [
        ("Lena moved to Linz.", "world", ["Lena", "Linz"])
    ]


def test_a_newer_fact_rewrites_the_observation_of_its_matter() -> None:
    old = json.dumps([{"id": "observation-1", "text": "Lena lives in Graz.", "proof_count": 1}])
    facts = f"[{LINZ}] Lena moved to Linz. (mentioned_at=2024-06-21 09:00:00+00:00)\n[{DOG}] Lena has a dog called Rex."
    found = asked(f"## INPUT\n\n### New facts\n\n{facts}\n\n### Existing observations\n\n{old}")
    (update,) = found["updates"]
    assert update["observation_id"] == "observation-1" and update["source_fact_ids"] == [LINZ]
    assert update["text"] == "Lena moved to Linz. Until 2024-06-21: Lena lives in Graz."
    assert [row["source_fact_ids"] for row in found["creates"]] == [[DOG]] and found["deletes"] == []
    both = f"[{LINZ}] Lena moved to Linz. (mentioned_at=2024-06-21)\n"
    both += f"[{GRAZ}] Lena lives in Graz. (mentioned_at=2024-03-04)"
    (create,) = asked(f"### New facts\n\n{both}\n\n### Existing observations\n\n[]")["creates"]
    assert create["text"].startswith("Lena moved to Linz.") and create["source_fact_ids"] == [GRAZ, LINZ]
