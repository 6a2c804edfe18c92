"""The filter language of lists: one string for the UI and for ``--where``, turned into SQL over table ``traces``.

    stage:retrieval cause:ranked_below_k rank<20 type:temporal text~"dinner" -case=conv-26 Oslo

Terms are joined by *and*; a leading ``-`` negates one. ``field:a,b`` holds when the field begins with ``a`` or ``b``,
``field=a`` when it is ``a``, ``field~a`` when it contains ``a``; numbers take ``< <= > >= = :``. ``field:none`` holds
when there is no value. A bare word is looked for in question, gold, candidate and id. Quotes keep blanks together.
Letters are compared without case (ASCII letters only, as SQLite's LIKE does).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memx.engine.store.marks import Mark
from memx.engine.store.reader import Where
from memx.errors import UsageError
from memx.model import Cause, Outcome, Stage


@dataclass(frozen=True, slots=True)
class Field:
    """One name that may stand before an operator.

    Attributes:
        columns: expressions over ``traces``; a text field holds when one of them does.
        kind: ``choice`` (a closed list), ``text`` or ``number``.
        choices: the closed list.
        help: what it means, for the help of a screen and of ``--where``.
    """

    columns: tuple[str, ...]
    kind: str
    help: str
    choices: tuple[str, ...] = ()


FIELDS: Mapping[str, Field] = {
    "verdict": Field(("outcome",), "choice", "PASS, FAIL, UNJUDGED or ERROR", tuple(str(o).lower() for o in Outcome)),
    "stage": Field(("stage",), "choice", "the step that lost the fact", tuple(map(str, Stage))),
    "cause": Field(("cause",), "choice", "how it was lost", tuple(map(str, Cause))),
    "type": Field(("category",), "text", "category of the question"),
    "case": Field(("case_id",), "text", "id of the case"),
    "id": Field(("question_id",), "text", "id of the question"),
    "text": Field(("question", "gold", "candidate"), "text", "question, gold or candidate"),
    "question": Field(("question",), "text", "the question"),
    "gold": Field(("gold",), "text", "the gold answer"),
    "candidate": Field(("candidate",), "text", "the judged answer"),
    "why": Field(("why",), "text", "why the verdict fell so"),
    "error": Field(("error",), "text", "the error of an ERROR"),
    "tag": Field(("tag",), "choice", "what control arms say of it", ("guessable", "reader-bound", "retrieval-bound")),
    "mark": Field(("mark",), "choice", "what a person decided: open, seen, fix, wont, nobug", tuple(map(str, Mark))),
    "note": Field(("note",), "text", "what a person wrote"),
    "rank": Field(("rank",), "number", "rank of the needed fact beyond the top k"),
    "confidence": Field(("confidence",), "number", "of the diagnosis, 0 to 1"),
    "tokens": Field(("context_tokens",), "number", "tokens of the context"),
}

# Marks and notes stand in their own tables. A subquery that names no column of the row is read once, not per row.
_KEPT = (
    "(run_id, question_id) IN (SELECT r.run_id, k.question_id FROM {} k JOIN runs r USING (dataset, adapter) WHERE {})"
)

#: Other names for fields.
ALIASES: Mapping[str, str] = {
    "category": "type", "outcome": "verdict", "answer": "candidate", "got": "candidate", "q": "question",
}  # fmt: skip

_ANYWHERE = ("question", "gold", "candidate", "question_id")
_TERM = re.compile(r"(?P<not>-?)(?:(?P<name>[A-Za-z_]+)(?P<op><=|>=|[:=~<>]))?(?P<value>(?:\"[^\"]*\"|[^\s\"])*)")
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a filter as written: where it stands, and its parts."""

    start: int
    end: int
    negated: bool
    name: str
    op: str
    value: str


def parse(text: str) -> Where:
    """The SQL condition of a filter; an empty filter holds for all.

    Raises:
        UsageError: the filter cannot be read; the message gives the column, counted from 1.
    """
    conditions: list[str] = []
    params: list[str | float] = []
    for term in terms(text):
        sql, values = _condition(text, term)
        conditions.append(f"NOT ifnull({sql}, 0)" if term.negated else sql)
        params += values
    return Where(" AND ".join(conditions) or "1", tuple(params))


