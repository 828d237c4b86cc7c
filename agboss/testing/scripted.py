"""Scripted models and routers: strict, in order, and every request is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from agboss.components.agent import AgentSpec
from agboss.components.metadata import component_of
from agboss.components.model_spec import ModelSpec
from agboss.components.naming import describe
from agboss.components.router import RouterSpec
from agboss.errors import AgbossError, DeclarationError
from agboss.models import Caller, ChatModel, ModelReply, ModelRequest, ModelUsage
from agboss.routers import Router, RouteRequest, RouteResult
from agboss.testing.refusals import refusals
from agboss.testing.requests import RoutedRequest
from agboss.testing.steps import Call, Reply, Route, Step, as_step, shown
from agboss_memory import BaseMemoryStrategy
from agboss_memory.messages import ToolCall
from agboss_memory.wording import quoted

RequestT = TypeVar("RequestT", ModelRequest, RoutedRequest)


class ScriptError(AgbossError):
    """A scripted model or router was called unexpectedly or with a request that a provider would refuse."""


class Script(Generic[RequestT]):
    """The steps of one component, in order, and the requests that used them.

    Args:
        name: The component's name in messages.
        tell: Receives every problem, so that a test fails even when the error was swallowed.
    """

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.name = name
        self.requests: list[RequestT] = []
        self._steps: deque[Step] = deque()
        self._tell = tell
        self._touched = False

    @property
    def touched(self) -> bool:
        """Whether a test has given it a step."""
        return self._touched

    @property
    def unused(self) -> tuple[Step, ...]:
        """Steps that are still waiting."""
        return tuple(self._steps)

    def then_return(self, *steps: Any) -> Self:
        """Add steps; each is one logical call, after retries."""
        self._touched = True
        self._steps.extend(as_step(step) for step in steps)
        return self

    def then_fail(self, error: BaseException) -> Self:
        """Add a step that raises ``error``."""
        self._touched = True
        self._steps.append(error)
        return self

    def next(self, request: RequestT, what: str) -> Step:
        """Keep the request and give its step; a step that is an error is raised. Raises ScriptError without one."""
        self.requests.append(request)
        if not self._steps:
            raise self.problem(
                "testing.unexpected-call",
                f"unexpected call number {len(self.requests)} of {what} {self.name!r}: no step is left",
                f"add a step for {self.name!r} with .then_return(...)",
            )
        step = self._steps.popleft()
        if isinstance(step, BaseException):
            raise step
        return step

    def problem(self, code: str, message: str, hint: str = "") -> ScriptError:
        """Tell a problem; gives the error to raise."""
        self._tell(message)
        return ScriptError(code, message, hint)


class ScriptedModel:
    """A chat model that follows a script."""

    def __init__(self, script: Script[ModelRequest], what: str, window: int | None) -> None:
        self._script = script
        self._what = what
        self.context_window = window

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The next step as a reply. Raises ScriptError for a request that a provider would refuse."""
        step = self._script.next(request, self._what)
        reasons = refusals(request, self.context_window)
        if reasons:
            raise self._script.problem(
                "testing.refused",
                f"a provider would refuse this request of {self._script.name!r}: " + "; ".join(reasons),
            )
        if isinstance(step, Reply):
            if request.on_text is not None and step.text:
                half = len(step.text) // 2
                for piece in filter(None, (step.text[:half], step.text[half:])):
                    request.on_text(piece)
            return ModelReply(text=step.text, usage=_usage(request, step))
        calls = step if isinstance(step, tuple) else (step,)
        if not all(isinstance(call, Call) for call in calls):
            raise self._script.problem(
                "testing.bad-step",
                f"{self._what} {self._script.name!r} cannot do {shown(step)}",
                "use reply or call_tool",
            )
        self._check_offered(request, {call.tool for call in calls if isinstance(call, Call) and call.strict})
        number = len(self._script.requests)
        made = tuple(
            ToolCall(id=f"call-{self._script.name}-{number}-{index}", name=call.tool, arguments=call.arguments)
            for index, call in enumerate(calls, start=1)
            if isinstance(call, Call)
        )
        return ModelReply(tool_calls=made, usage=_usage(request, Reply(text="")))

    def _check_offered(self, request: ModelRequest, called: set[str]) -> None:
        """A provider's model cannot call what it was not offered."""
        offered = [tool.name for tool in request.tools]
        missing = sorted(called.difference(offered))
        if missing:
            names = ", ".join(repr(name) for name in missing)
            raise self._script.problem(
                "testing.not-offered",
                f"{self._script.name!r} was not offered the tool {names} in call number {len(self._script.requests)}; "
                f"on offer: {', '.join(offered) or 'nothing'}",
                "put it into tools= of the component, or call what is on offer",
            )


def _usage(request: ModelRequest, step: Reply) -> ModelUsage:
    sent = len(request.text) // 4 if step.input_tokens is None else step.input_tokens
    received = len(step.text) // 4 if step.output_tokens is None else step.output_tokens
    measured = step.input_tokens is not None
    free = step.usd is None
    return ModelUsage(input_tokens=sent, output_tokens=received, usd=step.usd, free=free, measured=measured)


class CompactionScript(Script[ModelRequest]):
    """The script of all summaries; ``mock_compaction(Agent)`` is one for the conversation of that agent alone."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__("compaction", tell)
        self._own: dict[Any, Script[ModelRequest]] = {}

    def __call__(self, agent: Any) -> Script[ModelRequest]:
        """The script of one agent's summaries. Raises DeclarationError when it is no agent with a memory_config."""
        spec = component_of(agent)
        if not isinstance(spec, AgentSpec) or spec.memory is None:
            raise DeclarationError(
                "testing.no-conversation",
                f"mock_compaction({_shown(agent)}): that is no agent with a memory_config",
                "script the summaries of turn memory with mock_compaction itself",
            )
        return self._own.setdefault(_key(agent), Script(f"compaction of {spec.name}", self._tell))

    @property
    def scripts(self) -> tuple[Script[ModelRequest], ...]:
        """This one and those of agents."""
        return (self, *self._own.values())

    def of(self, agent: Any) -> Script[ModelRequest]:
        """The script that answers now: the agent's own when a test has given it one."""
        return self if agent is None else self._own.get(_key(agent), self)


