"""Attachments on disk: whole or not at all, read back only undamaged, and nowhere but in their folder."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_memory.attachments import Attachment, PartRequest, content_id
from agboss_memory.errors import StoreError
from agboss_memory.messages import AttachmentRecord
from agboss_memory.stores import DiskFiles, FileStore, FileWrite, MemoryFiles, SqliteStore


def asked(name: str) -> PartRequest:
    return PartRequest(attachment=AttachmentRecord(name="x", media_type="image/png", size=1, id=name))


def place_of(folder: Path, name: str) -> Path:
    return folder / name[:2] / name


@pytest.fixture
def files(tmp_path: Path) -> DiskFiles:
    return DiskFiles(tmp_path / "log.db.files")


async def test_a_file_lies_beside_the_database_under_its_hash(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    name = await store.files.write(FileWrite(data=b"abc"))
    assert name == content_id(b"abc")
    assert place_of(tmp_path / "log.db.files", name).read_bytes() == b"abc"


async def test_a_second_writer_of_the_same_content_changes_nothing(files: DiskFiles) -> None:
    names = await asyncio.gather(*(files.write(FileWrite(data=b"abc")) for _ in range(8)))
    assert len(set(names)) == 1
    place = place_of(files.folder, names[0])
    before = place.stat()
    await files.write(FileWrite(data=b"abc"))
    assert (place.stat().st_mtime_ns, place.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert [path.name for path in files.folder.rglob("*") if path.is_file()] == [names[0]]


async def test_a_damaged_or_missing_file_is_none_and_is_mended_by_the_next_write(files: DiskFiles) -> None:
    name = await files.write(FileWrite(data=b"abc"))
    place = place_of(files.folder, name)
    for damage in (b"abd", b"", b"abcd"):
        place.write_bytes(damage)
        assert await files.read(asked(name)) is None
        await files.write(FileWrite(data=b"abc"))
        assert await files.read(asked(name)) == b"abc"
    place.unlink()
    assert await files.read(asked(name)) is None


async def test_links_are_followed_neither_by_readers_nor_by_writers(files: DiskFiles, tmp_path: Path) -> None:
    name = await files.write(FileWrite(data=b"abc"))
    place = place_of(files.folder, name)
    place.unlink()
    outside = tmp_path / "outside"
    outside.write_bytes(b"abc")
    place.symlink_to(outside)
    assert await files.read(asked(name)) is None
    await files.write(FileWrite(data=b"abc"))
    assert not place.is_symlink()
    assert await files.read(asked(name)) == b"abc"
    place.unlink()
    place.parent.rmdir()
    place.parent.symlink_to(tmp_path)
    (tmp_path / name).write_bytes(b"abc")
    assert await files.read(asked(name)) is None
    files.remove([name])
    assert (tmp_path / name).exists()
    with pytest.raises(StoreError) as refused:
        await files.write(FileWrite(data=b"abc"))
    assert refused.value.code == "store.file-place"


async def test_what_is_no_regular_file_is_unreadable_and_never_blocks(files: DiskFiles) -> None:
    name = await files.write(FileWrite(data=b"abc"))
    place = place_of(files.folder, name)
    place.unlink()
    place.mkdir()
    assert await files.read(asked(name)) is None
    with pytest.raises(StoreError) as refused:
        await files.write(FileWrite(data=b"abc"))
    assert refused.value.code == "store.file"
    with pytest.raises(StoreError):
        files.remove([name])
    place.rmdir()
    os.mkfifo(place)
    assert await files.read(asked(name)) is None


async def test_a_failed_write_leaves_nothing_behind(files: DiskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        await files.write(FileWrite(data=b"abc"))
    monkeypatch.undo()
    assert [path for path in files.folder.rglob("*") if path.is_file()] == []
    assert await files.read(asked(content_id(b"abc"))) is None


@given(data=st.binary(min_size=1, max_size=2000), name=st.text(min_size=1, max_size=60))
async def test_any_bytes_under_any_name_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    stores: tuple[FileStore, ...] = (MemoryFiles(), DiskFiles(tmp_path_factory.getbasetemp() / "any"))
    given_file = Attachment.from_bytes(data, name=name)
    for store in stores:
        assert await store.write(FileWrite(data=data)) == given_file.id
        assert await store.read(PartRequest(attachment=given_file.record())) == data
