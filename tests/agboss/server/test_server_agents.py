"""Agents over HTTP: those of a workflow, and those of a folder, whose memoryConfig can be edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asgi import client
from desks import Models, desk, sum_up, yes

from agboss import AgentDefinition, AgentRuntime, DefinitionFolder, create_app
from agboss.server import make_server

MODEL = "openai:gpt-5-mini"


def folder(path: Path, *names: str, **fields: Any) -> DefinitionFolder:
    made = DefinitionFolder(path)
    for name in names:
        made.save(AgentDefinition(name=name, model=MODEL, **fields))
    return made


def runtime(path: Path) -> AgentRuntime:
    return AgentRuntime(path, store="memory://", models=Models(yes, sum_up))


async def test_agents_of_a_workflow_are_told_and_have_no_definition() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with client(make_server(app)) as http:
            (told,) = (await http.get("/agents")).json()["agents"]
            assert told == (await http.get("/agents/helper")).json()
            assert (told["name"], told["kind"], told["model"], told["memoryConfig"]) == ("helper", "turns", MODEL, None)
            unknown = await http.get("/agents/help")
            assert (unknown.status_code, unknown.json()["hint"]) == (404, "did you mean 'helper'?")
            none = await http.get("/agents/helper/memory-config")
            assert (none.status_code, none.json()["code"]) == (404, "server.no-definitions")


async def test_agents_of_a_folder_have_threads_of_their_own(tmp_path: Path) -> None:
    folder(tmp_path, "clerk", "cook")
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        assert [item["name"] for item in (await http.get("/agents")).json()["agents"]] == ["clerk", "cook"]
        refused = await http.post("/threads")
        assert (refused.status_code, refused.json()["hint"]) == (400, "name one of: clerk, cook")
        thread = (await http.post("/threads", json={"agent": "cook"})).json()["id"]
        ran = await http.post(f"/threads/{thread}/terns", json={"input": "Hello."})
        assert ran.json()["path"][1] == "cook"
        told = (await http.get(f"/threads/{thread}/memory")).json()
        assert (told["agent"], told["kind"]) == ("cook", "summarizing_window")
        assert (await http.get(f"/threads/{thread}", params={"agent": "clerk"})).status_code == 404
        assert (await http.get("/threads", params={"agent": "clerk"})).json()["threads"] == []
        assert (await http.post("/threads", json={"agent": "cok"})).status_code == 404


async def test_a_new_file_is_served_without_a_restart_and_a_bad_one_is_told(tmp_path: Path) -> None:
    made = folder(tmp_path, "clerk")
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        made.save(AgentDefinition(name="cook", model=MODEL))
        (tmp_path / "bad.json").write_text('{"name": "bad", "colour": 1}', encoding="utf-8")
        made.save(AgentDefinition.model_validate({"name": "idle", "model": MODEL, "tools": [{"name": "spoon"}]}))
        assert [item["name"] for item in (await http.get("/agents")).json()["agents"]] == ["clerk", "cook"]
        bad = await http.get("/agents/bad")
        assert (bad.status_code, bad.json()["code"]) == (400, "definition.invalid")
        assert (await http.get("/agents/idle")).json()["code"] == "definition.unknown-tool"


async def test_m012_m016_a_blank_config_keeps_what_is_stored_and_null_is_the_default(tmp_path: Path) -> None:
    made = folder(tmp_path, "clerk")
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        path = "/agents/clerk/memory-config"
        told = (await http.get(path)).json()
        assert told["memoryConfig"] is None
        assert (told["effective"]["kind"], told["effective"]["maxConversationRatio"]) == ("summarizing_window", 0.8)

        config = {"kind": "windowed", "windowSize": 3}
        saved = await http.put(path, json=config)
        assert (saved.status_code, saved.json()["memoryConfig"]) == (200, config)
        assert json.loads((tmp_path / "clerk.json").read_text(encoding="utf-8"))["memoryConfig"] == config
        assert (await http.get("/agents/clerk")).json()["kind"] == "windowed"
        for blank in (b"", b"  \n "):
            assert (await http.put(path, content=blank)).json()["memoryConfig"] == config
        assert (await http.put(path, content=b"null")).json()["memoryConfig"] is None
        assert made.load("clerk").memory_config is None


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('{"kind": "windowed", "windowSise": 3}', "/memoryConfig/windowSise"),
        ('{"kind": "windowed", "windowSize": 0}', "/memoryConfig/windowSize"),
        ('{"kind": "widowed"}', "/memoryConfig"),
        ('"windowed"', "/memoryConfig"),
        ('{"kind":\n  windowed}', "line 2, column 3"),
        ('null, "systemPrompt": "x"', "line 1, column 5"),
        ('{"kind": "auto_compact", "summaryModel": "no id"}', "no id"),
        ("\xff", "line 1"),
    ],
)
async def test_an_invalid_config_is_told_with_its_place_and_nothing_is_saved(
    tmp_path: Path, content: str, where: str
) -> None:
    folder(tmp_path, "clerk", system_prompt="Be brief.")
    before = (tmp_path / "clerk.json").read_bytes()
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        refused = await http.put("/agents/clerk/memory-config", content=content.encode("latin-1"))
        assert refused.status_code in (400, 422)
        assert where in refused.text
    assert (tmp_path / "clerk.json").read_bytes() == before


async def test_definitions_of_a_list_cannot_be_saved() -> None:
    agents = AgentRuntime([AgentDefinition(name="clerk", model=MODEL)], store="memory://", models=Models(yes, sum_up))
    async with agents, client(make_server(agents)) as http:
        assert (await http.post("/threads")).status_code == 201
        refused = await http.put("/agents/clerk/memory-config", json={"kind": "none"})
        assert (refused.status_code, refused.json()["code"]) == (409, "definition.read-only")


async def test_a_config_is_saved_over_the_version_that_was_seen_only(tmp_path: Path) -> None:
    made = folder(tmp_path, "clerk")
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        path = "/agents/clerk/memory-config"
        seen = {"If-Match": (await http.get(path)).headers["etag"]}
        saved = await http.put(path, json={"kind": "none"}, headers=seen)
        assert saved.status_code == 200
        assert saved.headers["etag"] == (await http.get(path)).headers["etag"] != seen["If-Match"]
        for late in (b'{"kind": "windowed"}', b""):
            refused = await http.put(path, headers=seen, content=late)
            assert (refused.status_code, refused.json()["code"]) == (412, "definition.changed")
        assert made.load("clerk").effective_memory.kind == "none"
        for passes in ("*", f'"x", {saved.headers["etag"]}'):
            assert (await http.put(path, json={"kind": "none"}, headers={"If-Match": passes})).status_code == 200


async def test_a_file_that_changes_while_it_is_saved_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder(tmp_path, "clerk")
    async with runtime(tmp_path) as agents, client(make_server(agents)) as http:
        path = "/agents/clerk/memory-config"
        seen = {"If-Match": (await http.get(path)).headers["etag"]}
        save = agents.save

        def meanwhile(definition: AgentDefinition, *, expected: str | None = None) -> None:
            made.save(AgentDefinition(name="clerk", model=MODEL, system_prompt="New."))
            save(definition, expected=expected)

        monkeypatch.setattr(agents, "save", meanwhile)
        refused = await http.put(path, json={"kind": "none"}, headers=seen)
        assert (refused.status_code, refused.json()["code"]) == (412, "definition.changed")
        assert made.load("clerk").system_prompt == "New."


async def test_broken_files_are_told_in_the_list_and_once_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = folder(tmp_path, "clerk")
    (tmp_path / "bad.json").write_text('{"name": "bad", "colour": 1}', encoding="utf-8")
    async with runtime(tmp_path) as agents:
        server = make_server(agents)
        async with client(server) as http:
            made.save(AgentDefinition.model_validate({"name": "idle", "model": MODEL, "tools": [{"name": "spoon"}]}))
            await http.get("/agents")
            told: dict[str, list[dict[str, Any]]] = (await http.get("/agents")).json()
            assert [agent["name"] for agent in told["agents"]] == ["clerk"]
            assert [(one["file"], one["code"]) for one in told["broken"]] == [
                ("bad.json", "definition.invalid"),
                ("idle.json", "definition.unknown-tool"),
            ]
            warned = [one.getMessage() for one in caplog.records if one.name == "agboss.server"]
            assert [text.split()[1] for text in warned] == ["bad.json", "idle.json"]


async def test_a_folder_that_is_gone_is_no_fault_of_the_client(tmp_path: Path) -> None:
    path = tmp_path / "agents"
    folder(path, "clerk")
    async with runtime(path) as agents, client(make_server(agents)) as http:
        path.rename(tmp_path / "moved")
        for method, place in (("GET", "/agents"), ("GET", "/agents/clerk"), ("POST", "/threads")):
            refused = await http.request(method, place)
            assert (refused.status_code, refused.json()["code"]) == (503, "definition.no-folder")
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "server.not-ready")
        assert "folder of definitions" in ready.json()["hint"]
