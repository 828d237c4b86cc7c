"""Routing by a function of one's own."""

from __future__ import annotations

import inspect
from typing import Any

from agboss.components.settings import FunctionRouter
from agboss.errors import AgbossError, RouterError
from agboss.routers.contract import RouteRequest, RouteResult
from agboss.routers.deciding import NameOf, component_name
from agboss_memory.wording import told


class RouteByFunction:
    """Calls a function, sync or async, with the ``RouteRequest``. It returns a name, a component or a ``RouteResult``.

    Args:
        settings: Holds the function. A sync one runs on the event loop and must be quick.
        name_of: Gives the name of a component that the function returns.
    """

    def __init__(self, settings: FunctionRouter, *, name_of: NameOf = component_name) -> None:
        self._function = settings.function
        self._name_of = name_of

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide.

        Raises:
            RouterError: ``router.failed`` when the function raised, ``router.not-a-component`` for another result.
        """
        try:
            found: Any = self._function(request)
            if inspect.isawaitable(found):
                found = await found
        except AgbossError:
            raise
        except Exception as error:
            raise RouterError(
                "router.failed",
                f"the function of router {request.router!r} raised {told(error)[:300]}",
                router=request.router,
            ) from error
        if isinstance(found, RouteResult):
            return found
        return RouteResult(next=self._name_of(found), confidence=1.0, source="function")
