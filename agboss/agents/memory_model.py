"""The model that a strategy may call: limited, booked and traced like any other call of the Tern."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from agboss.container import CURRENT
from agboss.errors import AppStateError, CompactionError, OutputError
from agboss.models import ModelHandle, ModelRequest
from agboss.models.chat import LENGTH
from agboss_memory.contract import MemoryModel
from agboss_memory.messages import Message, UsagePurpose


class MeteredMemoryModel(MemoryModel):
    """A ``MemoryModel`` of one strategy.

    Args:
        strategy: Name of the strategy, or of the agent whose conversation it is; the caller in usage records.
        model: The model.
        purpose: Why it is called.
    """

    def __init__(self, strategy: str, model: ModelHandle, purpose: UsagePurpose = "memory") -> None:
        self._strategy = strategy
        self._model = model
        self._purpose: UsagePurpose = purpose

    async def generate(self, prompt: str, output: Any = None) -> Any:
        """Answer ``prompt`` as text, or as an instance of the pydantic model ``output``.

        Raises:
            AppStateError: Called outside a Tern.
            OutputError: The answer does not satisfy ``output``.
            CompactionError: No call for memory is left in this Tern, or the model's answer was cut off.
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
            purpose=self._purpose,
        )
        scope.meter.take_memory_call(self._strategy)
        reply = await scope.meter.generate(self._model, self._model.spec, request, f"{self._strategy}.{self._purpose}")
        if model is None:
            if self._purpose == "compaction" and reply.finish_reason == LENGTH:
                hint = "set max_tokens higher on the model, or name another summary_model"
                raise CompactionError("compaction.cut-off", f"the summary for {self._strategy!r} was cut off", hint)
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
