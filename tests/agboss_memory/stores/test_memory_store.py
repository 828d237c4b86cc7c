"""The store in memory: what every store does."""

from agboss_memory import MemoryStore
from agboss_memory.testing import store_conformance

TestMemoryStore = store_conformance(lambda folder: MemoryStore())
