"""Fifth stage: from the last value to the Tern's answer and typed output."""

from __future__ import annotations

from typing import Any

from agboss.components.border import is_model
from agboss.components.boundary import FinishSpec
from agboss.run import as_answer, as_model
from agboss_memory.records import Record


class FinishRequest(Record, kw_only=True):
    """The finish that was reached and what the last node gave."""

    finish: FinishSpec
    value: Any
    answer: str


class Finished(Record, kw_only=True):
    """The Tern's answer, its output, and the output's JSON for the store (None for text)."""

    answer: str
    output: Any
    output_json: str | None


async def finish(request: FinishRequest) -> Finished:
    """Shape the output. Raises OutputError when the value does not satisfy the finish's model."""
    value = request.value
    if request.finish.output is not None:
        value = as_model(request.finish.output, value, request.finish.name)
    if not is_model(value):
        return Finished(answer=request.answer or as_answer(value), output=None, output_json=None)
    return Finished(answer=request.answer or as_answer(value), output=value, output_json=value.model_dump_json())
