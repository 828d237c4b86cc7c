"""Options that hold for every command, before or after its name, and what each command gets of them."""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import inspect
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

from agboss.app import App, create_app
from agboss.cli.faults import INTERRUPTED, USAGE, CommandError, as_error, exit_code
from agboss.cli.output import Output, stdout_kept, warnings_shown
from agboss.cli.target import find_workflow
from agboss_memory.records import Record
from agboss_memory.stores.urls import store_file

AppOption = Annotated[str | None, typer.Option("--app", metavar="MODULE:CLASS", help="The workflow.")]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Built-in stand-ins for all models; needs no key.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
StoreOption = Annotated[str | None, typer.Option("--store", metavar="URL", help="Where threads are kept.")]

_SHARED: dict[str, tuple[Any, Any]] = {
    "app": (AppOption, None),
    "offline": (OfflineOption, False),
    "as_json": (JsonOption, False),
    "store": (StoreOption, None),
}


class Session(Record, kw_only=True):
    """What a command may use.

    Attributes:
        out: Where it prints.
        app: The workflow as ``module:Class``, None = as configured.
        offline: Replace every model and router by built-in ones.
        store: URL of the store, None = as configured.
    """

    out: Output
    app: str | None
    offline: bool
    store: str | None

    def workflow(self) -> Any:
        """The class that the command is about. Raises CommandError."""
        return find_workflow(self.app)

    def open_app(self, workflow: Any = None) -> App:
        """An App of it. Raises AssemblyError and StoreUrlError."""
        target = self.workflow() if workflow is None else workflow
        return create_app(target, store=self.store, offline=self.offline)

    def open_stored(self, workflow: Any = None) -> App:
        """The same for a command that looks into a store: one that is not there is none, and is not made.

        Raises:
            CommandError: ``cli.no-store``.
        """
        app = self.open_app(workflow)
        file = store_file(app.store_url)
        if file is not None and not file.exists():
            raise CommandError(
                "cli.no-store",
                f"there is no store at {file.absolute()}, so it holds no threads",
                "name the right one with --store or AGBOSS_STORE, or run the command in the folder that holds it",
                store=app.store_url,
            )
        return app


def shared_options(
    ctx: typer.Context,
    app: AppOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Keep the options that stand before a command's name. Without a command its help is shown."""
    shared = _merge(ctx, {"app": app, "offline": offline, "as_json": as_json, "store": store})
    if ctx.invoked_subcommand is None:
        _tell_commands(ctx, bool(shared["as_json"]))
        raise typer.Exit(USAGE)


def root_options(
    ctx: typer.Context,
    app: AppOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """The same for the root, which tells its version as well."""
    if version:
        out = Output(as_json)
        number = importlib.metadata.version("agboss")
        if as_json:
            out.document({"version": number})
        else:
            out.line(f"agboss {number}")
        raise typer.Exit
    shared_options(ctx, app, offline, as_json, store)


def _tell_commands(ctx: typer.Context, as_json: bool) -> None:
    if as_json:
        Output(as_json).error(CommandError("cli.usage", "a command is missing", "see agboss --help"))
    else:
        typer.echo(ctx.get_help())


def command(group: typer.Typer, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a command that takes a ``Session`` first, may be async, and may return an exit code."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        @functools.wraps(function)
        def run(ctx: typer.Context, **given: Any) -> None:
            shared = _merge(ctx, {key: given.pop(key) for key in _SHARED})
            as_json = bool(shared.pop("as_json"))
            code = _run(function, Session(out=Output(as_json), **shared), given)
            if code:
                raise typer.Exit(code)

        kind = inspect.Parameter.KEYWORD_ONLY
        extra = [
            inspect.Parameter(key, kind, default=default, annotation=annotation)
            for key, (annotation, default) in _SHARED.items()
        ]
        context = inspect.Parameter("ctx", kind, annotation=typer.Context)
        parameters = [context, *(parameter.replace(kind=kind) for parameter in own), *extra]
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        group.command(name)(run)
        return function

    return register


def _merge(ctx: typer.Context, given: dict[str, Any]) -> dict[str, Any]:
    kept = cast("dict[str, Any]", ctx.find_root().ensure_object(dict))
    kept.update({key: value for key, value in given.items() if value or key not in kept})
    return dict(kept)


def _run(function: Callable[..., Any], session: Session, given: dict[str, Any]) -> int:
    with stdout_kept(session.out), warnings_shown(session.out):
        try:
            made = function(session, **given)
            code = asyncio.run(made) if inspect.iscoroutine(made) else made
        except KeyboardInterrupt:
            session.out.note("interrupted")
            return INTERRUPTED
        except (BrokenPipeError, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            session.out.error(as_error(error))
            _tell_run(session.out, error)
            return exit_code(error)
    return code or 0


def _tell_run(out: Output, error: BaseException) -> None:
    run = getattr(error, "run", None)
    if run is not None and not out.as_json:
        out.field("thread", run.thread)
