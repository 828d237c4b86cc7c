"""How a file is given: what its type is, and what is refused with a name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agboss_memory import Attachment
from agboss_memory.attachments import LARGEST_ATTACHMENT
from agboss_memory.errors import InvalidInputError

PNG = b"\x89PNG\r\n\x1a\n...."


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("cat.png", PNG, "image/png"),
        ("cat", PNG, "image/png"),
        ("cat.txt", PNG, "image/png"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("a", b"GIF89a...", "image/gif"),
        ("a", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        ("a", b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        ("a", b"RIFF\x00\x00\x00\x00AVI ", "application/octet-stream"),
        ("scan", b"%PDF-1.7\n", "application/pdf"),
        ("Report.DOCX", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("table.csv", b"a,b\n", "text/csv"),
        ("notes", b"plain words", "text/plain"),
        ("core", b"\x00\x01\x02", "application/octet-stream"),
        ("core", b"\xff\xfe\xfd", "application/octet-stream"),
        ("x.unknown", "grüße".encode(), "text/plain"),
    ],
)
def test_the_type_is_that_of_the_content_then_of_the_name(name: str, data: bytes, media_type: str) -> None:
    assert Attachment.from_bytes(data, name=name).media_type == media_type
    assert Attachment.from_bytes(data, name=name, media_type="image/tiff").media_type == "image/tiff"


def test_a_file_from_disk_keeps_its_name_and_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    cat = Attachment.from_path(path)
    path.unlink()
    assert (cat.name, cat.media_type, cat.size, cat.data, cat.kind) == ("cat.png", "image/png", 12, PNG, "image")
    assert cat.record().id == cat.id == Attachment.from_bytes(bytearray(PNG), name="other").id
    assert repr(cat) == "Attachment(name='cat.png', media_type='image/png', size=12)"


def missing(folder: Path) -> Attachment:
    return Attachment.from_path(folder / "none.png")


def a_folder(folder: Path) -> Attachment:
    return Attachment.from_path(str(folder))


def empty(folder: Path) -> Attachment:
    (folder / "empty.txt").touch()
    return Attachment.from_path(folder / "empty.txt")


def too_large(folder: Path) -> Attachment:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(LARGEST_ATTACHMENT + 1)
    return Attachment.from_path(folder / "large.bin")


def nul_in_path(folder: Path) -> Attachment:
    return Attachment.from_path(f"{folder}/a\x00b")


def bad_name(folder: Path) -> Attachment:
    return Attachment.from_bytes(b"x", name="")


def long_name(folder: Path) -> Attachment:
    return Attachment.from_bytes(b"x", name="n" * 513)


def bad_type(folder: Path) -> Attachment:
    return Attachment.from_bytes(b"x", name="x", media_type="PNG")


def parameters(folder: Path) -> Attachment:
    return Attachment.from_bytes(b"x", name="x", media_type="text/plain; charset=utf-8")


def text_for_bytes(folder: Path) -> Attachment:
    data: Any = "text"
    return Attachment.from_bytes(data, name="x")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (missing, "attachment.missing-file"),
        (a_folder, "attachment.no-file"),
        (empty, "attachment.empty"),
        (too_large, "attachment.too-large"),
        (nul_in_path, "attachment.unreadable"),
        (bad_name, "attachment.bad-name"),
        (long_name, "attachment.bad-name"),
        (bad_type, "attachment.bad-type"),
        (parameters, "attachment.bad-type"),
        (text_for_bytes, "attachment.bad-data"),
    ],
)
def test_what_cannot_be_given_is_refused_by_name(tmp_path: Path, make: Callable[[Path], Attachment], code: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        make(tmp_path)
    assert refused.value.code == code
    assert refused.value.hint
