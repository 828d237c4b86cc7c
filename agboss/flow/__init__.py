"""Flows: how nodes follow one another."""

from agboss.flow.edges import Chain, Edge, From, Routes, chain, from_
from agboss.flow.graph import Graph, Node, compile_flow

__all__ = ["Chain", "Edge", "From", "Graph", "Node", "Routes", "chain", "compile_flow", "from_"]
