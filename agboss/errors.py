"""Errors of workflows. They extend the one tree of ``agboss_memory.errors``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agboss_memory.errors import (
    AgbossError,
    CompactionError,
    CopyError,
    InvalidInputError,
    LeaseLostError,
    MissingExtraError,
    PauseError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreUrlError,
    StoreVersionError,
    StrategyError,
    TernConflictError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadOwnerError,
    UnknownThreadError,
)

__all__ = [
    "AgbossError",
    "AppStateError",
    "AssemblyError",
    "CompactionError",
    "CopyError",
    "DeclarationError",
    "InvalidInputError",
    "LeaseLostError",
    "LimitExceededError",
    "MissingExtraError",
    "ModelError",
    "ModelKeyError",
    "NestedRunError",
    "NestedSyncError",
    "OutputError",
    "PauseError",
    "RouterError",
    "StoreCorruptError",
    "StoreError",
    "StoreLockedError",
    "StoreUrlError",
    "StoreVersionError",
    "StrategyError",
    "TernCancelledError",
    "TernConflictError",
    "TernFailedError",
    "TernTimeoutError",
    "ThreadBusyError",
    "ThreadDeletedError",
    "ThreadOwnerError",
    "UnknownThreadError",
]


class DeclarationError(AgbossError, ValueError):
    """A decorator or a settings model got a wrong argument."""


class AssemblyError(AgbossError, ExceptionGroup[AgbossError]):
    """Everything that is wrong with a workflow, found before any model call.

    ``exceptions`` holds one ``AgbossError`` per violation, each with a stable code, the component and a hint.
    """

    def __new__(cls, code: str, message: str, hint: str = "", **data: Any) -> AssemblyError:
        """A group of ``data["violations"]``."""
        violations: Sequence[AgbossError] = data["violations"]
        return ExceptionGroup.__new__(cls, message, list(violations))

    @classmethod
    def of(cls, workflow: str, violations: Sequence[AgbossError]) -> AssemblyError:
        """All violations of one workflow."""
        count = len(violations)
        noun = "problem" if count == 1 else "problems"
        return cls("assembly.invalid", f"workflow {workflow!r} has {count} {noun}", violations=tuple(violations))

    def derive(self, excs: Sequence[Any]) -> AssemblyError:  # type: ignore[override]
        """A group of the same kind, for ``split`` and ``subgroup``."""
        return AssemblyError(self.code, self.message, self.hint, violations=tuple(excs))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all violations, in order."""
        return tuple(error.code for error in self.exceptions if isinstance(error, AgbossError))

    def __str__(self) -> str:
        lines = [f"{self.message} [{self.code}]"]
        for number, error in enumerate(self.exceptions, start=1):
            lines.append(f"  {number}. " + str(error).replace("\n", "\n     "))
        return "\n".join(lines)


class AppStateError(AgbossError):
    """An App was used after it was closed, or from the wrong place."""


class NestedRunError(AppStateError):
    """A running Tern asked for another one that it would keep waiting for ever."""


class NestedSyncError(NestedRunError):
    """``execute_sync`` was called from inside a running Tern; it would wait for itself."""


class ModelError(AgbossError):
    """A model call failed after its retries."""


class ModelKeyError(ModelError):
    """The key of a configured model is not in the environment."""


class RouterError(AgbossError):
    """A router failed, chose something that is no route, or was not sure enough and has no fallback."""


class OutputError(AgbossError):
    """An answer does not satisfy the declared output model."""


class LimitExceededError(AgbossError):
    """A limit of the workflow was reached; the call that would exceed it was not made."""


class TernFailedError(AgbossError):
    """A Tern failed. Its ``run`` is stored; ``__cause__`` is what went wrong."""


class TernTimeoutError(TernFailedError):
    """A Tern did not finish within its time-out. It is stored as cancelled."""


class TernCancelledError(AgbossError):
    """A Tern was cancelled through the App. It is stored as cancelled."""
