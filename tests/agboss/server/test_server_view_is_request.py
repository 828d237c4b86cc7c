"""What GET /memory shows is what a model then receives, message by message and token by token, for every kind."""

from __future__ import annotations

from typing import Any

import pytest
from asgi import client
from httpx2 import AsyncClient

from agboss import (
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    TaskStart,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.models import ChatModel
from agboss.server import make_server
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryView
from agboss_memory.messages import Message, ToolCall
from agboss_memory.tokens import counter_for

WINDOW = 2000
MODEL = ModelSpec("ollama:test", context_window=WINDOW)
COUNTER = counter_for("ollama:test")
TASKS = (
    "Who is Ada?",
    "look up x, please",
    "\u202eright to left <script>",
    "look up y and z, please",
    "a long one: " + "word " * 150,
    "look up nothing, please",
    "look up w, please",
    "and \U0001f600 now?",
    "look up v, please",
    "thanks",
)


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic}: " + "fact " * 120


class Model:
    """Calls a tool for each topic of the task, then answers; keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        usage = ModelUsage(input_tokens=1, output_tokens=1, free=True)
        if request.purpose == "compaction":
            return ModelReply(text=f"Summary {len(self.requests)}: Ada asked.", usage=usage)
        self.requests.append(request)
        last = request.messages[-1]
        asked = last.content.rpartition("Task:\n")[2] if last.role == "user" else ""
        if last.role == "tool" and last.content.startswith("nothing"):
            raise ConnectionError("the model is gone in the middle of a Tern")
        if request.tools and asked.startswith("look up"):
            topics = [word for word in asked.split(",")[0].split()[2:] if word != "and"]
            calls = tuple(
                ToolCall(id=f"c{len(self.requests)}-{topic}", name="look_up", arguments=f'{{"topic": "{topic}"}}')
                for topic in topics
            )
            return ModelReply(text="Let me see.", tool_calls=calls, usage=usage)
        return ModelReply(text=f"Answer {len(self.requests)}.\nYes.", usage=usage)


class Models:
    def __init__(self) -> None:
        self.model = Model()

    def model_for(self, caller: Any, spec: ModelSpec) -> ChatModel:
        return self.model

    def wrap_router(self, caller: Any, kind: str, router: Any) -> Any:
        return router


class Recalling(BaseMemoryStrategy):
    """A strategy of a user's own, with recalled texts."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history[-2:], recalled=("Ada likes <b>tea</b>.", "</recalled> x"))


COMPRESSING = {
    "kind": "summarizing_window",
    "minToolResultCompressTokens": 50,
    "toolResultThresholdRatio": 0.001,
    "compressWhenWindowAboveRatio": 0.01,
}
KINDS: dict[str, dict[str, Any]] = {
    "turns": {},
    "custom": {"memory_strategy": Recalling},
    "none": {"memory_config": {"kind": "none"}},
    "full": {"memory_config": {"kind": "full"}},
    "full, few": {"memory_config": {"kind": "full", "maxHistoryFetch": 5}},
    "windowed": {"memory_config": {"kind": "windowed", "windowSize": 6}},
    "stubs": {"memory_config": COMPRESSING},
    "narrow": {"memory_config": {"kind": "summarizing_window", "maxConversationRatio": 0.2, "maxMessageRatio": 0.03}},
    "summaries in the system prompt": {
        "memory_config": COMPRESSING | {"autoSummarize": True, "autoSummarizeRatio": 0.2},
    },
    "summaries in a message": {
        "memory_config": {
            "kind": "summarizing_window",
            "maxConversationRatio": 0.3,
            "summaryPlacement": "USER_MESSAGE",
            "autoSummarize": True,
            "autoSummarizeRatio": 0.2,
        },
    },
    "auto_compact": {"memory_config": {"kind": "auto_compact", "compactAtRatio": 0.3}},
    "auto_compact in the system prompt": {
        "memory_config": {"kind": "auto_compact", "compactAtRatio": 0.3, "summaryPlacement": "SYSTEM_PROMPT"}
    },
    "evicted": {
        "memory_config": {"kind": "auto_compact", "toolResultEviction": {"afterTurns": 1, "aboveTokens": 50}},
    },
}
EXPECTED_STATES = {
    "turns": {"summary"},
    "stubs": {"compressed"},
    "narrow": {"cut"},
    "summaries in the system prompt": {"summary"},
    "summaries in a message": {"summary"},
    "auto_compact": {"summary"},
    "auto_compact in the system prompt": {"summary"},
    "evicted": {"evicted"},
}


