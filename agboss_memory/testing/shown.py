"""One request as the model would get it: what every promise is checked on."""

from __future__ import annotations

from agboss_memory.contract import LeftOut, TokenCounter
from agboss_memory.fit import estimate
from agboss_memory.memory import Memory, WindowView
from agboss_memory.messages import Message, Summary, Tern
from agboss_memory.records import Record


class Shown(Record, kw_only=True):
    """A request.

    Attributes:
        system: The whole system text.
        messages: The exact messages.
        summaries: The summaries in it.
        history: The Terns in it, for a strategy that shows turns.
        left_out: What the view names as left out.
        exact: Whether the strategy gave messages; False = it gave turns, which stand in one user message.
        schemas: Tool schemas as they are sent.
        window: The model's window in tokens.
        reply_reserve: Tokens kept free for the answer.
        counter: Counts tokens.
    """

    system: str = ""
    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...] = ()
    history: tuple[Tern, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    exact: bool = True
    schemas: tuple[str, ...] = ()
    window: int
    reply_reserve: int = 0
    counter: TokenCounter

    @property
    def tokens(self) -> int:
        """Estimate of the request, the reply reserve included."""
        return estimate(self.messages, self.counter, fixed=(self.system, *self.schemas)) + self.reply_reserve

    @property
    def lead(self) -> str:
        """The summaries that lead the messages, as text; empty when there are none."""
        return "".join(message.content for message in self.messages if message.state == "summary")


def shown(view: WindowView, memory: Memory, *, reply_reserve: int | None = None) -> Shown:
    """What ``Memory.view`` gave, as a request.

    Args:
        view: The view.
        memory: What gave it.
        reply_reserve: What the Memory was given; None = it took the default, an eighth of the window, at most 4096.
    """
    reserve = min(4096, view.window // 8) if reply_reserve is None else reply_reserve
    return Shown(
        system=view.system,
        messages=view.messages,
        summaries=view.summaries,
        left_out=view.left_out,
        window=view.window,
        reply_reserve=reserve,
        counter=memory.counter,
    )
