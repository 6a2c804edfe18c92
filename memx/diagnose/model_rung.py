"""The last rung of the relevance ladder: a model is asked which facts of a short list carry a turn.

Asked only for pieces that neither provenance nor wording nor embeddings link to a fact, once per piece with the whole
list in one request, and at most :data:`MOST_CALLS` times per question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memx.errors import Interrupted, ModelError
from memx.llm.client import LLM
from memx.llm.reading import Unread, json_values

#: Facts in one request.
SHORT_LIST = 8
#: Requests for one question.
MOST_CALLS = 3
_FACT_CHARS = 600

PROMPT = """\
A memory system stored notes about a conversation. Decide which notes still hold what one utterance says, as far as \
it matters for the question. A note holds it when someone who reads only the note learns the same: the same people, \
values, numbers and dates. A note that is merely about the same matter does not hold it.

Question: {question}
Utterance by {speaker}: {said}

Notes:
{notes}

Reply with JSON alone: {{"notes": [numbers of the notes that hold it]}}. An empty list is a good answer.\
"""
REMINDER = 'Reply with JSON alone, such as {"notes": [2]} or {"notes": []}.'


class ModelRung:
    """Asks a model which facts carry a turn. Safe to call from several threads; replies are cached by the client.

    Args:
        llm: the client of the model.
    """

    prompt_sha256 = hashlib.sha256(PROMPT.encode()).hexdigest()

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def carrying(self, question: str, speaker: str, said: str, facts: Sequence[str]) -> set[int] | None:
        """The positions of the facts that carry the turn; None when the model failed, which decides nothing.

        Raises:
            Interrupted: the run was stopped.
        """
        notes = "\n".join(f"{number}. {' '.join(text[:_FACT_CHARS].split())}" for number, text in enumerate(facts, 1))
        prompt = PROMPT.format(question=question, speaker=speaker, said=said[: 4 * _FACT_CHARS], notes=notes)

        def read(reply: str) -> set[int]:
            for value in json_values(reply):
                listed = value.get("notes") if isinstance(value, dict) else None
                if isinstance(listed, list) and all(isinstance(one, int) for one in listed):
                    return {one - 1 for one in listed if 1 <= one <= len(facts)}
            raise Unread("no list of notes in it")

        try:
            found, _ = self._llm.ask(
                [{"role": "user", "content": prompt}],
                read,
                purpose="diagnose",
                reminder=REMINDER,
                max_tokens=100,
                json_mode=True,
            )
        except Interrupted:
            raise
        except ModelError:
            return None
        return found
