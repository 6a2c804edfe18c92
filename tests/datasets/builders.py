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


def longmemeval_row(question_id: str = "q1", **changes: Any) -> dict[str, Any]:
    """One LongMemEval question with two sessions, of which the second holds the answer."""
    row = {
        "question_id": question_id,
        "question_type": "single-session-user",
        "question": "Where do I keep the spare key?",
        "answer": "under the blue pot",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_session_ids": ["sharegpt_1", "answer_7_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "Name a tree."}, {"role": "assistant", "content": "Ash."}],
            [
                {"role": "user", "content": "The spare key is under the blue pot.", "has_answer": True},
                {"role": "assistant", "content": 'Noted: "key": pot.', "has_answer": False},
            ],
        ],
        "answer_session_ids": ["answer_7_1"],
    }
    return {**row, **changes}


def beam_chat(first_id: int = 0) -> list[dict[str, Any]]:
    """A BEAM chat of two batches, six messages."""
    n = first_id
    return [
        {
            "batch_number": 1,
            "time_anchor": None,
            "turns": [
                [
                    {
                        "role": "user",
                        "id": n,
                        "time_anchor": "March-15-2024",
                        "content": "The API takes 400ms. ->-> 1,1",
                    },
                    {"role": "assistant", "id": n + 1, "content": "Let us profile it."},
                ],
                [{"role": "user", "id": n + 2, "content": "I never used Redis. ->-> 2,N/A"}],
            ],
        },
        {
            "batch_number": 2,
            "time_anchor": "April-05-2024",
            "turns": [
                [
                    {"role": "user", "id": n + 3, "content": "The API takes 250ms now (see above ->-> 2,3)."},
                    {"role": "assistant", "id": n + 4, "content": "Good."},
                    {"role": "user", "id": n + 5, "content": "I put the sessions into Redis."},
                ]
            ],
        },
    ]


def beam_questions() -> dict[str, list[dict[str, Any]]]:
    """Questions on four abilities."""
    return {
        "abstention": [{"question": "Who pays?", "ideal_response": "That was not told.", "rubric": ["not told"]}],
        "knowledge_update": [
            {
                "question": "How fast is the API?",
                "answer": "250ms",
                "rubric": ["250ms"],
                "source_chat_ids": {"original_info": [0], "updated_info": [3]},
            }
        ],
        "contradiction_resolution": [
            {
                "question": "Did I use Redis?",
                "ideal_answer": "You said both.",
                "rubric": ["both"],
                "source_chat_ids": {"first_statement": [2], "second_statement": [5]},
            }
        ],
        "event_ordering": [
            {
                "question": "In what order?",
                "answer": "speed, Redis",
                "rubric": ["speed", "Redis"],
                "source_chat_ids": [0, [2, 3]],
            }
        ],
    }


def beam_folder(folder: Path, chat: Any = None, questions: Any = None) -> Path:
    """A conversation's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "chat.json", chat if chat is not None else beam_chat())
    write(folder / "probing_questions.json", questions if questions is not None else beam_questions())
    return folder


def short_id(value: object) -> str:
    """A parameter's name for pytest: its text when that is short."""
    return value if isinstance(value, str) and len(value) < 60 and value.isprintable() else "content"
