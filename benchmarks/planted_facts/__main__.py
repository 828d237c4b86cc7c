"""Prints the table: python -m benchmarks.planted_facts [--seeds 12] [--window 1000]."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from compaction_kit import BehaviorProbe, Canary, build_random_session

from benchmarks.planted_facts.kinds import KINDS, Turns, seen

FILLER = "Row {row}: service answered in {ms} ms, status 200, cache warm, nothing to report.\n"


def turns_of(seed: int, *, in_results: bool) -> tuple[Turns, list[Canary]]:
    """A session of the kit as turns; every fact said by the user, or at the end of a tool's result."""
    session, canaries = build_random_session(seed)
    said = [turn for turn in session.turns if turn.role != "system"]
    made: list[tuple[str, str | None, str]] = []
    for place in range(0, len(said) - 1, 2):
        fact, answer = said[place], said[place + 1]
        if in_results and fact.canary_id:
            log = "".join(FILLER.format(row=row, ms=20 + (row * 7 + place) % 90) for row in range(8))
            made.append(("Look it up.", log + fact.text, answer.text))
        else:
            made.append((fact.text, None, answer.text))
    return made, canaries


async def shares(kind: str, seeds: Sequence[int], window: int, *, in_results: bool) -> tuple[float, float]:
    """Shares of facts that are seen, and that are seen or can be fetched."""
    probe = BehaviorProbe()
    held = reached = total = 0
    for seed in seeds:
        turns, canaries = turns_of(seed, in_results=in_results)
        text, fetched = await seen(kind, turns, window)
        for canary in canaries:
            total += 1
            held += probe.probe(canary, text).survived
            reached += probe.probe(canary, f"{text}\n{fetched}").survived
    return held / total, reached / total


async def table(seeds: Sequence[int], window: int) -> str:
    """The Markdown table."""
    lines = [
        "| kind | said by the user: seen | in tool results: seen | in tool results: seen or fetched |",
        "|---|---|---|---|",
    ]
    for kind in KINDS:
        said, _ = await shares(kind, seeds, window, in_results=False)
        shown, reached = await shares(kind, seeds, window, in_results=True)
        lines.append(f"| {kind} | {said:.0%} | {shown:.0%} | {reached:.0%} |")
    return "\n".join(lines)


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12, help="sessions, 20 facts each")
    parser.add_argument("--window", type=int, default=1000, help="the model's window in tokens")
    given = parser.parse_args()
    print(asyncio.run(table(range(1, given.seeds + 1), given.window)))


if __name__ == "__main__":
    main()
