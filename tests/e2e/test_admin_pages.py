"""The admin pages in a real browser: what forms, keys, the style sheet and the script do there.

Needs playwright and Chromium (``apt-get install chromium``); skipped without them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chromium import NEEDS_CHROMIUM, expect, served, tab
from desks import Gate, Models, desk, sum_up, talk, yes

from agboss import (
    AgentDefinition,
    AgentRuntime,
    App,
    DefinitionFolder,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    agent,
    create_app,
    tool,
)
from agboss.models import Caller, ChatModel
from agboss_memory.messages import ToolCall

pytestmark = NEEDS_CHROMIUM
TOKEN = "token-of-ada-0123456789"

HOSTILE = (
    "</textarea></title><script>hacked = 1</script>\"'><img src=/x onerror=hacked=1><svg onload=hacked=1>"
    "<a href=javascript:hacked=1>x</a><style>*{display:none}</style>\x00\u202eevil\u200f\ud800"
)


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic}: " + "fact " * 300


def story() -> type[Any]:
    @agent(
        name="helper",
        model=ModelSpec("ollama:test", context_window=6000),
        prompt="Be brief.",
        tools=[look_up],
        memory_config={
            "kind": "summarizing_window",
            "minToolResultCompressTokens": 50,
            "toolResultThresholdRatio": 0.001,
            "compressWhenWindowAboveRatio": 0.01,
        },
    )
    class Helper: ...

    return Helper


class StoryModels:
    """Looks up what is asked for and answers from it; the summariser waits at a gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def model_for(self, caller: Caller, spec: ModelSpec) -> ChatModel:
        return self

    def wrap_router(self, caller: Caller, kind: str, router: Any) -> Any:
        return router

    async def generate(self, request: ModelRequest) -> ModelReply:
        usage = ModelUsage(input_tokens=10, output_tokens=1, free=True)
        if request.purpose == "compaction":
            return ModelReply(text=await self.gate(request), usage=usage)
        last = request.messages[-1]
        topic = last.content.removeprefix("look up ").partition(":")[0]
        if last.role == "user":
            call = ToolCall(id=f"c-{topic}", name="look_up", arguments=f'{{"topic": "{topic}"}}')
            return ModelReply(text="", tool_calls=(call,), usage=usage)
        return ModelReply(text=f"The {topic} is blue.", usage=usage)


class StreamingModels(StoryModels):
    """Writes half of its answer, then waits."""

    def __init__(self) -> None:
        super().__init__(Gate())
        self.end = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        assert request.on_text is not None
        request.on_text("Once upon <b>a\u202e ")
        request.on_text("time")
        await self.end.wait()
        return ModelReply(text="Once upon <b>a\u202e time there was.", usage=ModelUsage(free=True))


async def live_width(page: Any) -> float:
    return float(await page.locator("rect.live").first.get_attribute("width"))


async def reach(page: Any, name: str) -> None:
    """Press Tab until the element of that id has the focus."""
    for _ in range(30):
        if await page.evaluate("document.activeElement.id") == name:
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"{name} cannot be reached")


def app(answer: Any = yes) -> App:
    return create_app(desk(limit=2), store="memory://", models=Models(answer, sum_up))


@pytest.mark.parametrize("script", [True, False])
async def test_the_whole_story_in_the_browser_alone(script: bool) -> None:
    """Make a thread, run Terns, watch the window fill, Compact, undo, read a stub's original; with and without script."""
    gate = Gate("The summary of the sky.")
    models = StoryModels(gate)
    async with create_app(story(), store="memory://", models=models) as story_app, served(story_app) as url:
        async with tab(java_script_enabled=script) as page:
            await page.goto(f"{url}/admin/threads")
            await page.get_by_role("button", name="New thread").click()
            widths = [await live_width(page)]
            for number in range(1, 6):
                await page.get_by_label("Task").fill(f"look up sky {number}")
                await page.get_by_role("button", name="Send").click()
                await page.get_by_text(f"The sky {number} is blue.").first.wait_for()
                await page.get_by_label("Task").wait_for()
                widths.append(await live_width(page))
            assert widths == sorted(widths)
            assert widths[-1] > widths[0] == 0

            stub = page.locator(".entries details", has_text="compressed").first
            await stub.locator("summary").click()
            await expect(stub.locator("pre").nth(1)).to_contain_text("sky 1: fact fact")
            await stub.get_by_role("link", name="Whole text").click()
            await expect(page.locator("pre").nth(1)).to_contain_text("sky 1: fact fact")
            await page.go_back()

            await page.get_by_role("button", name="Compact").click()
            await page.get_by_text("model calls so far").wait_for()
            await expect(page.get_by_label("Task")).to_have_count(0)
            gate.open.set()
            note = page.locator(".note", has_text="Compacted:")
            await note.wait_for()
            await expect(note).to_contain_text("1 new summary stands for")
            assert await live_width(page) < widths[-1]
            await page.get_by_role("button", name="Undo the summary of").click()
            await page.get_by_text("are seen again").wait_for()
            assert await live_width(page) == widths[-1]

            await page.get_by_role("link", name="Tern 5", exact=True).click()
            await page.get_by_role("link", name="What helper saw in its call 2").click()
            await expect(page.locator(".entries")).to_contain_text("sky 5: fact")
            await page.get_by_role("link", name="Threads").first.click()
            await page.locator("table a").first.click()
            await page.get_by_role("link", name="Delete …").click()
            await page.get_by_role("button", name="Delete the thread").click()
            await expect(page.get_by_text("The thread was deleted.")).to_have_count(1)


