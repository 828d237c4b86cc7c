"""Paused Terns on the pages: what waits is shown, decided, refused, and told afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import pytest
from asgi import Streamed, events
from browsing import Browser, browser
from desks import Gate
from hypothesis import given
from hypothesis import strategies as st

from agboss import AgentDefinition, AgentRuntime, App, Decision, ModelReply, ModelUsage, agent, create_app, tool
from agboss.admin import add_admin
from agboss.admin.showing import environment, exact
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.testing import ScriptedModels, call_tool, reply
from agboss_memory.messages import ToolCall

HOSTILE = "</textarea><script>alert(1)</script>\"'><img src=x onerror=y>{{ 7 * 7 }}\x00\u202eevil\u2066\U000e0041&amp;"
DECIDE = "/admin/threads/t/decide"
TOKENS = {"token-of-ada-0123456789": "ada", "token-of-bob-0123456789": "bob"}
paid: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    paid.append((to, amount))
    return f"paid {amount} to {to}"


@agent(name="clerk", model="openai:gpt-5-mini", prompt="Help.", tools=[pay])
class Clerk: ...


def app(*steps: Any) -> App:
    models = ScriptedModels()
    models.llm(Clerk).then_return(*steps)
    return create_app(Clerk, store="memory://", models=models)


@asynccontextmanager
async def opened(served: App, **settings: Any) -> AsyncGenerator[tuple[Browser, Any]]:
    async with served, browser(server := add_admin(make_server(served, **settings))) as pages:
        yield pages, server


async def settled(server: Any) -> None:
    for log in [*server.state.service.runs.running]:
        await asyncio.wait([log.task])


async def ask(served: App, **more: Any) -> Any:
    return (await served.execute("Pay <b>her</b>!", thread="t", create_thread=True, **more)).pauses


def form(pause: Any, decision: str, **fields: str) -> dict[str, str]:
    return {"pause": pause.id, "tern": str(pause.tern), "decision": decision, **fields}


ONE = call_tool(pay, to="Ada", amount=5)


async def test_what_waits_is_on_top_and_approved() -> None:
    served = app(ONE, reply("Done."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        for query in ({}, {"q": "t"}, {"q": "Pay"}):
            assert 'class="badge paused">paused<' in await pages.open("/admin/threads", **query)
        page = await pages.open("/admin/threads/t")
        assert page.index("A call waits for your decision") < page.index("New Tern")
        assert "A new Tern may run: a paused one holds nothing" in page
        assert ("asked by clerk" in page, "Pay &lt;b&gt;her&lt;/b&gt;!" in page, "<b>her" in page) == (
            True,
            True,
            False,
        )
        assert json.loads(pages.value("arguments")) == {"to": "Ada", "amount": 5}
        assert "data-live" not in page
        page = await pages.send(DECIDE, form(pause, "approve"))
        assert pages.status == 200
        await settled(server)
        page = await pages.open("/admin/threads/t")
        assert ("waits for your decision" in page, "Done." in page, paid) == (False, True, [("Ada", 5)])
        page = await pages.open("/admin/threads/t/terns/1")
        assert (">approved<" in page, "asked by clerk" in page) == (True, True)


async def test_a_decision_that_is_sent_twice_counts_once_and_another_one_is_refused() -> None:
    served = app(ONE, reply("Done."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        page = await pages.open("/admin/threads/t")
        for _ in range(3):
            pages.page = page
            await pages.send(DECIDE, form(pause, "approve"))
            assert pages.status == 200
            await settled(server)
        assert "This was decided before." in pages.page
        assert paid == [("Ada", 5)]
        page = await pages.send(DECIDE, form(pause, "deny", reason="No!"))
        assert (pages.status, "Nothing was decided." in page, "pause.decided" in page) == (409, True, True)
        page = await pages.send(DECIDE, {**form(pause, "approve"), "pause": "1-unknown"})
        assert (pages.status, "pause.unknown" in page) == (404, True)


async def test_both_of_two_clicks_that_come_at_once_are_one_decision() -> None:
    served = app(ONE, reply("Done."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        data = {"form_token": pages.value("form_token"), **form(pause, "approve")}
        both = await asyncio.gather(*(pages.http.post(DECIDE, data=data) for _ in range(2)))
        assert {one.status_code for one in both} == {303}
        await settled(server)
        assert paid == [("Ada", 5)]


async def test_a_denial_tells_its_reason_to_the_model_and_on_the_page() -> None:
    served = app(ONE, reply("Sorry."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(pause, "deny", reason="too <i>much</i>\u202e"))
        await settled(server)
        said = [m.content for m in (await served.threads.export("t")).messages if m.role == "tool"]
        assert said == ["Error: not run, a person denied this call of pay: too <i>much</i>\u202e"]
        page = await pages.open("/admin/threads/t/terns/1")
        assert (">denied<" in page, "too &lt;i&gt;much&lt;/i&gt;⟦202E⟧" in page, paid) == (True, True, [])


async def test_changed_arguments_run_and_are_told() -> None:
    served = app(ONE, reply("Less."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(pause, "change", arguments='{"to": "Ada",\r\n "amount": 4}'))
        await settled(server)
        page = await pages.open("/admin/threads/t/terns/1")
        assert (">approved, changed<" in page, "Run with these instead" in page, paid) == (True, True, [("Ada", 4)])


async def test_arguments_that_were_not_touched_are_those_of_the_model() -> None:
    served = app(call_tool(pay, to=HOSTILE, amount=5), reply("Done."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(pause, "change", **pages.fields("arguments")))
        await settled(server)
        assert paid == [(HOSTILE, 5)]
        (answer,) = await served.threads.decisions("t", 1)
        assert answer.decision == Decision(approved=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"to": "Ada",\n "amount": four}', "Line 2, column 12"),
        ('{"to": "Ada",\n "amount": "four"}', "Line 2, column 2"),
        ('{"to": "Ada"}', "amount"),
        ('{"to": "Ada", "amount": NaN}', "NaN is no number of JSON"),
        ("[1]", "no JSON object"),
        ("", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"to": "<script>", "amount": []}', "&lt;script&gt;"),
    ],
)
async def test_arguments_that_are_wrong_are_marked_and_nothing_is_decided(text: str, told: str) -> None:
    served = app(ONE)
    async with opened(served) as (pages, _):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        page = await pages.send(DECIDE, form(pause, "change", arguments=text))
        assert (pages.status, "Nothing was decided." in page, "pause.bad-arguments" in page) == (400, True, True)
        assert told in page[page.index(f'id="arguments-{pause.id}-error"') :]
        assert f'href="#arguments-{pause.id}"' in page
        assert ('aria-invalid="true"' in page, " open>" in page, "<script>" in page) == (True, True, False)
        assert pages.value("arguments") == text
        assert (await served.threads.pauses("t"), paid) == ((pause,), [])


async def test_other_decisions_that_are_none_are_refused() -> None:
    served = app(ONE)
    async with opened(served) as (pages, _):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        page = await pages.send(DECIDE, form(pause, "deny", reason="x" * 10_001))
        assert (pages.status, f'id="reason-{pause.id}-error"' in page) == (400, True)
        assert len(pages.value("reason")) == 10_001
        page = await pages.send(DECIDE, form(pause, "maybe"))
        assert (pages.status, "pause.bad-decision" in page) == (400, True)
        refused = await pages.http.post(DECIDE, data=form(pause, "approve"))
        assert (refused.status_code, "server.bad-form" in refused.text) == (403, True)
        refused = await pages.http.get(DECIDE)
        assert refused.status_code in (404, 405)
        assert (await served.threads.pauses("t"), paid) == ((pause,), [])


async def test_several_calls_wait_each_with_a_form_of_its_own() -> None:
    calls = [call_tool(pay, to="Ada", amount=1), call_tool(pay, to="Bob", amount=2)]
    served = app(calls, reply("Done."))
    async with opened(served) as (pages, server):
        first, second = await ask(served)
        page = await pages.open("/admin/threads/t")
        assert ("2 calls wait for your decision" in page, page.count(">Approve</button>")) == (True, 2)
        await pages.send(DECIDE, form(second, "deny"))
        await settled(server)
        page = await pages.open("/admin/threads/t")
        assert ("A call waits for your decision" in page, first.id in page, second.id in page) == (True, True, False)
        page = await pages.open("/admin/threads/t/terns/1")
        assert (">waits<" in page, ">denied<" in page, "Decide on the thread" in page) == (True, True, True)
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(first, "approve"))
        await settled(server)
        assert ("Done." in await pages.open("/admin/threads/t"), paid) == (True, [("Ada", 1)])


async def test_more_calls_than_a_page_shows_are_told() -> None:
    calls = [call_tool(pay, to="Ada", amount=number) for number in range(8)]
    served = app(calls, calls, calls)
    async with opened(served) as (pages, _):
        for _ in range(3):
            await ask(served)
        page = await pages.open("/admin/threads/t")
        assert ("24 calls wait for your decision" in page, page.count(">Approve</button>")) == (True, 20)
        assert "4 more wait, and are shown when these are decided." in page


async def test_a_new_tern_runs_while_one_is_paused_and_the_old_one_is_watched_when_it_goes_on() -> None:
    gate = Gate("Paid at last.")
    served = create_app(Clerk, store="memory://", models={"openai:gpt-5-mini": Asks(gate)})
    async with opened(served) as (pages, server):
        thread = (await served.execute("Pay.", thread="t", create_thread=True)).thread
        (pause,) = await served.threads.pauses(thread)
        await served.execute("hello", thread=thread)
        page = await pages.open("/admin/threads")
        assert 'class="badge paused">paused<' in page  # though a newer Tern has been answered
        await pages.open("/admin/threads/t")
        page = await pages.send(DECIDE, form(pause, "approve"))
        try:
            assert 'data-events="/admin/threads/t/terns/1/events' in page
            assert ("A Tern is running." in page, 'http-equiv="refresh"' in page) == (True, True)
            assert 'class="badge running">running<' in await pages.open("/admin/threads")
            assert 'class="badge running">running<' in await pages.open("/admin/threads", q="t")
            await pages.open("/admin/threads/t")
            refused = await pages.send("/admin/threads/t/terns", {"task": "me too"})
            assert (pages.status, "run.thread-busy" in refused) == (409, True)
            listened = Streamed(server, "GET", "/admin/threads/t/terns/1/events")
            await listened.until("tern_started")
        finally:
            gate.open.set()
        told = events((await listened.rest()).partition("\n\n")[2]) or []
        assert told[-1][1] == "ended"
        assert "Paid at last." in await pages.open("/admin/threads/t")


class Asks:
    """A model that calls the tool, and goes through the gate with its result; without a gate it answers."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate

    async def generate(self, request: ModelRequest) -> ModelReply:
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        if request.messages[-1].content.endswith("hello"):
            return ModelReply(text="Hi.", usage=usage)
        if request.messages[-1].role == "tool":
            return ModelReply(text="Done." if self.gate is None else await self.gate(request), usage=usage)
        call = ToolCall(id="c1", name="pay", arguments='{"to": "Ada", "amount": 5}')
        return ModelReply(tool_calls=(call,), usage=usage)


