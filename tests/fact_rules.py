"""Facts read out of conversation text by rules, in place of a model: sentences about a person in the third person.

The rules know nothing of any test. They take the sentences in which a speaker says something of himself or herself,
write them about that person, and name a relation and its object where one stands in them. A sentence in another script
is kept as reported speech.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_SPEAKER = re.compile(r"^(?:\[[^\]]*\]\s*)?([^\W\d_][\w.'-]*(?: [\w.'-]+){0,2}):\s+(.*)$", re.DOTALL)
#: A word with letters beyond English: the rules cannot read such a sentence, and keep it as it is.
_FOREIGN = re.compile(r"\w*[^\W\d_a-zA-Z]\w*")
_FIRST = re.compile(r"\b(I|I'm|I've|I'd|I'll|my|me|mine|we|we're|our)\b", re.I)
_NAME = r"((?:[A-Z][\w'&-]*|\d[\w.,]*)(?: (?:of |de |the )?[A-Z][\w'&-]*)*)"

#: Relation, whether a person has one object of it at a time, and how it is said (third person).
RELATIONS: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    ("LIVES_IN", True, re.compile(rf"\b(?:lives?|living|moved|relocated)\b[^.]*?\b(?:in|to) {_NAME}")),
    ("WORKS_AT", True, re.compile(rf"\b(?:works?|working|started|job)\b[^.]*?\b(?:at|for) {_NAME}")),
    ("WORKS_AT", True, re.compile(rf"\bjoined {_NAME}")),
    ("HAS_PET", False, re.compile(rf"\b(?:dog|cat|beagle|puppy|kitten|parrot)\b[^.]*?\b(?:called|named) {_NAME}")),
    ("PLAYS", False, re.compile(r"\bplays? (?:the )?(\w+)")),
    ("LIKES", False, re.compile(r"\b(?:loves?|likes?|prefers?|enjoys?) (?:the |a )?([\w' -]+?)(?=[,.!?]| and |$)")),
)
_ABOUT = re.compile(r"\b(\w+(?:ed|s))\b")


@dataclass(frozen=True)
class Claim:
    """One fact: the sentence, whom it is about, and the relation and object where the rules found them."""

    sentence: str
    subject: str
    relation: str = ""
    target: str = ""
    single: bool = False

    def contradicts(self, older: Claim) -> bool:
        """The two cannot both be true now: one person, a relation of one object at a time, another object."""
        same = (self.subject, self.relation) == (older.subject, older.relation)
        return same and self.single and self.target.casefold() != older.target.casefold()


def claims(text: str, speaker: str = "User", said_on: date | None = None) -> Iterator[Claim]:
    """The facts of one message; ``Name: ...`` at its start names the speaker, ``said_on`` resolves "yesterday"."""
    named = _SPEAKER.match(text.strip())
    if named:
        speaker, text = named.group(1), named.group(2)
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        if sentence.endswith("?"):
            continue
        if not _FIRST.search(sentence):
            foreign = _FOREIGN.search(sentence)
            if foreign:
                yield Claim(f"{speaker} said: {sentence}", speaker, "SAID", foreign.group())
            continue
        if len(sentence.split()) < 3:
            continue
        told = _in_third_person(sentence.rstrip("!.") + ".", speaker)
        yield claim(_dated(told, said_on), speaker)


def claim(sentence: str, speaker: str = "") -> Claim:
    """A sentence in the third person with its relation; the subject is its first word when no speaker is given."""
    subject = speaker or (sentence.split()[0].removesuffix("'s") if sentence.split() else "")
    for relation, single, pattern in RELATIONS:
        found = pattern.search(sentence)
        if found:
            return Claim(sentence, subject, relation, found.group(1).strip(" .,"), single)
    others = [name for name in re.findall(_NAME, sentence) if name.removesuffix("'s") != subject]
    verb = _ABOUT.search(sentence)
    if others and verb:
        return Claim(sentence, subject, verb.group(1).upper(), others[0].strip(" .,"))
    return Claim(sentence, subject)


def _in_third_person(sentence: str, speaker: str) -> str:
    for said, told in (
        (r"\bI'm\b|\bI am\b", f"{speaker} is"),
        (r"\bI've\b|\bI have\b", f"{speaker} has"),
        (r"\b(I|we) (live|work|love|like|prefer|enjoy|play|own)\b", rf"{speaker} \2s"),
        (r"\bI\b|\b[Ww]e\b", speaker),
        (r"\b[Mm]y\b|\b[Oo]ur\b", f"{speaker}'s"),
        (r"\bme\b", speaker),
    ):
        sentence = re.sub(said, told, sentence)
    return sentence


def _dated(sentence: str, said_on: date | None) -> str:
    if said_on is None:
        return sentence
    sentence = re.sub(r"\byesterday\b", f"on {said_on - timedelta(days=1)}", sentence)
    return re.sub(r"\btoday\b", f"on {said_on}", sentence)
