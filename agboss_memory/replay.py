"""A stored conversation under another memoryConfig: what each model call would have read, without calling any model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from agboss_memory.config import AnyMemoryConfig
from agboss_memory.contract import MemoryModel, TokenCounter
from agboss_memory.memory import Memory, WindowView
from agboss_memory.messages import Message
from agboss_memory.records import Record, Struct, replace
from agboss_memory.stores import MemoryStore
from agboss_memory.tokens import TiktokenCounter

SUMMARY_TOKENS = 200
"""Tokens of the text that stands in for a summary, or an eighth of what it would be made of if that is less."""

_THREAD = "what-if"


class WhatIfCall(Record, kw_only=True):
    """One model call of the conversation.

    Attributes:
        tern: Number of its Tern; 0 = unknown.
        call: Which call within its turn, from 0.
        tokens: Estimate of the request in tokens, without the reply reserve.
        first: Number of the oldest message that is shown verbatim or as a stub; 0 = none.
        shown: How many messages are shown so.
        summaries: How many summaries are shown.
        stubs: How many tool results are shown as stubs.
        common: Tokens at the beginning of the request that are the same as in the call before: what a provider may
            read from its cache.
    """

    tern: int
    call: int
    tokens: int
    first: int
    shown: int
    summaries: int
    stubs: int
    common: int


class WhatIf(Record, kw_only=True):
    """A whole conversation under one configuration.

    Attributes:
        config: The configuration in wire spelling.
        calls: Its model calls, in order.
        model_calls: How many calls the memory itself would have made.
        boundaries: Numbers of the messages behind which a summary began to stand for what came before.
    """

    config: Mapping[str, Any]
    calls: tuple[WhatIfCall, ...] = ()
    model_calls: int = 0
    boundaries: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of all requests together."""
        return sum(call.tokens for call in self.calls)

    @property
    def common(self) -> int:
        """Tokens of them that were the same as at the beginning of the request before."""
        return sum(call.common for call in self.calls)


class _StandIn(MemoryModel):
    """Writes a text of the length that a summary may have."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.calls = 0

    async def generate(self, prompt: str, output: Any = None) -> Any:
        self.calls += 1
        (tokens,) = self._counter.count([prompt])
        return "word " * max(1, min(SUMMARY_TOKENS, tokens // 8))


class _Sent(Struct):
    """The pieces of the last request, with their tokens."""

    pieces: Sequence[tuple[object, int]] = ()


async def what_if(
    messages: Iterable[Message],
    config: AnyMemoryConfig | Mapping[str, Any] | str,
    *,
    counter: TokenCounter | None = None,
    window: int | None = None,
    system: str = "",
    schemas: Sequence[str] = (),
    reply_reserve: int | None = None,
    agent: str = "agent",
) -> WhatIf:
    """Replay a conversation, message by message, as it would have gone under ``config``.

    Nothing is written and no model is called: a text of ``SUMMARY_TOKENS`` tokens stands in for each summary.

    Args:
        messages: The conversation, oldest first, from a user message on.
        config: A memoryConfig as model, dict or JSON.
        counter: Counts tokens as the agent's model does; None = o200k_base.
        window: The model's context window in tokens; None = unknown, 8192 are assumed.
        system: System text of the agent.
        schemas: Tool schemas as they are sent.
        reply_reserve: Tokens kept free for the answer; None = an eighth of a known window, at most 4096.
        agent: Named in warnings and errors.

    Raises:
        InvalidInputError: The configuration is none.
        StrategyError: A request could not be made to fit the window.
    """
    counter = counter or TiktokenCounter()
    stand_in = _StandIn(counter)
    store = MemoryStore()
    await store.open()
    memory = Memory(
        store,
        config,
        model=stand_in,
        counter=counter,
        window=window,
        system=system,
        schemas=schemas,
        reply_reserve=reply_reserve,
        agent=agent,
    )
    calls: list[WhatIfCall] = []
    boundaries: list[int] = []
    sent = _Sent()
    index = 0
    answered = False
    for message in messages:
        if message.role == "user" and answered:
            report = await memory.after_turn(_THREAD)
            boundaries += [summary.last for summary in report.summaries]
            index = 0
        if message.role == "assistant":
            view = await memory.view(_THREAD)
            boundaries += [one.last for one in view.summaries if one.last not in boundaries]
            calls.append(_call(view, message, index, sent, counter))
            index += 1
        answered = message.role == "assistant" and not message.tool_calls
        plain = replace(message, compressed_content=None, compressed_tokens=None, state="live")
        await memory.remember(_THREAD, [plain], imported=True)
    return WhatIf(
        config=memory.config.model_dump(mode="json", by_alias=True),
        calls=tuple(calls),
        model_calls=stand_in.calls,
        boundaries=tuple(boundaries),
    )


def _call(view: WindowView, message: Message, index: int, before: _Sent, counter: TokenCounter) -> WhatIfCall:
    texts = [view.system, *(one.content for one in view.messages)]
    keys = [view.system, *((one.role, one.content, one.tool_calls, one.tool_call_id) for one in view.messages)]
    pieces = list(zip(keys, counter.count(texts), strict=True))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(pieces, before.pieces, strict=False))
    common = sum(piece[1] for piece, _ in same)
    before.pieces = pieces
    said = [one for one in view.messages if not one.synthetic]
    return WhatIfCall(
        tern=message.tern,
        call=index,
        tokens=view.tokens,
        first=min((one.number for one in said), default=0),
        shown=len(said),
        summaries=len(view.summaries),
        stubs=sum(one.state in ("compressed", "evicted") for one in said),
        common=common,
    )
