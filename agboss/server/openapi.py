"""The OpenAPI document, made of the same table as the routes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, cast

from pydantic.json_schema import models_json_schema

from agboss.definitions import definition_schema
from agboss.server.endpoint import LARGEST_NUMBER, Endpoint, Query
from agboss.server.guard import OPEN_PATHS
from agboss.server.problems import MEDIA_TYPE, Problem
from agboss.server.sse import STREAM
from agboss.server.wire import record_schemas

_ALWAYS = (400, 401, 403, 413, 421, 429, 503)
"""Statuses that any request may be refused with."""

_EVENT = {
    "type": "object",
    "description": "One event of the stream; `data` is a JSON object whose `type` is the event's name.",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1 of these routes."""
    records = [Problem, *(kind for one in endpoints for kind in (one.gives, one.or_gives) if kind is not None)]
    schemas = record_schemas(list(dict.fromkeys(records))) | _bodies(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "agboss", "version": version("agboss")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _bodies(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    models = [one.body for one in endpoints if one.body is not None]
    _, found = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    defined: dict[str, Any] = dict(found.get("$defs", {}))
    return defined | {"memoryConfig": _memory_config()}


def _memory_config() -> dict[str, Any]:
    """MemoryConfig with its kinds inside, so that it stands alone."""
    schema = definition_schema()
    return _inlined(schema["properties"]["memoryConfig"], schema["$defs"])


def _inlined(schema: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, known) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    if "$ref" in given:
        return _inlined(known[str(given["$ref"]).rpartition("/")[2]], known)
    return {key: _inlined(item, known) for key, item in given.items() if key != "discriminator"}


def _operation(one: Endpoint) -> dict[str, Any]:
    told: dict[str, Any] = {"operationId": one.name, "summary": one.about, "responses": _responses(one)}
    parameters = [*map(_path_parameter, re.findall(r"{(\w+)}", one.path)), *map(_parameter, one.query)]
    if parameters:
        told["parameters"] = parameters
    if one.path in OPEN_PATHS:
        told["security"] = [{}]
    name = one.body.__name__ if one.body is not None else one.raw_body
    if name:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        told["requestBody"] = {"required": bool(_required(one)), "content": content}
    return told


def _required(one: Endpoint) -> bool:
    return one.body is not None and any(field.is_required() for field in one.body.model_fields.values())


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 512}
    if name == "tern":
        schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_NUMBER}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if query.kind == "number":
        schema = {"type": "integer", "minimum": query.least, "maximum": LARGEST_NUMBER}
    return {"name": query.name, "in": query.place, "required": False, "description": query.about, "schema": schema}


def _responses(one: Endpoint) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if one.gives is not None:
        kinds = [one.gives] if one.or_gives is None else [one.gives, one.or_gives]
        known = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
        content[one.media] = {"schema": known[0] if len(known) == 1 else {"anyOf": known}}
    elif one.media:
        content[one.media] = {"schema": dict(one.schema)}
    content |= {media: {"schema": {"type": "string"}} for media in one.many}
    if STREAM in content:
        content[STREAM] = {"schema": _EVENT}
    done: dict[str, Any] = {"description": one.about}
    if content:
        done["content"] = content
    told: dict[str, Any] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    if one.foreign_errors:
        told["application/json"] = {"schema": {"type": "object"}}
    problem = {"description": "It failed.", "content": told}
    return {str(one.status): done} | {str(status): problem for status in sorted({*_ALWAYS, *one.problems})}
