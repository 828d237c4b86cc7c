"""Where the bytes of attachments are: one file per content, named by its SHA-256. Beside the database, or in memory."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISREG

from agboss_memory.attachments import PartContentReader, PartRequest, content_id
from agboss_memory.errors import StoreError
from agboss_memory.records import Record

logger = logging.getLogger("agboss_memory")

_ID = r"[0-9a-f]{64}"
_SHARD = 2
"""Digits of an id that name its folder, so that none holds more than a 256th of the files."""


class FileWrite(Record, kw_only=True):
    """Bytes to keep."""

    data: bytes


class FileStore(PartContentReader):
    """Keeps contents under their SHA-256. The same content is kept once, whoever brings it."""

    @abstractmethod
    async def write(self, request: FileWrite) -> str:
        """Keep some bytes durably; gives their id. Raises StoreError; then nothing was kept."""

    @abstractmethod
    def remove(self, ids: Iterable[str]) -> None:
        """Delete contents. The store calls it when no thread names them any more; unknown ids are passed over."""

    @abstractmethod
    def lost(self, ids: Iterable[str]) -> list[str]:
        """Those of the ids whose content is not there, or damaged. A check of the store asks for it."""


class MemoryFiles(FileStore):
    """Contents in this process."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    async def write(self, request: FileWrite) -> str:
        """See ``FileStore.write``."""
        name = content_id(request.data)
        self._contents.setdefault(name, request.data)
        return name

    async def read(self, request: PartRequest) -> bytes | None:
        """See ``PartContentReader.read``."""
        return self._contents.get(request.attachment.id)

    def remove(self, ids: Iterable[str]) -> None:
        """See ``FileStore.remove``."""
        for name in ids:
            self._contents.pop(name, None)

    def lost(self, ids: Iterable[str]) -> list[str]:
        """See ``FileStore.lost``."""
        return [name for name in ids if name not in self._contents]


class DiskFiles(FileStore):
    """Contents as files in a folder, which is made with the first one.

    A file is written beside its place, flushed to the disk and renamed: it is there whole or not at all, also after a
    power loss and with several writers. What is read must have the id that it was asked for by.

    Args:
        folder: Where to keep them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def write(self, request: FileWrite) -> str:
        """See ``FileStore.write``."""
        return await asyncio.to_thread(self._write, request.data)

    async def read(self, request: PartRequest) -> bytes | None:
        """See ``PartContentReader.read``. A file that is missing, damaged or no regular file is told to the log."""
        return await asyncio.to_thread(self._read, request.attachment.id)

    def remove(self, ids: Iterable[str]) -> None:
        """See ``FileStore.remove``. Raises StoreError."""
        for name in ids:
            place = self._place(name)
            if place is not None:
                try:
                    place.unlink(missing_ok=True)
                except OSError as error:
                    raise _fault(place, "deleted", error) from error

    def lost(self, ids: Iterable[str]) -> list[str]:
        """See ``FileStore.lost``. Reads each of them whole."""
        return [name for name in ids if self._read(name) is None]

    def _place(self, name: str) -> Path | None:
        """Where a content is; None for what is no id, and for a folder that leads elsewhere."""
        if not re.fullmatch(_ID, name):
            return None
        shard = self.folder / name[:_SHARD]
        return None if shard.is_symlink() else shard / name

    def _read(self, name: str) -> bytes | None:
        place = self._place(name)
        if place is None:
            logger.warning("attachment %.80r is not kept in %s", name, self.folder)
            return None
        try:
            data = _regular_content(place)
        except OSError as error:
            logger.warning("attachment %s cannot be read: %s", name, error)
            return None
        if data is None or content_id(data) != name:
            logger.warning("attachment %s is damaged: %s", name, place)
            return None
        return data

    def _write(self, data: bytes) -> str:
        name = content_id(data)
        place = self._place(name)
        if place is None:
            raise StoreError(
                "store.file-place",
                f"the folder {self.folder / name[:_SHARD]} is a symbolic link; attachments are not written through one",
                "make it a folder",
                path=str(self.folder),
            )
        try:
            if not _holds(place, data):
                place.parent.mkdir(parents=True, exist_ok=True)
                _put(place, data)
        except OSError as error:
            raise _fault(place, "written", error) from error
        return name


def _regular_content(place: Path) -> bytes | None:
    """The bytes of a regular file, None for anything else. Links are not followed, and nothing blocks."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    opened = os.open(place, flags)
    try:
        if not S_ISREG(os.fstat(opened).st_mode):
            return None
        with open(opened, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(opened)


def _holds(place: Path, data: bytes) -> bool:
    """Whether the content is there already, undamaged."""
    try:
        return _regular_content(place) == data
    except OSError:
        return False


def _put(place: Path, data: bytes) -> None:
    beside = place.with_name(f".{os.urandom(16).hex()}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    for folder in list(place.parents)[:3]:  # each may be new: the shard, the folder of all, and what it lies in
        _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    """Make a new name last. Systems that cannot open a folder (Windows) keep names by themselves."""
    try:
        opened = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except PermissionError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _fault(place: Path, what: str, error: OSError) -> StoreError:
    return StoreError(
        "store.file",
        f"attachment {place} could not be {what}: {error.strerror or error}",
        "check the permissions of the folder and the free space",
        path=str(place),
    )
