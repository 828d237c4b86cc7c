"""``agboss spend`` and ``agboss schema``; and what is not there is not made by looking."""

import json
from pathlib import Path

import pytest
from cli_told import Agboss

from agboss.definitions import AgentDefinition


def test_spend_by_day_by_model_and_by_thread(desk: Agboss) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    desk("run", "What is my name?", "--thread", thread)
    told = desk("spend")
    assert told.code == 0, told.err
    assert told.field("spend") == "$0.00"
    assert "calls" in told.out
    by_model = desk("spend", "--by", "model", "--json").json
    assert [line["model"] for line in by_model["lines"]] == ["local:extractive"]
    assert by_model["lines"][0]["calls"] >= 2
    assert desk("spend", "--json", "--days", "1").json["lines"][0]["day"] == by_model["last"]
    by_thread = desk("spend", "--by", "thread", "--json").json["lines"]
    assert by_thread == [{"thread": thread, "owner": None, "turns": 2, "spend": "0"}]
    assert thread in desk("spend", "--by", "thread").out
    assert desk("spend", "--owner", "nobody", "--json").json["lines"] == []
    assert desk("spend", "--by", "colour").code == 2


def test_the_schema_of_agents_and_of_memory(agboss: Agboss, place: Path) -> None:
    made = agboss("schema").json
    assert made["properties"]["memoryConfig"]
    assert set(made["properties"]) >= {"$schema", "name", "systemPrompt", "tools"}
    assert agboss("schema", "memory", "--json").json["$schema"].startswith("https://json-schema.org/")
    told = agboss("schema", "--output", "agent.schema.json")
    assert told.out == "written: agent.schema.json\n"
    assert json.loads((place / "agent.schema.json").read_text()) == made
    named = {"$schema": "../agent.schema.json", "name": "clerk"}
    assert AgentDefinition.model_validate(named).to_dict()["$schema"] == "../agent.schema.json"
    assert agboss("schema", "--output", "nowhere/x.json", "--json").json["error"]["code"] == "cli.cannot-write"


READING = (
    ("threads", "list"),
    ("threads", "show", "t"),
    ("threads", "export", "t"),
    ("threads", "check"),
    ("threads", "delete", "t", "--yes"),
    ("memory", "show", "t"),
    ("memory", "explain", "t"),
    ("memory", "what-if", "t", "--config", "{}"),
    ("memory", "compact", "t"),
    ("memory", "undo", "t"),
    ("spend",),
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_store_that_is_not_there_is_told_and_not_made(desk: Agboss, place: Path, command: tuple[str, ...]) -> None:
    told = desk(*command, "--store", "sqlite:///sub/mistyped.db")
    assert told.code == 2
    assert "sub/mistyped.db" in told.err
    assert "--store" in told.err
    assert list(place.iterdir()) == []
    assert desk(*command, "--json").json["error"]["code"] == "cli.no-store"
    assert list(place.iterdir()) == []


def test_a_store_in_memory_needs_no_file(desk: Agboss) -> None:
    assert desk("threads", "list", "--store", "memory://").code == 0
