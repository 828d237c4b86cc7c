"""The admin pages in a real browser: what forms, keys, the style sheet and the script do there.

Needs playwright and Chromium (``apt-get install chromium``); skipped without them.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from desks import Gate, Models, desk, sum_up, talk, yes

from agboss import AgentDefinition, AgentRuntime, App, DefinitionFolder, create_app
from agboss.admin import add_admin
from agboss.server import make_server

playwright = pytest.importorskip("playwright.async_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.timeout(120),
]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
TOKEN = "token-of-ada-0123456789"


@asynccontextmanager
async def served(target: Any, **settings: Any) -> AsyncGenerator[str]:
    """The URL of a server on the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            add_admin(make_server(target, **settings)), log_level="warning", lifespan="off", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def tab(**options: Any) -> AsyncGenerator[Any]:
    """A page of a fresh browser; an error of its script or policy fails the test."""
    async with playwright.async_playwright() as tool:
        chromium = await tool.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await (await chromium.new_context(**options)).new_page()
        faults: list[str] = []

        def hear(said: Any) -> None:
            if "Security Policy" in said.text:
                faults.append(said.text)

        def fail(error: Any) -> None:
            faults.append(str(error))

        page.on("console", hear)
        page.on("pageerror", fail)
        try:
            yield page
        finally:
            await chromium.close()
    assert faults == []


def app(answer: Any = yes) -> App:
    return create_app(desk(limit=2), store="memory://", models=Models(answer, sum_up))


@pytest.mark.parametrize("script", [True, False])
async def test_run_terns_compact_undo_and_compare(script: bool) -> None:
    async with app() as desk_app, served(desk_app) as url, tab(java_script_enabled=script) as page:
        await talk(desk_app, 3)
        await page.goto(f"{url}/admin/threads")
        await page.get_by_role("link", name="t", exact=True).click()
        assert await page.get_by_text("task 3.").count() >= 1
        await page.get_by_role("button", name="Undo the summary of 1 to 2").click()
        assert "are seen again" in await page.get_by_role("status").first.inner_text()
        await page.get_by_role("button", name="Compact").click()
        assert await page.locator(".note").count() == 1
        await page.get_by_label("Another memoryConfig").fill('{"kind": "none"}')
        await page.get_by_role("button", name="Compare").click()
        assert "What if: none" in await page.locator("table").inner_text()


async def test_the_window_fills_while_a_turn_ends() -> None:
    gate = Gate()
    async with app(gate) as desk_app, served(desk_app) as url, tab() as page:
        async with desk_app.stream("a", thread="t", create_thread=True) as run:
            await gate.reached.wait()
            await page.goto(f"{url}/admin/threads/t")
            assert await page.get_by_text("A Tern is running.").count() == 1
            gate.open.set()
            await run.result()
        await page.get_by_text("Through the gate.").first.wait_for()
        assert await page.get_by_text("A Tern is running.").count() == 0
        assert float(await page.locator("rect.live").first.get_attribute("width")) > 0


async def test_edit_a_config_valid_blank_and_invalid(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    folder.save(AgentDefinition(name="clerk", model="openai:gpt-5-mini"))
    runtime = AgentRuntime(tmp_path, store="memory://", models=Models(yes, sum_up))
    async with runtime, served(runtime) as url, tab() as page:
        await page.goto(f"{url}/admin/agents/clerk")
        field = page.get_by_label("Memory (JSON)")
        await field.fill('{"kind": windowed}')
        assert "Not valid yet" in await page.locator("[data-json-state]").inner_text()
        await page.get_by_role("button", name="Save").click()
        assert "Line 1, column 10" in await page.get_by_role("alert").inner_text()
        await field.fill('{"kind": "windowed", "windowSize": 3}')
        await page.get_by_role("button", name="Save").click()
        assert await page.get_by_text("Saved.").count() == 1
        await field.fill("")
        await page.get_by_role("button", name="Save").click()
        assert await page.get_by_text("Nothing has changed.").count() == 1
        assert folder.load("clerk").to_dict()["memoryConfig"] == {"kind": "windowed", "windowSize": 3}


async def test_log_in_by_keyboard_alone() -> None:
    async with app() as desk_app, served(desk_app, tokens={TOKEN: "ada"}) as url, tab() as page:
        await page.goto(f"{url}/admin/")
        await page.keyboard.type(TOKEN)
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Threads").wait_for()
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "To the content"


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