class Summariser:
    """The scripted model that writes summaries of turn memory, or of one agent's conversation."""

    def __init__(self, scripts: CompactionScript, agent: Any, window: int | None) -> None:
        self._scripts = scripts
        self._agent = agent
        self.context_window = window

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The next step of the script as a reply."""
        script = self._scripts.of(self._agent)
        return await ScriptedModel(script, "the model of compaction", self.context_window).generate(request)


class ScriptedRouter:
    """A router that follows a script; without one a router that needs no network decides as configured."""

    def __init__(self, script: Script[RoutedRequest], configured: Router, needs_network: bool, model: str = "") -> None:
        self._script = script
        self._model = model
        self._configured = configured
        self._needs_network = needs_network

    async def route(self, request: RouteRequest) -> RouteResult:
        """The next step as a decision."""
        asked = RoutedRequest.of(request, self._model)
        if not self._script.touched and not self._needs_network:
            self._script.requests.append(asked)
            return await self._configured.route(request)
        step = self._script.next(asked, "router")
        if not isinstance(step, Route):
            raise self._script.problem(
                "testing.bad-step", f"router {self._script.name!r} cannot do {shown(step)}", "use route_to(Component)"
            )
        spec = component_of(step.target)
        name = step.target if isinstance(step.target, str) else spec.name if spec is not None else ""
        return RouteResult(next=name, probabilities={name: 1.0}, confidence=1.0, source="scripted")


class ScriptedModels:
    """All scripts of one test or program: ``create_app(Workflow, models=ScriptedModels())``.

    Args:
        real: Let components without steps use their configured models.
    """

    def __init__(self, *, real: bool = False) -> None:
        self._real = real
        self._models: dict[Any, Script[ModelRequest]] = {}
        self._routers: dict[Any, Script[RoutedRequest]] = {}
        self._compaction = CompactionScript(self._tell)
        self.problems: list[str] = []

    @property
    def compaction(self) -> CompactionScript:
        """Script of the models that write summaries; called with an agent, that of its conversation alone."""
        return self._compaction

    def llm(self, component: Any) -> Script[ModelRequest]:
        """Script of the model of an agent, a strategy or a router of kind ``llm``. Raises DeclarationError."""
        _check_has_model(component)
        return self._model_script(component)

    def router(self, component: Any) -> Script[RoutedRequest]:
        """Script of a router. Raises DeclarationError."""
        if not isinstance(component_of(component), RouterSpec):
            raise DeclarationError(
                "testing.no-router",
                f"mock_router({_shown(component)}): that is no router",
                "pass a class that is decorated with @router; mock_llm scripts the model of an agent",
            )
        return self._router_script(component)

    def verify(self) -> None:
        """Raises AssertionError that names every unexpected call, refused request and unused step."""
        found = list(self.problems)
        for script in (*self._models.values(), *self._routers.values(), *self._compaction.scripts):
            found += [f"step of {script.name!r} was never used: {shown(step)}" for step in script.unused]
        if found:
            raise AssertionError("\n".join(found))

    def model_for(self, caller: Caller, spec: ModelSpec) -> ChatModel | None:
        """See ``ModelSource``."""
        if caller.kind == "compaction":
            real = self._real and not self._compaction.of(caller.target).touched
            return None if real else Summariser(self._compaction, caller.target, spec.context_window)
        script = self._model_script(caller.target)
        if self._real and not script.touched:
            return None
        return ScriptedModel(script, f"the model of {caller.kind}", spec.context_window)

    def wrap_router(self, caller: Caller, kind: str, router: Router) -> Router:
        """See ``ModelSource``."""
        script = self._router_script(caller.target)
        if self._real and not script.touched:
            return router
        return ScriptedRouter(script, router, needs_network=kind == "jev", model=_declared_model(caller.target))

    def _model_script(self, component: Any) -> Script[ModelRequest]:
        return self._models.setdefault(_key(component), Script(_name(component), self._tell))

    def _router_script(self, component: Any) -> Script[RoutedRequest]:
        return self._routers.setdefault(_key(component), Script(_name(component), self._tell))

    def _tell(self, problem: str) -> None:
        self.problems.append(problem)


def _key(component: Any) -> Any:
    return component if isinstance(component, type) else type(component)


def _name(component: Any) -> str:
    spec = component_of(component)
    return spec.name if spec is not None else describe(component)


def _check_has_model(component: Any) -> None:
    spec = component_of(component)
    if spec is not None and spec.kind in ("agent", "router"):
        return
    # A strategy may give its model to a class of its own, so that any undecorated class can have one.
    if spec is None and isinstance(component, type | BaseMemoryStrategy):
        return
    raise DeclarationError(
        "testing.no-model",
        f"mock_llm({_shown(component)}): that has no model",
        "pass the class of an agent, of a memory strategy, or of a router of kind llm",
    )


def _shown(component: Any) -> str:
    return component.__name__ if isinstance(component, type) else quoted(component)


def _declared_model(target: Any) -> str:
    spec = component_of(target)
    found = getattr(spec.settings, "model", None) if isinstance(spec, RouterSpec) else None
    return found.model if isinstance(found, ModelSpec) else found or ""
