"""The compiled flow: nodes, edges, and everything that can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from agboss.components.metadata import ComponentSpec, component_of
from agboss.components.naming import describe, normal_name
from agboss.errors import AgbossError, DeclarationError
from agboss.flow.edges import Chain, Routes
from agboss_memory.records import Record, replace
from agboss_memory.wording import quoted

_NODE_KINDS = ("start", "agent", "router", "action", "finish")


class Node(Record, kw_only=True):
    """One node.

    Attributes:
        spec: The component.
        next: Name of the node that follows, None for routers and finishes.
        routes: Names that a router may choose, sorted.
    """

    spec: ComponentSpec
    next: str | None = None
    routes: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of all nodes that may follow."""
        return (*self.routes, *((self.next,) if self.next else ()))


class Graph(Record, kw_only=True):
    """A flow without violations."""

    nodes: Mapping[str, Node]
    names: Mapping[Any, str]

    @property
    def starts(self) -> tuple[str, ...]:
        """Names of the entries."""
        return tuple(name for name, node in self.nodes.items() if node.spec.kind == "start")

    def of_kind(self, kind: str) -> tuple[Node, ...]:
        """Nodes of a kind, in the order of the flow."""
        return tuple(node for node in self.nodes.values() if node.spec.kind == kind)

    def mermaid(self) -> str:
        """The flow as a Mermaid flowchart."""
        shapes = {"start": "([{}])", "finish": "([{}])", "router": "{{{{{}}}}}", "agent": "[{}]", "action": "[[{}]]"}
        ids = {name: f"n{index}" for index, name in enumerate(self.nodes)}
        lines = ["flowchart TD"]
        for name, node in self.nodes.items():
            label = '"' + name.replace('"', "#quot;") + '"'
            lines.append(f"    {ids[name]}" + shapes[node.spec.kind].format(label))
        for name, node in self.nodes.items():
            arrow = "-.->" if node.spec.kind == "router" else "-->"
            lines.extend(f"    {ids[name]} {arrow} {ids[target]}" for target in node.targets)
        return "\n".join(lines) + "\n"


class _Builder:
    """Collects nodes and edges, and every violation on the way.

    ``meant`` holds every edge as written, refused ones too: whether a node can be reached is asked of what was meant, so
    that one mistake is told once. ``entered`` and ``left`` are nodes next to something that could not become a node.
    """

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.nodes: dict[str, Node] = {}
        self.violations: list[AgbossError] = []
        self.own_edges: set[str] = set()
        self.meant: dict[str, set[str]] = {}
        self.entered: set[str] = set()
        self.left: set[str] = set()

    def problem(self, code: str, message: str, hint: str, **data: Any) -> None:
        self.violations.append(DeclarationError(code, message, hint, **data))

    def add(self, target: Any, role: str = "node") -> str | None:
        """The name of a component's node; None (and a violation) when it is none."""
        spec = component_of(target)
        if spec is None or spec.kind not in _NODE_KINDS:
            label = describe(target) if isinstance(target, type) else quoted(target)
            code = "flow.unknown-route" if role == "route" else "flow.not-a-component"
            what = "is not decorated" if spec is None else f"is a {spec.kind}"
            self.problem(code, f"{label} stands in the flow as a {role} but {what}", "use @agent, @router or @action")
            return None
        if target in self.names:
            return self.names[target]
        for other, name in self.names.items():
            if normal_name(name) == normal_name(spec.name):
                self.problem(
                    "assembly.duplicate-name",
                    f"{spec.kind} {_both(target, other)} and {self.nodes[name].spec.kind} {_both(other, target)} "
                    f"have names that read the same: {spec.name!r} and {name!r}",
                    "give one of them another name=",
                )
                return None
        self.names[target] = spec.name
        self.nodes[spec.name] = Node(spec=spec)
        return spec.name

    def intend(self, source: str | None, target: str | None) -> None:
        """Note an edge as written; None stands for what could not become a node."""
        if source is not None and target is not None:
            self.meant.setdefault(source, set()).add(target)
        elif source is not None:
            self.left.add(source)
        elif target is not None:
            self.entered.add(target)

    def follow(self, chained: Iterable[Any]) -> None:
        """The edges of one chain."""
        for source, target in pairwise([self.add(node) for node in chained]):
            self.intend(source, target)
            if source is not None and target is not None:
                self.link(source, target)

    def link(self, source: str, target: str) -> None:
        """An edge from ``source`` to ``target``."""
        node = self.nodes[source]
        if node.spec.kind == "finish":
            self.problem("flow.after-finish", f"finish {source!r} has an edge to {target!r}", "remove the edge")
        elif node.spec.kind == "router":
            self.problem(
                "flow.router-edge",
                f"router {source!r} has a plain edge to {target!r}",
                "write from_(Router).routes(...) instead",
            )
        elif self.nodes[target].spec.kind == "start":
            self.problem("flow.into-start", f"{source!r} leads back to the start {target!r}", "lead it to another node")
        elif node.next not in (None, target):
            self.problem(
                "flow.two-edges",
                f"{node.spec.kind} {source!r} leads to both {node.next!r} and {target!r}",
                "put a router between them",
            )
        else:
            self.nodes[source] = replace(node, next=target)


