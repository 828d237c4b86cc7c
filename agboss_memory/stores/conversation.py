"""``ConversationLog`` over any store: one agent's conversation in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from agboss_memory.contract import Conversation, utc_now
from agboss_memory.messages import Message, Summary
from agboss_memory.records import replace
from agboss_memory.stores.contract import MessagePage, Store, SummaryWrite


class StoredConversation:
    """What a window strategy may touch of a store.

    Args:
        store: The store.
        key: The thread's key; 0 = the thread does not exist yet, so that there is nothing to read.
        agent: Whose conversation.
        tern: Number of the Tern during which it is used; 0 = outside a Tern.
        clock: Gives the moment of a write, aware UTC.
    """

    def __init__(
        self, store: Store, key: int, agent: str, *, tern: int = 0, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.store = store
        self.key = key
        self.agent = agent
        self.tern = tern
        self._clock = clock

    async def newest(self, limit: int) -> Conversation:
        """See ``ConversationLog.newest``."""
        return await self.store.conversation(self.key, self.agent, limit)

    async def older(self, before: int, limit: int) -> tuple[Message, ...]:
        """See ``ConversationLog.older``."""
        return await self.store.messages(self.key, MessagePage(agent=self.agent, before=before, limit=limit))

    async def message(self, number: int) -> Message | None:
        """See ``ConversationLog.message``."""
        return await self.store.message(self.key, self.agent, number)

    async def write_counts(self, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``ConversationLog.write_counts``."""
        await self.store.write_counts(self.key, self.agent, counts, tokenizer)

    async def compress_result(self, number: int, stub: str, tokens: int) -> bool:
        """See ``ConversationLog.compress_result``."""
        return await self.store.compress_result(self.key, self.agent, number, stub, tokens)

    async def save_summary(self, summary: Summary) -> Summary:
        """See ``ConversationLog.save_summary``."""
        own = replace(summary, agent=self.agent)
        return await self.store.write_summary(
            SummaryWrite(key=self.key, tern=self.tern, summary=own, now=self._clock())
        )
