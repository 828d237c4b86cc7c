"""The frozen record that everything inside is made of: slots, keywords only, made in a fraction of a dataclass's time.

A `Record` is a `msgspec.Struct` that still answers as a dataclass does, so `dataclasses.replace`, `fields`, `asdict`
and every library that knows dataclasses take it. Inside, use `replace` from here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, dataclass_transform

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import fields as _fields
from msgspec.structs import replace

__all__ = ["Record", "Struct", "field", "fields", "replace"]


def fields(record: "type[Struct] | Struct") -> tuple[str, ...]:
    """Names of a record's fields, in order."""
    return record.__struct_fields__


class _DataclassFields:
    """What the dataclasses module looks for on a class, built when somebody asks."""

    def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
        return {one.name: _as_dataclass_field(one) for one in _fields(owner)}


def _as_dataclass_field(one: Any) -> "dataclasses.Field[Any]":
    default = dataclasses.MISSING if one.default is NODEFAULT else one.default
    factory = dataclasses.MISSING if one.default_factory is NODEFAULT else one.default_factory
    made: Callable[..., dataclasses.Field[Any]] = dataclasses.field
    known = made(default=default) if default is not dataclasses.MISSING else made(default_factory=factory)
    known.name, known.type, known.kw_only = one.name, one.type, True
    known._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
    return known


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True):
    """A frozen record with slots, made by keywords: say ``class Point(Record, kw_only=True)``.

    msgspec does not inherit ``kw_only``, and a metaclass of our own that added it would make every record cost three
    times as much: the interpreter calls such classes through a tuple and a dict.
    """

    __dataclass_fields__ = _DataclassFields()