async def test_the_answer_comes_while_it_is_written_and_the_tern_is_cancelled() -> None:
    models = StreamingModels()
    async with create_app(desk(every=None), store="memory://", models=models) as desk_app, served(desk_app) as url:
        thread = await desk_app.threads.create()
        async with tab() as page:
            await page.goto(f"{url}/admin/threads/{thread}")
            await page.get_by_label("Task").fill("tell me")
            await page.get_by_role("button", name="Send").click()
            await page.locator("[data-answer]", has_text="Once upon <b>a⟦202E⟧ time").wait_for()
            await expect(page.locator("[data-progress]").first).to_contain_text("helper is at work.")
            await page.get_by_role("button", name="Cancel").click()
            await page.get_by_text("The Tern was cancelled.").wait_for()
            await page.locator(".badge.cancelled").wait_for()
            await page.wait_for_load_state()  # the script listens for the keys
            models.end.set()
            await page.get_by_label("Task").fill("again")
            await page.keyboard.press("Control+Enter")
            await page.locator(".badge.answered").wait_for()


async def test_what_is_being_written_and_what_is_open_outlives_a_renewal() -> None:
    gate = Gate()
    async with app(gate) as desk_app, served(desk_app) as url, tab() as page:
        async with desk_app.stream("a", thread="t", create_thread=True) as run:
            await gate.reached.wait()
            await page.goto(f"{url}/admin/threads/t")
            await page.locator("#row-system summary").click()
            await page.locator("#what-if summary").click()
            await page.locator("#config").fill('{"kind": "none"}')
            gate.open.set()
            await run.result()
        await page.get_by_text("Through the gate.").first.wait_for()
        await expect(page.locator("#row-system[open]")).to_have_count(1)
        await expect(page.locator("#config")).to_have_value('{"kind": "none"}')
        await expect(page.locator("#config")).to_be_focused()


async def test_nothing_of_what_somebody_wrote_runs() -> None:
    async def say(_: Any) -> str:
        return HOSTILE

    async with create_app(desk(limit=2), store="memory://", models=Models(say, say)) as desk_app:
        for _ in range(5):
            await desk_app.execute(HOSTILE, thread="<script>alert(1)</script>", create_thread=True, owner=HOSTILE[:90])
        async with served(desk_app) as url, tab() as page:
            asked: list[str] = []

            def hear(one: Any) -> None:
                asked.append(str(getattr(one, "url", "a dialog")))

            page.on("request", hear)
            page.on("dialog", hear)
            await page.goto(f"{url}/admin/threads")
            await page.get_by_role("link", name="<script>").first.click()
            await page.get_by_label("Task").wait_for()
            for details in await page.locator("details > summary").all():
                await details.click()
            await page.get_by_role("link", name="Tern 5", exact=True).click()
            await page.goto(f"{url}/admin/threads?q=evil")
            assert await page.evaluate("window.hacked") is None
            await expect(page).to_have_title("Threads · agboss")
            assert [one for one in asked if not one.startswith((f"{url}/admin", "data:,"))] == []
            answer = await page.goto(f"{url}/admin/threads")
            assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]


