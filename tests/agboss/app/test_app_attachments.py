"""Files that come with a task: who gets them, what the log keeps, what later turns read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss import (
    AnswerFinish,
    AssemblyError,
    Attachment,
    InvalidInputError,
    Message,
    ModelSpec,
    RunResult,
    TaskStart,
    TernConflictError,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    from_,
    provide,
    router,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, MockRouter, ScriptedModels, call_tool, reply, route_to
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryView, PartContentReader, PartRequest, Reach
from agboss_memory.contract import utc_now
from agboss_memory.errors import StoreError
from agboss_memory.messages import MediaKind
from agboss_memory.records import replace
from agboss_memory.stores import Admission, Admitted, FileWrite, MemoryFiles, MemoryStore, open_store

CAT = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n a cat", name="cat.png")
PAPER = Attachment.from_bytes(b"%PDF-1.7 words", name="paper.pdf")
EARLIER = "[image cat.png (image/png, 14 B): it belongs to an earlier turn and is not shown again]"


def look(place: str) -> str:
    """Looks closer."""
    return f"nothing at {place}"


@agent(description="Sees", prompt="Look.", model=ModelSpec("openai:gpt-5-mini", accepts=("image",)), tools=[look])
class Seer: ...


@agent(description="Reads", prompt="Read.", model=ModelSpec("openrouter:some/model"))
class Blind: ...


@workflow(flow=[chain(TaskStart, Seer, Blind, AnswerFinish)])
class TwoReaders: ...


async def test_an_agent_gets_the_media_its_model_takes_and_another_a_placeholder(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    mock_llm(Seer).then_return(call_tool(look, place="left"), reply("A cat."))
    mock_llm(Blind).then_return(reply("So be it."))
    async with agboss_app(TwoReaders) as app:
        run = await app.execute("What is this?", attachments=[CAT, PAPER])
        log = await app.threads.export(run.thread)
    first, second = mock_llm(Seer).requests
    for request in (first, second):
        asked = request.messages[0]
        assert asked.content == (
            "Attached: cat.png (image/png, 14 B)\nAttached: paper.pdf (application/pdf, 14 B)\nWhat is this?\n"
            "[document paper.pdf (application/pdf, 14 B): not shown, this model does not take such files]"
        )
        assert [(part.name, part.media_type, part.data) for part in asked.media] == [("cat.png", "image/png", CAT.data)]
    assert "[image cat.png (image/png, 14 B)]" in first.text
    (blind,) = mock_llm(Blind).requests
    assert blind.messages[0].media == ()
    assert blind.text.endswith(
        "Task:\nAttached: cat.png (image/png, 14 B)\nAttached: paper.pdf (application/pdf, 14 B)\nWhat is this?\n"
        "[image cat.png (image/png, 14 B): not shown, this model does not take such files]\n"
        "[document paper.pdf (application/pdf, 14 B): not shown, this model does not take such files]"
    )
    records = (CAT.record(), PAPER.record())
    assert log.thread.terns[0].attachments == records
    assert [message.attachments for message in log.messages if message.role == "user"] == [records, records]
    assert log.thread.terns[0].task == "What is this?"
    assert {message.content for message in log.messages if message.role == "user"} == {"What is this?"}


async def test_a_later_turn_reads_a_placeholder_and_the_view_shows_what_it_reads(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    mock_llm(Seer).then_return(reply("A cat."), reply("Yes."))
    async with agboss_app(Seer) as app:
        run = await app.execute("What is this?", attachments=[CAT])
        view = await app.memory.view(run.thread)
        await app.execute("Sure?", thread=run.thread)
    request = mock_llm(Seer).requests[-1]
    shown = "".join(row.shown for row in view.messages)
    assert shown == f"Previous turns:\nQ: What is this?\n{EARLIER}\nA: A cat.\n\n"
    assert request.messages == (Message(role="user", content=f"{shown}Task:\nSure?"),)
    assert view.total_tokens == view.system_prompt_tokens + sum(row.tokens for row in view.messages)


async def test_files_alone_are_a_task(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer) as app:
        await app.execute("", attachments=(item for item in [CAT]))
    (message,) = mock_llm(Seer).requests[0].messages
    assert (message.content, len(message.media)) == ("Attached: cat.png (image/png, 14 B)", 1)


async def test_a_stream_and_a_script_take_files_too(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer) as app, app.stream("What?", attachments=[CAT]) as run:
        assert [piece async for piece in run.text()]
    assert mock_llm(Seer).requests[0].messages[0].media[0].data == CAT.data
    models = ScriptedModels()
    models.llm(Seer).then_return(reply("A cat."))
    with create_app(Seer, store="memory://", models=models) as scripted:
        scripted.execute_sync("What?", attachments=[CAT])
    assert models.llm(Seer).requests[0].messages[0].media[0].data == CAT.data


async def test_a_repeat_must_bring_the_same_files(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer) as app:
        first = await app.execute("What?", idempotency_key="k", attachments=[CAT])
        again = await app.execute("What?", idempotency_key="k", attachments=[CAT])
        assert (again.answer, again.thread) == (first.answer, first.thread)
        for other in ([], [PAPER], [CAT, CAT]):
            with pytest.raises(TernConflictError):
                await app.execute("What?", idempotency_key="k", attachments=other)


async def test_files_lie_beside_the_database_and_go_with_the_thread(tmp_path: Path) -> None:
    models = ScriptedModels()
    models.llm(Seer).then_return(reply("A cat."), reply("A cat."))
    folder = tmp_path / "log.db.files"
    async with create_app(Seer, store=f"sqlite:///{tmp_path}/log.db", models=models) as app:
        run = await app.execute("What?", attachments=[CAT])
        await app.execute("What?", attachments=[CAT])
        kept = [path for path in folder.rglob("*") if path.is_file()]
        assert [(path.name, path.read_bytes()) for path in kept] == [(CAT.id, CAT.data)]
        await app.threads.delete(run.thread)
        assert kept[0].exists()
        for thread in await app.threads.list():
            await app.threads.delete(thread.id)
        assert not kept[0].exists()


async def test_a_file_that_vanishes_while_the_tern_runs_is_a_placeholder(
    agboss_app: MakeApp, mock_llm: MockLlm, tmp_path: Path
) -> None:
    def vanish() -> str:
        """Removes the file."""
        for path in (tmp_path / "log.db.files").rglob(CAT.id):
            path.write_bytes(b"damaged")
        return "gone"

    @agent(description="Sees", model=ModelSpec("openai:gpt-5-mini", accepts=("image",)), tools=[vanish])
    class Losing: ...

    mock_llm(Losing).then_return(call_tool(vanish), reply("It is gone."))
    async with agboss_app(Losing, store=f"sqlite:///{tmp_path}/log.db") as app:
        await app.execute("What?", attachments=[CAT])
    before, after = (request.messages[0] for request in mock_llm(Losing).requests)
    assert (len(before.media), len(after.media)) == (1, 0)
    assert after.content.endswith("What?\n[image cat.png (image/png, 14 B): not shown, it cannot be read]")


async def test_where_files_cannot_be_kept_nothing_is_stored_and_the_key_is_free(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    class Full(MemoryFiles):
        full = True

        async def write(self, request: FileWrite) -> str:
            if self.full:
                raise StoreError("store.file", "no space left", "make room")
            return await super().write(request)

    files = Full()

    class FullStore(MemoryStore):
        @property
        def files(self) -> Full:
            return files

    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer, store=FullStore()) as app:

        async def ask() -> RunResult:
            return await app.execute("What?", thread="t", create_thread=True, idempotency_key="k", attachments=[CAT])

        with pytest.raises(StoreError) as refused:
            await ask()
        assert (refused.value.code, refused.value.run) == ("store.file", None)
        assert await app.threads.list() == ()
        files.full = False
        assert (await ask()).answer == "A cat."
        assert files.lost([CAT.id]) == []


async def test_the_bytes_are_there_before_the_turn_is_and_again_when_somebody_removed_them(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    """A process may die right after the admission; and until then, the end of another thread may take them along."""
    lost: list[list[str]] = []

    class Watching(MemoryStore):
        async def admit(self, request: Admission) -> Admitted:
            lost.append(self.files.lost([CAT.id]))
            admitted = await super().admit(request)
            self.files.remove([CAT.id])
            return admitted

    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer, store=Watching()) as app:
        await app.execute("What?", attachments=[CAT])
        assert await app.threads.check() == ()
    assert lost == [[]]
    assert mock_llm(Seer).requests[0].messages[0].media[0].data == CAT.data


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_task_that_is_refused_or_repeated_leaves_no_file_behind(
    tmp_path: Path, kind: str, mock_llm: MockLlm, agboss_app: MakeApp
) -> None:
    store = open_store("memory://" if kind == "memory" else f"sqlite:///{tmp_path}/log.db")
    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer, store=store) as app:
        await app.execute("What?", idempotency_key="k", attachments=[CAT])
        await app.execute("What?", idempotency_key="k", attachments=[CAT])
        with pytest.raises(UnknownThreadError):
            await app.execute("What?", thread="none", attachments=[CAT, PAPER])
        with pytest.raises(TernConflictError):
            await app.execute("What?", idempotency_key="k", attachments=[PAPER])
    assert store.files.lost([CAT.id, PAPER.id]) == [PAPER.id]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_recover_leaves_a_turn_alone_whose_bytes_are_missing_and_its_key_brings_them(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed between the admission and its files: an answer without them would be the answer of the key for ever."""
    store = open_store("memory://" if kind == "memory" else f"sqlite:///{tmp_path}/log.db")
    models = ScriptedModels()
    models.llm(Seer).then_return(reply("Nothing to see."), reply("A cat."))
    async with create_app(Seer, store=store, models=models) as app:
        for number, files in enumerate(((CAT, PAPER), ()), 1):
            await store.admit(
                Admission(
                    workflow=app.name,
                    thread=f"t{number}",
                    create=True,
                    owner=None,
                    idempotency_key=f"k{number}",
                    task="What?",
                    start=next(iter(app.starts)),
                    attachments=tuple(item.record() for item in files),
                    holder="gone",
                    now=utc_now(),
                    lease_seconds=0,
                )
            )
        await store.files.write(FileWrite(data=PAPER.data))
        for expected in (["t2"], []):
            assert [result.thread for result in await app.recover()] == expected
            assert "the bytes of 'cat.png' are not there" in caplog.text
        (waiting,) = (await app.threads.get("t1")).terns
        assert waiting.status == "running"
        done = await app.execute("What?", thread="t1", idempotency_key="k1", attachments=[CAT, PAPER])
        assert (done.tern, done.answer) == (1, "A cat.")
        assert models.llm(Seer).requests[-1].messages[0].media[0].data == CAT.data
        assert await app.threads.check() == ()


