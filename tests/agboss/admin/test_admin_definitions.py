"""Definitions on pages: make, copy, give tools, delete; each is written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, browser
from desks import Models, desk, sum_up, yes

from agboss import AgentDefinition, AgentRuntime, DefinitionFolder, create_app, tool
from agboss.admin import add_admin
from agboss.server import make_server

MODEL = "openai:gpt-5-mini"
NEW = ("name", "description", "systemPrompt", "model", "memory", "version", "tools")
FORM = ("description", "systemPrompt", "model", "memory", "version", "tools")
SHOWN = "/admin/agents/clerk"


@tool
def look_up(topic: str) -> str:
    """Look <something> up.

    Args:
        topic: What.
    """
    return topic


@tool
def send_mail(to: str) -> str:
    """Send a mail.

    Args:
        to: Whom.
    """
    return to


def runtime(path: Path, *, tools: Any = (look_up, send_mail)) -> AgentRuntime:
    return AgentRuntime(path, store="memory://", tools=tools, models=Models(yes, sum_up))


def folder(path: Path, **fields: Any) -> DefinitionFolder:
    made = DefinitionFolder(path)
    made.save(AgentDefinition.model_validate({"name": "clerk", "model": MODEL, **fields}))
    return made


def files(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir())


async def make(pages: Browser, query: str = "", **entered: str) -> str:
    await pages.open(f"/admin/new-agent{query}")
    return await pages.send(f"/admin/new-agent{query}", pages.fields(*NEW) | entered)


async def test_an_agent_is_made_with_tools_and_memory(tmp_path: Path) -> None:
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        assert "The folder of definitions is empty." in await pages.open("/admin/agents")
        page = await make(
            pages,
            name="clerk",
            description="Files.",
            model=MODEL,
            memory='{"kind": "windowed"}',
            **{"tool:send_mail": "on", "chars:send_mail": "900", "chars:look_up": "7"},
        )
        assert (pages.status, "Agent clerk was made." in page) == (200, True)
        assert "Look &lt;something&gt; up." in page
        assert DefinitionFolder(tmp_path).load("clerk").to_dict() == {
            "name": "clerk",
            "description": "Files.",
            "systemPrompt": "",
            "model": MODEL,
            "tools": [{"name": "send_mail", "maxResultChars": 900}],
            "memoryConfig": {"kind": "windowed"},
        }


async def test_an_untouched_memory_stays_the_default_and_a_ready_agent_is_a_beginning(tmp_path: Path) -> None:
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        await make(pages, name="plain", model=MODEL)
        assert DefinitionFolder(tmp_path).load("plain").memory_config is None
        page = await pages.open("/admin/new-agent")
        assert "/admin/new-agent?from=planner" in page
        await make(pages, "?from=planner", name="my-planner")
        made = DefinitionFolder(tmp_path).load("my-planner")
        assert (made.effective_memory.kind, "plan" in made.system_prompt) == ("auto_compact", True)
        page = await make(pages, "?from=my-planner", name="copy")
        assert DefinitionFolder(tmp_path).load("copy").system_prompt == made.system_prompt
        await pages.open("/admin/new-agent", **{"from": "nobody"})
        assert pages.status == 404


async def test_all_that_is_wrong_is_marked_at_its_field_and_nothing_is_written(tmp_path: Path) -> None:
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await make(
            pages,
            name="My <Agent>",
            model=MODEL,
            memory='{"kind": "windowed",\r\n "size": 3}',
            **{"tool:look_up": "on", "chars:look_up": "many"},
        )
        assert pages.status == 400
        for name in ("name", "chars:look_up", "memory"):
            assert f'href="#{name}"' in page
            assert f'id="{name}-error"' in page
            assert f'aria-describedby="{name}' in page or f"{name}-error" in page
        assert ("lowercase letters" in page, "Line 2, column 2" in page, "is no whole number" in page) == (
            True,
            True,
            True,
        )
        assert ("<Agent>" in page, pages.value("name")) == (False, "My <Agent>")
        assert 'name="tool:look_up" checked' in page
        assert files(tmp_path) == []


async def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    made = folder(tmp_path, description="First.")
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await make(pages, name="clerk", model=MODEL, description="Second.")
        assert (pages.status, "definition.exists" in page, 'id="name-error"' in page) == (409, True, True)
        assert made.load("clerk").description == "First."


async def test_tools_are_given_and_taken_in_the_form_of_the_agent(tmp_path: Path) -> None:
    made = folder(tmp_path, tools=[{"name": "send_mail", "maxResultChars": 5}, {"name": "look_up"}])
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await pages.open(SHOWN)
        assert 'name="tool:send_mail" checked' in page
        assert 'name="tool:fetch_tool_result">' in page
        sent = pages.fields(*FORM) | {"chars:send_mail": "5", "chars:fetch_tool_result": "0"}
        await pages.send(SHOWN, sent | {"tool:send_mail": "on", "tool:look_up": "on"})
        assert "Nothing has changed." in pages.page
        sent["version"] = pages.fields("version")["version"]
        await pages.send(SHOWN, sent | {"tool:fetch_tool_result": "on", "tool:send_mail": "on", "tool:spoon": "on"})
        tools = made.load("clerk").tools
        assert [(one.name, one.max_result_chars) for one in tools] == [("send_mail", 5), ("fetch_tool_result", 0)]
        fields = pages.fields(*FORM)
        del fields["tools"]  # a form that had no list of tools takes none away
        await pages.send(SHOWN, fields | {"description": "New."})
        assert len(made.load("clerk").tools) == 2


async def test_a_tool_that_is_not_there_is_shown_and_can_be_taken_away(tmp_path: Path) -> None:
    made = folder(tmp_path, tools=[{"name": "spoon"}])
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        page = await pages.open(SHOWN)
        assert ("not there" in page, "definition.unknown-tool" in page) == (True, True)
        page = await pages.send(SHOWN, pages.fields(*FORM) | {"tool:spoon": "on", "description": "x"})
        assert (pages.status, 'id="tools-error"' in page) == (400, True)
        await pages.send(SHOWN, pages.fields(*FORM))
        assert made.load("clerk").tools == ()


async def test_a_definition_is_deleted_if_it_is_still_the_one_that_was_shown(tmp_path: Path) -> None:
    made = folder(tmp_path)
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        await pages.open(f"{SHOWN}/delete")
        version = pages.fields("version")
        made.save(AgentDefinition(name="clerk", model=MODEL, description="Theirs."))
        page = await pages.send(f"{SHOWN}/delete", version)
        assert ("definition.changed" in page, made.load("clerk").description) == (True, "Theirs.")
        await pages.open(f"{SHOWN}/delete")
        page = await pages.send(f"{SHOWN}/delete", pages.fields("version"))
        assert ("Agent clerk was deleted." in page, files(tmp_path)) == (True, [])
        await pages.open(f"{SHOWN}/delete")
        assert pages.status == 404


async def test_a_file_that_is_no_definition_can_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        assert "/admin/agents/bad/delete" in await pages.open("/admin/agents")
        assert "definition.invalid" in await pages.open("/admin/agents/bad/delete")
        await pages.send("/admin/agents/bad/delete", {"version": ""})
        assert files(tmp_path) == []


async def test_threads_outlive_their_agent(tmp_path: Path) -> None:
    folder(tmp_path)
    async with runtime(tmp_path) as agents, browser(add_admin(make_server(agents))) as pages:
        thread = await agents.threads("clerk").create()
        await pages.open(f"{SHOWN}/delete")
        await pages.send(f"{SHOWN}/delete", pages.fields("version"))
        await make(pages, name="clerk", model=MODEL)
        await pages.open(f"/admin/threads/{thread}")
        assert pages.status == 200


@pytest.mark.parametrize("path", ["/admin/new-agent", "/admin/agents/helper/delete"])
async def test_agents_in_code_are_neither_made_nor_deleted(path: str) -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            assert "New agent" not in await pages.open("/admin/agents")
            await pages.open(path)
            assert pages.status == 404
            await pages.open("/admin/threads")
            assert "server.no-definitions" in await pages.send(path)


async def test_definitions_of_a_list_are_read_only() -> None:
    agents = AgentRuntime([AgentDefinition(name="clerk", model=MODEL)], store="memory://", models=Models(yes, sum_up))
    async with agents, browser(add_admin(make_server(agents))) as pages:
        assert "definition.read-only" in await make(pages, name="new", model=MODEL)
        await pages.open(f"{SHOWN}/delete")
        assert "definition.read-only" in await pages.send(f"{SHOWN}/delete", pages.fields("version"))
