"""What an adapter says when its framework is not there."""

from __future__ import annotations

from agboss_memory.errors import MissingExtraError


def missing_extra(extra: str, error: ImportError) -> MissingExtraError:
    """The error that names the ``pip install`` line of an adapter."""
    return MissingExtraError(
        "extra.missing",
        f"this adapter needs the extra {extra!r}, which is not installed ({error.name or error})",
        f"pip install 'agboss[{extra}]'",
        extra=extra,
    )
