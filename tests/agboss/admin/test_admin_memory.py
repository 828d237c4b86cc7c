"""The working memory on pages: M155, Compact, undo and what-if."""

from __future__ import annotations

from typing import Any

from browsing import Browser, browser
from desks import Gate, Models, desk, sum_up, talk, yes

from agboss import ActionContext, AnswerFinish, ModelSpec, TaskStart, action, agent, chain, create_app, tool, workflow
from agboss.admin import add_admin
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.testing import MakeApp, MockCompaction, MockLlm, call_tool

MODEL = ModelSpec("ollama:test", context_window=8000)


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic}: " + "fact " * 120


def helper(config: Any, **more: Any) -> type[Any]:
    @agent(name="helper", model=MODEL, prompt="Be brief.", memory_config=config, **more)
    class Helper: ...

    return Helper


async def whole(pages: Browser, number: str) -> str:
    return await pages.open("/admin/threads/t/memory", number=number)


async def test_m155_system_prompt_and_message_are_shown_and_an_unknown_number_is_no_error(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    Helper = helper({"kind": "windowed", "windowSize": 2})
    mock_llm(Helper).then_return("one", "two", "three", "four")
    async with agboss_app(Helper) as app, browser(add_admin(make_server(app))) as pages:
        await talk(app, 4)
        assert "Be brief." in await whole(pages, "-1")
        page = await whole(pages, "5")
        assert ("Message 5" in page, "task 3." in page, "not shown" in page) == (True, True, True)
        assert "task 4." in await whole(pages, "7")
        for missing in ("999", "0", "-100", "-7", "x", "", "9" * 40, "1.5", "<b>"):
            page = await whole(pages, missing)
            assert (pages.status, "Not found" in page) == (200, missing != ""), missing
        assert (await pages.open("/admin/threads/t/memory", number=5, download=1)) == "task 3."


async def test_m155_of_turn_memory_numbers_are_terns() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            await talk(app, 5)
            assert "Be brief." in await whole(pages, "-1")
            assert "task 5." in await whole(pages, "5")
            assert "In short." in await whole(pages, "-100")
            page = await whole(pages, "999")
            assert (pages.status, "Not found" in page) == (200, True)
            assert "task 2." in await pages.open("/admin/threads/t/terns/2")
            await pages.open("/admin/threads/t/terns/99")
            assert pages.status == 404


async def test_the_view_is_shown_with_states_reasons_originals_and_what_is_left_out(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    config = {
        "kind": "summarizing_window",
        "minToolResultCompressTokens": 50,
        "toolResultThresholdRatio": 0.001,
        "compressWhenWindowAboveRatio": 0.01,
    }
    Helper = helper(config, tools=[look_up])
    mock_llm(Helper).then_return(*[call_tool(look_up, topic=topic) for topic in "xyzuv"], "found")
    async with agboss_app(Helper) as app, browser(add_admin(make_server(app))) as pages:
        await talk(app, 1)
        page = await pages.open("/admin/threads/t")
        memory = await app.memory.view("t")
    row = next(one for one in memory.messages if one.state == "compressed")
    assert f"{memory.total_tokens:,} of 8,000 tokens" in page
    assert ("As it was said" in page, row.reason in page, 'class="reserve"' in page) == (True, True, True)
    assert "Kept for the reply <strong>1,000</strong>" in page
    assert ("Saved" not in page, 'rect class="stubs"' in page) == (True, True)


async def test_compact_undo_and_compact_again(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper({"kind": "auto_compact"})
    mock_llm(Helper).then_return("one", "two", "three")
    mock_compaction(Helper).then_return("Ada <b>said</b> it.")
    async with agboss_app(Helper) as app, browser(add_admin(make_server(app))) as pages:
        await talk(app, 3)
        await pages.open("/admin/threads/t")
        page = await pages.send("/admin/threads/t/compact", {"agent": "helper"})
        assert "Compacted: 1 new summary stands for 6 messages." in page
        assert "Ada &lt;b&gt;said&lt;/b&gt; it." in page
        assert "stands for it" in await whole(pages, "1")
        await pages.open("/admin/threads/t")
        (summary,) = await app.memory.summaries("t")
        page = await pages.send("/admin/threads/t/undo", {"agent": "helper", "summary": str(summary.id)})
        assert ("are seen again" in page, ">retired<" in page) == (True, True)
        assert "are seen again" not in await pages.open("/admin/threads/t")
        page = await pages.send("/admin/threads/t/undo", {"summary": str(summary.id)})
        assert "not active any more" in page
        assert "server.bad-query" in await pages.send("/admin/threads/t/undo", {"summary": "x"})


async def test_a_summariser_that_is_down_is_told_by_its_code_without_its_text() -> None:
    async def down(_: ModelRequest) -> str:
        raise ConnectionError("no route to 10.0.0.7")

    async with create_app(helper({"kind": "auto_compact"}), store="memory://", models=Models(yes, down)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            await talk(app, 3)
            await pages.open("/admin/threads/t")
            page = await pages.send("/admin/threads/t/compact", {"agent": "helper"})
            assert ("compaction." in page, 'role="alert"' in page) == (True, True)
            assert "10.0.0.7" not in page
            assert (await app.memory.summaries("t", all_states=True)) == ()


async def test_while_a_tern_runs_compact_is_refused_and_the_page_says_that_it_runs() -> None:
    gate = Gate()

    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            async with app.stream("a", thread="t", create_thread=True):
                await gate.reached.wait()
                page = await pages.open("/admin/threads/t")
                assert ("A Tern is running." in page, "data-live" in page) == (True, True)
                assert "running" in await pages.open("/admin/threads", q="t")
                await pages.open("/admin/threads/t")
                assert "run.thread-busy" in await pages.send("/admin/threads/t/compact")
                gate.open.set()


async def test_what_if_stands_beside_today_and_changes_nothing(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "full"})
    mock_llm(Helper).then_return("one", "two", "three")
    async with agboss_app(Helper) as app, browser(add_admin(make_server(app))) as pages:
        await talk(app, 3)
        before = await app.memory.view("t")
        await pages.open("/admin/threads/t")
        assert '"kind": "full"' in pages.value("config")
        page = await pages.send("/admin/threads/t/what-if", {"config": '{"kind": "none"}'})
        full = await app.memory.what_if("t", {"kind": "full"})
        none = await app.memory.what_if("t", {"kind": "none"})
        assert pages.status == 200
        for found in (full, none):
            assert f"{found.tokens:,}" in page
        assert ("Today: full" in page, "What if: none" in page) == (True, True)
        page = await pages.send("/admin/threads/t/what-if", {"config": '{"kind":\r\n "none"'})
        assert (pages.status, "Line 2, column 8" in page) == (400, True)
        page = await pages.send("/admin/threads/t/what-if", {"config": '{"kind": "windowed",\r\n "size": 2}'})
        assert (pages.status, "Line 2, column 2" in page) == (400, True)
        assert await app.memory.view("t") == before


async def test_a_workflow_without_agents_has_pages_too() -> None:
    @action(name="waiter")
    class Waiter:
        async def run(self, ctx: ActionContext) -> str:
            return "Served."

    @workflow(name="inn", flow=[chain(TaskStart, Waiter, AnswerFinish)])
    class Inn: ...

    async with create_app(Inn, store="memory://", models=Models(yes, sum_up)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            await talk(app, 1)
            page = await pages.open("/admin/threads/t")
            assert (pages.status, "No agent works here." in page, "Served." in page) == (200, True, True)
            await whole(pages, "1")
            assert pages.status == 400
            assert "No agents are served." in await pages.open("/admin/agents")


async def test_each_agent_has_its_own_view() -> None:
    @agent(name="cook", model=MODEL, prompt="You cook.")
    class Cook: ...

    @agent(name="clerk", model=MODEL, prompt="You write.", memory_config={"kind": "full"})
    class Clerk: ...

    @workflow(name="inn", flow=[chain(TaskStart, Cook, Clerk, AnswerFinish)])
    class Inn: ...

    async with create_app(Inn, store="memory://", models=Models(yes, sum_up)) as app:
        async with browser(add_admin(make_server(app))) as pages:
            await talk(app, 1)
            assert "You cook." in await pages.open("/admin/threads/t")
            assert "You write." in await pages.open("/admin/threads/t", agent="clerk")
            page = await pages.send("/admin/threads/t/what-if", {"config": '{"kind": "none"}', "agent": "cook"})
            assert (pages.status, "has no memoryConfig" in page) == (200, True)
            await pages.open("/admin/threads/t", agent="nobody")
            assert pages.status == 400
