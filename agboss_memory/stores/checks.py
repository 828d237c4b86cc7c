"""What must hold in every thread: told as findings, for a check of a store and for a copy that is to be taken in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from agboss_memory.messages import Message, Summary, TernStatus
from agboss_memory.stores.copies import AgentSums, Finding, MessageCopy, ThreadCopy
from agboss_memory.stores.files import FileStore
from agboss_memory.stores.pauses import LASTING, PAUSE

_RESTORE = "Restore the thread from a copy; what is there can be saved with: agboss threads export"
_EDITED = "Somebody edited the records. Put the file back as it was exported."
_REMAKE = "Export the thread, delete it, and import it again: sums and marks are made anew."
_CANCEL = "Cancel what the thread waits for: agboss resume THREAD --cancel"
_BRING = "Put it back from a backup of the store's files; until then models are told that it cannot be read."

Findings = Iterator[Finding]


def copy_findings(copy: ThreadCopy) -> Findings:
    """What cannot be in a thread, as far as its records tell."""
    for part in (_terns, _steps, _usage, _messages, _summaries, _blocks, _work):
        yield from part(copy)


def finding(copy: ThreadCopy, code: str, what: str, remedy: str) -> Finding:
    """A finding about a thread."""
    return Finding(code=code, thread=copy.thread, workflow=copy.workflow, what=what, remedy=remedy)


def _terns(copy: ThreadCopy) -> Findings:
    keys: set[str] = set()
    for place, item in enumerate(copy.terns, 1):
        tern = item.tern
        if tern.number != place:
            yield finding(copy, "check.tern-gap", f"Tern {place} is missing; {tern.number} stands there", _RESTORE)
            return
        if str(tern.status) == "running":
            yield finding(copy, "check.tern-running", f"Tern {place} is running in a copy", _EDITED)
        elif tern.status.finished != (tern.finished_at is not None):
            yield finding(copy, "check.tern-end", f"Tern {place} is {tern.status}, its end {tern.finished_at}", _EDITED)
        if item.idempotency_key is not None and item.idempotency_key in keys:
            yield finding(copy, "check.key-twice", f"the idempotency key of Tern {place} came before", _EDITED)
        keys |= {item.idempotency_key} if item.idempotency_key is not None else set()


def _steps(copy: ThreadCopy) -> Findings:
    for item in copy.terns:
        number, kinds = item.tern.number, {step.kind for step in item.steps}
        if item.tern.status.finished and kinds - LASTING:
            left = sum(step.kind not in LASTING for step in item.steps)
            yield finding(copy, "check.step-left", f"{left} steps of the finished Tern {number} are left", _EDITED)
        if item.tern.status is TernStatus.PAUSED and PAUSE not in kinds:
            yield finding(copy, "check.pause-lost", f"Tern {number} is paused and waits for nothing", _CANCEL)
        if len({step.key for step in item.steps}) < len(item.steps):
            yield finding(copy, "check.step-twice", f"Tern {number} has a step twice", _RESTORE)


def _usage(copy: ThreadCopy) -> Findings:
    for number, booked in [(item.tern.number, item.usage) for item in copy.terns] + [(0, copy.unbound)]:
        if len({item.step_key for item in booked}) < len(booked):
            yield finding(copy, "check.usage-twice", f"Tern {number} has a step key twice in its usage", _RESTORE)


def _messages(copy: ThreadCopy) -> Findings:
    for agent, said in by_agent(copy.messages).items():
        for place, message in enumerate(said, 1):
            if message.number != place:
                what = f"message {place} of {agent!r} is missing; {message.number} stands there"
                yield finding(copy, "check.message-gap", what, _RESTORE)
                break
            if not 0 <= message.tern <= len(copy.terns):
                what = f"message {place} of {agent!r} belongs to Tern {message.tern}, which is not there"
                yield finding(copy, "check.message-tern", what, _RESTORE)
        for number in _apart_from_their_tern(said):
            what = f"message {number} of {agent!r} stands apart from the others of Tern {said[number - 1].tern}"
            yield finding(copy, "check.message-apart", what, _RESTORE)
        for number in repeated_results(said):
            what = f"message {number} of {agent!r} is a second result of one call"
            yield finding(copy, "check.result-twice", what, _RESTORE)


def _apart_from_their_tern(said: Sequence[Message]) -> Iterator[int]:
    """Numbers of messages that come after others than those of their Tern, which were stored together."""
    ended: set[int] = set()
    before = 0
    for number, message in enumerate(said, 1):
        if message.tern != before:
            ended.add(before)
            if message.tern and message.tern in ended:
                yield number
        before = message.tern


def by_agent(copies: Sequence[MessageCopy]) -> dict[str, list[Message]]:
    """Messages by agent, in their order."""
    found: dict[str, list[Message]] = {}
    for item in copies:
        found.setdefault(item.message.agent, []).append(item.message)
    return found


def repeated_results(said: Sequence[Message]) -> Iterator[int]:
    """Numbers of results whose call has an earlier one. An id counts anew after each message that is no result."""
    seen: set[str] = set()
    for message in said:
        if message.role != "tool":
            seen = set()
        elif message.tool_call_id is not None:
            if message.tool_call_id in seen:
                yield message.number
            seen.add(message.tool_call_id)


def _summaries(copy: ThreadCopy) -> Findings:
    lengths = {agent: len(said) for agent, said in by_agent(copy.messages).items()}
    live: dict[tuple[str, str], list[Summary]] = {}
    for place, item in enumerate(copy.summaries, 1):
        summary = item.summary
        name = f"summary {summary.id} ({summary.first}–{summary.last})"
        most = lengths.get(summary.agent, 0) if summary.agent else len(copy.terns)
        if summary.id != place:
            yield finding(copy, "check.summary-gap", f"summary {place} is missing", _RESTORE)
            return
        if not 1 <= summary.first <= summary.last <= most:
            yield finding(copy, "check.summary-range", f"{name} does not lie within 1–{most}", _RESTORE)
        successor = item.superseded_by
        if (successor is not None) != (summary.state == "superseded") or not 0 <= (successor or 0) <= len(
            copy.summaries
        ):
            yield finding(copy, "check.summary-lineage", f"{name} is {summary.state} by {successor}", _RESTORE)
        if summary.state == "active":
            live.setdefault((summary.agent, "" if summary.agent else summary.kind), []).append(summary)
    for group in live.values():
        yield from _apart(copy, "check.summary-overlap", "active summaries", group)


def _blocks(copy: ThreadCopy) -> Findings:
    for block in copy.blocks:
        if not 1 <= block.first <= block.last:
            yield finding(copy, "check.block-range", f"block {block.first}–{block.last} is no range", _RESTORE)
        elif block.state == "due":
            rest = [item for item in copy.terns[block.first - 1 : block.last] if item.tern.status.finished]
            if len(rest) <= block.last - block.first:
                what = f"block {block.first}–{block.last} is due before all its Terns are finished"
                yield finding(copy, "check.block-state", what, _RESTORE)
    yield from _apart(copy, "check.block-overlap", "blocks", copy.blocks)


def _apart(copy: ThreadCopy, code: str, what: str, ranges: Sequence[Any]) -> Findings:
    for one, other in pairwise(sorted(ranges, key=lambda item: (item.first, item.last))):
        if other.first <= one.last:
            text = f"{what} {one.first}–{one.last} and {other.first}–{other.last} overlap"
            yield finding(copy, code, text, "Undo one of them: agboss memory undo" if "summar" in what else _RESTORE)


def _work(copy: ThreadCopy) -> Findings:
    for item in copy.work:
        if not 1 <= item.tern <= len(copy.terns):
            yield finding(copy, "check.work-tern", f"{item.strategy!r} waits for Tern {item.tern}", _RESTORE)


def sum_findings(copy: ThreadCopy, sums: Sequence[AgentSums]) -> Findings:
    """Where the running sums of conversations are not what adding up gives."""
    said = by_agent(copy.messages)
    kept = {item.agent: item for item in sums}
    for agent in sorted(said.keys() | kept.keys()):
        right = added_up(agent, said.get(agent, []), [item.summary for item in copy.summaries])
        if kept.get(agent) != right and (agent in kept or said.get(agent)):
            stored = kept.get(agent)
            what = f"the sums of {agent!r} are {_numbers(stored)}, adding up gives {_numbers(right)}"
            yield finding(copy, "check.sums", what, _REMAKE)


def file_ids(copy: ThreadCopy) -> dict[str, str]:
    """The attachments of a thread: ids, each with one of its names."""
    entries = (*(item.tern for item in copy.terns), *(item.message for item in copy.messages))
    return {item.id: item.name for entry in entries for item in entry.attachments}


def file_findings(copy: ThreadCopy, files: FileStore) -> Findings:
    """Attachments without bytes. Not asked of an import: a copy carries the records alone."""
    names = file_ids(copy)
    for lost in files.lost(names):
        what = f"the bytes of attachment {names[lost]!r} ({lost!r}) are not there, or damaged"
        yield finding(copy, "check.file-missing", what, _BRING)


def added_up(agent: str, said: Sequence[Message], summaries: Sequence[Summary]) -> AgentSums:
    """The sums of a conversation from its messages; what an active summary of the agent covers is not live."""
    covered = [(s.first, s.last) for s in summaries if agent and s.agent == agent and s.state == "active"]

    def live(message: Message) -> bool:
        return not any(first <= message.number <= last for first, last in covered)

    return AgentSums(
        agent=agent,
        last=len(said),
        live_tokens=sum(_rendered(message) for message in said if live(message)),
        uncounted=sum(message.tokens is None for message in said),
    )


def _rendered(message: Message) -> int:
    return message.tokens or 0 if message.compressed_tokens is None else message.compressed_tokens


def _numbers(sums: AgentSums | None) -> str:
    return "missing" if sums is None else f"{sums.last} messages, {sums.live_tokens} tokens, {sums.uncounted} uncounted"
