"""What ``create_app`` and ``AgentRuntime`` are given: refused at once when it cannot work, with the remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from agboss.components.injection import Provider, provide, provide_class
from agboss.components.metadata import is_seconds
from agboss.errors import InvalidInputError
from agboss.models import ModelSource
from agboss_memory.mapper import LlmMessageMapper
from agboss_memory.wording import quoted


def mapper_provider(mapper: Any) -> tuple[Provider, ...]:
    """What provides the mapper; nothing for None. Raises InvalidInputError."""
    if mapper is None:
        return ()
    if isinstance(mapper, LlmMessageMapper):
        return (provide(LlmMessageMapper, mapper),)
    if isinstance(mapper, type) and issubclass(mapper, LlmMessageMapper):
        return (provide_class(LlmMessageMapper, mapper),)
    raise InvalidInputError(
        "app.invalid",
        f"llm_message_mapper={quoted(cast('object', mapper))} is no mapper",
        "pass a subclass of LlmMessageMapper, or one of it",
    )


def check_seconds(name: str, seconds: Any) -> None:
    """Raises InvalidInputError unless it is a finite number of seconds."""
    if not is_seconds(seconds, zero=True) or seconds == math.inf:
        raise InvalidInputError("app.invalid", f"{name}={quoted(seconds)}", "use a number of seconds, 0 or more")


def check_flags(**flags: Any) -> None:
    """Raises InvalidInputError unless each is True or False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidInputError("app.invalid", f"{name}={quoted(value)}", "use True or False")


def check_models(models: Any) -> None:
    """Raises InvalidInputError unless it is None, a source, or chat models by id."""
    if isinstance(models, type):
        raise InvalidInputError("app.invalid", f"models={quoted(models)} is a class", f"call it: {models.__name__}()")
    if models is None or isinstance(models, ModelSource):
        return
    if not isinstance(models, Mapping):
        raise InvalidInputError(
            "app.invalid",
            f"models is a {type(models).__name__}",
            "pass a dict of chat models by id, or a source such as ScriptedModels()",
        )
    for name, model in cast("Mapping[object, object]", models).items():
        if not isinstance(name, str):
            raise InvalidInputError("app.invalid", f"models has the key {quoted(name)}", "use model ids as keys")
        if isinstance(model, type):
            text = f"models[{name!r}]={quoted(model)} is a class, not a chat model"
            raise InvalidInputError("app.invalid", text, f"call it: {model.__name__}(...)")
        if not callable(getattr(model, "generate", None)):
            raise InvalidInputError(
                "app.invalid",
                f"models[{name!r}]={quoted(model)} is no chat model",
                "pass an object with 'async def generate(request)'",
            )


def check_store(store: Any) -> None:
    """Raises InvalidInputError unless it is None, a URL or a store."""
    if store is None or isinstance(store, str):
        return
    methods = (getattr(store, name, None) for name in ("open", "close", "thread", "terns"))
    if isinstance(store, type) or not all(map(callable, methods)):
        raise InvalidInputError(
            "app.invalid",
            f"store={quoted(store)} is no store",
            "use 'sqlite:///path', 'memory://', or a store such as MemoryStore()",
        )
