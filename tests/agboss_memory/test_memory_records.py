"""A record is frozen, takes keywords, and answers as a dataclass does."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from pathlib import Path

import pytest
from pydantic_core import to_jsonable_python

from agboss_memory.records import Record, field, replace


class Point(Record, kw_only=True):
    x: int
    tags: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list[str])


class Deep(Point, kw_only=True):
    z: int = 0


def test_it_is_made_by_keywords_and_cannot_be_changed() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]
    with pytest.raises(TypeError, match="x"):
        Point()  # type: ignore[call-arg]
    assert replace(point, x=2) == Point(x=2)
    assert Point(x=1).notes is not point.notes


def test_the_dataclasses_module_takes_it() -> None:
    deep = Deep(x=1, z=3)
    assert dataclasses.is_dataclass(deep)
    assert [one.name for one in dataclasses.fields(deep)] == ["x", "tags", "notes", "z"]
    assert dataclasses.asdict(deep) == {"x": 1, "tags": (), "notes": [], "z": 3}
    assert dataclasses.replace(deep, z=4) == Deep(x=1, z=4)
    assert dataclasses.fields(Point)[0].default is dataclasses.MISSING
    assert dataclasses.fields(Point)[2].default_factory() == []  # type: ignore[misc]


def test_it_is_json_for_pydantic_and_survives_pickle() -> None:
    deep = Deep(x=1, tags=("a",))
    assert to_jsonable_python(deep) == {"x": 1, "tags": ["a"], "notes": [], "z": 0}
    assert pickle.loads(pickle.dumps(deep)) == deep


def test_every_record_takes_keywords_alone_or_says_that_it_does_not() -> None:
    root = Path(__file__).parents[2]
    files = [file for part in ("agboss", "agboss_memory") for file in (root / part).rglob("*.py")]
    classes = [
        node
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Record" for base in node.bases)
    ]
    silent = [one.name for one in classes if not any(word.arg == "kw_only" for word in one.keywords)]
    assert len(classes) > 150
    assert not silent, "add kw_only=True"