async def test_while_a_tern_runs_nothing_else_is_decided_and_what_was_typed_is_kept() -> None:
    gate = Gate()
    served = create_app(Clerk, store="memory://", models={"openai:gpt-5-mini": Asks(gate)})
    async with opened(served) as (pages, _):
        (first,) = await ask(served)
        (pause,) = await ask(served)
        running = asyncio.create_task(served.resume("t", True, pause_id=first.id))
        try:
            await gate.reached.wait()
            page = await pages.open("/admin/threads/t")
            assert "It can be decided when Tern 1 has ended." in page
            assert page.count("disabled>Approve<") == 1
            page = await pages.send(DECIDE, form(pause, "deny", reason="not now"))
            assert (pages.status, "run.thread-busy" in page, pages.value("reason")) == (409, True, "not now")
        finally:
            gate.open.set()
            await running
        assert await served.threads.pauses("t") == (pause,)


async def test_cancel_closes_it_and_only_what_the_page_has_shown() -> None:
    served = app(ONE, call_tool(pay, to="Bob", amount=7))
    async with opened(served) as (pages, _):
        (pause,) = await ask(served)
        await pages.open("/admin/threads/t")
        meant = pages.value("terns")
        await ask(served)
        page = await pages.send("/admin/threads/t/cancel", {"terns": meant})
        assert "Nothing was cancelled: by now another Tern runs or is paused." in page
        assert ("Cancel Terns 1, 2" in page, pages.value("terns")) == (True, "1 2")
        assert "can then not be decided" in await pages.open("/admin/threads/t/delete")
        await pages.open("/admin/threads/t")
        page = await pages.send("/admin/threads/t/cancel", {"terns": "1 2"})
        assert ("2 Terns were cancelled." in page, page.count(">cancelled<")) == (True, 2)
        assert "No Tern was running or paused any more." in await pages.send("/admin/threads/t/cancel", {"terns": "1"})
        page = await pages.send(DECIDE, form(pause, "approve"))
        assert (pages.status, "pause.closed" in page, "Nothing waits any more" in page) == (409, True, True)
        assert (">never decided<" in await pages.open("/admin/threads/t/terns/1"), paid) == (True, [])


