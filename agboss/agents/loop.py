"""One agent at work: ask the model, run the tools it calls, ask again, until it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from agboss.agents.approvals import permit
from agboss.agents.plan import AgentPlan
from agboss.agents.tools import BoundTool, run_tool
from agboss.components.tool import ToolContext
from agboss.errors import OutputError
from agboss.journal import Journal
from agboss.models.chat import LENGTH, ModelReply, ModelRequest, ToolSchema
from agboss.models.meter import Meter
from agboss.pauses import PauseRequired
from agboss_memory.messages import AttachmentRecord, Message, ToolCall
from agboss_memory.records import Record, replace

if TYPE_CHECKING:
    from pydantic import BaseModel


class AgentView(Protocol):
    """What the model gets for one call: system text, the past with the task, and tools that only this view needs."""

    @property
    def system(self) -> str:
        """The system text."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is sent, oldest first."""
        ...

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """Tools beside the agent's own, by name."""
        ...


class Listener(Protocol):
    """Hears what happens inside the loop."""

    def text(self, node: str, text: str, certain: bool) -> None:
        """A piece of text; ``certain`` when it can only be part of the agent's answer."""
        ...

    def tool_started(self, node: str, call: ToolCall) -> None:
        """A tool is about to run."""
        ...

    def tool_finished(self, node: str, call: ToolCall, result: str, ok: bool) -> None:
        """A tool has run."""
        ...


ViewBuilder = Callable[[int, tuple[Message, ...]], Awaitable[AgentView]]


class AgentJob(Record, kw_only=True):
    """One run of an agent within a Tern.

    Attributes:
        plan: The agent.
        task: The task as it is stored in the agent's conversation.
        attachments: Files that came with it.
        build_view: Gives the view for call number n, with the messages that the loop added so far.
        context: What tools may know.
        meter: Bounds and books all calls.
        warn: Receives one-line warnings.
        listener: Hears text and tools, or None.
        journal: Finished calls of the Tern.
        step: Begins the names of this run's steps: ``{node}.{visit}``.
        goes_on: Whether another node may follow, so that a finished call is worth keeping.
        now: When the Tern began, aware UTC; stamped on its messages.
        log: Receives every message of the run as it is made, the task first, so that a failed run keeps its work.
    """

    plan: AgentPlan
    task: str
    build_view: ViewBuilder
    context: ToolContext
    meter: Meter
    warn: Callable[[str], None]
    now: datetime
    log: list[Message]
    journal: Journal
    step: str
    goes_on: bool = False
    attachments: tuple[AttachmentRecord, ...] = ()
    listener: Listener | None = None


class NodeAnswer(Record, kw_only=True):
    """What a node of the flow gave: its answer as text, and the value for the next node (a model instance or the text)."""

    text: str
    value: Any


async def run_agent(job: AgentJob) -> NodeAnswer:
    """Run the loop. Raises ModelError, LimitExceededError, OutputError and what the view builder raises."""
    name = job.plan.name
    task = _asked(job, job.task)
    job.log.append(replace(task, attachments=job.attachments) if job.attachments else task)
    begin = len(job.log)
    calls_left = job.plan.spec.max_tool_calls
    call_index = 0
    corrected = False
    while True:
        added = tuple(job.log[begin:])
        view = await job.build_view(call_index, added)
        tools = _offered(job, view, calls_left)
        reply = await _ask(job, view, tools, call_index)
        call_index += 1
        if reply.tool_calls and tools:
            reply = replace(reply, tool_calls=distinct(reply.tool_calls, job.log[begin:]))
            job.log.append(_assistant(job, reply))
            calls_left -= len(reply.tool_calls)
            await _run_tools(job, tools, reply.tool_calls, calls_left)
            if calls_left <= 0:
                job.warn(
                    f"agent {name!r} reached max_tool_calls={job.plan.spec.max_tool_calls}; one last call without tools"
                )
            continue
        if reply.text or reply.thinking:  # an empty message would be refused when it is sent back
            job.log.append(_assistant(job, replace(reply, tool_calls=()) if reply.tool_calls else reply))
        if not reply.text:
            job.warn(f"agent {name!r} answered nothing")
        elif reply.finish_reason == LENGTH:
            job.warn(f"the answer of agent {name!r} was cut off by its model; raise max_tokens")
        try:
            return _answer(job.plan, reply)
        except OutputError as error:
            if corrected:
                raise
            corrected = True
            job.log.append(_asked(job, f"{error.message}\nAnswer again with valid JSON."))


