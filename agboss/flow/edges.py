"""How a flow is written: ``chain`` and ``from_``."""

from __future__ import annotations

from typing import Any, TypeAlias

from agboss.components.naming import describe
from agboss.errors import DeclarationError
from agboss_memory.records import Record


class Chain(Record, kw_only=False):
    """Nodes that follow one another."""

    nodes: tuple[Any, ...]

    def next(self, node: Any) -> Chain:
        """The same chain with one more node at the end."""
        return Chain((*self.nodes, node))


class Routes(Record, kw_only=False):
    """A router, the nodes it may choose, and where those go that have no edge of their own."""

    router: Any
    options: tuple[Any, ...]
    then: Any = None


Edge: TypeAlias = Chain | Routes


class From(Record, kw_only=False):
    """The beginning of an edge, made by ``from_``."""

    node: Any

    def next(self, node: Any) -> Chain:
        """An edge to ``node``."""
        return Chain((self.node, node))

    def routes(self, *options: Any, then: Any = None) -> Routes:
        """The routes of a router.

        Args:
            *options: Components that the router may choose.
            then: Where a chosen component goes when it has no edge of its own: a finish (route once), or the router
                itself (it is asked again with the last answer; a finish among the options ends the loop).
        """
        if not options:
            raise DeclarationError(
                "declaration.no-routes", f"from_({describe(self.node)}).routes() names no route", "name at least one"
            )
        return Routes(self.node, options, then)


def chain(*nodes: Any) -> Chain:
    """Nodes that follow one another, for example ``chain(TaskStart, Recaller, AnswerFinish)``."""
    if len(nodes) < 2:
        raise DeclarationError(
            "declaration.short-chain", f"chain() got {len(nodes)} node(s)", "name at least two components"
        )
    return Chain(nodes)


def from_(node: Any) -> From:
    """The beginning of an edge: ``from_(A).next(B)`` or ``from_(Router).routes(A, B, then=AnswerFinish)``."""
    return From(node)
