"""Gold answers in words: whether an answer says enough of one, and nothing against it."""

from __future__ import annotations

import re
from itertools import pairwise

from memx.text.answer_values import Match, changed_number, wrong_date, wrong_frequency, wrong_number
from memx.text.contrast import rival_word
from memx.text.coverage import Coverage, alike, content, cover, denies, stems_of
from memx.text.lists import item_spans, items
from memx.text.names import names_in
from memx.text.numbers import numbers_in
from memx.text.polarity import Stance, stance
from memx.text.sentences import sentence_at, sentence_spans
from memx.text.words import words

# Shares of a gold answer that must be said; each lies beside its fraction, so that a tie is no matter of rounding.
_NAMES = 0.75  # nearly all of a list of names: each is a fact of its own
_MOST = 0.55  # more than half of another list, or of a word or two
_HALF = 0.45  # half of a phrase of three to five words
_LONG_LIST = 0.3  # a third of a list of more than five words
_LONG = 0.25  # a quarter of a longer phrase: the longer a gold answer, the more of it is explanation
_OF_TALK = 0.65  # of any phrase, where the text is a talk: somewhere in it stands a third of most phrases on its matter
_TALK = 150  # content words from which a text is no answer, but a talk
_WHOLE = 0.9  # as good as all of it
_PART = 0.25  # a part of a list, where the answer names nothing beside it: incomplete is not wrong

# "Various friends", "a few musical performances": the answer opens with how many, and tells none.
_VAGUE = re.compile(
    r"(?:various|several|some|certain|different|multiple|an?\s+(?:few|couple\s+of|variety\s+of|mix\s+of|number\s+of))\s",
    re.IGNORECASE,
)
_ORDER = re.compile(r"\b(?:in\s+what|what\s+is\s+the|in\s+which|the)\s+order\b|\bchronological", re.IGNORECASE)
_OR = re.compile(r"\bor\b")
_REPEATED = 12  # words of weight from which an answer that has as good as all of them repeats the gold answer
_SHORT = 20  # content words up to which an answer is one statement
_NEAR = 25  # characters between "or" and a word that it sets beside another

_REASON = re.compile(r";|,?\s+(?:because|since)\s")
_OPENING = re.compile(r"^(?:and\s+)?(?:the\s+|an?\s+)?[\"'“]?", re.IGNORECASE)


def match_phrase(question: str, gold: str, answer: str) -> Match:
    """Compare by the words, names and list items of the gold answer."""
    head = _without_reason(gold)
    best = _best(question, gold, answer)
    needed = _needed(best, head)
    if len(content(answer)) > _TALK:
        needed = max(needed, _OF_TALK)
        if best.share >= needed and not best.listed:  # the items of a list may stand far apart
            answer, best = _passage(question, gold, answer)
    missing = ", ".join(best.missing[:4])
    if best.share < needed and not _is_part(best, needed, question, head, answer):
        return Match(False, f"the answer lacks {missing or gold}", sure=best.share < needed / 2, reworded=True)
    if not best.listed and _lacks_full_name(question, head, answer):
        return Match(False, f"the answer lacks the name that the gold answer gives: {missing}")
    if best.listed and best.share < _NAMES and _VAGUE.match(answer):
        return Match(False, f"the answer names a kind, not what is of it: {missing}")
    region = answer[slice(*_region(answer, best))]
    wrong = wrong_number(head, answer) or wrong_frequency(head, answer) or wrong_date(head, region)
    if not wrong and best.share >= _WHOLE and best.weighty > _REPEATED:
        wrong = changed_number(gold, answer)
    if wrong:
        return Match(False, wrong)
    instead = "" if best.share >= _NAMES else rival_word(question, head, answer)
    if instead:
        return Match(False, f"the answer says {instead}", sure=False)
    if _ORDER.search(question) and _out_of_order(gold, answer):
        return Match(False, "the answer tells the same in another order", sure=False)
    rival = _chooses_other(question, head, answer)
    if rival:
        return Match(False, f"the answer puts {rival} first", sure=False)
    if _left_open(question, gold, answer, best):
        return Match(False, f"the answer leaves open whether {', '.join(best.found[:3])} or something else")
    why = f"the answer has {', '.join(best.found[:6])}"
    return Match(True, f"{why}; it lacks {missing}" if missing else why, sure=best.share >= _NAMES)