def terms(text: str) -> list[Term]:
    """The terms of a filter, unchecked.

    Raises:
        UsageError: a quote is not closed.
    """
    found = []
    at = _end(_BLANK, text, 0)
    while at < len(text):
        match = _TERM.match(text, at)
        assert match is not None
        if match.end() == at or (match.end() < len(text) and text[match.end()] == '"'):
            raise _error(text, text.index('"', at), "this quote is not closed", 'Close it: text~"two words"')
        name = (match["name"] or "").lower()
        found.append(Term(at, match.end(), bool(match["not"]), name, match["op"] or "", match["value"]))
        at = _end(_BLANK, text, match.end())
    return found


def complete(text: str, values: Callable[[str], list[str]] | None = None) -> str | None:
    """The text with its last term completed, or None when nothing fits.

    Args:
        values: gives the values in use of a text field (``type``, ``case``), from the run that is shown.
    """
    if not text or text[-1].isspace():
        return None
    try:
        last = terms(text)[-1]
    except UsageError:
        return None
    sign = "-" if last.negated else ""
    if not last.op:
        names = [name for name in FIELDS if last.value and name.startswith(last.value.lower())]
        return f"{text[: last.start]}{sign}{names[0]}{_FIRST_OP[FIELDS[names[0]].kind]}" if names else None
    field = FIELDS.get(ALIASES.get(last.name, last.name))
    if field is None or field.kind == "number" or '"' in last.value:
        return None
    begun = last.value.rpartition(",")[2]
    known = list(field.choices) or (values(field.columns[0]) if values and len(field.columns) == 1 else [])
    fits = [value for value in known if value.lower().startswith(begun.lower()) and value != begun]
    return f"{text[: len(text) - len(begun)]}{_quoted(fits[0])}" if fits else None


def exactly(name: str, value: str) -> str:
    """A term of the language that holds for exactly this value of a field."""
    return f"{name}={_quoted(value)}"


def _condition(text: str, term: Term) -> tuple[str, list[str | float]]:
    if not term.op:
        word = term.value.replace('"', "")
        if not word:
            raise _error(text, term.start, "a word is missing here", "Write what to look for, or delete this.")
        return _either([f"{column} LIKE ? ESCAPE '\\'" for column in _ANYWHERE]), [_like(word)] * len(_ANYWHERE)
    name = ALIASES.get(term.name, term.name)
    field = FIELDS.get(name)
    if field is None:
        near = difflib.get_close_matches(name, [*FIELDS, *ALIASES], n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(FIELDS)}"
        raise _error(text, term.start, f"no field named '{term.name}'", hint)
    at = term.end - len(term.value)
    values = _values(term.value)
    if not all(values):
        raise _error(text, at, f"a value is missing after {term.name}{term.op}", _example(name, field))
    if field.kind == "number":
        return _number(text, term, at, field, values)
    if term.op in ("<", "<=", ">", ">="):
        hint = f"Use : (begins with), = (is) or ~ (contains). {_example(name, field)}"
        raise _error(text, term.start, f"{term.name} is no number", hint)
    if name == "mark":
        return _mark(text, term, at, field, values)
    if name == "tag":
        return _tag(text, term, at, field, values)
    if name == "note":
        return _note(term, values)
    if field.kind == "choice":
        return _choice(text, term, at, field, values)
    return _text(term, field, values)


def _number(text: str, term: Term, at: int, field: Field, values: list[str]) -> tuple[str, list[str | float]]:
    column = field.columns[0]
    if term.op == "~":
        raise _error(text, term.start, f"{term.name} is a number", f"Compare it: {term.name}<20")
    op = "=" if term.op == ":" else term.op
    parts: list[str] = []
    params: list[str | float] = []
    for value in values:
        if value.lower() == "none" and op == "=":
            parts.append(f"{column} IS NULL")
            continue
        try:
            number = float(value)
        except ValueError:
            raise _error(text, at, f"'{value}' is no number", f"Write for example {term.name}<20") from None
        parts.append(f"{column} {op} ?")
        params.append(number)
    return _either(parts), params


def _mark(text: str, term: Term, at: int, field: Field, values: list[str]) -> tuple[str, list[str | float]]:
    wanted = {mark for value in values for mark in _chosen(text, term, at, field, value)}
    # A question without a mark is open, so where open is wanted the question is whether another mark stands.
    named = [mark for mark in field.choices if (mark in wanted) is (Mark.OPEN not in wanted)]
    kept = _KEPT.format("current_marks", f"k.new IN ({','.join('?' * len(named))})")
    return f"NOT {kept}" if Mark.OPEN in wanted else kept, [*named]


