"""Agents on pages: M154, and forms that save everything or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, browser
from desks import Models, desk, sum_up, yes

from agboss import AgentDefinition, AgentRuntime, DefinitionFolder, agent, create_app, tool
from agboss.admin import add_admin
from agboss.server import make_server

MODEL = "openai:gpt-5-mini"
FORM = ("description", "systemPrompt", "model", "memory", "version")


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return topic


def folder(path: Path, **fields: Any) -> DefinitionFolder:
    made = DefinitionFolder(path)
    made.save(AgentDefinition.model_validate({"name": "clerk", "model": MODEL, **fields}))
    return made


def runtime(path: Path) -> AgentRuntime:
    return AgentRuntime(path, store="memory://", tools=[look_up], models=Models(yes, sum_up))


async def edit(pages: Browser, **changed: str) -> str:
    await pages.open("/admin/agents/clerk")
    return await pages.send("/admin/agents/clerk", pages.fields(*FORM) | changed)


@pytest.mark.parametrize(
    ("config", "shown", "hidden"),
    [
        (None, ["summarizing_window", "compression on"], ["compression off"]),
        ({"kind": "summarizing_window", "compressToolResults": False}, ["compression off"], ["compression on"]),
        ({"kind": "auto_compact"}, ["auto_compact"], ["compression o"]),
        ({"kind": "none"}, ['<span class="badge">none</span>'], ["compression o"]),
    ],
)
async def test_m154_an_agent_shows_its_kind_and_whether_it_compresses(
    tmp_path: Path, config: Any, shown: list[str], hidden: list[str]
) -> None:
    folder(tmp_path, memoryConfig=config)
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        for path in ("/admin/agents", "/admin/agents/clerk"):
            page = await pages.open(path)
            assert pages.status == 200
            assert all(text in page for text in shown)
            assert not any(text in page for text in hidden)


async def test_m154_of_agents_in_code_the_kind_is_shown_and_nothing_can_be_edited() -> None:
    @agent(name="keeper", model=MODEL, memory_config={"kind": "summarizing_window"})
    class Keeper: ...

    for component, shown in ((desk(), "turns"), (Keeper, "compression on")):
        async with create_app(component, store="memory://", models=Models(yes, sum_up)) as app:
            async with browser(add_admin(make_server(app))) as pages:
                name = (await app.agents())[0].name
                page = await pages.open(f"/admin/agents/{name}")
                assert shown in page
                assert "declared in code" in page
                assert "<textarea" not in page
                await pages.open("/admin/threads")
                assert "definition.unknown" in await pages.open("/admin/agents/nobody")
                assert pages.status == 404


async def test_the_form_holds_the_config_that_counts_and_a_change_is_saved(tmp_path: Path) -> None:
    made = folder(tmp_path, systemPrompt="Be\nbrief.")
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        await pages.open("/admin/agents/clerk")
        prefilled = json.loads(pages.value("memory"))
        assert (prefilled["kind"], prefilled["maxConversationRatio"]) == ("summarizing_window", 0.8)
        page = await edit(pages, memory='{"kind": "windowed", "windowSize": 3}', description="Files <things>.")
        assert (pages.status, "Saved." in page, "windowed" in page) == (200, True, True)
        assert "Files &lt;things&gt;." in page
        saved = made.load("clerk")
        assert saved.to_dict()["memoryConfig"] == {"kind": "windowed", "windowSize": 3}
        assert (saved.description, saved.system_prompt) == ("Files <things>.", "Be\nbrief.")


async def test_a_blank_config_and_an_untouched_form_keep_what_is_stored(tmp_path: Path) -> None:
    made = folder(tmp_path, systemPrompt="a\r\nb\0", memoryConfig={"kind": "windowed", "windowSize": 3})
    before = (tmp_path / "clerk.json").read_bytes()
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        assert "Nothing has changed." in await edit(pages)
        for blank in ("", "  \r\n "):
            assert "Nothing has changed." in await edit(pages, memory=blank)
        assert (tmp_path / "clerk.json").read_bytes() == before
        await edit(pages, memory="", description="New.")
        assert made.load("clerk").to_dict()["memoryConfig"] == {"kind": "windowed", "windowSize": 3}
        await edit(pages, memory="null")
        saved = made.load("clerk")
        assert (saved.memory_config, saved.model, saved.system_prompt) == (None, MODEL, "a\r\nb\0")


async def test_defaults_stay_defaults_when_another_field_is_edited(tmp_path: Path) -> None:
    made = folder(tmp_path)
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        assert "Saved." in await edit(pages, description="New.")
        assert made.load("clerk").memory_config is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"kind":\r\n  windowed}', ["Line 2, column 3", "  windowed}\n  ^"]),
        ('{"kind": "windowed",\r\n "windowSise": 3}', ["Line 2, column 2", "/memoryConfig/windowSise", "\n ^"]),
        ('{"kind": "windowed", "windowSize": 0}', ["Line 1, column 22", "/memoryConfig/windowSize"]),
        ('{"kind": "<script>"}', ["&lt;script&gt;"]),
        ('{"kind": "none", "kind": "full"}', ["stands twice"]),
        ("[" * 100_000, ["Nothing was saved."]),
    ],
)
async def test_an_invalid_config_is_refused_with_its_place_marked_and_nothing_is_saved(
    tmp_path: Path, text: str, shown: list[str]
) -> None:
    folder(tmp_path)
    before = (tmp_path / "clerk.json").read_bytes()
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await edit(pages, memory=text, description="Lost?")
        assert pages.status == 400
        assert "Nothing was saved." in page
        assert 'aria-invalid="true"' in page
        assert all(one in page for one in shown)
        assert "<script>" not in page
        assert (pages.value("memory"), pages.value("description")) == (text.replace("\r\n", "\n"), "Lost?")
    assert (tmp_path / "clerk.json").read_bytes() == before


async def test_who_edits_what_another_has_changed_is_told(tmp_path: Path) -> None:
    made = folder(tmp_path)
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        await pages.open("/admin/agents/clerk")
        mine = pages.fields(*FORM) | {"description": "Mine."}
        made.save(AgentDefinition(name="clerk", model=MODEL, description="Theirs."))
        page = await pages.send("/admin/agents/clerk", mine)
        assert (pages.status, "definition.changed" in page) == (409, True)
        assert pages.value("description") == "Mine."
        assert made.load("clerk").description == "Theirs."


async def test_the_bound_of_a_tool_is_edited(tmp_path: Path) -> None:
    made = folder(tmp_path, tools=[{"name": "look_up", "maxResultChars": 500}])
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        path = "/admin/agents/clerk/tools/look_up"
        assert path in await pages.open("/admin/agents/clerk")
        for entered, stored in (("2000", 2000), ("", 2000), (" 0 ", 0), ("-1", -1)):
            await pages.open(path)
            await pages.send(path, pages.fields("version") | {"maxResultChars": entered})
            assert pages.status == 200
            assert made.load("clerk").tools[0].max_result_chars == stored
        for wrong in ("many", "1.5", "9" * 20, "²"):
            await pages.open(path)
            page = await pages.send(path, pages.fields("version") | {"maxResultChars": wrong})
            assert (pages.status, "definition.invalid" in page) == (400, True)
            assert made.load("clerk").tools[0].max_result_chars == -1
        await pages.open("/admin/agents/clerk/tools/spoon")
        assert pages.status == 404


async def test_agents_that_do_not_work_are_told_and_can_be_mended(tmp_path: Path) -> None:
    folder(tmp_path, tools=[{"name": "spoon"}])
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await pages.open("/admin/agents")
        assert ("definition.unknown-tool" in page, "bad.json" in page) == (True, True)
        assert "definition.unknown-tool" in await pages.open("/admin/agents/clerk")
        assert "Nothing was saved." in await edit(pages, description="Still not.")
        await pages.open("/admin/agents/bad")
        assert pages.status == 400
        page = await pages.open("/admin/threads")
        assert (pages.status, "definition.unknown-tool" in page, "Search" in page) == (400, True, True)


async def test_agents_of_a_list_cannot_be_saved() -> None:
    agents = AgentRuntime([AgentDefinition(name="clerk", model=MODEL)], store="memory://", models=Models(yes, sum_up))
    async with agents, browser(add_admin(make_server(agents))) as pages:
        assert "definition.read-only" in await edit(pages, description="New.")
        assert pages.status == 409