def desk(**settings: Any) -> type[Any]:
    @agent(name="helper", model=MODEL, prompt="Be brief.", tools=[look_up], **settings)
    class Helper: ...

    turns = not settings or "memory_strategy" in settings

    @workflow(
        name="desk",
        flow=chain(TaskStart, Helper, AnswerFinish),
        defaults=Defaults(history=History(limit=3)),
        compaction=Compaction(every=2, model=MODEL) if turns else None,
    )
    class Desk: ...

    return Desk


Sent = list[tuple[str, str, tuple[tuple[str, str], ...], int]]


def calls_of(message: Message) -> tuple[tuple[str, str], ...]:
    return tuple((call.name, call.arguments) for call in message.tool_calls)


def sent(messages: tuple[Message, ...]) -> Sent:
    """Role, text, calls and text tokens of each message."""
    return [
        (
            one.role,
            one.content,
            calls_of(one),
            sum(COUNTER.count([one.content, *(call.arguments for call in one.tool_calls)])),
        )
        for one in messages
    ]


def told(rows: list[Any]) -> Sent:
    return [
        (
            row["role"],
            row["content"] if row["compressedContent"] is None else row["compressedContent"],
            tuple((call["name"], call["arguments"]) for call in row["toolCalls"]),
            row["tokens"],
        )
        for row in rows
    ]


def check(view: Any, request: ModelRequest, task: str | None) -> None:
    """The view is the request; ``task`` None = the view has it, else it comes after the view."""
    rows: list[Any] = view["messages"]
    own = view["config"].get("kind") == view["kind"]
    assert view["systemPrompt"] == request.system
    assert view["totalTokens"] == view["systemPromptTokens"] + sum(row["tokens"] for row in rows)
    if not own:
        check_text(rows, request, task)
        return
    summaries = [row for row in rows if row["type"] == "SUMMARY"]
    assert [row["sequenceNum"] for row in summaries] == [-100 - place for place in range(len(summaries))]
    lead = "".join(text for _, text, _, _ in told(summaries))
    messages = request.messages
    if summaries and summaries[0]["role"] == "system":
        assert request.system.endswith(lead)
    elif summaries:
        assert messages[0].content == lead
        messages = messages[1:]
    for row in summaries:
        assert row["tokens"] == COUNTER.count([row["compressedContent"]])[0]
    if task is not None:
        assert messages[-1].role == "user"
        assert messages[-1].content.startswith(task[:60])  # a kind may cut it
        messages = messages[:-1]
    assert told([row for row in rows if row["type"] != "SUMMARY"]) == sent(messages)
    assert "" not in [row["reason"] for row in rows]


def check_text(rows: list[Any], request: ModelRequest, task: str | None) -> None:
    """Turn memory sends one user message: the rows joined are its text."""
    (text,) = [one.content for one in request.messages if one.role == "user"]
    joined = "".join(part for _, part, _, _ in told(rows))
    if task is not None:
        joined += f"Task:\n{task}" if joined else task
    assert joined == text
    for row, (_, part, _, tokens) in zip(rows, told(rows), strict=True):
        assert tokens == COUNTER.count([part])[0], row


async def memory(http: AsyncClient, thread: str, path: str = "", **query: Any) -> Any:
    answer = await http.get(f"/threads/{thread}/memory{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_next_view_is_the_request_that_follows(kind: str) -> None:
    models = Models()
    states: set[str] = set()
    async with create_app(desk(**KINDS[kind]), store="memory://", models=models) as app:
        async with client(make_server(app)) as http:
            thread = (await http.post("/threads")).json()["id"]
            for task in TASKS:
                view = await memory(http, thread)
                assert await memory(http, thread, "/explain") == view
                states |= {row["state"] for row in view["messages"]}
                seen = len(models.model.requests)
                ran = await http.post(f"/threads/{thread}/terns", json={"input": task})
                assert ran.status_code == (500 if "nothing" in task else 200), ran.text
                check(view, models.model.requests[seen], task)
    assert states >= EXPECTED_STATES.get(kind, set())


@pytest.mark.parametrize("kind", KINDS)
async def test_what_every_earlier_call_was_shown_can_be_told(kind: str) -> None:
    """Also from inside the loop of tools. What a summariser or a stub did later is not in it."""
    models = Models()
    asked: list[tuple[int, int, ModelRequest]] = []
    own = "memory_config" in KINDS[kind]
    async with create_app(desk(**KINDS[kind]), store="memory://", models=models) as app:
        async with client(make_server(app)) as http:
            thread = (await http.post("/threads")).json()["id"]
            for number, task in enumerate(TASKS, 1):
                seen = len(models.model.requests)
                await http.post(f"/threads/{thread}/terns", json={"input": task})
                asked += [(number, call, one) for call, one in enumerate(models.model.requests[seen:])]
            for number, call, request in asked:
                if own or call == 0:
                    check(await memory(http, thread, "/explain", tern=number, call=call), request, None)
