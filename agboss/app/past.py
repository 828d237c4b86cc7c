"""A thread as it stood when an earlier Tern ran, as far as the log tells."""

from __future__ import annotations

from collections.abc import Sequence

from agboss.agents import AgentPlan
from agboss.components.metadata import is_count
from agboss.conversing import PreviewConversation
from agboss.errors import InvalidInputError
from agboss.plan import Plan
from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.stores.contract import MessagePage, Store, TernPage, ThreadState, Window
from agboss_memory.wording import quoted


async def past_tern(store: Store, state: ThreadState, number: int) -> Tern:
    """A Tern by its number. Raises InvalidInputError when the thread has none of that number."""
    found = (
        await store.terns(state.key, TernPage(after=number - 1, before=number + 1, limit=1))
        if is_count(number, least=1)
        else ()
    )
    if not found:
        text = f"thread {state.info.id!r} has no turn {quoted(number)}"
        hint = f"name one of 1 to {state.info.terns}" if state.info.terns else "the thread has no turn yet"
        raise InvalidInputError("memory.no-such-tern", text, hint)
    return found[0]


async def past_window(store: Store, state: ThreadState, plan: Plan, tern: Tern) -> Window:
    """What turn memory read before ``tern``. A summary that was undone since is taken as if it had stood."""
    page = TernPage(before=tern.number, limit=plan.window.terns, newest=True)
    terns = tuple(one for one in await store.terns(state.key, page) if one.status.finished)
    summaries = stood(await store.summaries(state.key, all_states=True), tern)
    every = 0 if plan.compaction is None else plan.compaction.every
    return Window(terns=terns, summaries=summaries, blocks=_blocks(terns, summaries, every))


async def past_conversation(
    store: Store, state: ThreadState, agent: AgentPlan, tern: Tern, call: int
) -> PreviewConversation:
    """An agent's conversation before call ``call`` (from 0) of its model in ``tern``.

    Raises:
        InvalidInputError: The agent had no part in that Tern, or its model was not called so often.
    """
    page = MessagePage(agent=agent.name, tern=tern.number, limit=_MOST)
    ran = agent.name in tern.path  # with shares_thread it may have been told of a Tern that it had no part in
    said = [one for one in await store.messages(state.key, page) if ran and one.agent == agent.name]
    ends = [place for place, one in enumerate(said) if one.role == "assistant"]
    calls = len(ends) + bool(said and said[-1].role != "assistant")  # the last one was never answered
    if not 0 <= call < calls:
        what = f"had no part in turn {tern.number}" if not said else f"called its model {calls} times in it"
        text = f"agent {agent.name!r} {what} of thread {state.info.id!r}"
        raise InvalidInputError("memory.no-such-call", text, "name another agent, turn or call")
    current: Sequence[Message] = said[: ends[call]] if call < len(ends) else said
    summaries = stood(await store.summaries(state.key, agent.name, all_states=True), tern)
    return PreviewConversation(store, state.key, agent.name, current=tuple(current), summaries=summaries)


def stood(summaries: Sequence[Summary], tern: Tern) -> tuple[Summary, ...]:
    """The summaries that readers had at the start of ``tern``, oldest range first."""
    known = sorted((one for one in summaries if one.created_at <= tern.started_at), key=lambda one: one.created_at)
    kept: list[Summary] = []
    for summary in known:
        kept = [one for one in kept if not summary.first <= one.first <= one.last <= summary.last]
        kept.append(summary)
    return tuple(sorted(kept, key=lambda one: one.first))


def _blocks(terns: Sequence[Tern], summaries: Sequence[Summary], every: int) -> tuple[Block, ...]:
    """The blocks that touch ``terns``: done where a summary stood, else due."""
    if not terns or not every:
        return ()
    done = {(one.first, one.last) for one in summaries}
    first, last = terns[0].number, terns[-1].number
    ranges = [(n, n + every - 1) for n in range((first - 1) // every * every + 1, last + 1, every)]
    return tuple(
        Block(first=begin, last=end, state="done" if (begin, end) in done else "due" if end <= last else "open")
        for begin, end in ranges
    )


_MOST = 10_000
