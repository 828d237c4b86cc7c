"""Orders, and the tool by which an agent looks one up."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from agboss import InjectionToken, tool


class Order(BaseModel):
    """An order as the shop knows it."""

    model_config = ConfigDict(frozen=True)

    number: int
    status: Literal["packed", "sent", "delivered"]
    expected: date | None = None


class OrderBook(Protocol):
    """Where orders are kept."""

    async def find(self, number: int) -> Order | None:
        """The order of that number, None when there is none."""
        ...


class PaperOrderBook:
    """Two orders, for the example. A shop would ask its database."""

    def __init__(self) -> None:
        self._orders = {
            4711: Order(number=4711, status="sent", expected=date(2026, 12, 4)),
            4712: Order(number=4712, status="packed"),
        }

    async def find(self, number: int) -> Order | None:
        """See ``OrderBook``."""
        return self._orders.get(number)


ORDERS = InjectionToken[OrderBook]("ORDERS")


@tool(timeout=10)
async def look_up_order(number: int, orders: Annotated[OrderBook, ORDERS]) -> Order | str:
    """Look up an order: where it is and when it is expected.

    Args:
        number: The order's number, digits only.
    """
    found = await orders.find(number)
    return found if found is not None else f"There is no order {number}."