async def test_an_agent_is_made_marked_edited_and_deleted(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    runtime = AgentRuntime(tmp_path, store="memory://", tools=[look_up], models=Models(yes, sum_up))
    async with runtime, served(runtime) as url, tab() as page:
        await page.goto(f"{url}/admin/agents")
        await page.get_by_role("link", name="New agent").click()
        await page.get_by_label("Name", exact=True).fill("My Clerk")
        await page.get_by_label("Model").fill("openai:gpt-5-mini")
        await page.get_by_role("button", name="Make the agent").click()
        await expect(page.locator("#problems")).to_be_focused()
        await page.get_by_role("alert").get_by_role("link", name="Name").click()
        await expect(page.locator("#name-error")).to_contain_text("lowercase")
        await expect(page.locator("#name")).to_have_attribute("aria-describedby", "name-hint name-error")
        await page.get_by_label("Name", exact=True).fill("clerk")
        await page.get_by_role("checkbox", name="look_up").check()
        await page.get_by_label("Max result chars of look_up").fill("500")
        await page.get_by_role("button", name="Make the agent").click()
        await page.get_by_role("link", name="look_up").wait_for()
        assert [(one.name, one.max_result_chars) for one in folder.load("clerk").tools] == [("look_up", 500)]
        await page.get_by_role("link", name="look_up").click()
        await page.get_by_label("Max result chars").fill("9")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_text("Tool look_up saved.").wait_for()
        assert folder.load("clerk").tools[0].max_result_chars == 9
        await page.get_by_role("link", name="Delete …").click()
        await page.get_by_role("button", name="Delete the agent").click()
        await page.get_by_text("Agent clerk was deleted.").wait_for()
        assert folder.list() == ()


async def test_a_task_is_sent_and_an_entry_opened_by_keyboard_alone() -> None:
    async with app() as desk_app, served(desk_app) as url, tab() as page:
        thread = await desk_app.threads.create()
        await page.goto(f"{url}/admin/threads/{thread}")
        await reach(page, "task")
        await page.keyboard.type("by keys")
        await page.keyboard.press("Tab")
        await expect(page.locator("button:focus")).to_have_css("outline-style", "solid")
        await page.keyboard.press("Enter")
        await page.get_by_text("Yes.").first.wait_for()
        await page.locator("#row-1 summary").wait_for()
        await page.locator("#row-1 summary").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#row-1[open]")).to_have_count(1)


@pytest.mark.parametrize("script", [True, False])
async def test_run_terns_compact_undo_and_compare(script: bool) -> None:
    async with app() as desk_app, served(desk_app) as url, tab(java_script_enabled=script) as page:
        await talk(desk_app, 3)
        await page.goto(f"{url}/admin/threads")
        await page.get_by_role("link", name="t", exact=True).click()
        await page.get_by_text("task 3.").first.wait_for()
        await page.get_by_role("button", name="Undo the summary of 1 to 2").click()
        await expect(page.get_by_role("status").first).to_contain_text("are seen again")
        await page.get_by_role("button", name="Compact").click()
        await expect(page.locator(".note")).to_have_count(1)
        await page.locator("#what-if summary").click()
        await page.get_by_label("Another memoryConfig").fill('{"kind": "none"}')
        await page.get_by_role("button", name="Compare").click()
        await expect(page.locator("table")).to_contain_text("What if: none")


async def test_the_window_fills_while_a_turn_ends() -> None:
    gate = Gate()
    async with app(gate) as desk_app, served(desk_app) as url, tab() as page:
        async with desk_app.stream("a", thread="t", create_thread=True) as run:
            await gate.reached.wait()
            await page.goto(f"{url}/admin/threads/t")
            await expect(page.get_by_text("A Tern is running.")).to_have_count(1)
            gate.open.set()
            await run.result()
        await page.get_by_text("Through the gate.").first.wait_for()
        await expect(page.get_by_text("A Tern is running.")).to_have_count(0)
        assert float(await page.locator("rect.live").first.get_attribute("width")) > 0


async def test_edit_a_config_valid_blank_and_invalid(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    folder.save(AgentDefinition(name="clerk", model="openai:gpt-5-mini"))
    runtime = AgentRuntime(tmp_path, store="memory://", models=Models(yes, sum_up))
    async with runtime, served(runtime) as url, tab() as page:
        await page.goto(f"{url}/admin/agents/clerk")
        field = page.get_by_label("Memory (JSON)")
        await field.fill('{"kind": windowed}')
        await expect(page.locator("[data-json-state]")).to_contain_text("Not valid yet")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("Memory (JSON)")
        await expect(page.locator("#memory-error")).to_contain_text("Line 1, column 10")
        await field.fill('{"kind": "windowed", "windowSize": 3}')
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved.")).to_have_count(1)
        await field.fill("")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Nothing has changed.")).to_have_count(1)
        assert folder.load("clerk").to_dict()["memoryConfig"] == {"kind": "windowed", "windowSize": 3}


async def test_log_in_by_keyboard_alone() -> None:
    async with app() as desk_app, served(desk_app, tokens={TOKEN: "ada"}) as url, tab() as page:
        await page.goto(f"{url}/admin/")
        await expect(page.locator("#token")).to_be_focused()
        await page.keyboard.type(TOKEN)
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Threads").wait_for()
        await page.keyboard.press("Tab")
        await expect(page.locator("a:focus")).to_have_text("To the content")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
async def test_no_page_is_wider_than_its_window_and_text_can_be_read(width: int, scheme: str) -> None:
    async with app() as desk_app, served(desk_app) as url:
        await desk_app.execute("long" * 500, thread="t", create_thread=True, owner="o" * 60)
        await talk(desk_app, 5, thread="u")
        async with tab(viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
            for path in (
                "threads",
                "threads/t",
                "threads/u",
                "threads/u/delete",
                "threads/u/terns/1/calls/0?agent=helper",
                "threads?q=task",
                "threads/t/terns/1",
                "threads/t/memory?number=1",
                "agents",
            ):
                await page.goto(f"{url}/admin/{path}")
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
                ground, ink = await page.evaluate(
                    "['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])"
                )
                assert (_light(ground) > 200) == (scheme == "light") != (_light(ink) > 200)


def _light(colour: str) -> float:
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3
