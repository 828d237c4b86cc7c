"""Threads on pages: the list, many Terns, and whatever somebody wrote."""

from __future__ import annotations

from time import perf_counter

from browsing import browser
from desks import Models, desk, sum_up, talk, yes
from hypothesis import given
from hypothesis import strategies as st

from agboss import App, ModelReply, ModelUsage, agent, create_app
from agboss.admin import add_admin
from agboss.admin.showing import cut, environment, shown, url
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss_memory import MemoryStore
from agboss_memory.records import replace

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=y>{{ 7 * 7 }}\x00\u202eevil\u2066\u200f&amp;"


def app(answer: str = "Yes.") -> App:
    async def say(_: ModelRequest) -> str:
        return answer

    return create_app(desk(every=None), store="memory://", models=Models(say, sum_up))


async def test_threads_are_listed_in_pages_and_found_by_id_and_owner() -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        assert "There are no threads" in await pages.open("/admin/threads")
        for number in range(60):
            await served.threads.create(owner=f"owner-{number % 2}")
        await served.execute("a", thread="mine", create_thread=True, owner="ada")
        page = await pages.open("/admin/threads")
        assert ("answered" in page, "empty" in page, page.count("/admin/threads/") >= 25) == (True, True, True)
        seen = 0
        target: str | None = "/admin/threads"
        while target is not None:
            page = await pages.open(target.replace("&amp;", "&"))
            seen += page.count('data-label="Thread"')
            target = None if 'rel="next"' not in page else page.split('" rel="next"')[0].rpartition('href="')[2]
        assert seen == 61
        assert (await pages.open("/admin/threads", q="mine")).count('data-label="Thread"') == 1
        assert (await pages.open("/admin/threads", q="ada")).count('data-label="Thread"') == 1
        page = await pages.open("/admin/threads", q="nobody<b>")
        assert ("No thread and no owner" in page, "<b>" in page) == (True, False)
        for odd in ("\x00", "x" * 5000, "\ud800".encode("utf-8", "replace").decode()):
            await pages.open("/admin/threads", q=odd)
            assert pages.status == 200
        await pages.open("/admin/threads/nobody")
        assert pages.status == 404


async def test_a_spend_that_nobody_knows_is_told() -> None:
    @agent(name="clerk", model="openai:unheard-of", prompt="x")
    class Clerk: ...

    class Unpriced:
        async def generate(self, request: ModelRequest) -> ModelReply:
            free = request.messages[-1].content.endswith("free")
            return ModelReply(text="Yes.", usage=ModelUsage(input_tokens=10, output_tokens=1, free=free))

    async with create_app(Clerk, store="memory://", models={"openai:unheard-of": Unpriced()}) as served:
        async with browser(add_admin(make_server(served))) as pages:
            await served.execute("free", thread="t", create_thread=True)
            for query in ({}, {"q": "t"}):
                page = await pages.open("/admin/threads", **query)
                assert (">$0.00</td>" in page, ">unknown</td>" in page) == (True, False)
            await served.execute("paid", thread="t")
            for query in ({}, {"q": "t"}, {"q": "paid"}):
                page = await pages.open("/admin/threads", **query)
                assert (">$0.00</td>" in page, ">unknown</td>" in page) == (False, True)
            assert "and 1 of unknown price" in await pages.open("/admin/threads/t")
            assert "and 1 of unknown price" in await pages.open("/admin/threads/t/terns/2")


async def test_what_somebody_wrote_is_text() -> None:
    async with app(HOSTILE) as served, browser(add_admin(make_server(served))) as pages:
        await served.execute(HOSTILE, thread="t/../<b>", create_thread=True, owner="<i>ada")
        path = url("threads", "t/../<b>")
        paths = ("/admin/threads", path, f"{path}/terns/1", f"{path}/memory?number=1", f"{path}/memory?number=<u>")
        for target in paths:
            page = await pages.open(target)
            assert pages.status == 200
            assert not any(bad in page for bad in ("<script>", "<img", "<b>", "<i>", "<u>", "\x00", "\u202e", "\u2066"))
            assert " 49" not in page
            assert target.endswith("<u>") or target == "/admin/threads" or "⟦202E⟧evil⟦2066⟧" in page


@given(st.text())
def test_no_text_acts_on_a_page(text: str) -> None:
    page = environment().from_string('<p title="{{ text | shown }}">{{ text | cut(50) }}</p>').render(text=text)
    assert page.count("<") == 2
    assert page.count('"') == 2
    assert not any((ord(char) < 32 and char not in "\n\t") or 0x202A <= ord(char) <= 0x202E for char in page)
    assert len(cut(text, 50)) <= 50 * 7 + 40
    assert shown(shown(text)) == shown(text)


async def test_a_very_long_answer_is_cut_on_pages_and_whole_as_a_file() -> None:
    answer = "long <b> " * 600_000
    async with app(answer) as served, browser(add_admin(make_server(served))) as pages:
        await served.execute("a", thread="t", create_thread=True)
        began = perf_counter()
        sizes = [len(await pages.open(path)) for path in ("/admin/threads", "/admin/threads/t")]
        assert max(sizes) < 40_000
        assert len(await pages.open("/admin/threads/t/terns/1")) < 1_000_000
        assert answer in await pages.open("/admin/threads/t/memory", number=1, download=1)
        assert perf_counter() - began < 20


async def test_ten_thousand_terns_are_paged() -> None:
    store = MemoryStore()
    async with create_app(desk(every=None), store=store, models=Models(yes, sum_up)) as served:
        await talk(served, 1)
        export = await served.threads.export("t")
        first = export.copy.terns[0]
        many = tuple(
            replace(first, tern=replace(first.tern, number=n, task=f"task {n}."), usage=()) for n in range(1, 10_001)
        )
        copy = replace(export.copy, terns=many, messages=(), thread="many")
        await store.restore(copy)
        async with browser(add_admin(make_server(served))) as pages:
            began = perf_counter()
            page = await pages.open("/admin/threads/many")
            assert ("10,000 Terns" in page, "task 10000." in page, "task 9975." in page) == (True, True, False)
            assert "before=9976" in page
            page = await pages.open("/admin/threads/many", before=9976)
            assert ("task 9975." in page, "before=10001" in page) == (True, False)
            page = await pages.open("/admin/threads/many", before=26)
            assert ("task 1." in page, "before=51" in page, "Older Terns" in page) == (True, True, False)
            assert perf_counter() - began < 10
