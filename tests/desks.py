"""Small workflows, models and stores that the conformance tests and the scenarios share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agboss import (
    AnswerFinish,
    App,
    Compaction,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    RunResult,
    TaskStart,
    agent,
    chain,
    workflow,
)
from agboss.models import Caller, ChatModel
from agboss_memory import MemoryStore

MODEL = "openai:gpt-5-mini"


@agent(name="helper", description="Helps", prompt="Be brief.", model=MODEL)
class Helper: ...


def desk(
    component: type[Any] = Helper,
    *,
    every: int | None = 2,
    limit: int = 4,
    summaries: int | None = None,
    name: str = "desk",
    version: str = "1.0.0",
    window: int | None = None,
    **compaction: Any,
) -> type[Any]:
    """A workflow of one agent; ``every`` None = no compaction, the rest are fields of ``Compaction``."""
    model = ModelSpec(MODEL, context_window=window)

    @workflow(
        name=name,
        version=version,
        flow=[chain(TaskStart, component, AnswerFinish)],
        defaults=Defaults(history=History(limit=limit, summaries=summaries)),
        compaction=None if every is None else Compaction(every=every, model=model, **compaction),
    )
    class Desk: ...

    return Desk


async def talk(app: App, terns: int, thread: str = "t", first: int = 1) -> list[RunResult]:
    """Terns ``first`` and on with the tasks ``task 1.``, ``task 2.``, ..."""
    return [
        await app.execute(f"task {number}.", thread=thread, create_thread=True)
        for number in range(first, first + terns)
    ]


def answers(terns: int, first: int = 1) -> list[str]:
    """``answer 1.``, ``answer 2.``, ..."""
    return [f"answer {number}." for number in range(first, first + terns)]


def raw_turns(request: ModelRequest) -> list[int]:
    """Numbers of the Terns that a request shows raw (tasks are those of ``talk``)."""
    past = request.messages[0].content.rpartition("Task:\n")[0]
    return [int(number) for number in re.findall(r"^Q: task (\d+)\.$", past, re.MULTILINE)]


def shown_summaries(request: ModelRequest) -> list[str]:
    """Ranges of the summaries that a request shows."""
    return re.findall(r'<summary turns="([^"]+)">', request.messages[0].content)


Answer = Callable[[ModelRequest], Awaitable[str]]


@dataclass
class Models:
    """A model source that answers by functions: for tests in which time and order matter.

    Attributes:
        answer: Answers agents.
        summary: Answers compaction.
        calls: Who was called, in order.
    """

    answer: Answer
    summary: Answer
    calls: list[str] = field(default_factory=list[str])

    def model_for(self, caller: Caller, spec: ModelSpec) -> ChatModel:
        return _Model(self, caller.kind)

    def wrap_router(self, caller: Caller, kind: str, router: Any) -> Any:
        return router


@dataclass
class _Model:
    models: Models
    kind: str

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.models.calls.append(self.kind)
        ask = self.models.summary if self.kind == "compaction" else self.models.answer
        usage = ModelUsage(input_tokens=10, output_tokens=1, free=True)
        return ModelReply(text=await ask(request), usage=usage)


async def yes(_: ModelRequest) -> str:
    return "Yes."


async def sum_up(_: ModelRequest) -> str:
    return "In short."


class Gate:
    """A model that waits until it is let go, and says that it was reached and whether it was cancelled."""

    def __init__(self, text: str = "Through the gate.") -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = False
        self._text = text

    async def __call__(self, _: ModelRequest) -> str:
        self.reached.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self._text


class Crash(BaseException):
    """Stands for the end of the process: nothing catches it."""


class FaultyStore(MemoryStore):
    """A store that fails when told: ``faults["commit"] = error`` raises it at the next commit, once."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, BaseException] = {}

    def _fail(self, method: str) -> None:
        error = self.faults.pop(method, None)
        if error is not None:
            raise error

    async def commit(self, request: Any) -> Any:
        self._fail("commit")
        return await super().commit(request)

    async def write_summary(self, request: Any) -> Any:
        self._fail("write_summary")
        return await super().write_summary(request)

    async def settle(self, request: Any) -> None:
        self._fail("settle")
        await super().settle(request)

    async def terns(self, key: int, page: Any) -> Any:
        self._fail("terns")
        return await super().terns(key, page)