def _tag(text: str, term: Term, at: int, field: Field, values: list[str]) -> tuple[str, list[str | float]]:
    parts: list[str] = []
    params: list[str | float] = []
    for value in values:
        if value.lower() == "none":
            parts.append("(run_id, question_id) NOT IN (SELECT run_id, question_id FROM question_tags)")
            continue
        fits = _chosen(text, term, at, field, value)
        wanted = ",".join("?" * len(fits))
        parts.append(
            f"(run_id, question_id) IN (SELECT run_id, question_id FROM question_tags WHERE tag IN ({wanted}))"
        )
        params += fits
    return _either(parts), params


def _note(term: Term, values: list[str]) -> tuple[str, list[str | float]]:
    parts: list[str] = []
    params: list[str | float] = []
    for value in values:
        if value.lower() == "none" and term.op != "~":
            parts.append("NOT " + _KEPT.format("current_notes", "k.new <> ''"))
        elif value.lower() == "any" and term.op != "~":
            parts.append(_KEPT.format("current_notes", "k.new <> ''"))
        elif term.op == "=":
            parts.append(_KEPT.format("current_notes", "k.new = ? COLLATE NOCASE"))
            params.append(value)
        else:
            parts.append(_KEPT.format("current_notes", "k.new LIKE ? ESCAPE '\\'"))
            params.append(_like(value, anywhere=term.op == "~"))
    return _either(parts), params


def _choice(text: str, term: Term, at: int, field: Field, values: list[str]) -> tuple[str, list[str | float]]:
    column = field.columns[0]
    parts: list[str] = []
    params: list[str | float] = []
    for value in values:
        if value.lower() == "none" and "none" not in field.choices:
            parts.append(f"{column} IS NULL")
            continue
        fits = _chosen(text, term, at, field, value)
        stored = [fit.upper() if column == "outcome" else fit for fit in fits]
        parts.append(f"{column} IN ({','.join('?' * len(stored))})")
        params += stored
    return _either(parts), params


def _chosen(text: str, term: Term, at: int, field: Field, value: str) -> list[str]:
    """The choices of a field that a value means.

    Raises:
        UsageError: it means none.
    """
    wanted = value.lower()
    tests: Mapping[str, Callable[[str], bool]] = {
        ":": lambda choice: choice.startswith(wanted),
        "=": lambda choice: choice == wanted,
        "~": lambda choice: wanted in choice,
    }
    fits = [choice for choice in field.choices if tests[term.op](choice)]
    if fits:
        return fits
    near = difflib.get_close_matches(wanted, field.choices, n=2, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(field.choices)}"
    raise _error(text, at, f"no {term.name} '{value}'", hint)


def _text(term: Term, field: Field, values: list[str]) -> tuple[str, list[str | float]]:
    parts: list[str] = []
    params: list[str | float] = []
    for value in values:
        for column in field.columns:
            if value.lower() == "none" and term.op != "~" and len(field.columns) == 1:
                parts.append(f"{column} IS NULL")
            elif term.op == "=":
                parts.append(f"{column} = ? COLLATE NOCASE")
                params.append(value)
            else:
                parts.append(f"{column} LIKE ? ESCAPE '\\'")
                params.append(_like(value, anywhere=term.op == "~"))
    return _either(parts), params


def _values(value: str) -> list[str]:
    """The alternatives of a value: separated by commas that stand outside quotes."""
    return [re.sub('"', "", part) for part in re.split(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", value)]


def _like(value: str, anywhere: bool = True) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", value)
    return f"%{escaped}%" if anywhere else f"{escaped}%"


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"[\s,]", value) else value


def _example(name: str, field: Field) -> str:
    if field.kind == "number":
        return f"For example {name}<20"
    return f"For example {name}:{field.choices[0]}" if field.choices else f'For example {name}~"two words"'


def _error(text: str, at: int, message: str, hint: str) -> UsageError:
    return UsageError(f"filter, column {at + 1}: {message}", hint)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


_FIRST_OP = {"choice": ":", "text": "~", "number": "<"}
