"""Files that come with a task: how they are given, and how their bytes are read again."""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from agboss_memory.errors import InvalidInputError
from agboss_memory.messages import AttachmentRecord, MediaKind, media_kind
from agboss_memory.records import Record
from agboss_memory.wording import quoted

LARGEST_ATTACHMENT = 100 * 2**20
"""Bytes; a larger file is refused. One above 20 MiB is kept, and a model reads a placeholder for it."""

LONGEST_FILE_NAME = 512
"""Characters of a file name that are kept."""

BYTES_UNKNOWN = "application/octet-stream"
"""Media type of bytes of which nothing is known."""

_TYPE = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,127}"

_MAGIC: tuple[tuple[bytes, int, bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, b"", "image/png"),
    (b"\xff\xd8\xff", 0, b"", "image/jpeg"),
    (b"GIF87a", 0, b"", "image/gif"),
    (b"GIF89a", 0, b"", "image/gif"),
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"%PDF-", 0, b"", "application/pdf"),
    (b"fLaC", 0, b"", "audio/flac"),
    (b"OggS", 0, b"", "audio/ogg"),
    (b"ID3", 0, b"", "audio/mpeg"),
)
"""First bytes, and bytes at a place behind them, of types that say what they are. They count more than a name."""

# A table of our own: what the mimetypes module says depends on the machine.
_ENDINGS = {
    "aac": "audio/aac",
    "aiff": "audio/aiff",
    "avi": "video/x-msvideo",
    "bmp": "image/bmp",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mkv": "video/x-matroska",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "odt": "application/vnd.oasis.opendocument.text",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf",
    "svg": "image/svg+xml",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}


class PartRequest(Record, kw_only=True):
    """Asks for the bytes of a file.

    Attributes:
        attachment: The file as the log keeps it.
        thread_id: The thread in which it is to be shown; empty when unknown.
        owner: The thread's owner, None when it has none.
    """

    attachment: AttachmentRecord
    thread_id: str = ""
    owner: str | None = None


class PartContentReader(ABC):
    """Reads the bytes of files for the mapper. The store's own ``files`` is one."""

    @abstractmethod
    async def read(self, request: PartRequest) -> bytes | None:
        """The bytes, None when they are not to be had. What it raises counts as None."""


class Attachment(Record, kw_only=True):
    """A file to give with a task: ``app.execute("What is this?", attachments=[Attachment.from_path("cat.png")])``.

    Attributes:
        name: The file's name, 1 to 512 characters; shown to the model, never used as a path.
        media_type: Such as ``image/png``.
        data: The bytes, 1 byte to 100 MiB.

    Raises:
        InvalidInputError: ``attachment.empty``, ``attachment.too-large``, ``attachment.bad-name``,
            ``attachment.bad-type`` or ``attachment.bad-data``.
    """

    name: str
    media_type: str
    data: bytes

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.media_type, str) or not re.fullmatch(_TYPE, self.media_type):
            raise InvalidInputError(
                "attachment.bad-type",
                f"{quoted(self.media_type)} is no media type (attachment {quoted(self.name)})",
                "write type/subtype in lower case and without parameters, such as 'image/png'",
            )
        if not isinstance(self.data, bytes):
            raise InvalidInputError(
                "attachment.bad-data",
                f"attachment {quoted(self.name)}: the data is a {type(self.data).__name__}, not bytes",
                "pass bytes; text.encode() makes some of text",
            )
        _check_size(self.name, len(self.data))

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str, media_type: str | None = None
    ) -> Attachment:
        """A file from its bytes.

        Args:
            data: The bytes; they are copied unless they cannot change.
            name: The file's name.
            media_type: None = guessed, from the first bytes, then the name, then whether it is text.

        Raises:
            InvalidInputError: See the class.
        """
        held = bytes(data) if isinstance(data, bytearray | memoryview) else data
        _check_name(name)
        known = media_type if media_type is not None or not isinstance(held, bytes) else guessed_type(name, held)
        return cls(name=name, media_type=BYTES_UNKNOWN if known is None else known, data=held)

    @classmethod
    def from_path(
        cls, path: str | os.PathLike[str], *, name: str | None = None, media_type: str | None = None
    ) -> Attachment:
        """A file from disk; it is read now.

        Args:
            path: Where it is.
            name: None = the last part of the path.
            media_type: None = guessed, see ``from_bytes``.

        Raises:
            InvalidInputError: ``attachment.missing-file``, ``attachment.no-file`` (a folder, a device),
                ``attachment.unreadable``, and what the class raises.
        """
        try:
            place = Path(path)
        except TypeError as error:
            raise InvalidInputError("attachment.no-file", f"{quoted(path)} is no path", "name a file") from error
        return cls.from_bytes(_content(place), name=place.name if name is None else name, media_type=media_type)

    def __repr__(self) -> str:
        return f"Attachment(name={self.name!r}, media_type={self.media_type!r}, size={self.size})"

    @property
    def kind(self) -> MediaKind:
        """What it is to a model."""
        return media_kind(self.media_type)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def id(self) -> str:
        """SHA-256 of the bytes, 64 hexadecimal digits."""
        return content_id(self.data)

    def record(self) -> AttachmentRecord:
        """What the log keeps of it."""
        return AttachmentRecord(name=self.name, media_type=self.media_type, size=self.size, id=self.id)


def content_id(data: bytes) -> str:
    """SHA-256 of some bytes, 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def guessed_type(name: str, data: bytes) -> str:
    """The media type of a file: its first bytes, else its name's ending, else whether it is UTF-8 text."""
    for begin, place, behind, found in _MAGIC:
        if data.startswith(begin) and data.startswith(behind, place):
            return found
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return BYTES_UNKNOWN
    return BYTES_UNKNOWN if "\x00" in text else "text/plain"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_FILE_NAME:
        raise InvalidInputError(
            "attachment.bad-name",
            f"{quoted(name)} is no name of an attachment",
            f"use 1 to {LONGEST_FILE_NAME} characters of text",
        )


def _check_size(name: str, size: int) -> None:
    if size == 0:
        raise InvalidInputError("attachment.empty", f"attachment {quoted(name)} is empty", "leave it out")
    if size > LARGEST_ATTACHMENT:
        raise InvalidInputError(
            "attachment.too-large",
            f"attachment {quoted(name)} has {size} bytes, more than {LARGEST_ATTACHMENT}",
            f"give a smaller file; models get at most {LARGEST_ATTACHMENT // 2**20 // 5} MiB of one",
            size=size,
        )


def _content(place: Path) -> bytes:
    try:
        found = place.stat()
        if not S_ISREG(found.st_mode):
            what = "a folder" if S_ISDIR(found.st_mode) else "no regular file"
            raise InvalidInputError("attachment.no-file", f"{str(place)!r} is {what}", "name a file", path=str(place))
        _check_size(place.name, found.st_size)
        return place.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInputError(
            "attachment.missing-file",
            f"there is no file {str(place)!r}",
            f"check the path; relative ones begin at {str(Path.cwd())!r}",
            path=str(place),
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            "attachment.unreadable",
            f"file {str(place)!r} cannot be read: {error}",
            "check the path and its permissions",
        ) from error
