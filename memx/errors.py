"""The one tree of errors.

    MemxError                  anything memx tells a user
    |- UsageError              bad option, unknown name                     exit 2
    |  `- UnknownNameError     a name that is in no registry, with a did-you-mean
    |- InputError              a file that is missing, broken or of the wrong shape   exit 2
    |- StoreError              memx.db or last_run.json cannot be used      exit 2
    |- AdapterError            the memory system failed                     exit 3
    |  `- AdapterTimeoutError  it did not become ready, or answer, in time
    |- ModelError              the judge or answer model failed             exit 3
    |  |- QuotaError           no key, a wrong key or no credit left: asking again is no use
    |  |- BudgetReached        --max-calls or --max-cost is used up; what is left stays unjudged
    |  |- ContextTooLongError  a prompt does not fit the model's context window
    |  `- UnreadableReply      a reply that stays unreadable after it was asked again; its text is kept
    `- Interrupted             the user pressed Ctrl-C                      exit 130

Every error says what happened (``message``) and what to do about it (``hint``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MemxError(Exception):
    """Base of all errors that memx shows to a user.

    Args:
        message: what happened, naming the file, the place or the call.
        hint: what to do next; may be empty when the message already says it.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class UsageError(MemxError):
    """An option or argument that cannot be used as given."""


class UnknownNameError(UsageError):
    """A name that no registry holds.

    Args:
        kind: what was looked for, for example ``"adapter"``.
        name: the name as the user wrote it.
        known: the names that exist; the nearest are suggested.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            suggestion = f"Did you mean {' or '.join(near)}?"
        elif names:
            suggestion = f"There are: {', '.join(names[:20])}."
        else:
            suggestion = ""
        super().__init__(f"no {kind} named '{name}'", " ".join(part for part in (suggestion, hint) if part))


class InputError(MemxError):
    """A file or record that cannot be read.

    Args:
        message: what is wrong.
        path: the file it is in.
        place: where in the file (line, record, field).
    """

    def __init__(self, message: str, hint: str = "", *, path: object = "", place: str = "") -> None:
        where = ": ".join(str(part) for part in (path, place) if str(part))
        super().__init__(f"{where}: {message}" if where else message, hint)


class StoreError(MemxError):
    """The run store (``memx.db``) or ``last_run.json`` cannot be used."""


class AdapterError(MemxError):
    """The memory system failed; raised by adapters and by the harness around them."""

    exit_code = 3


class AdapterTimeoutError(AdapterError):
    """The memory system did not become ready, or did not answer, in time."""


class ModelError(MemxError):
    """A language model (judge, answers, diagnosis) failed after its retries."""

    exit_code = 3


class QuotaError(ModelError):
    """A model refuses for a reason that no retry mends: key, credit or permission."""


class BudgetReached(ModelError):
    """The cap on calls or cost is reached; nothing more is asked."""


class ContextTooLongError(ModelError):
    """A prompt does not fit the model's context window; a shorter context mends it."""


class UnreadableReply(ModelError):
    """A model's reply that could not be read, also when asked again.

    Args:
        reply: the text of the last reply.
    """

    def __init__(self, message: str, hint: str = "", *, reply: str = "") -> None:
        super().__init__(message, hint)
        self.reply = reply


class Interrupted(MemxError):
    """The run was interrupted by the user; what was finished is saved."""

    exit_code = 130
