"""What the in-memory store reads of threads by their key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agboss_memory.contract import Conversation
from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.stores.admissions import Resumable, Step
from agboss_memory.stores.contract import MessagePage, TernPage
from agboss_memory.stores.memory_thread import MemoryThread
from agboss_memory.stores.views import MemoryViews


class MemoryReads(MemoryViews):
    """Threads by key."""

    def __init__(self) -> None:
        super().__init__()
        self._by_key: dict[int, MemoryThread] = {}

    async def steps(self, key: int, number: int) -> tuple[Step, ...]:
        """See ``Store.steps``."""
        thread = self._by_key.get(key)
        return tuple(thread.steps.get(number, {}).values()) if thread else ()

    async def paused(self, key: int) -> tuple[Resumable, ...]:
        """See ``Store.paused``."""
        thread = self._by_key.get(key)
        return tuple(map(thread.resumable, thread.paused())) if thread else ()

    async def terns(self, key: int, page: TernPage) -> tuple[Tern, ...]:
        """See ``Store.terns``."""
        thread = self._by_key.get(key)
        if thread is None or page.limit <= 0:
            return ()
        before = thread.last + 1 if page.before is None else min(page.before, thread.last + 1)
        numbers = range(max(page.after, 0) + 1, before)
        numbers = numbers[-page.limit :] if page.newest else numbers[: page.limit]
        return tuple(thread.tern(number) for number in numbers)

    async def messages(self, key: int, page: MessagePage) -> tuple[Message, ...]:
        """See ``Store.messages``."""
        thread = self._by_key.get(key)
        if thread is None or page.limit <= 0:
            return ()
        numbers = thread.message_numbers(page.agent, page.tern)
        if isinstance(numbers, range):
            numbers = numbers if page.before is None else numbers[: max(page.before - 1, 0)]
            return tuple(thread.message(page.agent or "", number) for number in numbers[-page.limit :])
        places = [place for place in numbers if page.before is None or place[1] < page.before]
        return tuple(thread.message(agent, number) for agent, number in places[-page.limit :])

    async def conversation(self, key: int, agent: str, limit: int) -> Conversation:
        """See ``Store.conversation``."""
        thread = self._by_key.get(key)
        if thread is None:
            return Conversation()
        numbers = thread.message_numbers(agent, None)
        live_tokens, uncounted = thread.sums(agent)
        return Conversation(
            messages=await self.messages(key, MessagePage(agent=agent, limit=limit)),
            summaries=await self.summaries(key, agent) if agent else (),
            last=len(numbers),
            live_tokens=live_tokens,
            uncounted=uncounted,
        )

    async def message(self, key: int, agent: str, number: int) -> Message | None:
        """See ``Store.message``."""
        thread = self._by_key.get(key)
        known = thread is not None and 0 < number <= len(thread.message_numbers(agent, None))
        return thread.message(agent, number) if thread and known else None

    async def write_counts(self, key: int, agent: str, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``Store.write_counts``."""
        if thread := self._by_key.get(key):
            thread.write_counts(agent, counts, tokenizer)

    async def compress_result(self, key: int, agent: str, number: int, stub: str, tokens: int) -> bool:
        """See ``Store.compress_result``."""
        thread = self._by_key.get(key)
        return thread is not None and thread.compress(agent, number, stub, tokens)

    async def summaries(
        self,
        key: int,
        agent: str = "",
        all_states: bool = False,
        *,
        before: int | None = None,
        limit: int | None = None,
    ) -> tuple[Summary, ...]:
        """See ``Store.summaries``."""
        thread = self._by_key.get(key)
        found = thread.summaries() if thread else ()
        mine = [s for s in found if s.agent == agent and (all_states or s.state == "active")]
        mine = sorted([s for s in mine if before is None or s.first < before], key=lambda s: (s.first, s.last, s.id))
        return tuple(mine[-limit:] if limit else mine if limit is None else ())

    async def blocks(self, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
        """See ``Store.blocks``."""
        thread = self._by_key.get(key)
        found = sorted(thread.blocks.by_last.items()) if thread else []
        return tuple(block for _, block in found if block.state in states)[: max(limit, 0)]