async def test_what_waits_for_another_owner_can_neither_be_seen_nor_decided() -> None:
    served = app(ONE, reply("Done."))
    async with opened(served, tokens=TOKENS) as (pages, server):
        (pause,) = await ask(served, owner="ada")
        ada, bob = TOKENS
        await pages.open("/admin/login")
        await pages.send("/admin/login", {"token": bob})
        page = await pages.send(DECIDE, form(pause, "approve"))
        assert (pages.status, "run.unknown-thread" in page) == (404, True)
        await pages.open("/admin/threads/t/terns/1/arguments", pause=pause.id)
        assert pages.status == 404
        await pages.open("/admin/threads")
        await pages.send("/admin/threads/t/cancel", {"terns": "1"})
        assert (pages.status, await served.threads.pauses("t")) == (404, (pause,))
        await pages.open("/admin/threads")
        await pages.send("/admin/logout")
        await pages.open("/admin/login")
        await pages.send("/admin/login", {"token": ada})
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(pause, "approve"))
        await settled(server)
        assert paid == [("Ada", 5)]


async def test_where_nobody_logs_in_the_decision_is_taken_for_the_owner_of_the_thread() -> None:
    served = app(ONE, reply("Done."))
    async with opened(served) as (pages, server):
        (pause,) = await ask(served, owner="ada")
        await pages.open("/admin/threads/t")
        await pages.send(DECIDE, form(pause, "approve"))
        assert pages.status == 200
        await settled(server)
        assert paid == [("Ada", 5)]


