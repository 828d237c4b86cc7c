"""Memory for agents: an append-only log, strategies that decide what is seen of it, and proof of both."""

from agboss_memory.contract import (
    BaseMemoryStrategy,
    Budget,
    CompressReport,
    LeftOut,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    Reach,
    TokenCounter,
)
from agboss_memory.errors import AgbossError
from agboss_memory.messages import (
    Block,
    Message,
    Summary,
    Tern,
    TernStatus,
    ThinkingPart,
    ToolCall,
    UsageRecord,
)
from agboss_memory.stores import MemoryStore, SqliteStore, Store, open_store
from agboss_memory.strategies import SlidingWindowStrategy, TurnMemory

__all__ = [
    "AgbossError",
    "BaseMemoryStrategy",
    "Block",
    "Budget",
    "CompressReport",
    "LeftOut",
    "MemoryContext",
    "MemoryModel",
    "MemoryStore",
    "MemoryTurn",
    "MemoryUpdate",
    "MemoryView",
    "Message",
    "Reach",
    "SlidingWindowStrategy",
    "SqliteStore",
    "Store",
    "Summary",
    "Tern",
    "TernStatus",
    "ThinkingPart",
    "TokenCounter",
    "ToolCall",
    "TurnMemory",
    "UsageRecord",
    "open_store",
]