def compile_flow(flow: Iterable[Any]) -> tuple[Graph, list[AgbossError]]:
    """The graph of a flow, and all violations. With violations the graph is incomplete."""
    builder = _Builder()
    routes: list[Routes] = []
    for edge in flow:
        if isinstance(edge, Chain):
            builder.follow(edge.nodes)
        elif isinstance(edge, Routes):
            routes.append(edge)
        else:
            builder.problem(
                "flow.bad-edge", f"{quoted(edge)} is no edge", "use chain(...), from_(A).next(B) or .routes()"
            )
    builder.own_edges = {name for name, node in builder.nodes.items() if node.next is not None}
    for item in routes:
        _add_routes(builder, item)
    _check_reach(builder)
    return Graph(nodes=builder.nodes, names=builder.names), builder.violations


def _both(target: Any, other: Any) -> str:
    """What a class is called beside another one: with its module when the plain names do not tell them apart."""
    name = describe(target)
    return name if name != describe(other) else f"{target.__module__}.{target.__qualname__}"


def _add_routes(builder: _Builder, item: Routes) -> None:
    source = builder.add(item.router)
    then = None if item.then is None else builder.add(item.then)
    options = [builder.add(target, "route") for target in item.options]
    waiting = [name for name in options if name is not None and _waits(builder, name)]
    for option in options:
        builder.intend(source, option)
    if item.then is not None:
        for option in (*waiting, None) if None in options else waiting:
            builder.intend(option, then)
    if source is None:
        return
    node = builder.nodes[source]
    if node.spec.kind != "router":
        builder.problem("flow.not-a-router", f"{node.spec.kind} {source!r} has routes", "decorate it with @router")
        return
    named = [name for name in options if name is not None]
    _add_options(builder, source, named)
    if then is not None:
        for option in waiting:
            builder.link(option, then)
        if not waiting and len(named) == len(options):
            _unused_then(builder, source, then)


def _waits(builder: _Builder, name: str) -> bool:
    """Whether a route goes where ``then=`` says."""
    return builder.nodes[name].spec.kind in ("agent", "action") and name not in builder.own_edges


def _add_options(builder: _Builder, source: str, options: list[str]) -> None:
    node = builder.nodes[source]
    builder.nodes[source] = replace(node, routes=tuple(sorted({*node.routes, *options})))
    for option in options:
        if builder.nodes[option].spec.kind == "start":
            builder.problem("flow.unknown-route", f"router {source!r} routes to the start {option!r}", "remove it")


def _unused_then(builder: _Builder, source: str, then: str) -> None:
    builder.intend(source, then)  # otherwise a node that stands here alone were told a second time
    builder.problem(
        "flow.unused-then",
        f"router {source!r} has then={then!r}, but every route has an edge of its own or ends the Tern",
        "remove then=, or the edge of the route that should go there",
    )


def _check_reach(builder: _Builder) -> None:
    nodes = builder.nodes
    starts, finishes = _check_ends(builder)
    dead = _check_dead_ends(builder)
    reached = _closure([*starts, *builder.entered], builder.meant)
    backwards: dict[str, list[str]] = {}
    for source, targets in builder.meant.items():
        for target in targets:
            backwards.setdefault(target, []).append(source)
    ending = _closure([*finishes, *dead, *builder.left], backwards)
    for name, node in nodes.items():
        if starts and name not in reached:
            builder.problem(
                "flow.unreachable", f"{node.spec.kind} {name!r} is never reached from a start", "add an edge to it"
            )
        elif finishes and name not in ending:
            builder.problem(
                "flow.dead-end", f"{node.spec.kind} {name!r} goes round without ever reaching a finish", "add a way out"
            )


def _check_ends(builder: _Builder) -> tuple[list[str], list[str]]:
    starts = [name for name, node in builder.nodes.items() if node.spec.kind == "start"]
    finishes = [name for name, node in builder.nodes.items() if node.spec.kind == "finish"]
    if not starts:
        builder.problem("flow.no-start", "the flow has no start", "begin a chain with TaskStart")
    if not finishes:
        builder.problem("flow.no-finish", "the flow has no finish", "end a chain with AnswerFinish")
    return starts, finishes


def _check_dead_ends(builder: _Builder) -> list[str]:
    """Nodes that lead nowhere, each told once."""
    routed = {option: name for name, node in builder.nodes.items() for option in node.routes}
    dead = [
        name
        for name, node in builder.nodes.items()
        if node.spec.kind != "finish" and name not in builder.meant and name not in builder.left
    ]
    for name in dead:
        kind = builder.nodes[name].spec.kind
        text, hint = f"{kind} {name!r} leads nowhere", "lead it to a finish"
        if kind == "router":
            hint = "write from_(Router).routes(...)"
        elif name in routed and kind != "start":
            text = f"router {routed[name]!r} routes to {name!r}, which leads nowhere"
            hint = "add then=AnswerFinish (or then=the router), or an edge from the route"
        builder.problem("flow.dead-end", text, hint)
    return dead


def _closure(roots: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    open_names = list(roots)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names.extend(edges.get(name, ()))
    return found
