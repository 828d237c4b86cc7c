"""``agboss chat``: turn after turn in one thread."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import typer

from agboss.app import App
from agboss.cli.deciding import settle
from agboss.cli.faults import FAILED
from agboss.cli.options import Session, command
from agboss.cli.running import ThreadOption, typed
from agboss.cli.turns import graph_of, money, take_turn
from agboss.errors import AgbossError
from agboss.run import RunResult

EXIT = "/exit"
HELP = "/help"
PROMPT = "you> "

COMMANDS = {EXIT: "end the chat (as Ctrl-D does)", HELP: "show these commands"}

Ask = Callable[[], Awaitable[str]]


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "chat")(chat)


async def chat(session: Session, thread: ThreadOption = None) -> int:
    """Talk in one thread until /exit or the end of the input."""
    workflow = session.workflow()
    async with session.open_app(workflow) as app:
        if thread is not None:  # told at once, not after the first line was typed
            await app.threads.get(thread, 0)
        talk = _Talk(session, app, graph_of(workflow), thread)
        await talk.go(_asker(session))
    talk.end()
    return talk.code


def _asker(session: Session) -> Ask:
    """Reads one line: edited and with a history in a terminal, plain otherwise. Raises EOFError at the end."""
    if session.out.is_terminal and sys.stdin.isatty():
        from prompt_toolkit import PromptSession

        prompt: PromptSession[str] = PromptSession()
        session.out.note(f"{EXIT} or Ctrl-D ends the chat, {HELP} lists the commands")
        return lambda: prompt.prompt_async(PROMPT)
    return _plain_line


async def _plain_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


class _Talk:
    def __init__(self, session: Session, app: App, graph: Any, thread: str | None) -> None:
        self._out = session.out
        self._app = app
        self._graph = graph
        self._thread = thread
        self._results: list[RunResult] = []
        self._errors: list[AgbossError] = []

    @property
    def code(self) -> int:
        return FAILED if self._errors else 0

    async def go(self, ask: Ask) -> None:
        while True:
            try:
                task = (await ask()).strip()
            except (EOFError, KeyboardInterrupt):
                return
            if task == EXIT:
                return
            if task == HELP:
                self._help()
            elif task:
                await self._turn(task)

    def _help(self) -> None:
        for name, effect in COMMANDS.items():
            self._out.note(f"{name}  {effect}")

    async def _turn(self, task: str) -> None:
        known = self._thread
        try:
            result = await take_turn(self._app, self._graph, self._out, typed(self._graph, task), known)
            result = await settle(self._app, self._graph, self._out, result)
        except AgbossError as error:
            if error.run is None:  # nothing was stored, so nothing further can be said in this thread
                raise
            self._errors.append(error)
            if not self._out.as_json:
                self._out.error(error)
            result = error.run
        self._results.append(result)
        self._thread = result.thread
        if known is None:
            self._out.field("thread", result.thread)
        if result.memory:
            self._out.field("memory", result.memory)
        if self._out.is_terminal:
            self._out.line()

    def end(self) -> None:
        """What was spent, or the whole talk as one document."""
        if self._out.as_json:
            turns = [result.to_dict() for result in self._results]
            self._out.document({"thread": self._thread, "turns": turns})
        elif self._results:
            spends = [result.spend for result in self._results]
            known = [spend for spend in spends if spend is not None]
            if self._out.is_terminal:
                self._out.field("thread", self._results[-1].thread)
            self._out.field("spend", money(sum(known, start=known[0] * 0) if len(known) == len(spends) else None))
