"""Small files in the benchmarks' real formats, with content of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, content: Any) -> Path:
    """``content`` as JSON (text and bytes as they are) in ``path``."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def locomo_sample(sample_id: str = "conv-1") -> dict[str, Any]:
    """One LoCoMo conversation: two sessions, four turns, one caption, a question of each category."""
    return {
        "sample_id": sample_id,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I bought a kayak yesterday."},
                {
                    "speaker": "Ben",
                    "dia_id": "D1:2",
                    "text": "Look at mine!",
                    "blip_caption": "a red kayak on a lake",
                    "img_url": ["https://images.example/1.jpg"],
                    "query": "red kayak",
                },
            ],
            "session_2_date_time": "12:09 am on 13 September, 2023",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "I sold the kayak for 300 dollars."},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "Good price."},
            ],
        },
        "qa": [
            {
                "question": "What did Ada buy and sell?",
                "answer": "a kayak",
                "evidence": ["D1:1", "D2:1"],
                "category": 1,
            },
            {"question": "When did Ada buy it?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
            {"question": "Does Ben like water?", "answer": "Likely yes", "evidence": ["D1:2"], "category": 3},
            {"question": "What was the price?", "answer": 300, "evidence": ["D2:1"], "category": 4},
            {
                "question": "What did Ben sell?",
                "adversarial_answer": "a kayak",
                "evidence": ["D2:1"],
                "category": 5,
            },
        ],
    }
