"""What calls cost is booked once, whichever of them had to wait for a decision."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agboss import TernStatus, ToolContext, agent, create_app, tool
from agboss.testing import ScriptedModels, call_tool, reply


def _dear(args: dict[str, Any], ctx: ToolContext) -> bool:
    return args["usd"] > 10


@tool(needs_approval=_dear)
def buy(usd: int, ctx: ToolContext) -> str:
    """Buy something."""
    ctx.report_cost(usd, "shop")
    return "bought"


@agent(name="buyer", model="ollama:stub", prompt="Buy.", tools=[buy])
class Buyer: ...


@pytest.mark.parametrize("order", [(100, 1), (1, 100)], ids=["dear-first", "cheap-first"])
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/p.db"], ids=["memory", "sqlite"])
async def test_what_calls_of_one_tool_cost_is_booked_whichever_of_them_had_to_wait(
    tmp_path: Path, store: str, order: tuple[int, int]
) -> None:
    models = ScriptedModels()
    models.llm(Buyer).then_return([call_tool(buy, usd=usd) for usd in order], reply("Done."))
    async with create_app(Buyer, store=store.format(tmp_path), models=models) as app:
        assert (await app.execute("Buy.", thread="t", create_thread=True)).status is TernStatus.PAUSED
        done = await app.resume("t", True)
        (info,) = await app.threads.list()
        booked = sum(row.usd for row in (await app.spend()).rows if row.model == "shop")
        (tern,) = (await app.threads.get("t")).terns
        stored = sum(item.usd or 0 for item in tern.usage if item.model == "shop")
        assert (done.spend, info.spend, booked, stored) == (101, 101, 101, 101)
        assert await app.threads.check() == ()


async def test_a_journal_of_an_earlier_release_tells_no_key_of_a_cost(tmp_path: Path) -> None:
    models = ScriptedModels()
    models.llm(Buyer).then_return([call_tool(buy, usd=1), call_tool(buy, usd=100)], reply("Done."))
    async with create_app(Buyer, store=f"sqlite:///{tmp_path}/p.db", models=models) as app:
        await app.execute("Buy.", thread="t", create_thread=True)
        with closing(sqlite3.connect(tmp_path / "p.db")) as file:
            ((key, outcome),) = file.execute("SELECT step_key, outcome FROM steps WHERE kind = 'tool'").fetchall()
            told = json.loads(outcome)
            told["costs"] = [cost[:2] for cost in told["costs"]]
            file.execute("UPDATE steps SET outcome = ? WHERE step_key = ?", (json.dumps(told), key))
            file.commit()
        assert (await app.resume("t", True)).spend == 101
