"""Opening and closing: in every way a program may do it."""

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import agboss
from agboss import (
    AppStateError,
    InvalidInputError,
    ModelKeyError,
    StoreCorruptError,
    StoreUrlError,
    UnknownThreadError,
    agent,
    create_app,
)
from agboss.testing import ScriptedModels, reply


@agent(model="openai:gpt-5-mini")
class Helper:
    """Helps."""


def scripted(*answers: str) -> ScriptedModels:
    models = ScriptedModels()
    models.llm(Helper).then_return(*(reply(text) for text in answers))
    return models


async def test_an_app_opens_at_first_use() -> None:
    app = create_app(Helper, store="memory://", models=scripted("x"))
    assert (await app.execute("Go")).answer == "x"
    await app.aclose()
    await app.aclose()
    with pytest.raises(AppStateError, match="closed"):
        await app.execute("Go")
    with pytest.raises(AppStateError, match="closed"):
        app.execute_sync("Go")
    with pytest.raises(AppStateError, match="closed"):
        await app.threads.list()


async def test_first_uses_at_once_open_it_once() -> None:
    app = create_app(Helper, store="memory://", models=scripted(*"abc"))
    results = await asyncio.gather(*(app.execute("Go") for _ in range(3)))
    assert sorted(result.answer for result in results) == ["a", "b", "c"]
    await app.aclose()


FORKS = """
import asyncio, os, sys
from agboss import AppStateError, agent, create_app

@agent(model="local:extractive", description="Helps")
class Helper: ...

url = "sqlite:///" + sys.argv[1]
app, fresh = create_app(Helper, store=url), create_app(Helper, store=url)
{first}
child = os.fork()
if child:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code)
    app.close()
    sys.exit()

async def stream():
    async with app.stream("Go"):
        pass

async def all_ways():
    for call in (
        lambda: app.execute("Go"), stream, lambda: app.threads.list(), lambda: app.memory.view("t", Helper),
        lambda: app.cancel("t"), lambda: app.recover(), app.aclose,
    ):
        try:
            await call()
        except AppStateError as error:
            print(error.code)

asyncio.run(all_ways())
for call in (lambda: app.execute_sync("Go"), app.__enter__, app.close):
    try:
        call()
    except AppStateError as error:
        print(error.code)
with create_app(Helper, store=url) as own:
    print(own.execute_sync("Go").tern)
print(fresh.execute_sync("Go").tern, flush=True)
sys.exit(7)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    "first",
    ['app.execute_sync("Go")', 'asyncio.run(app.execute("Go"))', "app.__enter__()"],
    ids=["sync", "async", "with"],
)
def test_a_fork_needs_an_app_of_its_own(tmp_path: Path, first: str) -> None:
    """What was opened before is told at once, whatever is asked of it, and keeps no child from ending."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        FORKS.replace("{first}", first),
        str(tmp_path / "x.db"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["app.other-process"] * 10 + ["1", "1", "7"], done.stderr


async def test_an_app_that_was_never_used_closes() -> None:
    await create_app(Helper, store="memory://").aclose()


def test_plain_with(tmp_path: Path) -> None:
    with create_app(Helper, store=f"sqlite:///{tmp_path}/a.db", models=scripted("x", "y")) as app:
        first = app.execute_sync("Go")
        assert app.execute_sync("On", thread=first.thread).tern == 2
    with pytest.raises(AppStateError):
        app.execute_sync("Go")
    app.close()


async def test_plain_with_works_inside_a_running_loop() -> None:
    with create_app(Helper, store="memory://", models=scripted("x")) as app:
        assert app.execute_sync("Go").answer == "x"
        with pytest.raises(AppStateError, match="another event loop"):
            await app.execute("Go")


def test_execute_sync_raises_what_execute_raises() -> None:
    app = create_app(Helper, store="memory://", models=scripted())
    with pytest.raises(UnknownThreadError):
        app.execute_sync("Go", thread="nobody")
    with pytest.raises(InvalidInputError):
        app.execute_sync(7)
    app.close()


def test_execute_sync_from_many_threads_shares_one_portal() -> None:
    from concurrent.futures import ThreadPoolExecutor

    app = create_app(Helper, store="memory://", models=scripted(*"abcdefgh"))
    with ThreadPoolExecutor(8) as pool:
        answers = [task.result().answer for task in [pool.submit(app.execute_sync, "Go") for _ in range(8)]]
    assert sorted(answers) == list("abcdefgh")
    app.close()


def test_a_script_that_forgets_to_close_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(agboss.__file__).parents[1]))
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        from agboss import agent, create_app
        @agent(model="local:extractive")
        class Helper: "Be brief."
        app = create_app(Helper, store="sqlite:///{tmp_path}/a.db")
        print(app.execute_sync("Hello").status)
        """)
    )
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "answered\n", "")


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_one_app_in_several_event_loops_one_after_the_other(store: str, tmp_path: Path) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/a.db"
    app = create_app(Helper, store=url, models=scripted("x", "y"))
    first = asyncio.run(app.execute("Go"))
    assert asyncio.run(app.execute("On", thread=first.thread)).tern == 2
    asyncio.run(app.aclose())


async def test_an_opening_that_fails_can_be_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_text("no database" * 100)
    app = create_app(Helper, store=f"sqlite:///{file}", models=scripted("x"))
    for _ in range(2):
        with pytest.raises(StoreCorruptError):
            await app.execute("Go")
    file.unlink()
    assert (await app.execute("Go")).answer == "x"
    await app.aclose()


async def test_a_caller_that_gives_up_while_it_opens_leaves_it_usable(tmp_path: Path) -> None:
    app = create_app(Helper, store=f"sqlite:///{tmp_path}/a.db", models=scripted("x"))
    task = asyncio.create_task(app.execute("Go"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await app.execute("Go")).answer == "x"
    await app.aclose()


async def test_closing_while_it_opens_closes_it(tmp_path: Path) -> None:
    app = create_app(Helper, store=f"sqlite:///{tmp_path}/a.db")
    opening = asyncio.create_task(app.__aenter__())
    await asyncio.sleep(0)
    await app.aclose()
    assert await opening is app
    with pytest.raises(AppStateError):
        await app.threads.list()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"memory_work": "later"}, InvalidInputError),
        ({"thread_policy": "interrupt!"}, InvalidInputError),
        ({"queue_timeout": -1}, InvalidInputError),
        ({"queue_timeout": float("nan")}, InvalidInputError),
        ({"queue_timeout": "60"}, InvalidInputError),
        ({"models": ["openai:gpt-5-mini"]}, InvalidInputError),
        ({"store": "nosuch://x"}, StoreUrlError),
        ({"providers": [object()]}, ValueError),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        create_app(Helper, **arguments)


async def test_a_missing_key_shows_before_anything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AGBOSS_BLOCK_MODELS")
    async with create_app(Helper, store="memory://") as app:
        with pytest.raises(ModelKeyError):
            await app.execute("Go", thread="t", create_thread=True)
        assert await app.threads.list() == ()
