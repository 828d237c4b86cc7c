"""Tool results that are replaced in a view: compressed once and for all, or evicted while it is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agboss_memory.atoms import Atom
from agboss_memory.contract import MemoryModel, TokenCounter
from agboss_memory.messages import Message
from agboss_memory.records import replace
from agboss_memory.strategies.reading import Loaded, Reader
from agboss_memory.strategies.selection import mapped, share
from agboss_memory.tool_results import KEPT_RESULTS, evicted_stub, model_stub, rule_stub

if TYPE_CHECKING:
    from agboss_memory.config import SummarizingWindowConfig, ToolResultEviction


async def compress_results(
    reader: Reader, loaded: Loaded, window: int, config: SummarizingWindowConfig, model: MemoryModel | None
) -> tuple[dict[int, Message], int]:
    """Write a stub for every result that may have one.

    Returns:
        The results that have one now, by number, and how many failed and stay full.
    """
    if not config.compress_tool_results:
        return {}, 0
    if loaded.live_tokens <= window * config.compress_when_window_above_ratio:
        return {}, 0
    floor = max(config.min_tool_result_compress_tokens, share(window, config.tool_result_threshold_ratio))
    done: dict[int, Message] = {}
    failed = 0
    for result in _read_results(loaded):
        if result.compressed_content is not None or (result.tokens or 0) <= floor:
            continue
        try:
            made = await _compress(reader, result, model)
        except Exception:  # one result that stays full never fails a turn; the caller says how many
            failed += 1
            continue
        if made is not None:
            done[result.number] = made
    return done, failed


def _read_results(loaded: Loaded) -> list[Message]:
    """Results that an assistant message follows, without the newest three, oldest first."""
    everything = [message for atom in loaded.atoms for message in atom.members]
    answered = max((m.number for m in everything if m.role == "assistant"), default=0)
    results = sorted(
        (result for atom in loaded.atoms if not atom.orphan for result in atom.results), key=lambda m: m.number
    )
    older = results[:-KEPT_RESULTS]
    return [result for result in older if result.number < answered]


async def _compress(reader: Reader, result: Message, model: MemoryModel | None) -> Message | None:
    tokens = result.tokens or 0
    stub = rule_stub(result, tokens) if model is None else await model_stub(model, result, tokens)
    (size,) = reader.counter.count([stub])
    if not await reader.log.compress_result(result.number, stub, size):
        return None
    return replace(result, compressed_content=stub, compressed_tokens=size)


def stubs_shown(atoms: Sequence[Atom]) -> tuple[Atom, ...]:
    """The atoms with the stub in the place of every compressed result."""

    def shown(message: Message) -> Message:
        if message.compressed_content is None:
            return message
        return replace(
            message,
            content=message.compressed_content,
            tokens=message.compressed_tokens,
            compressed_content=None,
            compressed_tokens=None,
            state="compressed",
        )

    return mapped(atoms, shown)


def evicted(atoms: tuple[Atom, ...], policy: ToolResultEviction | None, counter: TokenCounter) -> tuple[Atom, ...]:
    """The atoms with a pointer in the place of every result that is old and large enough."""
    users = [atom.head.number for atom in atoms if atom.from_user]
    if policy is None or len(users) < policy.after_turns:
        return atoms
    cutoff = users[-policy.after_turns]

    def shown(message: Message) -> Message:
        if message.role != "tool" or message.number >= cutoff or message.tool_name in policy.exempt_tools:
            return message
        tokens = message.tokens or 0
        if tokens < policy.above_tokens:
            return message
        stub = evicted_stub(message, tokens)
        return replace(message, content=stub, tokens=counter.count([stub])[0], state="evicted")

    return mapped(atoms, shown)
