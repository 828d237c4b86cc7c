"""The model that a strategy may call: limited, booked and traced like any other call of the Tern."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from agboss.container import CURRENT
from agboss.errors import AppStateError, OutputError
from agboss.models import ModelHandle, ModelRequest
from agboss_memory.contract import MemoryModel
from agboss_memory.messages import Message


class MeteredMemoryModel(MemoryModel):
    """A ``MemoryModel`` of one strategy.

    Args:
        strategy: Name of the strategy; the caller in usage records.
        model: The model.
    """

    def __init__(self, strategy: str, model: ModelHandle) -> None:
        self._strategy = strategy
        self._model = model

    async def generate(self, prompt: str, output: Any = None) -> Any:
        """Answer ``prompt`` as text, or as an instance of the pydantic model ``output``.

        Raises:
            AppStateError: Called outside a Tern.
            OutputError: The answer does not satisfy ``output``.
        """
        scope = CURRENT.get()
        if scope is None:
            raise AppStateError(
                "memory.no-tern",
                f"strategy {self._strategy!r} called its MemoryModel outside a Tern",
                "call it from build_context, update_memory or compress",
            )
        model: type[BaseModel] | None = output
        request = ModelRequest(
            caller=self._strategy,
            model=self._model.spec.model,
            messages=(Message(role="user", content=prompt),),
            settings=self._model.settings,
            output_schema=None if model is None else model.model_json_schema(),
            output_name="" if model is None else model.__name__,
            purpose="memory",
        )
        reply = await scope.meter.generate(self._model, self._model.spec, request, self._strategy)
        if model is None:
            return reply.text
        try:
            return model.model_validate_json(reply.text)
        except ValidationError as error:
            raise OutputError(
                "memory.bad-output",
                f"the model of strategy {self._strategy!r} gave no valid {model.__name__}",
                "use a model that can follow a JSON schema",
                answer=reply.text,
            ) from error
