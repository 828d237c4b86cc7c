"""A folder of definitions: read when changed, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from agboss import AgentDefinition, DefinitionFolder
from agboss.definitions.folder import NEW
from agboss.errors import InvalidInputError


def write(folder: Path, name: str, **fields: object) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, **fields}), encoding="utf-8")
    return path


def test_m012_and_m016_what_is_stored_stays_as_it_is(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    write(tmp_path, "plain")
    config = write(tmp_path, "keeper", memoryConfig={"kind": "windowed", "windowSize": 4})
    for name in ("plain", "keeper"):
        folder.save(folder.load(name))
    assert json.loads((tmp_path / "plain.json").read_text(encoding="utf-8"))["memoryConfig"] is None
    assert json.loads(config.read_text(encoding="utf-8"))["memoryConfig"] == {"kind": "windowed", "windowSize": 4}


def test_a_file_is_seen_when_it_comes_changes_and_goes(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    assert folder.list() == ()
    path = write(tmp_path, "clerk", systemPrompt="one")
    assert [item.system_prompt for item in folder.list()] == ["one"]
    write(tmp_path, "clerk", systemPrompt="another")
    assert folder.load("clerk").system_prompt == "another"
    path.unlink()
    assert folder.list() == ()


def test_a_change_of_equal_length_within_one_tick_of_the_clock_is_seen_after_a_save(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    path = folder.save(AgentDefinition(name="clerk", system_prompt="one"))
    before = path.stat()
    assert folder.load("clerk").system_prompt == "one"
    folder.save(AgentDefinition(name="clerk", system_prompt="two"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder.load("clerk").system_prompt == "two"


def test_an_invalid_file_is_reported_and_the_others_work(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    write(tmp_path, "good")
    write(tmp_path, "bad", colour="red")
    (tmp_path / "latin.json").write_bytes(b'{"name": "latin", "description": "\xe9"}')
    (tmp_path / "other.json").write_text('{"name": "renamed"}', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no definition", encoding="utf-8")
    assert [item.name for item in folder.list()] == ["good"]
    assert [problem.file for problem in folder.problems()] == ["bad.json", "latin.json", "other.json"]
    with pytest.raises(InvalidInputError, match="colour"):
        folder.load("bad")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "huge.json").write_text(" " * 1_000_001, encoding="utf-8")
    (problem,) = DefinitionFolder(tmp_path).problems()
    assert "1000001 bytes" in problem.error.message


@pytest.mark.parametrize("name", ["../secret", "nobody", "", "clerk.json", "/etc/passwd", "\x00"])
def test_an_unknown_name_reaches_no_other_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.json").write_text('{"name": "secret"}', encoding="utf-8")
    inside = tmp_path / "inside"
    inside.mkdir()
    write(inside, "clerk")
    with pytest.raises(InvalidInputError) as caught:
        DefinitionFolder(inside).load(name)
    assert caught.value.code == "definition.unknown"


def test_the_nearest_name_is_told(tmp_path: Path) -> None:
    write(tmp_path, "planner")
    with pytest.raises(InvalidInputError, match="planer") as caught:
        DefinitionFolder(tmp_path).load("planer")
    assert caught.value.hint == "did you mean 'planner'?"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DefinitionFolder(tmp_path)
    path = folder.save(AgentDefinition(name="clerk", system_prompt="one"))
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInputError) as caught:
        folder.save(AgentDefinition(name="clerk", system_prompt="two"))
    assert caught.value.code == "definition.cannot-write"
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["clerk.json"]


def test_what_python_made_without_checks_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    forged = AgentDefinition.model_construct(name="../out", tools=())
    with pytest.raises(InvalidInputError, match="/name"):
        DefinitionFolder(tmp_path / "in").save(forged)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        DefinitionFolder(tmp_path / "typo").list()
    assert caught.value.code == "definition.no-folder"


def test_a_definition_is_written_and_removed_only_over_the_one_that_is_expected(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    first = AgentDefinition(name="clerk", description="1")
    folder.save(first, expected=NEW)
    second = AgentDefinition(name="clerk", description="2")
    folder.save(second, expected=first.version)
    for code, act in (
        ("definition.exists", lambda: folder.save(first, expected=NEW)),
        ("definition.changed", lambda: folder.save(first, expected=first.version)),
        ("definition.changed", lambda: folder.delete("clerk", expected=first.version)),
        ("definition.unknown", lambda: folder.delete("../clerk")),
        ("definition.unknown", lambda: folder.delete("cook")),
    ):
        with pytest.raises(InvalidInputError) as raised:
            act()
        assert raised.value.code == code
        assert [one.name for one in tmp_path.iterdir()] == ["clerk.json"]
    assert folder.load("clerk") == second
    (tmp_path / "clerk.json").write_text("{", encoding="utf-8")  # no definition any more
    with pytest.raises(InvalidInputError, match="changed"):
        folder.save(first, expected=second.version)
    folder.delete("clerk")
    assert list(tmp_path.iterdir()) == []


def test_of_many_writers_of_one_process_one_makes_the_file(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    refused: list[str] = []

    def make(number: int) -> None:
        try:
            folder.save(AgentDefinition(name="clerk", description=str(number)), expected=NEW)
        except InvalidInputError as error:
            refused.append(error.code)

    threads = [Thread(target=make, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert refused == ["definition.exists"] * 7
    assert [one.name for one in tmp_path.iterdir()] == ["clerk.json"]


def test_a_file_that_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DefinitionFolder(tmp_path)
    folder.save(AgentDefinition(name="clerk"))

    def refuse(_: Path) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(InvalidInputError) as raised:
        folder.delete("clerk")
    assert raised.value.code == "definition.cannot-write"
