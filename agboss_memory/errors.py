"""The one error tree. Every error has a stable code, says what happened and what to do next.

An error carries its facts in ``data`` and renders late, so that a command line, a server and a log can each
show it in their own way. All errors can be pickled, also with the run they belong to.
"""

from __future__ import annotations

from typing import Any


def _rebuild(cls: type[AgbossError], code: str, message: str, hint: str, data: dict[str, Any], run: Any) -> AgbossError:
    error = cls(code, message, hint, **data)
    error.run = run
    return error


class AgbossError(Exception):
    """Base of every error that agboss raises on purpose.

    Args:
        code: Stable, dotted identifier such as ``run.unknown-thread``. Programs branch on this, never on the text.
        message: What happened, to which component, thread or Tern.
        hint: What to do about it; empty when there is nothing to add.
        **data: The facts behind the message. Each is readable as ``error.data[name]``.
    """

    def __init__(self, code: str, message: str, hint: str = "", **data: Any) -> None:
        super().__init__(message)
        self.code = code
        self._message = message
        self.hint = hint
        self.data = data
        self.run: Any = None
        """The stored run (a ``RunResult``) when a Tern was admitted before the error, else None."""

    @property
    def message(self) -> str:
        """What happened, without code and hint."""
        return self._message

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  hint: {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.code, self.message, self.hint, self.data, self.run)


class InvalidInputError(AgbossError):
    """A value was refused at the border: an id, a text, an input model. Nothing was stored."""


class UnknownThreadError(AgbossError):
    """No such thread in this store for this workflow."""


class ThreadOwnerError(UnknownThreadError):
    """The thread exists but belongs to another owner. Shown to a stranger as an unknown thread."""


class ThreadDeletedError(UnknownThreadError):
    """The thread was deleted while a Tern was running in it; the late result was not stored."""


class ThreadBusyError(AgbossError):
    """Another Tern holds the thread and the policy or the queue time-out does not allow waiting longer."""


class TernConflictError(AgbossError):
    """An idempotency key came again with another thread, task or start."""


class PauseError(AgbossError):
    """A decision cannot be taken: nothing waits for it, or it was decided otherwise."""


class LeaseLostError(AgbossError):
    """Another process took the thread over; this one may no longer write to it."""


class StoreError(AgbossError):
    """The store could not do what was asked; nothing was half written."""


class StoreUrlError(StoreError):
    """A store URL that names no known store, or a malformed one."""


class StoreLockedError(StoreError):
    """The database stayed locked by somebody else for longer than the busy time-out."""


class StoreCorruptError(StoreError):
    """The file is not a database, or its content is damaged."""


class StoreVersionError(StoreError):
    """The store was written by a newer release; this one must not touch it."""


class CopyError(StoreError):
    """A copy of a thread that cannot be taken in: malformed, of an unknown format, or already there."""


class StrategyError(AgbossError):
    """A memory strategy raised or returned something that is no view."""


class CompactionError(AgbossError):
    """A summary could not be made: the model failed, answered nothing, or answered too much."""


class MissingExtraError(AgbossError):
    """An optional dependency is not installed; the hint is the ``pip install`` line."""