def short_of(question: str, gold: str, answer: str) -> Coverage | None:
    """What a short answer says of a gold phrase, where nothing but missing words speaks against it; else None.

    Names and numbers are said or not. A kind ("various hobbies"), a denial, an "or", a name that the answer brings, and
    another word in the place of the gold one are no matter of wording either.
    """
    head = _without_reason(gold)
    told = content(answer)
    if not told or len(told) > _SHORT or names_in(head) or numbers_in(head) or _VAGUE.match(answer):
        return None
    known = set(words(f"{question} {gold}"))
    if not all(known & set(words(name.text)) for name in names_in(answer)):
        return None
    if (
        denies(answer) != denies(gold)
        or _OR.search(answer)
        or wrong_number(head, answer)
        or wrong_frequency(head, answer)
    ):
        return None
    return None if rival_word(question, head, answer) else _best(question, gold, answer)


def _best(question: str, gold: str, answer: str) -> Coverage:
    head = _without_reason(gold)
    best = max((cover(question, choice, answer) for choice in _choices(head)), key=lambda found: found.share)
    if head != gold and best.weighty == 0:
        best = max(best, cover(question, gold, answer), key=lambda found: found.share)
    return best


def _passage(question: str, gold: str, talk: str) -> tuple[str, Coverage]:
    """The sentences of a talk in a row, many more than the gold answer has, that say most of it, and what they say."""
    spans = sentence_spans(talk)
    size = 4 * len(sentence_spans(gold)) + 8
    starts = range(0, max(len(spans) - size // 2, 1), size // 2)
    passages = (talk[spans[first][0] : spans[min(first + size, len(spans)) - 1][1]] for first in starts)
    return max(((one, _best(question, gold, one)) for one in passages), key=lambda found: found[1].share)


def _region(answer: str, best: Coverage) -> tuple[int, int]:
    """From the start of the sentence that holds the first of the found words to the end of that of the last."""
    if not best.spans:
        return 0, len(answer)
    first, last = min(start for start, _ in best.spans), max(start for start, _ in best.spans)
    return sentence_at(answer, first)[0], sentence_at(answer, last)[1]


def _lacks_full_name(question: str, gold: str, answer: str) -> bool:
    """True when the gold answer gives a name of two words or more, and the answer no part of it."""
    asked, told = set(words(question)), set(words(answer))
    names = [set(words(name.text)) for name in names_in(gold) if " " in name.text and name.text[-1].isalpha()]
    new = [name for name in names if not asked & name]
    return bool(new) and not any(told & name for name in new)


def _without_reason(gold: str) -> str:
    """The gold answer without the reason it adds ("National park; she likes the outdoors")."""
    reason = _REASON.search(gold)
    return gold[: reason.start()] if reason and words(gold[: reason.start()]) else gold


def _choices(gold: str) -> list[str]:
    """The answers that a short "A or B" allows, each right by itself; else the gold answer alone."""
    parts = re.split(r"\s+or\s+", gold)
    return parts if len(parts) == 2 and all(words(part) and len(part.split()) <= 3 for part in parts) else [gold]


def _needed(best: Coverage, gold: str) -> float:
    if best.listed and all(_OPENING.sub("", item)[:1].isupper() for item in items(gold)):
        return _NAMES
    if best.weighty > 5:
        return _LONG_LIST if best.listed else _LONG
    return _MOST if best.listed or best.weighty <= 2 else _HALF


def _is_part(best: Coverage, needed: float, question: str, gold: str, answer: str) -> bool:
    """True when the answer gives some items of a list, and every item it gives is one of them or was asked about."""
    if not best.listed or needed == _NAMES or best.share < _PART:
        return False
    known = (*content(gold), *content(question))
    told = (content(item) for item in items(answer))
    return all(not item or any(alike(token, mine) for token in item for mine in known) for item in told)


def _out_of_order(gold: str, answer: str) -> bool:
    """True when the items of the gold answer stand in another order in the answer, as far as it names them."""
    told, listed = content(answer), [content(gold[slice(*span)]) for span in item_spans(gold)]
    places = []
    for number, item in enumerate(listed):
        others = [token for other in listed[:number] + listed[number + 1 :] for token in other]
        own = [token for token in item if not any(alike(token, other) for other in others)]
        found = [token.span[0] for token in told if any(alike(token, mine) for mine in own)]
        if found:
            places.append(min(found))
    return any(before > after for before, after in pairwise(places))


def _chooses_other(question: str, gold: str, answer: str) -> str:
    """The other choice of an "A or B" question, where the answer names it before the gold one; else empty.

    "Between A and B, ..." only repeats the question, so it is not counted.
    """
    match = re.search(r"\bor\b", question)
    if match is None:
        return ""
    wanted = content(gold)
    left, comma = question[: match.start()], question.rfind(",", 0, match.start())
    before = content(left[comma + 1 :]) if comma >= 0 else content(left)[-1:]
    after = content(question[match.end() :])[:3]
    ours, theirs = (sum(any(alike(token, mine) for mine in wanted) for token in side) for side in (before, after))
    if ours == theirs:
        return ""
    rivals = [token for token in (after if ours > theirs else before) if not any(alike(token, mine) for mine in wanted)]
    start = answer.find(",") + 1 if re.match(r"\W*(?:between|of|out\s+of)\b", answer, re.IGNORECASE) else 0
    for token in content(answer[start:]):
        if any(alike(token, mine) for mine in wanted):
            return ""
        rival = next((other for other in rivals if other.key == token.key), None)
        if rival:
            return rival.text
    return ""


def goes_on_or(question: str, gold: str, answer: str) -> bool:
    """True when the answer says the whole gold answer, its reason and reckoning too, and then "or" something else."""
    if not 2 <= len(content(gold)) >= (len(content(answer)) - _SHORT) / 2:  # of a single word see _left_open
        return False
    known = (*content(gold), *content(question))
    wanted = words(gold)
    for said in _OR.finditer(answer):
        before = answer[: said.start()]
        if words(before) != wanted:
            whole = cover(question, gold, before)
            between = before[max((end for _, end in whole.spans), default=0) :]
            if whole.share < _WHOLE or content(between) or len(between) > _NEAR:
                continue
        told = content(answer[said.end() :])
        if told and 2 * sum(any(alike(token, mine) for mine in known) for token in told) < len(told):
            return True
    return False


def _left_open(question: str, gold: str, answer: str, best: Coverage) -> bool:
    """True when "or" sets what was found beside something else: "tea or coffee" answers nothing."""
    if not best.spans or not _OR.search(answer):
        return False
    if best.share < 1.0 or _without_reason(gold) != gold:  # "or" may stand beside the reason
        best = max(best, cover(question, gold, answer), key=lambda found: len(found.spans))
    asked, wanted = stems_of(content(question)), content(gold)
    low, high = min(start for start, _ in best.spans), max(end for _, end in best.spans)
    for match in _OR.finditer(answer):
        start, end = sentence_at(answer, match.start())
        if all(match.start() - last > _NEAR or first - match.end() > _NEAR for first, last in best.spans):
            continue
        if start <= low and high <= match.start():
            other = answer[match.end() : end]
        elif match.end() <= low and high <= end:
            other = answer[start : match.start()]
        else:
            continue
        if stance(other) is not Stance.NONE:
            return True
        told = [token for token in content(other) if token.key not in asked]
        if told and not any(alike(token, mine) for token in told for mine in wanted):
            return True
    return False
