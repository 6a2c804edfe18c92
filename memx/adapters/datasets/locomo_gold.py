"""Oddities of LoCoMo's gold answers that show only against the conversation: lost spaces, answers seen but not said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memx.adapters.contract import Quirk
from memx.model import Case, Question, Turn
from memx.text.words import stems

_WORD = re.compile(r"[A-Za-z]+")
#: A comma with no space behind it, or a day's number grown onto the month.
_GLUED = re.compile(r"\w+[,;](?:[A-Za-z]\w*|\d{4})|\b\d{1,2}[A-Z][a-z]{2,}")
#: Small words that the release's authors lost the space before or behind.
_SMALL = ("his", "with", "of", "them", "and", "about", "the", "how")


def gold_quirks(cases: Iterable[Case]) -> Iterator[Quirk]:
    """``run_together_words`` and ``image_dependent``, in the order of the questions."""
    for case in cases:
        turns = case.turns()
        said = {word.lower() for turn in turns.values() for word in _WORD.findall(turn.content)}
        for question in case.questions:
            glued = [*_GLUED.findall(question.gold), *_glued_words(question.gold, said)]
            if glued:
                detail = f"spaces are missing in the gold answer: {', '.join(dict.fromkeys(glued))}"
                yield Quirk("run_together_words", question.question_id, "flagged", detail)
            seen = _only_seen(question, turns)
            if seen:
                detail = f"the answer stands in an image's caption, not in what was said: {', '.join(seen)}"
                yield Quirk("image_dependent", question.question_id, "flagged", detail)


def _glued_words(text: str, said: set[str]) -> list[str]:
    """Words that nobody said, and that are a small word grown together with a word that somebody said."""
    found = []
    for word in _WORD.findall(text):
        lower = word.lower()
        if lower in said or len(lower) < 6:
            continue
        parts = [lower.removeprefix(small) for small in _SMALL] + [lower.removesuffix(small) for small in _SMALL]
        if any(part != lower and len(part) > 2 and part in said for part in parts):
            found.append(word)
    return found


def _only_seen(question: Question, turns: dict[str, Turn]) -> list[str]:
    """The gold's words that captions of the evidence hold and its texts do not, if they are half of it or more."""
    captions = [caption for turn_id in question.evidence if (caption := turns[turn_id].metadata.get("caption"))]
    if question.abstention or not captions:
        return []
    gold = set(stems(question.gold)) - set(stems(question.text))
    spoken: set[str] = set()
    for turn_id in question.evidence:
        text = turns[turn_id].content
        for caption in captions:
            # By the option captions the caption may stand at the end of the text.
            text = text.removesuffix(f"[image: {caption}]").removesuffix(caption)
        spoken.update(stems(text))
    seen = (gold & {stem for caption in captions for stem in stems(caption)}) - spoken
    return sorted(seen) if 2 * len(seen) >= len(gold) else []