async def test_what_a_model_wrote_is_text_and_long_arguments_can_be_read_whole() -> None:
    served = app(call_tool(pay, to=HOSTILE, amount=5), call_tool(pay, to="<b>" * 100_000 + "end", amount=6))
    async with opened(served) as (pages, _):
        await ask(served)
        for path in ("/admin/threads/t", "/admin/threads/t/terns/1"):
            page = await pages.open(path)
            assert not any(bad in page for bad in ("<script>", "<img", "\x00", "\u202e", "\u2066", "\U000e0041", " 49"))
            assert "\\u202eevil\\u2066\\udb40\\udc41&amp;amp;" in page
        (long,) = await ask(served)
        page = await pages.open("/admin/threads/t")
        assert ("more characters]" in page, "Too long to be changed here" in page) == (True, True)
        assert len(page) < 1_500_000
        path = f"/admin/threads/t/terns/2/arguments?agent=clerk&pause={long.id}"
        assert path in unescape(page)
        assert json.loads(await pages.open(path)) == long.arguments
        await pages.open("/admin/threads/t/terns/2/arguments", pause="2-x")
        assert pages.status == 404


async def test_agents_from_definitions_are_decided_about() -> None:
    definition = AgentDefinition.model_validate(
        {"name": "cook", "model": "openai:gpt-5-mini", "tools": [{"name": "pay"}]}
    )
    runtime = AgentRuntime([definition], store="memory://", tools=[pay], models={"openai:gpt-5-mini": Asks()})
    async with runtime, browser(server := add_admin(make_server(runtime))) as pages:
        async with runtime.app("cook") as served:
            (pause,) = await ask(served)
            await pages.open("/admin/threads/t", agent="cook")
            await pages.send(DECIDE, form(pause, "approve", agent="cook"))
            assert pages.status == 200
            await settled(server)
            assert paid == [("Ada", 5)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_argument_acts_on_a_page_and_each_is_read_back_as_it_was(value: Any) -> None:
    page = environment().from_string("<pre>{{ value | exact }}</pre>").render(value=value)
    assert page.count("<") == 2
    assert not any((ord(char) < 32 and char != "\n") or 0x202A <= ord(char) <= 0x202E for char in page)
    assert json.loads(exact(value)) == value
    assert json.loads(unescape(page.removeprefix("<pre>").removesuffix("</pre>"))) == value
