"""Where models come from when they are not the configured ones: tests and embedders give a source instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

from agboss.components.model_spec import ModelSpec
from agboss.errors import MissingExtraError, ModelError
from agboss.models.chat import CallSettings, ChatModel, ModelReply, ModelRequest
from agboss.models.resolve import ModelCatalog
from agboss_memory.contract import Budget, TokenCounter
from agboss_memory.records import Record
from agboss_memory.tokens.calibration import Calibration
from agboss_memory.wording import quoted

_UNASKED = object()


class Caller(Record, kw_only=True):
    """Who asks for a model.

    Attributes:
        kind: What it is.
        name: Its name.
        target: Its class, None for compaction.
    """

    kind: Literal["agent", "strategy", "router", "compaction"]
    name: str
    target: Any = None


@runtime_checkable
class ModelSource(Protocol):
    """Answers for components rather than for model ids."""

    def model_for(self, caller: Caller, spec: ModelSpec) -> ChatModel | None:
        """The model for this component, None = the configured one."""
        ...

    def wrap_router(self, caller: Caller, kind: str, router: Any) -> Any:
        """What decides for this router: ``router`` itself, or something in its place."""
        ...


class ModelHandle:
    """One component's model: found when it is first needed, so that assembling a workflow opens nothing.

    Args:
        catalog: Gives the configured model.
        source: Asked first, None = there is none.
        caller: The component.
        spec: Its model specification.

    Attributes:
        settings: Temperature, length and thinking of the specification.
        calibration: What its provider counts beside our own counts.
    """

    __slots__ = ("_budget", "_catalog", "_model", "_source", "_window", "calibration", "caller", "settings", "spec")

    def __init__(self, catalog: ModelCatalog, source: ModelSource | None, caller: Caller, spec: ModelSpec) -> None:
        self._catalog = catalog
        self.calibration = Calibration()
        self._source = source
        self._model: ChatModel | None = None
        self._window: Any = _UNASKED
        self._budget: Budget | None = None
        self.caller = caller
        self.spec = spec
        self.settings = CallSettings(temperature=spec.temperature, max_tokens=spec.max_tokens, thinking=spec.thinking)

    def open(self) -> ChatModel:
        """The model itself. Raises ModelKeyError, ModelError and MissingExtraError that name what is missing."""
        if self._model is None:
            found = None if self._source is None else self._source.model_for(self.caller, self.spec)
            self._model = _checked(self.caller, self.spec, self._catalog.model(self.spec) if found is None else found)
        return self._model

    @property
    def window(self) -> int | None:
        """Context window in tokens, None when unknown. A view can be shown although its model cannot be opened."""
        if self._window is _UNASKED:
            try:
                own: int | None = self.spec.context_window or getattr(self.open(), "context_window", None)
            except (ModelError, MissingExtraError):
                return self._catalog.window(self.spec)
            self._window = own or (self._catalog.window(self.spec) if self._source is None else None)
        return self._window

    @property
    def reply_reserve(self) -> int:
        """Tokens kept free for the answer: ``max_tokens`` if given, else min(4096, window // 8), 0 without a window."""
        if self.spec.max_tokens is not None:
            return self.spec.max_tokens
        window = self.window
        return 0 if window is None else min(4096, window // 8)

    def budget(self, counter: Callable[[], TokenCounter]) -> Budget:
        """What fits into the window, as ``counter`` counts. The same record until the calibration moves."""
        budget = self._budget
        if budget is None or budget.calibration != self.calibration.factor:
            budget = Budget(
                window=self.window,
                reply_reserve=self.reply_reserve,
                counter=counter(),
                calibration=self.calibration.factor,
            )
            self._budget = budget if self._window is not _UNASKED else None
        return budget

    @property
    def accepts(self) -> tuple[str, ...]:
        """Kinds and media types of files that it takes; a model of another source takes what the configured one does."""
        return self._catalog.accepts(self.spec)

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request."""
        return await (self._model or self.open()).generate(request)


def _checked(caller: Caller, spec: ModelSpec, model: ChatModel) -> ChatModel:
    """The model. Raises ModelError when a source or a ``@model_provider`` gave something that is none."""
    if not isinstance(model, type) and callable(getattr(model, "generate", None)):
        return model
    hint = f"call it: {model.__name__}(...)" if isinstance(model, type) else "give an object with 'async def generate'"
    text = f"{caller.kind} {caller.name!r} was given {quoted(model)} for {spec.model!r}, which is no chat model"
    raise ModelError("model.no-model", text, hint, model=spec.model)
