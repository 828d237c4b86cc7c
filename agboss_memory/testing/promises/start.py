"""Promise 12: what is wrong is an error at declaration, not in the middle of a turn."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from agboss_memory.errors import AgbossError
from agboss_memory.testing.promises.broken import BrokenPromise, must


def check_refused(make: Callable[[], object]) -> None:
    """Making it is refused with an error that says why.

    Args:
        make: Makes something from wrong values.

    Raises:
        BrokenPromise: It was made, or the error says nothing, or is one that comes by accident (``AttributeError``).
    """
    try:
        made = make()
    except (AgbossError, ValidationError, ValueError, TypeError) as error:
        must(bool(str(error).strip()), 12, f"{type(error).__name__} says nothing")
    except Exception as error:
        raise BrokenPromise(12, f"{type(error).__name__} is no refusal: {error}") from error
    else:
        raise BrokenPromise(12, f"{type(made).__name__} was made from wrong values")
