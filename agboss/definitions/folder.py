"""A folder of agent definitions, one file per agent; changes are seen without a restart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from agboss.definitions.definition import LONGEST_NAME, NAME, AgentDefinition, parse_definition
from agboss.errors import AgbossError, InvalidInputError
from agboss.units import new_id
from agboss_memory.nearest import close_names
from agboss_memory.records import Record
from agboss_memory.wording import quoted

SUFFIX = ".json"
LARGEST = 1_000_000
"""Bytes of a definition's file."""

NEW = ""
"""The version of a definition that is not there yet."""

Stamp = tuple[int, int, int]
"""Time in nanoseconds, size in bytes and inode: what tells that a file has changed."""


class DefinitionProblem(Record, kw_only=True):
    """A file that is no definition.

    Attributes:
        file: Its name within the folder.
        error: What is wrong with it.
    """

    file: str
    error: AgbossError


class _Read(Record, kw_only=True):
    stamp: Stamp
    found: AgentDefinition | AgbossError


class DefinitionFolder:
    """A folder with ``<agent name>.json`` files. Reads a file again when it has changed.

    Args:
        path: The folder; made by the first ``save``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._known: dict[str, _Read] = {}
        self._lock = Lock()
        self._writing = Lock()

    def list(self) -> tuple[AgentDefinition, ...]:
        """All valid definitions by name.

        Raises:
            InvalidInputError: ``definition.no-folder``: there is no such folder.
        """
        found = [item.found for item in self._refreshed().values()]
        return tuple(item for item in found if isinstance(item, AgentDefinition))

    def problems(self) -> tuple[DefinitionProblem, ...]:
        """Files that are no definition, by name. Raises as ``list``."""
        read = self._refreshed().items()
        return tuple(
            DefinitionProblem(file=name, error=item.found) for name, item in read if isinstance(item.found, AgbossError)
        )

    def load(self, name: str) -> AgentDefinition:
        """One definition.

        Raises:
            InvalidInputError: ``definition.unknown``: no such file; ``definition.invalid``: it is no definition.
        """
        read = self._refreshed()
        item = read.get(f"{name}{SUFFIX}")
        if item is None:
            raise unknown_agent(name, [file.removesuffix(SUFFIX) for file in read])
        if isinstance(item.found, AgbossError):
            raise item.found
        return item.found

    def save(self, definition: AgentDefinition, *, expected: str | None = None) -> Path:
        """Write a definition to its file, whole or not at all; a reader never sees a part of it.

        Args:
            definition: What is written.
            expected: ``AgentDefinition.version`` that the file must still have, ``NEW`` = there must be no file; None =
                whatever is there is replaced.

        Raises:
            InvalidInputError: ``definition.cannot-write``: the folder cannot be written; ``definition.changed``: the
                file is not the expected one; ``definition.exists``: there is one. Then nothing was written.
        """
        checked = parse_definition(definition.to_dict())  # whatever way it was made
        target = self.path / f"{checked.name}{SUFFIX}"
        passing = self.path / f".{new_id()}.tmp"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                with passing.open("x", encoding="utf-8") as file:
                    file.write(checked.to_json())
                    file.flush()
                    os.fsync(file.fileno())
                self._put(passing, target, checked.name, expected)
            finally:
                passing.unlink(missing_ok=True)
            _sync_folder(self.path)
        except OSError as error:
            text = f"{target} cannot be written: {error.strerror or error}"
            raise InvalidInputError("definition.cannot-write", text, "make the folder writable") from error
        return target

    def delete(self, name: str, *, expected: str | None = None) -> None:
        """Remove the file of a definition.

        Args:
            name: The agent.
            expected: ``AgentDefinition.version`` that the file must still have; None = it may be no definition at all.

        Raises:
            InvalidInputError: ``definition.unknown``: there is no such file; ``definition.changed``: it is not the
                expected one; ``definition.cannot-write``: it cannot be removed.
        """
        if f"{name}{SUFFIX}" not in self._stamps():  # a name that leads out of the folder is not among them either
            raise unknown_agent(name, [file.removesuffix(SUFFIX) for file in self._refreshed()])
        try:
            with self._writing:
                if expected is not None:
                    self._check_version(name, expected)
                (self.path / f"{name}{SUFFIX}").unlink()
            _sync_folder(self.path)
        except OSError as error:
            text = f"the file of agent {name!r} cannot be removed: {error.strerror or error}"
            raise InvalidInputError("definition.cannot-write", text, "make the folder writable") from error

    def _put(self, passing: Path, target: Path, name: str, expected: str | None) -> None:
        """Give a written file its name. Writers of this process wait for each other between look and rename."""
        with self._writing:
            if expected == NEW:
                try:
                    os.link(passing, target)  # fails where a rename would replace
                except FileExistsError as error:
                    text = f"there is an agent {name!r} already"
                    raise InvalidInputError("definition.exists", text, "choose another name", agent=name) from error
                return
            if expected is not None:
                self._check_version(name, expected)
            passing.replace(target)

    def _check_version(self, name: str, expected: str) -> None:
        try:
            found = self.load(name).version
        except InvalidInputError:  # gone, or not valid any more
            found = ""
        if found != expected:
            text = f"agent {name!r} was changed by somebody else meanwhile"
            hint = "copy what you wrote, load the page again"
            raise InvalidInputError("definition.changed", text, hint, agent=name)

    def _refreshed(self) -> dict[str, _Read]:
        with self._lock:
            self._known = {name: self._read(name, stamp) for name, stamp in sorted(self._stamps().items())}
            return self._known

    def _stamps(self) -> dict[str, Stamp]:
        stamps: dict[str, Stamp] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and entry.is_file():
                        told = entry.stat()
                        stamps[entry.name] = (told.st_mtime_ns, told.st_size, told.st_ino)
        except OSError as error:
            text = f"the folder of agent definitions {str(self.path)!r} cannot be read: {error.strerror or error}"
            raise InvalidInputError("definition.no-folder", text, "name a folder of <agent name>.json files") from error
        return stamps

    def _read(self, name: str, stamp: Stamp) -> _Read:
        known = self._known.get(name)
        if known is not None and known.stamp == stamp:
            return known
        try:
            found: AgentDefinition | AgbossError = self._parse(name, stamp)
        except AgbossError as error:
            found = error
        return _Read(stamp=stamp, found=found)

    def _parse(self, name: str, stamp: Stamp) -> AgentDefinition:
        stem = name.removesuffix(SUFFIX)
        if stamp[1] > LARGEST:
            raise _invalid(name, f"it has {stamp[1]} bytes; at most {LARGEST} are read")
        try:
            definition = parse_definition((self.path / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise _invalid(name, f"it cannot be read as UTF-8: {error}") from error
        except InvalidInputError as error:
            raise InvalidInputError(error.code, f"{name}: {error.message}", error.hint, **error.data) from error
        if definition.name != stem:
            raise _invalid(name, f"it defines {definition.name!r}; a file is called after its agent")
        return definition


def unknown_agent(name: str, known: Sequence[str]) -> InvalidInputError:
    """No agent of that name, and which one may be meant."""
    near = close_names(name, known)
    possible = [item for item in known if NAME.fullmatch(item) and len(item) <= LONGEST_NAME]
    hint = f"did you mean {near[0]!r}?" if near else "the agents are: " + (", ".join(possible) or "none")
    return InvalidInputError("definition.unknown", f"there is no agent {quoted(name)}", hint, agent=name)


def _invalid(name: str, what: str) -> InvalidInputError:
    return InvalidInputError("definition.invalid", f"{name}: {what}", "mend the file", problems=(("", what),))


def _sync_folder(path: Path) -> None:
    """Make the new name last through a loss of power, where folders can be synced."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    except OSError:
        pass
    finally:
        os.close(opened)