@pytest.mark.parametrize("wrong", ["cat.png", b"bytes", 1, [CAT, "cat.png"], [Path("cat.png")], {"a": CAT}])
async def test_what_is_no_attachment_is_refused(agboss_app: MakeApp, wrong: Any) -> None:
    async with agboss_app(Seer) as app:
        with pytest.raises(InvalidInputError) as refused:
            await app.execute("What?", attachments=wrong)
        assert refused.value.code == "run.bad-attachments"
        assert await app.threads.list() == ()


@router(description="Picks", router={"kind": "llm", "model": "openai:gpt-5-mini"})
class Picker: ...


@workflow(flow=[chain(TaskStart, Picker), from_(Picker).routes(Seer, Blind, then=AnswerFinish)])
class Picking: ...


async def test_a_model_that_routes_reads_the_notice_and_a_router_gets_the_records(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_router: MockRouter
) -> None:
    mock_router(Picker).then_return(route_to(Seer))
    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Picking) as app:
        await app.execute("What?", attachments=[CAT])
    assert mock_router(Picker).requests[0].attachments == (CAT.record(),)
    models = ScriptedModels()
    models.llm(Picker).then_return(reply('{"route": "seer"}'))
    models.llm(Seer).then_return(reply("A cat."))
    async with create_app(Picking, store="memory://", models=models) as app:
        await app.execute("What?", attachments=[CAT])
    assert "Attached: cat.png (image/png, 14 B)\nWhat?" in models.llm(Picker).requests[0].text


