"""The suite that every store passes: subclass it in a test module and say how your store is made.

.. code-block:: python

    class TestMyStore(StoreConformance):
        def make_store(self, folder: Path) -> Store:
            return MyStore(folder / "my.db")

The tests are coroutines: run them with ``asyncio_mode = auto`` or your own equivalent.
"""

from agboss_memory.testing.store_admissions import Admissions
from agboss_memory.testing.store_commits import Commits
from agboss_memory.testing.store_conversations import Conversations
from agboss_memory.testing.store_copies import Copies
from agboss_memory.testing.store_memory_work import MemoryWork
from agboss_memory.testing.store_recovery import Recovery
from agboss_memory.testing.store_values import Values
from agboss_memory.testing.store_waiting import Waiting


class StoreConformance(Admissions, Commits, Conversations, Copies, MemoryWork, Recovery, Values, Waiting):
    """What a store must do, test by test."""
