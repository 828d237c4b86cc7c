"""Deciding about a paused Tern in a real browser. Needs playwright and Chromium; skipped without them."""

from __future__ import annotations

import json

import pytest
from chromium import NEEDS_CHROMIUM, expect, served, tab
from desks import Gate

from agboss import App, ModelReply, ModelRequest, ModelSpec, ModelUsage, agent, create_app, tool
from agboss_memory.messages import ToolCall

pytestmark = NEEDS_CHROMIUM
STUB = ModelSpec("ollama:stub", context_window=8000)
HOSTILE = "</textarea><script>hacked = 1</script>\"'><img src=/x onerror=hacked=1>\x00\u202eevil\U000e0041"
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(needs_approval=True)
def refund(order: str, amount: int) -> str:
    """Pay money back."""
    ran.append(f"{order} {amount}")
    return f"refunded {amount}"


@agent(name="clerk", model=STUB, prompt="Handle the refund.", tools=[refund], memory_config={"kind": "windowed"})
class Clerk: ...


class Asks:
    """Calls the tool for each order that the task names, then tells what came of it, at once or through the gate."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate

    async def generate(self, request: ModelRequest) -> ModelReply:
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        last = request.messages[-1]
        if last.role == "tool":
            if self.gate is not None:
                await self.gate(request)
            return ModelReply(text=f"So be it 😀: {last.content}", usage=usage)
        orders = last.content.rpartition("orders ")[2].split(", ")
        calls = [ToolCall(id=f"c{n}", name="refund", arguments=_arguments(one, n)) for n, one in enumerate(orders)]
        return ModelReply(tool_calls=tuple(calls), usage=usage)


def _arguments(order: str, number: int) -> str:
    return json.dumps({"order": order, "amount": 100 * (number + 1)})


def app(gate: Gate | None = None) -> App:
    return create_app(Clerk, store="memory://", models={"ollama:stub": Asks(gate)})


async def ask(desk: App, orders: str = "4711") -> None:
    await desk.execute(f"Refund orders {orders}", thread="t", create_thread=True)


async def test_approve_and_see_the_answer_without_a_reload() -> None:
    gate = Gate()
    async with app(gate) as desk, served(desk) as url, tab() as page:
        await ask(desk)
        await page.goto(f"{url}/admin/threads")
        await page.get_by_text("paused", exact=True).wait_for()
        await page.get_by_role("link", name="t", exact=True).click()
        await page.get_by_role("heading", name="A call waits for your decision").wait_for()
        await page.get_by_role("button", name="Approve", exact=True).click()
        await gate.reached.wait()
        await (
            page.get_by_text("A Tern is running.")
            .or_(page.get_by_text("The tool refund runs."))
            .or_(page.get_by_text("clerk is at work."))
            .first.wait_for()
        )
        await page.evaluate("window.same = 1")
        gate.open.set()
        await page.get_by_text("So be it 😀: refunded 100").first.wait_for()
        await page.get_by_label("Task").wait_for()
        assert await page.evaluate("window.same") == 1
        await expect(page.get_by_role("heading", name="decision")).to_have_count(0)
        assert ran == ["4711 100"]


@pytest.mark.parametrize("script", [True, False])
async def test_deny_with_a_reason_and_change_with_the_keyboard(script: bool) -> None:
    async with app() as desk, served(desk) as url, tab(java_script_enabled=script) as page:
        await ask(desk, "4711, 4712, 4713")
        await page.goto(f"{url}/admin/threads/t")
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(3)
        await page.get_by_label("Reason").first.fill("too late")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="2 calls wait for your decision").wait_for()
        await page.get_by_text("Approve with changed arguments").last.click()
        field = page.get_by_label("Arguments (JSON)").last
        await field.fill('{"order": "4713", "amount": "much"}')
        await page.get_by_role("button", name="Approve with these").last.click()
        await page.get_by_text("Nothing was decided.").wait_for()
        await expect(page.locator(".field-error")).to_contain_text("Line 1, column 19")
        await field.fill('{"order": "4713", "amount": 1}')
        await page.get_by_role("button", name="Approve with these").last.click()
        await page.get_by_role("heading", name="A call waits for your decision").wait_for()
        await page.get_by_role("button", name="Approve", exact=True).click()
        await page.get_by_text("So be it").first.wait_for()
        assert ran == ["4713 1", "4712 200"]
        await page.goto(f"{url}/admin/threads/t/terns/1")
        told = await page.locator("ol").first.inner_text()
        assert ("denied" in told, "too late" in told, "approved, changed" in told) == (True, True, True)


async def test_cancel_and_a_new_tern_meanwhile() -> None:
    async with app() as desk, served(desk) as url, tab() as page:
        await ask(desk)
        await page.goto(f"{url}/admin/threads/t")
        await page.get_by_label("Task").fill("Refund orders 9")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("heading", name="2 calls wait for your decision").wait_for()
        await page.get_by_role("button", name="Cancel Terns 1, 2").click()
        await page.get_by_text("2 Terns were cancelled.").wait_for()
        await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        assert ran == []


async def test_a_reason_that_is_typed_outlives_the_end_of_another_tern() -> None:
    gate = Gate()
    async with app(gate) as desk, served(desk) as url, tab() as page:
        await ask(desk, "1")
        await ask(desk, "2")
        await page.goto(f"{url}/admin/threads/t")
        await page.get_by_role("button", name="Approve", exact=True).first.click()
        await gate.reached.wait()
        await page.get_by_text("It can be decided when Tern 1 has ended.").wait_for()
        await expect(page.get_by_role("button", name="Deny")).to_be_disabled()
        await page.get_by_label("Reason").fill("wait for me")
        gate.open.set()
        await page.locator("button:enabled", has_text="Deny").wait_for()  # the page has renewed itself
        await page.get_by_text("So be it").first.wait_for()
        await expect(page.get_by_label("Reason")).to_have_value("wait for me")
        await expect(page.get_by_label("Reason")).to_be_focused()


async def test_nothing_of_the_arguments_runs() -> None:
    async with app() as desk, served(desk) as url, tab() as page:
        await ask(desk, HOSTILE)
        for path in ("t", "t/terns/1"):
            await page.goto(f"{url}/admin/threads/{path}")
            assert await page.evaluate("window.hacked") is None
            await expect(page.locator("pre[aria-label]").first).to_contain_text("\\u202eevil\\udb40\\udc41")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
async def test_what_waits_fits_into_its_window(width: int, scheme: str) -> None:
    async with app() as desk, served(desk) as url:
        await ask(desk, f"{'long' * 300}, 4712")
        async with tab(viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
            for path in ("t", "t/terns/1"):
                await page.goto(f"{url}/admin/threads/{path}")
                for details in await page.locator(".waiting details > summary").all():
                    await details.click()
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