class OwnWindow(BaseMemoryStrategy):
    """The agent's own messages as they are."""

    reach = Reach(terns=0, summaries=0, messages=10)

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(messages=context.messages)


async def test_an_exact_window_shows_earlier_files_as_placeholders_and_the_current_ones(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    @agent(
        description="Sees",
        model=ModelSpec("openai:gpt-5-mini", accepts=("image",), context_window=9000),
        memory_strategy=OwnWindow(),
    )
    class Windowed: ...

    mock_llm(Windowed).then_return(reply("A cat."), reply("Two."))
    async with agboss_app(Windowed) as app:
        run = await app.execute("What?", attachments=[CAT])
        await app.execute("And now?", thread=run.thread, attachments=[replace(CAT, name="dog.png")])
    messages = mock_llm(Windowed).requests[-1].messages
    assert [message.content for message in messages] == [
        f"What?\n{EARLIER}",
        "A cat.",
        "Attached: dog.png (image/png, 14 B)\nAnd now?",
    ]
    assert [len(message.media) for message in messages] == [0, 0, 1]


def test_a_model_in_process_takes_no_files() -> None:
    @agent(description="x", model=ModelSpec("local:extractive", accepts=("image",)))
    class Local: ...

    with pytest.raises(AssemblyError) as failed:
        create_app(Local)
    assert failed.value.codes == ("model.no-files",)
    with pytest.raises(ValueError, match="no kind of file"):
        ModelSpec("openai:gpt-5-mini", accepts=("pictures",))


async def test_a_reader_of_ones_own_gives_the_bytes(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    class Elsewhere(PartContentReader):
        async def read(self, request: PartRequest) -> bytes | None:
            return f"{request.owner}:{request.attachment.name}".encode()

    mock_llm(Seer).then_return(reply("A cat."))
    async with agboss_app(Seer, providers=[provide(PartContentReader, Elsewhere())]) as app:
        await app.execute("What?", owner="me", attachments=[CAT])
    assert mock_llm(Seer).requests[0].messages[0].media[0].data == b"me:cat.png"


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("openai:gpt-5-mini", {"image", "document"}),
        ("anthropic:claude-sonnet-4-5", {"image", "document"}),
        ("google:gemini-2.5-flash", {"image", "document"}),
        ("moonshotai/kimi-k2.6", set[MediaKind]()),
        ("ollama:llava", set[MediaKind]()),
        ("local:extractive", set[MediaKind]()),
    ],
)
async def test_a_model_takes_what_the_librarys_profile_tells_of_it(
    agboss_app: MakeApp, mock_llm: MockLlm, model: str, kinds: set[MediaKind]
) -> None:
    @agent(description="x", model=model)
    class Any_: ...

    mock_llm(Any_).then_return(reply("ok"))
    async with agboss_app(Any_) as app:
        await app.execute("What?", attachments=[CAT, PAPER])
    (message,) = mock_llm(Any_).requests[0].messages
    assert {part.kind for part in message.media} == kinds


