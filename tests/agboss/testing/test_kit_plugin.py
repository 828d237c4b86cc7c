"""The pytest plugin in tests of its own: strict in every mode, and light to load."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agboss import TaskStart, agent, create_app
from agboss.testing import ScriptedModels, plugin, reply

pytest_plugins = "pytester"

PRELUDE = """
import pytest
from agboss import *
from agboss.testing import *
from agboss.components.settings import Rule

def look(word: str) -> str:
    return word

@agent(model="openai:gpt-5-mini", tools=[look])
class Helper:
    "Helps."

@agent(model="openai:gpt-5-mini")
class Other:
    "Helps as well."

@router(router=JevRouter(model="typesafe/jev-1.13"))
class Desk: ...

@workflow(name="w", flow=[chain(TaskStart, Desk), from_(Desk).routes(Helper, Other, then=AnswerFinish)])
class Work: ...
"""


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.delenv("AGBOSS_BLOCK_MODELS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(plugin.__file__).parents[2]))


def run(pytester: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(PRELUDE + textwrap.dedent(body))
    mode = () if any(item.startswith("asyncio_mode") for item in arguments) else ("-o", "asyncio_mode=auto")
    settings = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function", "-W", "error")
    return pytester.runpytest_inprocess(*settings, *mode, *arguments)


def test_passing_tests_in_auto_mode(pytester: pytest.Pytester) -> None:
    body = """
    async def test_calls(agboss_app, mock_llm):
        mock_llm(Helper).then_return([call_tool(look, word="a"), call_tool(look, word="b")], reply("ok"))
        async with agboss_app(Helper) as app:
            assert (await app.execute("Go")).answer == "ok"
        assert [m.content for m in mock_llm(Helper).requests[-1].messages if m.role == "tool"] == ["a", "b"]

    async def test_route(agboss_app, mock_llm, mock_router):
        mock_router(Desk).then_return(route_to(Other))
        mock_llm(Other).then_return(reply("ok"))
        async with agboss_app(Work) as app:
            assert (await app.execute("Go")).path[2] == "other"

    async def test_requests_read_alike(agboss_app, mock_llm, mock_compaction, mock_router):
        mock_router(Desk).then_return(route_to(Other))
        mock_llm(Other).then_return(reply("ok"))
        async with agboss_app(Work) as app:
            await app.execute("Go on")
        (asked,), (called,) = mock_router(Desk).requests, mock_llm(Other).requests
        for request in (asked, called):
            assert "Go on" in request.text
            assert [message.role for message in request.messages] == ["user"]
            assert request.tools == ()
            assert request.settings.temperature is None
        assert asked.model == "typesafe/jev-1.13"
        assert "Helps as well." in asked.text
        assert (asked.task, [option.name for option in asked.options]) == ("Go on", ["helper", "other"])

    async def test_aliases(agboss_app, agboss_llm, agboss_router, agboss_compaction):
        agboss_router(Desk).then_return(route_to("helper"))
        agboss_llm(Helper).then_return("ok")
        async with agboss_app(Work) as app:
            await app.execute("Go")
        assert agboss_compaction.requests == []

    async def test_fails(agboss_app, mock_llm):
        mock_llm(Helper).then_fail(ValueError("down"))
        async with agboss_app(Helper) as app:
            with pytest.raises(TernFailedError) as caught:
                await app.execute("Go")
        assert isinstance(caught.value.__cause__, ValueError)

    def test_sync(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
        with agboss_app(Helper) as app:
            assert app.execute_sync("Go").answer == "ok"
    """
    run(pytester, body).assert_outcomes(passed=6)


def test_strict_mode(pytester: pytest.Pytester) -> None:
    body = """
    @pytest.mark.asyncio
    async def test_it(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
        async with agboss_app(Helper) as app:
            await app.execute("Go")

    @pytest.mark.asyncio
    async def test_unused(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
    """
    run(pytester, body, "-o", "asyncio_mode=strict").assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("absent", ["asyncio", "xdist"])
def test_without_other_plugins_sync_tests_work(pytester: pytest.Pytester, absent: str) -> None:
    body = """
    def test_it(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
        with agboss_app(Helper) as app:
            assert app.execute_sync("Go").answer == "ok"

    def test_unused(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
    """
    arguments = ("-p", f"no:{absent}")
    pytester.makepyfile(PRELUDE + textwrap.dedent(body))
    pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments).assert_outcomes(passed=1, failed=1)


FAULTS = {
    "unused": (
        """
        async def test_it(agboss_app, mock_llm):
            mock_llm(Helper).then_return(reply("never said"))
        """,
        "*step of 'helper' was never used: reply('never said')*",
    ),
    "unexpected": (
        """
        async def test_it(agboss_app, mock_llm):
            async with agboss_app(Helper) as app:
                try:
                    await app.execute("Go")
                except Exception:
                    pass
        """,
        "*unexpected call number 1 of the model of agent 'helper'*",
    ),
    "unexpected route": (
        """
        async def test_it(agboss_app, mock_router):
            async with agboss_app(Work) as app:
                with pytest.raises(Exception):
                    await app.execute("Go")
        """,
        "*unexpected call number 1 of router 'desk'*",
    ),
    "unexpected compaction": (
        """
        @workflow(name="c", flow=[chain(TaskStart, Other, AnswerFinish)], compaction=Compaction(every=1))
        class Compacting: ...

        async def test_it(agboss_app, mock_llm):
            mock_llm(Other).then_return("ok")
            async with agboss_app(Compacting) as app:
                await app.execute("Go")
        """,
        "*unexpected call number 1 of the model of compaction 'compaction'*",
    ),
    "refused": (
        """
        from agboss_memory import BaseMemoryStrategy, MemoryView, Message

        class Broken(BaseMemoryStrategy):
            def build_context(self, context):
                return MemoryView(messages=(Message(role="user", content=""),))

        @agent(model="openai:gpt-5-mini", memory_strategy=Broken)
        class Bad: ...

        async def test_it(agboss_app, mock_llm):
            mock_llm(Bad).then_return("ok")
            async with agboss_app(Bad) as app:
                with pytest.raises(Exception):
                    await app.execute("Go")
        """,
        "*a provider would refuse this request of 'bad': message 1 (user) is empty*",
    ),
    "not offered": (
        """
        async def test_it(agboss_app, mock_llm):
            mock_llm(Other).then_return(call_tool(look, word="a"), "ok")
            async with agboss_app(Other) as app:
                with pytest.raises(Exception):
                    await app.execute("Go")
            mock_llm(Other).requests.clear()
        """,
        "*'other' was not offered the tool 'look'*",
    ),
    "no component": (
        """
        def test_it(mock_llm):
            mock_llm("helper")
        """,
        "*mock_llm('helper'): that has no model*",
    ),
    "a workflow": (
        """
        def test_it(mock_llm):
            mock_llm(Work)
        """,
        "*mock_llm(Work): that has no model*",
    ),
    "no router": (
        """
        def test_it(mock_router):
            mock_router(Helper)
        """,
        "*mock_router(Helper): that is no router*",
    ),
    "blocked": (
        """
        async def test_it(monkeypatch):
            monkeypatch.setenv("OPENAI_API_KEY", "x")
            async with create_app(Helper, store="memory://") as app:
                await app.execute("Go")
        """,
        "*model.blocked*",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_the_test_and_names_the_component(pytester: pytest.Pytester, fault: str) -> None:
    body, line = FAULTS[fault]
    result = run(pytester, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line])
    if fault == "unused":
        result.stdout.no_fnmatch_line("*During handling*")


def test_a_marked_test_may_reach_models(pytester: pytest.Pytester) -> None:
    body = """
    import os

    @pytest.mark.agboss_models
    async def test_it(monkeypatch):
        assert "AGBOSS_BLOCK_MODELS" not in os.environ
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        async with create_app(Helper, store="memory://") as app:
            with pytest.raises(ModelKeyError):
                await app.execute("Go")

    @pytest.mark.agboss_models
    async def test_steps_still_count(agboss_app, mock_llm):
        mock_llm(Helper).then_return("ok")
        async with agboss_app(Helper) as app:
            assert (await app.execute("Go")).answer == "ok"
    """
    pytester.makeini("[pytest]\naddopts = --strict-markers")
    run(pytester, body).assert_outcomes(passed=2)


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, agboss.testing.plugin\n"
        "heavy = ('pydantic', 'injector', 'anyio', 'tiktoken', 'toktok', 'pydantic_ai', 'openai', 'httpx2', 'sqlite3')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@agent(model="openai:gpt-5-mini")
class Quick:
    """Answers."""


async def test_scripts_without_pytest() -> None:
    models = ScriptedModels()
    models.llm(Quick).then_return(reply("one"), reply("two"))
    async with create_app(Quick, store="memory://", models=models) as app:
        assert (await app.execute(TaskStart, "Go")).answer == "one"
    with pytest.raises(AssertionError, match="step of 'quick' was never used"):
        models.verify()
