import os
import subprocess
import sys
from datetime import date
from pathlib import Path

from example_process import ROOT, run_example

from agboss import provide
from agboss.testing import MakeApp, MockLlm, call_tool, reply
from examples.help_desk import ORDERS, Advisor, HelpDesk, Order, OrderDesk, look_up_order


def test_offline_both_agents_share_one_thread(tmp_path: Path) -> None:
    done = run_example(tmp_path, "help_desk", "--offline")
    assert done.returncode == 0, done.stderr
    assert (
        "task-start → reception → order-desk → answer-finish\n     Noted: My order 4711 has not arrived." in done.stdout
    )
    assert "reception → advisor" in done.stdout
    assert 'You said: "My order 4711 has not arrived."' in done.stdout
    assert "flowchart TD" in done.stdout


def test_it_is_a_module_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.help_desk"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr


class OneOrder:
    async def find(self, number: int) -> Order | None:
        return Order(number=7, status="delivered", expected=date(2026, 1, 2)) if number == 7 else None


async def test_an_order_is_looked_up_in_the_book_that_was_given(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(OrderDesk).then_return(
        call_tool(look_up_order, number=7),
        reply("It was delivered."),
        call_tool(look_up_order, number=8),
        reply("None."),
    )
    mock_llm(Advisor).then_return(reply("From 9 to 18."))
    async with agboss_app(HelpDesk, providers=[provide(ORDERS, OneOrder())]) as app:
        found = await app.execute("Where is my order 7?")
        assert found.path == ("task-start", "reception", "order-desk", "answer-finish")
        await app.execute("And order 8?", thread=found.thread)
        asked = await app.execute("When are you open?", thread=found.thread)
        assert asked.path[2] == "advisor"
    requests = mock_llm(OrderDesk).requests
    assert requests[0].tools[0].name == "look_up_order"
    assert set(requests[0].tools[0].parameters["properties"]) == {"number"}
    assert '"status":"delivered"' in requests[1].messages[-1].content
    assert requests[3].messages[-1].content == "There is no order 8."
    assert "It was delivered." in mock_llm(Advisor).requests[0].text
