"""The pytest plugin. Its fixtures are sync and give ``async with`` objects, so that they work in every asyncio mode.

Loads nothing but pytest until a fixture is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agboss.app import App
    from agboss.testing.scripted import ScriptedModels
    from agboss.testing.types import MakeApp, MockCompaction, MockLlm, MockRouter

_SCRIPTS = pytest.StashKey["ScriptedModels"]()
MARKER = "agboss_models"
_FIXTURES = frozenset(
    f"{prefix}_{name}" for prefix in ("mock", "agboss") for name in ("llm", "compaction", "router", "app")
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that opens the network for models."""
    config.addinivalue_line("markers", f"{MARKER}: let this test reach models over the network")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """An async test that uses these fixtures runs under pytest-asyncio, also in its strict mode and without a mark."""
    if not inspect.iscoroutinefunction(obj) or not collector.config.pluginmanager.hasplugin("asyncio"):
        return
    marks = {mark.name for mark in getattr(obj, "pytestmark", ())}
    if not _FIXTURES.isdisjoint(inspect.signature(obj).parameters) and marks.isdisjoint({"asyncio", "anyio"}):
        pytest.mark.asyncio(obj)


@pytest.fixture(autouse=True)
def _agboss_block_models(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """No test reaches a model over the network unless it is marked for it."""
    if request.node.get_closest_marker(MARKER) is None:
        monkeypatch.setenv("AGBOSS_BLOCK_MODELS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """A test that used scripts fails when a step was not used or a call was not expected."""
    outcome = yield
    scripts = pyfuncitem.stash.get(_SCRIPTS, None)
    problems = "" if scripts is None else _problems(scripts)
    if problems:  # outside of the handler, so that no other exception is shown with it
        pytest.fail(problems, pytrace=False)
    return outcome


def _problems(scripts: ScriptedModels) -> str:
    try:
        scripts.verify()
    except AssertionError as error:
        return str(error)
    return ""


@pytest.fixture
def _agboss_scripts(request: pytest.FixtureRequest) -> ScriptedModels:  # pyright: ignore[reportUnusedFunction]
    from agboss.testing.scripted import ScriptedModels

    scripts = ScriptedModels(real=request.node.get_closest_marker(MARKER) is not None)
    request.node.stash[_SCRIPTS] = scripts
    return scripts


@pytest.fixture
def agboss_app(_agboss_scripts: ScriptedModels) -> MakeApp:
    """Makes an App over ``memory://`` with scripted models, as an ``async with`` object."""
    from agboss.app import create_app

    def make(workflow: type[Any], **arguments: Any) -> App:
        arguments.setdefault("store", "memory://")
        arguments.setdefault("models", _agboss_scripts)
        return create_app(workflow, **arguments)

    return make


@pytest.fixture
def mock_llm(_agboss_scripts: ScriptedModels) -> MockLlm:
    """``mock_llm(Component).then_return(reply("..."))`` scripts the model of an agent, a strategy or an LLM router."""
    return _agboss_scripts.llm


@pytest.fixture
def mock_compaction(_agboss_scripts: ScriptedModels) -> MockCompaction:
    """``mock_compaction.then_return("summary text")`` scripts the model that writes summaries."""
    return _agboss_scripts.compaction


@pytest.fixture
def mock_router(_agboss_scripts: ScriptedModels) -> MockRouter:
    """``mock_router(Router).then_return(route_to(Component))`` scripts a router."""
    return _agboss_scripts.router


agboss_llm = mock_llm
agboss_compaction = mock_compaction
agboss_router = mock_router
