"""Threads and idempotency keys: who gets in, in which order, and what a repeat gives."""

import asyncio
from pathlib import Path

import pytest

from agboss import (
    InvalidInputError,
    ModelReply,
    ModelRequest,
    TernConflictError,
    TernFailedError,
    ThreadBusyError,
    ThreadOwnerError,
    UnknownThreadError,
    agent,
    create_app,
)
from agboss.testing import MakeApp, MockLlm, reply

MODEL = "openai:gpt-5-mini"


@agent(model=MODEL)
class Helper:
    """Helps."""


class Gate:
    """A model that echoes the task when it is let through."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self.tasks: list[str] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.tasks.append(request.messages[-1].content.rpartition("\n")[2])
        self.asked.set()
        await self.open.wait()
        return ModelReply(text=f"to {self.tasks[-1]}")


async def test_a_repeat_gives_the_stored_result_and_calls_nothing(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("x", usd="0.01"))
    async with agboss_app(Helper) as app:
        first = await app.execute("Go", idempotency_key="k")
        again = await app.execute("Go", idempotency_key="k")
        assert (again.thread, again.tern, again.answer, again.path) == (first.thread, 1, "x", first.path)
        assert (again.usage, again.spend) == (first.usage, first.spend)
        with pytest.raises(TernConflictError):
            await app.execute("Other", idempotency_key="k")
        with pytest.raises(TernConflictError):
            await app.execute("Go", idempotency_key="k", thread="elsewhere", create_thread=True)
        assert len(await app.threads.list()) == 1


@pytest.mark.parametrize("policy", ["enqueue", "reject"])
async def test_a_repeat_waits_while_the_first_runs(policy: str) -> None:
    gate = Gate()
    async with create_app(Helper, store="memory://", models={MODEL: gate}, thread_policy=policy) as app:  # pyright: ignore[reportArgumentType]
        first = asyncio.create_task(app.execute("Go", idempotency_key="k"))
        await gate.asked.wait()
        again = asyncio.create_task(app.execute("Go", idempotency_key="k"))
        await asyncio.sleep(0)
        gate.open.set()
        assert (await first).thread == (await again).thread
        assert gate.tasks == ["Go"]


async def test_a_repeat_of_a_failed_tern_fails_alike(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_fail(RuntimeError("down"))
    async with agboss_app(Helper) as app:
        for _ in range(2):
            with pytest.raises(TernFailedError) as caught:
                await app.execute("Go", idempotency_key="k")
            assert (caught.value.code, caught.value.run.tern) == ("run.failed", 1)


async def test_a_key_belongs_to_its_owner(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("a"), reply("b"), reply("c"))
    async with agboss_app(Helper) as app:
        answers = [await app.execute("Go", idempotency_key="k", owner=owner) for owner in ("ann", "bob", None)]
    assert [result.answer for result in answers] == ["a", "b", "c"]


async def test_a_thread_named_like_a_key_is_no_deadlock(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("a"))
    async with agboss_app(Helper) as app:
        thread = repr((None, "k"))
        result = await asyncio.wait_for(app.execute("Go", thread=thread, create_thread=True, idempotency_key="k"), 5)
    assert result.answer == "a"


async def test_owners(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("a"), reply("b"))
    async with agboss_app(Helper) as app:
        thread = (await app.execute("Go", owner="ann")).thread
        for stranger in ("bob", None):
            with pytest.raises(ThreadOwnerError) as caught:
                await app.execute("Go", thread=thread, owner=stranger)
            assert caught.value.code == "run.thread-owner"
            assert isinstance(caught.value, UnknownThreadError)
        assert (await app.execute("Go", thread=thread, owner="ann")).tern == 2
        assert len(await app.threads.list(owner="bob")) == 0


async def test_terns_of_a_thread_run_in_the_order_of_their_arrival() -> None:
    gate = Gate()
    async with create_app(Helper, store="memory://", models={MODEL: gate}) as app:
        thread = "t"
        tasks = [asyncio.create_task(app.execute("0", thread=thread, create_thread=True))]
        await gate.asked.wait()
        for number in range(1, 6):
            tasks.append(asyncio.create_task(app.execute(str(number), thread=thread)))
            await asyncio.sleep(0)
        gate.open.set()
        results = await asyncio.gather(*tasks)
    assert gate.tasks == ["0", "1", "2", "3", "4", "5"]
    assert [result.tern for result in results] == [1, 2, 3, 4, 5, 6]


async def test_reject_does_not_wait() -> None:
    gate = Gate()
    async with create_app(Helper, store="memory://", models={MODEL: gate}, thread_policy="reject") as app:
        first = asyncio.create_task(app.execute("0", thread="t", create_thread=True))
        await gate.asked.wait()
        with pytest.raises(ThreadBusyError) as caught:
            await app.execute("1", thread="t")
        assert caught.value.data["thread"] == "t"
        gate.open.set()
        await first


async def test_waiting_ends_after_queue_timeout() -> None:
    gate = Gate()
    async with create_app(Helper, store="memory://", models={MODEL: gate}, queue_timeout=0.05) as app:
        first = asyncio.create_task(app.execute("0", thread="t", create_thread=True))
        await gate.asked.wait()
        with pytest.raises(ThreadBusyError, match=r"more than 0\.05 s"):
            await app.execute("1", thread="t")
        gate.open.set()
        await first
        assert len((await app.threads.get("t")).terns) == 1


async def test_two_apps_on_one_file_alternate_on_a_thread(tmp_path: Path) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        gate.open.set()
    url = f"sqlite:///{tmp_path}/a.db"
    async with (
        create_app(Helper, store=url, models={MODEL: gates[0]}) as one,
        create_app(Helper, store=url, models={MODEL: gates[1]}) as two,
    ):
        await one.execute("0", thread="t", create_thread=True)
        for number in range(1, 7):
            await (one, two)[number % 2].execute(str(number), thread="t")
        terns = (await one.threads.get("t")).terns
    assert [tern.task for tern in terns] == [str(number) for number in range(7)]


async def test_two_apps_on_one_file_wait_for_each_other(tmp_path: Path) -> None:
    gates = Gate(), Gate()
    gates[1].open.set()
    url = f"sqlite:///{tmp_path}/a.db"
    async with (
        create_app(Helper, store=url, models={MODEL: gates[0]}) as one,
        create_app(Helper, store=url, models={MODEL: gates[1]}, thread_policy="reject") as strict,
        create_app(Helper, store=url, models={MODEL: gates[1]}) as two,
    ):
        first = asyncio.create_task(one.execute("0", thread="t", create_thread=True))
        await gates[0].asked.wait()
        with pytest.raises(ThreadBusyError):
            await strict.execute("x", thread="t")
        second = asyncio.create_task(two.execute("1", thread="t"))
        gates[0].open.set()
        assert [(await first).tern, (await second).tern] == [1, 2]


async def test_metadata_is_kept_with_the_tern(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("a"))
    async with agboss_app(Helper) as app:
        thread = (await app.execute("Go", metadata={"a": [1, None]})).thread
        assert (await app.threads.get(thread)).terns[0].metadata == '{"a":[1,null]}'


async def test_a_thread_of_another_workflow_is_not_imported(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(reply("Hello."))
    async with agboss_app(Helper) as app:
        thread = (await app.execute("Hi.", idempotency_key="k")).thread
        exported = await app.threads.export(thread)
        lines = list(exported.lines())
        assert [(message.role, message.content) for message in exported.messages] == [
            ("user", "Hi."),
            ("assistant", "Hello."),
        ]
        moved = await app.threads.import_(lines, thread="second")
        assert (moved.id, [tern.answer for tern in moved.terns]) == ("second", ["Hello."])
        assert (await app.execute("Hi.", thread=thread, idempotency_key="k")).tern == 1
        assert await app.threads.check() == ()
        head = lines[0]
        for wrong, code in (
            (head.replace(f'"workflow":"{moved.workflow}"', '"workflow":"other"'), "threads.other-workflow"),
            (head.replace(f'"thread":"{thread}"', '"thread":""'), "run.bad-id"),
        ):
            with pytest.raises(InvalidInputError) as caught:
                await app.threads.import_([wrong, *lines[1:]])
            assert caught.value.code == code


async def test_terns_come_in_pages_oldest_first(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(*[f"{number}" for number in range(1, 6)])
    async with agboss_app(Helper) as app:
        for number in range(1, 6):
            await app.execute(f"task {number}", thread="t", create_thread=True, owner="ada")

        async def page(before: int | None = None, limit: int = 2) -> list[int]:
            return [tern.number for tern in await app.threads.terns("t", before=before, limit=limit, owner="ada")]

        assert (await page(), await page(4), await page(2), await page(1)) == ([4, 5], [2, 3], [1], [])
        assert await page(99, 100) == [1, 2, 3, 4, 5]
        for before, limit in ((0, 1), (None, 0)):
            with pytest.raises(InvalidInputError, match=r"threads\.bad-count"):
                await app.threads.terns("t", before=before, limit=limit)
        for thread, owner in (("nobody", None), ("t", "bob")):
            with pytest.raises(UnknownThreadError):
                await app.threads.terns(thread, owner=owner)
