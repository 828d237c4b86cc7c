"""One Tern, told in seven stages.

admit -> (choose -> build_context -> dispatch) again and again -> finish -> record -> update_memory.

``agboss.runner`` calls them in this order. Each is one async function that takes and returns one frozen record; none
calls another.
"""

from agboss.tern.admit import AdmitRequest, AdmitResult, admit
from agboss.tern.build_context import BuiltContext, ContextRequest, build_context
from agboss.tern.choose import Choice, ChooseRequest, choose
from agboss.tern.dispatch import DispatchRequest, dispatch
from agboss.tern.finish import Finished, FinishRequest, finish
from agboss.tern.record import Recorded, RecordRequest, record
from agboss.tern.returned import compressed
from agboss.tern.update_memory import (
    UPDATE_TRIES,
    MemoryReport,
    MemoryRequest,
    book_rest,
    compact_block,
    update_memory,
)

__all__ = [
    "UPDATE_TRIES",
    "AdmitRequest",
    "AdmitResult",
    "BuiltContext",
    "Choice",
    "ChooseRequest",
    "ContextRequest",
    "DispatchRequest",
    "FinishRequest",
    "Finished",
    "MemoryReport",
    "MemoryRequest",
    "RecordRequest",
    "Recorded",
    "admit",
    "book_rest",
    "build_context",
    "choose",
    "compact_block",
    "compressed",
    "dispatch",
    "finish",
    "record",
    "update_memory",
]