def _offered(job: AgentJob, view: AgentView, calls_left: int) -> Mapping[str, BoundTool]:
    if calls_left <= 0:
        return {}
    return {**job.plan.tools, **view.tools} if view.tools else job.plan.tools


def distinct(calls: tuple[ToolCall, ...], said: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls, each under an id that no other call of the run has: some models repeat theirs, or give none."""
    taken = {call.id for message in said for call in message.tool_calls}
    found: list[ToolCall] = []
    for call in calls:
        number, own = 1, call.id
        while not own or own in taken:
            number += 1
            own = f"{call.id or 'call'}-{number}"
        taken.add(own)
        found.append(call if own == call.id else replace(call, id=own))
    return tuple(found)


async def _ask(job: AgentJob, view: AgentView, tools: Mapping[str, BoundTool], index: int) -> ModelReply:
    plan = job.plan
    step = f"{job.step}.model.{index}"
    done = job.journal.finished(step)
    output = plan.spec.output
    request = ModelRequest(
        caller=plan.name,
        model=plan.model.spec.model,
        system=view.system,
        messages=view.messages,
        tools=schemas(tools) if tools else (),
        settings=plan.model.settings,
        output_schema=None if output is None else _schema(output),
        output_name="" if output is None else output.__name__,
        on_text=None if job.listener is None else _heard_by(job.listener, plan.name, not tools and output is None),
    )
    again = done is not None
    booking = job.meter.begin_call(request, plan.name, again=again)
    reply = msgspec.convert(done, ModelReply) if again else await plan.model.open().generate(request)
    job.meter.end_call(booking, plan.model.spec, request, reply, again=again)
    if again:
        return reply
    if reply.usage.measured and reply.usage.input_tokens:
        from agboss.agents.calibrating import calibrate  # models that count nothing have nothing to compare

        fixed = (request.system, *(tool.schema_text for tool in tools.values()))
        await calibrate(plan, request.messages, fixed, reply.usage.input_tokens)
    if (reply.tool_calls and tools) or job.goes_on or job.journal.begun:
        await job.journal.keep(step, "model", msgspec.to_builtins(reply))
    else:
        job.journal.last = step, reply
    return reply


def _heard_by(listener: Listener, node: str, certain: bool) -> Callable[[str], None]:
    def hear(piece: str) -> None:
        listener.text(node, piece, certain)

    return hear


def _schema(output: type[BaseModel]) -> dict[str, Any]:
    return json.loads(_schema_text(output))  # a dict of its own for each request: models may change theirs


@lru_cache(maxsize=256)
def _schema_text(output: type[BaseModel]) -> str:
    return json.dumps(output.model_json_schema())


def schemas(tools: Mapping[str, BoundTool]) -> tuple[ToolSchema, ...]:
    """The tools as the model sees them."""
    return tuple(tool.schema for tool in tools.values())


def _asked(job: AgentJob, text: str) -> Message:
    return Message(role="user", content=text, agent=job.plan.name, tern=job.context.tern, created_at=job.now)


def _assistant(job: AgentJob, reply: ModelReply) -> Message:
    return Message(
        role="assistant",
        content=reply.text,
        tool_calls=reply.tool_calls,
        thinking=reply.thinking,
        agent=job.plan.name,
        tern=job.context.tern,
        created_at=job.now,
    )


def _answer(plan: AgentPlan, reply: ModelReply) -> NodeAnswer:
    model = plan.spec.output
    if model is None:
        return NodeAnswer(text=reply.text, value=reply.text)
    from pydantic import ValidationError

    try:
        return NodeAnswer(text=reply.text, value=model.model_validate_json(_json_part(reply.text)))
    except ValidationError as error:
        raise OutputError(
            "agent.bad-output",
            f"the answer of agent {plan.name!r} is no valid {model.__name__}: {error.error_count()} error(s), "
            + "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3]),
            "use a model that can follow a JSON schema, or relax the output model",
            answer=reply.text,
        ) from error


def _json_part(text: str) -> str:
    """The JSON in a text that may be wrapped in a Markdown code fence."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.strip("`").removeprefix("json").strip()
    return stripped


async def _run_tools(
    job: AgentJob, tools: Mapping[str, BoundTool], calls: tuple[ToolCall, ...], calls_left: int
) -> None:
    """Run the calls at the same time and log their results in the order of the calls.

    Calls above ``max_tool_calls`` are refused as text. When a limit forbids one, those that were allowed finish first.
    When the run is cancelled, the results of those that had finished are logged all the same.
    """
    allowed = len(calls) + min(calls_left, 0)
    tasks = [
        asyncio.create_task(_run_call(job, tools, call, position < allowed)) for position, call in enumerate(calls)
    ]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        job.log.extend(result for result in results if isinstance(result, Message))
    waits: list[PauseRequired] = []
    for result in results:
        if isinstance(result, PauseRequired):
            waits.append(result)
        elif isinstance(result, BaseException):
            raise result
    if waits:  # all are asked at once; what needed nobody has run
        raise PauseRequired(tuple(ask for one in waits for ask in one.asks))


async def _run_call(job: AgentJob, tools: Mapping[str, BoundTool], call: ToolCall, allowed: bool) -> Message:
    tool = tools.get(call.name)
    if not allowed:
        text = f"Error: not run, the limit of {job.plan.spec.max_tool_calls} tool calls is reached."
    elif tool is None:
        text = f"Error: there is no tool {call.name!r}; the tools are: {', '.join(tools)}"
    else:
        job.meter.check_tool(tool.spec.name)
        text = await _run_once(job, tool, call)
    return Message(
        role="tool",
        content=text,
        tool_call_id=call.id,
        tool_name=call.name,
        agent=job.plan.name,
        tern=job.context.tern,
        created_at=job.now,
    )


async def _run_once(job: AgentJob, tool: BoundTool, call: ToolCall) -> str:
    """The tool's result, from the journal when an earlier run of the Tern has it."""
    name, costs = job.plan.name, list[tuple[str, str, str]]()
    step, given = f"{job.step}.tool.{call.id}", f"{call.name} {call.arguments}"

    def report(usd: Decimal, what: str) -> None:
        costs.append((str(usd), what, job.meter.book_tool(tool.spec.name, usd, what, step)))

    done = job.journal.finished(step, given)
    if done is not None:
        for number, (usd, what, *key) in enumerate(done["costs"], 1):  # earlier files have no key
            job.meter.book_tool_again(
                tool.spec.name, Decimal(usd), what, key[0] if key else f"{tool.spec.name}.cost.{number}"
            )
        return done["text"]
    context = replace(job.context, agent=name, call_id=call.id, report=report)
    permitted = await permit(tool, call, context, job.journal, job.step, job.warn)
    if job.listener is not None:
        job.listener.tool_started(name, call)
    text, ok = permitted.denied, False
    if not text:
        text, ok = await run_tool(tool, permitted.arguments, context)
        text = permitted.note + text
    await job.journal.keep(step, "tool", {"text": text, "costs": costs}, given)
    if job.listener is not None:
        job.listener.tool_finished(name, call, text, ok)
    return text