@given(names=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=3), data=st.binary(min_size=1))
async def test_any_file_reaches_the_model_and_the_log_as_it_was_given(names: list[str], data: bytes) -> None:
    files = [Attachment.from_bytes(data, name=name, media_type="image/png") for name in names]
    models = ScriptedModels()
    models.llm(Seer).then_return(reply("ok"), reply("ok"))
    async with create_app(Seer, store="memory://", models=models) as app:
        run = await app.execute("What?", attachments=files)
        view = await app.memory.view(run.thread)
        await app.execute("Sure?", thread=run.thread)
        (first, _) = (await app.threads.get(run.thread)).terns
    sent, later = models.llm(Seer).requests
    assert [(part.name, part.data) for part in sent.messages[0].media] == [(name, data) for name in names]
    assert sent.messages[0].content.split("\n")[len(names) :] == ["What?"]
    assert first.attachments == tuple(item.record() for item in files)
    assert later.messages[0].content == "".join(row.shown for row in view.messages) + "Task:\nSure?"
    assert later.text.count("earlier turn") == len(names)


@agent(
    description="Sees",
    prompt="Look.",
    model=ModelSpec("openai:gpt-5-mini", accepts=("image",), context_window=50_000),
    tools=[look],
    memory_config={"kind": "full"},
)
class Keeper: ...


