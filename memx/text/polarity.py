"""Negation, yes and no, and refusals ("not mentioned"): which way a text points."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

_NOT = r"(?:not|never|n['’]t)"
_NEGATOR = re.compile(
    r"""\b(?:not|no|never|none|neither|nor|nobody|nothing|nowhere|without|hardly|barely|cannot|unlike
    | (?:instead|other|rather)\s+(?:of|than)
    | (?:fail|refuse|decline|cease)[sd]?(?:ed)?\s+to | denie[sd] | \w+n['’]t
    )\b""",
    re.VERBOSE,
)
# Where a negation stops: the sentence, a contrast, a new clause. A comma alone may go on with a list, all denied.
_CLAUSE_END = re.compile(
    r"[.!?;:\n]|\b(?:but|however|although|though|while|because|instead(?!\s+of)|yet)\b"
    r"|,\s*(?:and\s+|so\s+)?(?:(?:i|you|he|she|it|we|they|who|which|where|that|this|there)\b|only|just|rather)"
)
# A negator that negates nothing.
_EMPTY_NEGATION = re.compile(
    r"\b(?:not\s+(?:only|just|simply|merely)|no\s+(?:doubt|wonder|matter|problem)|why\s+not)\b"
)
_SCOPE = 100  # characters a negation reaches at most; longer clauses hold other matters

_HEDGE = (
    r"(?:(?:most\s+)?likely|probably|presumably|hopefully|possibly|perhaps|definitely|absolutely|certainly|i\s+think"
    r"|i\s+would\s+say)"
)
_YES = re.compile(
    rf"""\W*(?:
        (?:{_HEDGE}\W+)?(?:(?:yes|yeah|yep|yup)\b | (?:correct|true)\b(?=\W*(?:$|[.,;!])) | yes(?!ter)(?=[a-z]{{4}}))
      | {_HEDGE}\W*$
      | (?:definitely|absolutely|certainly|of\s+course|indeed)\s*[,.;:!-]
    )""",
    re.VERBOSE,
)
_NO = re.compile(
    rf"""\W*(?:
        {_HEDGE}\s+not\b
      | (?:{_HEDGE}\W+)?(?:no|nope|nah|not\s+really|not\s+likely|unlikely|false(?=\W*(?:$|[.,;!])))\b
        (?!\s+(?:one|longer|doubt|\w+er\s+than|evidence|information|mention|record|specific)\b)
    )""",
    re.VERBOSE,
)

_LEAD = re.compile(r"^[^.!?]*\banswer\s+(?:is|would\s+be|:)\s*:?\s*")  # "From what was said, the answer is no"

_REFUSAL = re.compile(
    rf"""
    # "not (explicitly) mentioned", "wasn't specified", "not possible to"
    (?:\b{_NOT}|n['’]t)\s+(?:been\s+|\w+ly\s+|otherwise\s+){{0,3}}
        (?:mention|specif|state|provid|give(?!\s+(?:up|in|away)\b)|known|availab|disclos|discuss|includ|record|indicat|reveal|describ|clear\b|answer
          |identif|detail|cover|found|come\s+up|came\s+up|shared?\b|named\b|listed\b|possible\b|sure\b|certain\b|able\b|enough\b|clarif|confirm
          |explicit\b)\w*
    # "no information", "without any details", "insufficient context"
  | \b(?:no|not\s+(?:enough|any|sufficient)|insufficient|lack(?:s|ing)?(?:\s+of)?|without(?:\s+any)?)
        \s+(?:\w+\s+){{0,3}}?(?:information|info|details?|mentions?|records?|evidence|indications?|data|memory|memories|answer|context
          |references?|specifics)\b
      # "does not mention", "cannot be determined": said of any subject
  | (?:\b(?:do|does|did|has|have|can|could|is|are|was|were)\s+not|n['’]t|\bcannot)\s+(?:be\s+)?(?:\w+ly\s+)?
        (?:determine|infer|answer|provide|mention|specify|state|contain|include|indicate|identify|confirm|conclude
          |have\s+(?:\w+\s+){{0,2}}?(?:information|details?|records?|memory|context|data|access))\w*
    # "I don't know": of the speaker alone; "she does not know how to swim" is an answer
  | (?:^|\b(?:i|we|you)\s+)(?:(?:do|did|can|could)(?:\s+not|n['’]t)|can(?:not|['’]t)|not)\s+(?:\w+ly\s+)?
        (?:know|recall|remember|find|tell|say|see)\b
  | (?:^\W*|\b(?:i|we)\s+have\s+)no\s+(?:idea|clue)\b
    # "it is unknown why", but not "an unknown man"
  | \bunknown\b(?!\s+(?!(?:whether|if|how|why|wh\w+|to|from|based|at|in|since|as|because|and|but|or)\b)\w)
  | \b(?:unanswerable|unspecified|unclear|undisclosed|n/a|not\s+applicable)\b
    # "you mentioned a hobby, but not his job"
  | \b(?:mention|discuss|talk|told|tell|shar|provid|record)\w*\b[^.!?]*,?\s(?:but|though)\s+(?:not|never)\b
  | \bunable\s+to\s+(?:answer|determine|find|say|tell|provide|recall|confirm|identify)\b
  | \b(?:i['’]?m|i\s+am)\s+(?:not\s+(?:sure|aware|certain)|unsure|unaware)\b
  | \b(?:nothing|none|no\s+one|nobody)\s+(?:\w+\s+){{0,3}}?(?:mentioned|known|said|stated|specified|recorded)\b
  | \bthere\s+(?:is|was|are|were|(?:has|have)\s+been)\s+(?:no|not\s+any)\b
    """,
    re.VERBOSE,
)
_TURN = re.compile(r"\b(?:but|however|though|although|only\s+that|just\s+that)\b(.*)")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


_DENIAL = re.compile(
    r"\W*(?:(?:it|that|this|these|those|the\s+answer)(?:['’]s|\s+(?:is|was|are|were))\s+)?not\b(?!\s+only)|\W*(?:it|that)\s+\w+n['’]t\b"
)


class Stance(StrEnum):
    """What a text answers to a yes-or-no question."""

    YES = "yes"
    NO = "no"
    NONE = "none"


def stance(text: str) -> Stance:
    """Whether the text opens with a yes ("Yes", "Likely yes") or a no ("No", "Unlikely")."""
    lower = _LEAD.sub("", text[:120].translate(_LOWER))[:80]
    if _NO.match(lower):
        return Stance.NO
    return Stance.YES if _YES.match(lower) else Stance.NONE


def opens_with_denial(text: str) -> bool:
    """True when the text as a whole denies what follows: "It was not ...", "Not ..."."""
    return _DENIAL.match(text[:60].translate(_LOWER)) is not None


@lru_cache(maxsize=4096)
def may_negate(text: str) -> bool:
    """True when the text holds any word that can negate another."""
    return _NEGATOR.search(text.translate(_LOWER)) is not None


def negated(text: str, span: tuple[int, int]) -> bool:
    """True when a negation in the same clause, before the span, reaches it ("it was not X")."""
    start = max(0, span[0] - _SCOPE)
    before = text[start : span[0]].translate(_LOWER)
    before = _EMPTY_NEGATION.sub(lambda match: " " * len(match.group()), before)
    negators = list(_NEGATOR.finditer(before))
    return bool(negators) and _CLAUSE_END.search(before, negators[-1].end()) is None


def is_refusal(text: str) -> bool:
    """True when the text says that the answer is not known and gives none.

    The refusal stands in the first sentence. A text that refuses and then answers all the same ("not mentioned, but
    she visited Italy") is no refusal.
    """
    lower = text.translate(_LOWER).strip()
    sentence = next((part for part in _SENTENCE.findall(lower) if part.strip(" .!?")), "")
    refusal = _REFUSAL.search(sentence)
    if refusal is None:
        return False
    turn = _TURN.search(sentence, refusal.end())
    return not (turn and not _REFUSAL.search(turn[1]) and len(turn[1].split()) >= 2)
