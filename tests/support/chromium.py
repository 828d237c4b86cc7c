"""Chromium without a screen, and a server on the loopback for it. Skips where there is no playwright."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from agboss.admin import add_admin
from agboss.server import make_server

playwright = pytest.importorskip("playwright.async_api")
expect = playwright.expect
"""Looks again until it is so: a click does not wait for the page that it leads to."""

expect.set_options(timeout=30_000)

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = [
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