async def test_window_memory_shows_files_in_their_turn_and_placeholders_later(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    mock_llm(Keeper).then_return(call_tool(look, place="left"), reply("A cat."), reply("Yes."))
    async with agboss_app(Keeper) as app:
        run = await app.execute("What is this?", attachments=[CAT])
        preview = await app.memory.view(run.thread)
        past = [await app.memory.explain(run.thread, tern=1, call=call) for call in (0, 1)]
        await app.execute("Sure?", thread=run.thread)
    requests = mock_llm(Keeper).requests
    for request, told in zip(requests, past, strict=False):
        assert request.messages[0].content == "Attached: cat.png (image/png, 14 B)\nWhat is this?"
        assert [part.data for part in request.messages[0].media] == [CAT.data]
        texts = [message.content for message in request.messages if message.content]
        rows = [row.shown for row in told.messages if row.shown]
        assert rows == [texts[0], "[image cat.png (image/png, 14 B)]", *texts[1:]]
        assert [row.tokens for row in told.messages if row.shown.startswith("[image")] == [1600]
        assert told.messages[0].content == "What is this?"
        assert told.total_tokens == told.system_prompt_tokens + sum(row.tokens for row in told.messages)
    last = requests[-1].messages
    assert last[0].content == f"What is this?\n{EARLIER}"
    assert last[0].media == ()
    assert [row.shown for row in preview.messages] == [message.content for message in last[:-1]]


async def test_an_explained_turn_shows_the_files_that_its_agent_saw(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Seer).then_return(reply("A cat."), reply("Two."))
    async with agboss_app(Seer) as app:
        run = await app.execute("What is this?", attachments=[CAT])
        await app.execute("And these?", thread=run.thread, attachments=[CAT, PAPER])
        told = await app.memory.explain(run.thread, tern=2)
    message = mock_llm(Seer).requests[-1].messages[0]
    assert "".join(row.shown for row in told.messages[:-1]) == message.content
    assert (told.messages[-1].shown, told.messages[-1].tokens) == ("[image cat.png (image/png, 14 B)]", 1600)


async def test_an_agent_that_shares_the_thread_reads_of_the_files_of_others(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_router: MockRouter
) -> None:
    @agent(
        description="Follows",
        model=ModelSpec("openai:gpt-5-mini", context_window=50_000),
        memory_config={"kind": "full"},
        shares_thread=True,
    )
    class Follower: ...

    @workflow(flow=[chain(TaskStart, Picker), from_(Picker).routes(Seer, Follower, then=AnswerFinish)])
    class Sharing: ...

    mock_router(Picker).then_return(route_to(Seer), route_to(Follower))
    mock_llm(Seer).then_return(reply("A cat."))
    mock_llm(Follower).then_return(reply("Yes."))
    async with agboss_app(Sharing) as app:
        run = await app.execute("What is this?", attachments=[CAT])
        await app.execute("Sure?", thread=run.thread)
    assert [message.content for message in mock_llm(Follower).requests[0].messages] == [
        f"What is this?\n{EARLIER}",
        "A cat.",
        "Sure?",
    ]
