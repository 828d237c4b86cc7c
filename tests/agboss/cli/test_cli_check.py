import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_told import DESK, Agboss


def test_check_says_what_was_checked_and_which_keys_are_missing(agboss: Agboss) -> None:
    told = agboss("check", "--app", DESK)
    assert told.code == 0
    assert told.out.startswith("ok: desk 1.0.0\n")
    assert "agent recaller: moonshotai/kimi-k2.6" in told.out
    assert "every 2 turns, 3 summaries kept" in told.out
    assert "OPENROUTER_API_KEY is not set" in told.out
    assert agboss("check", "--app", DESK, "--offline", "--json").json == {
        "ok": True,
        "workflow": "desk",
        "version": "1.0.0",
        "components": ["start task-start", "agent recaller", "finish answer-finish"],
        "models": {"agent recaller": "local:extractive", "compaction": "local:extractive"},
        "memory": {"agent recaller": "turns"},
        "compaction": "every 2 turns, 3 summaries kept",
        "notes": [],
    }


def test_check_knows_the_models_of_routers(agboss: Agboss) -> None:
    told = agboss("check", "--app", "cli_desks:RoutedDesk", "--json").json
    assert told["models"]["router reception"] == "openai:gpt-5-mini"
    assert len(told["notes"]) == 2


def test_check_names_the_kind_of_window_memory(agboss: Agboss, place: Path) -> None:
    (place / "window_desk.py").write_text(
        "from agboss import agent\n@agent(prompt='x', memory_config={'kind': 'summarizing_window'})\nclass Clerk: ...\n"
    )
    told = agboss("check", "--app", "window_desk:Clerk", "--offline")
    assert "summarizing_window\n" in told.out
    assert "turns" not in told.out.partition("compaction")[0]


def test_check_tells_every_violation(agboss: Agboss) -> None:
    told = agboss("check", "--app", "cli_desks:WrongDesk")
    assert (told.code, told.out) == (1, "")
    assert "model id 'gpt' names no provider" in told.err
    assert "defaults.history.summaries=9 is more than compaction.keep=1" in told.err
    found = agboss("check", "--app", "cli_desks:WrongDesk", "--json").json["error"]
    assert found["code"] == "assembly.invalid"
    assert {"model.bad-id", "history.summaries-above-keep"} <= {item["code"] for item in found["violations"]}
    nothing = agboss("check", "--app", "cli_desks:Nothing")
    assert nothing.code == 1
    assert "neither a workflow nor an agent" in nothing.err


def test_a_decorator_that_refuses_is_told_as_it_is(agboss: Agboss, place: Path) -> None:
    (place / "refused_desk.py").write_text("from agboss import agent\n@agent(max_tool_calls=-1)\nclass Desk: ...\n")
    told = agboss("check", "--app", "refused_desk:Desk", "--json")
    assert told.code == 1
    assert told.json["error"]["code"] == "declaration.invalid"


def test_models_fetch(agboss: Agboss, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch_embedded(target_dir: Path | None = None, progress: Any = None) -> Path:
        progress("download", 1, 1)
        return (target_dir or place) / "weights.gguf"

    monkeypatch.setitem(sys.modules, "agboss.models.fetch", SimpleNamespace(fetch_embedded=fetch_embedded))
    assert agboss("models", "fetch").out == f"{place}/weights.gguf\n"
    assert agboss("models", "fetch", "--directory", "here", "--json").json == {"path": "here/weights.gguf"}
