"""The border of a run: what the caller gave becomes a checked request, or a typed error and nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agboss.components.border import is_model
from agboss.components.boundary import StartSpec
from agboss.components.metadata import MOST, component_of, is_count, is_seconds
from agboss.components.naming import describe
from agboss.errors import InvalidInputError
from agboss.flow import Graph
from agboss.runtime import RunRequest
from agboss.units import new_id
from agboss_memory.attachments import Attachment
from agboss_memory.records import Record
from agboss_memory.wording import quoted

LONGEST_ID = 512
"""Characters of a thread id, an owner or an idempotency key."""


class RunArguments(Record, kw_only=True):
    """The keyword arguments of ``execute`` and ``stream``."""

    thread: str | None = None
    create_thread: bool = False
    owner: str | None = None
    idempotency_key: str | None = None
    attachments: Iterable[Attachment] = ()
    metadata: Mapping[str, Any] | None = None
    timeout: float | None = None


def make_request(workflow: str, graph: Graph, start: Any, input: Any, arguments: RunArguments) -> RunRequest:
    """A checked request. Raises InvalidInputError."""
    spec, value = _start_and_value(workflow, graph, start, input)
    thread = arguments.thread
    check_id("thread", thread)
    check_id("owner", arguments.owner)
    check_id("idempotency_key", arguments.idempotency_key)
    check_timeout(arguments.timeout)
    check_flag("create_thread", arguments.create_thread)
    return RunRequest(
        thread=new_id() if thread is None else thread,
        create=thread is None or arguments.create_thread,
        first_contact=thread is None,
        owner=arguments.owner,
        idempotency_key=arguments.idempotency_key,
        start=spec.name,
        value=value,
        task=_task(spec, value),
        metadata=None if arguments.metadata is None else _metadata_json(arguments.metadata),
        attachments=() if arguments.attachments == () else _attachments(arguments.attachments),
        timeout=arguments.timeout,
    )


def start_named(graph: Graph, name: str) -> type[Any]:
    """The class of a start of the flow. Raises InvalidInputError."""
    starts = {node.spec.name for node in graph.of_kind("start")}
    found = {known: target for target, known in graph.names.items() if known in starts}
    if not isinstance(name, str) or name not in found:  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = f"the starts are: {', '.join(found)}"
        raise InvalidInputError("run.wrong-start", f"{quoted(name)} is no start", hint)
    return found[name]


def _attachments(given: Any) -> tuple[Attachment, ...]:
    what = f"attachments is a {type(given).__name__}"
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        files = tuple(cast("Iterable[object]", given))
        wrong = next((item for item in files if not isinstance(item, Attachment)), None)
        if wrong is None:
            return cast("tuple[Attachment, ...]", files)
        what = f"attachments holds {quoted(wrong)}"
    raise InvalidInputError(
        "run.bad-attachments", what, "pass a list of Attachment.from_path(...) and Attachment.from_bytes(...)"
    )


def check_timeout(seconds: Any) -> None:
    """Raises InvalidInputError unless ``seconds`` is None or above 0."""
    if seconds is not None and not is_seconds(seconds):
        raise InvalidInputError(
            "run.bad-timeout", f"timeout={quoted(seconds)}", "use a number of seconds above 0, or None"
        )


def check_flag(name: str, value: Any) -> None:
    """Raises InvalidInputError unless ``value`` is True or False: the text ``"no"`` would count as True."""
    if not isinstance(value, bool):
        raise InvalidInputError("run.bad-flag", f"{name}={quoted(value)}", "use True or False")


def check_count(name: str, value: Any, *, least: int) -> None:
    """Raises InvalidInputError unless ``value`` is a whole number from ``least`` on."""
    if not is_count(value, least=least):
        many = isinstance(value, int) and value > MOST
        hint = f"use a whole number, {least} or more" + (f", and at most {MOST}" if many else "")
        raise InvalidInputError("threads.bad-count", f"{name}={quoted(value)}", hint)


def check_id(name: str, value: Any) -> None:
    """Raises InvalidInputError unless ``value`` is None or text that can be an id."""
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidInputError("run.bad-id", f"{name} is a {type(value).__name__}, not text", "pass str(...)")
    if not value or len(value) > LONGEST_ID or "\x00" in value or _has_surrogate(value):
        what = "empty" if not value else f"{value[:40]!r} ({len(value)} characters)"
        raise InvalidInputError(
            "run.bad-id",
            f"{name} is {what}",
            f"use 1 to {LONGEST_ID} characters of valid unicode without NUL",
            value=value[:LONGEST_ID],
        )


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _start_and_value(workflow: str, graph: Graph, start: Any, input: Any) -> tuple[StartSpec, Any]:
    named = graph.names.get(start) if isinstance(start, type) else None
    if named is not None and isinstance(spec := graph.nodes[named].spec, StartSpec):
        return spec, _value(spec, input)
    starts = [node.spec for node in graph.of_kind("start") if isinstance(node.spec, StartSpec)]
    names = ", ".join(item.name for item in starts)
    given = component_of(start)
    if isinstance(start, type) and given is None:
        raise InvalidInputError("run.wrong-start", f"{describe(start)} is no start", f"the starts are: {names}")
    if given is None:
        if input is not None:
            raise InvalidInputError(
                "run.wrong-start", f"{quoted(start)} is no start", f"name a start class first; the starts are: {names}"
            )
        if len(starts) > 1:
            raise InvalidInputError(
                "run.which-start", f"workflow {workflow!r} has {len(starts)} starts", f"name one of: {names}"
            )
        return starts[0], _value(starts[0], start)
    raise InvalidInputError(
        "run.wrong-start",
        f"{describe(start)} is no start of workflow {workflow!r}",
        f"the starts are: {names}",
    )


def _value(spec: StartSpec, value: Any) -> Any:
    model = spec.input
    if model is None:
        if not isinstance(value, str):
            raise InvalidInputError(
                "run.invalid-input", f"start {spec.name!r} takes text and got {type(value).__name__}", "pass a str"
            )
        return value
    if isinstance(value, model):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            "run.invalid-input",
            f"start {spec.name!r} takes a {model.__name__} and got {type(value).__name__}",
            f"pass {model.__name__}(...) or a dict of its fields",
        )
    from pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5])
        raise InvalidInputError(
            "run.invalid-input", f"start {spec.name!r}: no valid {model.__name__}: {problems}", "correct the input"
        ) from error


def _task(spec: StartSpec, value: Any) -> str:
    if not is_model(value):
        return value
    from pydantic_core import PydanticSerializationError

    try:
        return value.model_dump_json()
    except PydanticSerializationError as error:
        raise InvalidInputError(
            "run.invalid-input", f"start {spec.name!r}: the input is not JSON-ready: {error}", "correct the input"
        ) from error


def _metadata_json(metadata: Any) -> str:
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(
            "run.bad-metadata", f"metadata={quoted(metadata)} is a {type(metadata).__name__}", "pass a dict, or None"
        )
    from pydantic_core import PydanticSerializationError, to_json

    try:
        text = to_json(dict(cast("Mapping[Any, Any]", metadata)), inf_nan_mode="constants").decode()
        json.loads(text, parse_constant=_refuse_constant)
        return text
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidInputError(
            "run.bad-metadata", f"metadata is not JSON-ready: {error}", "use text, numbers, lists and dicts"
        ) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
