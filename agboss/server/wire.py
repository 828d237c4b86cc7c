"""JSON of the server: records with camelCase names, values as they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct
from msgspec.json import schema_components
from msgspec.structs import fields
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

REF = "#/components/schemas/{name}"


def camel(value: Any) -> Any:
    """A record as a dict with camelCase names; keys of dicts are data and stay."""
    if isinstance(value, Struct):
        return {wire: camel(getattr(value, name)) for name, wire in _names(type(value))}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")  # names that the user gave
    if isinstance(value, Mapping):
        return {key: camel(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [camel(item) for item in cast("list[Any]", value)]
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8
    return value


def camel_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """One object with its names in camelCase."""
    return {_name(key): camel(item) for key, item in value.items()}


@cache
def _name(field: str) -> str:
    """A field's name in camelCase: an event's fields are few, and events are many."""
    return to_camel(field)


@cache
def _names(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, to_camel(one.name)) for one in fields(kind))


def record_schemas(kinds: list[type[Any]]) -> dict[str, Any]:
    """JSON Schemas of records as ``camel`` writes them, by class name, with those that they refer to."""
    _, found = schema_components(kinds, ref_template=REF)
    return {name: _camel_schema(schema) for name, schema in found.items()}


def _camel_schema(schema: Any) -> Any:
    known = {key: item for key, item in schema.items() if key not in ("properties", "required", "title")}
    if "properties" not in schema:
        return known
    properties = {to_camel(name): _of_property(item) for name, item in schema["properties"].items()}
    return known | {"properties": properties, "required": list(properties)}


def _of_property(schema: Any) -> Any:
    return {key: item for key, item in schema.items() if key != "default"}
