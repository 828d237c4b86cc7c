"""``agboss serve``: a workflow, or a folder of agent definitions, over HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import agboss.app as parts  # definitions are loaded when they are served
from agboss.cli.options import Session, command
from agboss.cli.target import find_tools
from agboss.errors import MissingExtraError

TOKENS_VARIABLE = "AGBOSS_TOKENS"


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "serve")(serve)


async def serve(
    session: Session,
    host: Annotated[str, typer.Option("--host", help="Address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 = a free one.")] = 8000,
    rate_limit: Annotated[
        int, typer.Option("--rate-limit", min=0, help="Requests per minute of one client; 0 = no bound.")
    ] = 600,
    grace: Annotated[float, typer.Option("--grace", min=0, help="Seconds that running turns get at the end.")] = 10.0,
    definitions: Annotated[
        str | None, typer.Option("--definitions", metavar="FOLDER", help="Serve agents defined by JSON files.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option("--tools", metavar="MODULE", help="Module with the tools that definitions name.")
    ] = None,
    recover: Annotated[
        bool, typer.Option("--recover/--no-recover", help="Go on with turns that a killed process left.")
    ] = True,
    proxy: Annotated[
        str,
        typer.Option("--proxy", metavar="ADDRESS", help="Server in front whose X-Forwarded-* headers are believed."),
    ] = "",
    admin: Annotated[bool, typer.Option("--admin", help="Pages under /admin that show and steer memory.")] = False,
) -> None:
    """Serve a workflow over HTTP until Ctrl-C. Tokens come from AGBOSS_TOKENS, as owner=token,owner=token."""
    try:
        from agboss.admin import add_admin  # an extra of its own
        from agboss.server import make_server, run_server
        from agboss.server.settings import LOOPBACK_HOSTS, check_address, is_loopback, parse_tokens
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("jinja2", "starlette", "uvicorn"):
            raise
        text = f"serving needs {error.name}"
        raise MissingExtraError("extra.missing", text, "pip install 'agboss[server]'") from error
    tokens = parse_tokens(os.environ.get(TOKENS_VARIABLE, ""))
    check_address(host, tokens=bool(tokens))
    names = (*LOOPBACK_HOSTS, host) if is_loopback(host) else ("*",)  # elsewhere the token is what protects
    target = _target(session, definitions, tools)
    server = make_server(
        target, tokens=tokens, allowed_hosts=names, rate_limit=rate_limit, grace=grace, recover=recover
    )
    if admin:
        add_admin(server)

    def started(url: str) -> None:
        if session.out.as_json:
            session.out.document({"url": url})
        else:
            session.out.line(f"serving {_name(target)} on {url}" + (f", pages on {url}/admin/" if admin else ""))

    await run_server(server, host=host, port=port, proxy=proxy, started=started)


def _target(session: Session, definitions: str | None, tools: str | None) -> parts.App | parts.AgentRuntime:
    if definitions is None:
        return session.open_app()
    found = () if tools is None else find_tools(tools)
    return parts.AgentRuntime(definitions, store=session.store, tools=found, offline=session.offline)


def _name(target: parts.App | parts.AgentRuntime) -> str:
    if isinstance(target, parts.App):
        return target.name
    return ", ".join(definition.name for definition in target.agents()) or "no agents"
