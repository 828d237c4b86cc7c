"""Serve an App over HTTP. Needs ``pip install 'agboss[server]'``."""

from agboss.server.application import make_server
from agboss.server.running import run_server

__all__ = ["make_server", "run_server"]
