"""Which workflow a command is about: ``--app``, ``AGBOSS_APP``, or ``[tool.agboss] app`` of the nearest pyproject."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

from agboss.cli.faults import CommandError, place
from agboss.components.agent import AgentSpec
from agboss.components.metadata import component_of
from agboss.components.tool import ToolSpec
from agboss.components.workflow import WorkflowSpec
from agboss.errors import AgbossError
from agboss_memory.nearest import close_names
from agboss_memory.wording import told

APP_VARIABLE = "AGBOSS_APP"
FORM = "write module:Class, for example --app desk:CompactingDesk"


def find_workflow(given: str | None) -> Any:
    """The class that a reference names.

    Raises:
        CommandError: No reference, a malformed one, or one that leads to nothing.
        AgbossError: A decorator of the module refused its arguments.
    """
    reference, folder = _reference(given)
    module_name, colon, attribute = reference.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise CommandError("cli.bad-app", f"{reference!r} names no workflow", FORM, app=reference)
    for path in (folder, Path.cwd()):
        _put_first(path)
    found: Any = _module(module_name, reference)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise _no_attribute(found, name, reference)
        found = getattr(found, name)
    return found


def find_tools(module: str) -> tuple[Any, ...]:
    """The decorated tools of a module. Raises CommandError."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise CommandError("cli.bad-app", f"{module!r} names no module", "write --tools mytools", app=module)
    _put_first(Path.cwd())
    inside = cast("dict[str, Any]", vars(_module(module, module)))
    return tuple(item for item in inside.values() if isinstance(component_of(item), ToolSpec))


def _reference(given: str | None) -> tuple[str, Path]:
    if named := given or os.environ.get(APP_VARIABLE):
        return named, Path.cwd()
    pyproject = next((path for path in _candidates(Path.cwd()) if path.is_file()), None)
    looked = "there is no pyproject.toml here or above"
    if pyproject is not None:
        named = _in_pyproject(pyproject)
        if named:
            return named, pyproject.parent
        looked = f"{pyproject} has no [tool.agboss] app"
    raise CommandError(
        "cli.no-app",
        f"no workflow is named: --app is not given, {APP_VARIABLE} is not set, and {looked}",
        f'{FORM}, or put it under [tool.agboss] in pyproject.toml as app = "desk:CompactingDesk"',
    )


def _candidates(folder: Path) -> list[Path]:
    return [parent / "pyproject.toml" for parent in (folder, *folder.parents)]


def _in_pyproject(path: Path) -> str:
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError("cli.bad-pyproject", f"{path} cannot be read: {error}", "mend it, or give --app") from error
    for key in ("tool", "agboss"):
        inner = tables.get(key)
        tables = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    named = tables.get("app", "")
    if not isinstance(named, str):
        raise CommandError("cli.bad-app", f"{path}: [tool.agboss] app is {named!r}, not text", FORM)
    return named


def _put_first(path: Path) -> None:
    text = str(path)
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)


def _module(name: str, reference: str) -> Any:
    try:
        return importlib.import_module(name)
    except AgbossError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise CommandError(
                "cli.no-module",
                f"{reference!r}: there is no module {error.name!r} in {Path.cwd()}",
                "run the command in the folder that holds it",
                app=reference,
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> CommandError:
    where = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else place(error)
    text = f"module {name!r} cannot be imported: {told(error)} ({where})"
    return CommandError("cli.broken-app", text, "mend the module", app=name)


def _no_attribute(holder: Any, name: str, reference: str) -> CommandError:
    inside = cast("dict[str, Any]", vars(holder))
    names = [key for key, value in inside.items() if isinstance(component_of(value), WorkflowSpec | AgentSpec)]
    near = close_names(name, names)
    hint = f"did you mean {near[0]!r}?" if near else f"it holds: {', '.join(names)}" if names else FORM
    return CommandError("cli.no-class", f"{reference!r}: {holder.__name__!r} has no {name!r}", hint, app=reference)
