"""A help desk: a router, two agents, and a tool that looks up orders in an injected book."""

from .desk import Advisor, HelpDesk, OrderDesk, Reception
from .orders import ORDERS, Order, OrderBook, PaperOrderBook, look_up_order

__all__ = [
    "ORDERS",
    "Advisor",
    "HelpDesk",
    "Order",
    "OrderBook",
    "OrderDesk",
    "PaperOrderBook",
    "Reception",
    "look_up_order",
]
