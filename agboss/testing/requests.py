"""What a scripted router was asked, readable like the request of a model."""

from __future__ import annotations

from dataclasses import fields

from agboss.models import CallSettings, ToolSchema
from agboss.routers import RouteOption, RouteRequest
from agboss_memory.messages import Message


class RoutedRequest(RouteRequest, kw_only=True):
    """One decision that a scripted router was asked for: a ``RouteRequest`` with the members of a model's request.

    Attributes:
        model: Model id that the router declares, empty when it declares none.
    """

    model: str = ""

    @classmethod
    def of(cls, request: RouteRequest, model: str) -> RoutedRequest:
        """The record of a request."""
        return cls(model=model, **{field.name: getattr(request, field.name) for field in fields(RouteRequest)})

    @property
    def text(self) -> str:
        """Everything that a model would read: past, task, the last answer and the options, as one string."""
        parts = (self.past, self.task, self.last_answer, *(_line(option) for option in self.options))
        return "\n".join(part for part in parts if part)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The text as one message of the user."""
        return (Message(role="user", content=self.text),)

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """None: a router has no tools."""
        return ()

    @property
    def settings(self) -> CallSettings:
        """The defaults."""
        return CallSettings()


def _line(option: RouteOption) -> str:
    told = f"{option.name}: {option.description}" if option.description else option.name
    return "\n".join((told, *option.examples))
