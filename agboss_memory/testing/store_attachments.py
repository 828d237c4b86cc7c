# ruff: noqa: D102, S101
"""Attachments: what the log keeps of a file, and how long its bytes stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from agboss_memory.attachments import Attachment, PartRequest
from agboss_memory.errors import TernConflictError
from agboss_memory.messages import AttachmentRecord, Message
from agboss_memory.stores.contract import Append, MessagePage, Store
from agboss_memory.stores.files import FileWrite
from agboss_memory.testing.store_requests import NOW, WIDE, admission, all_terns, ending, ref
from agboss_memory.testing.store_suite import StoreSuite
from agboss_memory.testing.store_values import HARD_TEXTS

CAT = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n cat", name="a cat.png")
NOTE = Attachment.from_bytes(b"buy milk", name="a note.txt")


async def tern_with(store: Store, *files: Attachment, thread: str = "t") -> int:
    """A Tern with these files; gives the thread's key."""
    records = tuple(item.record() for item in files)
    admitted = await store.admit(admission(thread=thread, attachments=records))
    for item in files:
        await store.files.write(FileWrite(data=item.data))
    said = (Message(role="user", content="hi", agent="desk", attachments=records, created_at=NOW),)
    await store.commit(ending(admitted, messages=said))
    return admitted.key


async def _bytes(store: Store, file: Attachment) -> bytes | None:
    return await store.files.read(PartRequest(attachment=file.record()))


class Attachments(StoreSuite):
    """Name, type, size and hash are in the log, the bytes beside it."""

    @pytest.mark.parametrize("text", HARD_TEXTS, ids=lambda text: ascii(text)[:20])
    async def test_every_name_of_a_file_comes_back(self, tmp_path: Path, text: str) -> None:
        record = AttachmentRecord(name=text, media_type=text, size=2**40, id=text)
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission(attachments=(record, record)))
            said = (Message(role="user", content="hi", agent="desk", attachments=(record,), created_at=NOW),)
            await store.commit(ending(admitted, messages=said))
            (tern,) = await all_terns(store, admitted.key)
            (message,) = await store.messages(admitted.key, MessagePage(agent="desk"))
            assert (tern.attachments, message.attachments) == ((record, record), (record,))
            window = (await store.thread(ref("t"), WIDE)).window
            assert window.terns[0].attachments == (record, record)

    async def test_the_files_of_a_tern_stand_from_its_admission_on(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission(attachments=(CAT.record(),)))
            (tern,) = await all_terns(store, admitted.key)
            assert tern.attachments == (CAT.record(),)

    async def test_what_a_view_made_of_a_file_is_not_stored(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            said = (Message(role="user", content="hi", attachments=(CAT.record(),)),)
            request = Append(workflow="w", thread="t", agent="desk", messages=said, now=NOW)
            appended = await store.append(request)
            (message,) = await store.messages(appended.key, MessagePage(agent="desk"))
            assert (message.attachments, message.media) == ((CAT.record(),), ())

    async def test_a_key_with_other_files_is_another_task(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            keyed = {"idempotency_key": "k", "thread": "t"}
            admitted = await store.admit(admission(attachments=(CAT.record(), NOTE.record()), **keyed))
            await store.commit(ending(admitted))
            again = await store.admit(admission(attachments=(CAT.record(), NOTE.record()), **keyed))
            assert again.kind == "repeat"
            for other in ((), (CAT.record(),), (NOTE.record(), CAT.record())):
                with pytest.raises(TernConflictError):
                    await store.admit(admission(attachments=other, **keyed))

    async def test_the_same_content_is_kept_once_and_goes_with_the_last_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await tern_with(store, CAT, NOTE, thread="one")
            await tern_with(store, CAT, thread="two")
            assert (await _bytes(store, CAT), await _bytes(store, NOTE)) == (CAT.data, NOTE.data)
            await store.delete_thread(ref("one"))
            assert (await _bytes(store, CAT), await _bytes(store, NOTE)) == (CAT.data, None)
            await store.delete_thread(ref("two"))
            assert await _bytes(store, CAT) is None

    async def test_only_what_no_thread_names_is_dropped(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await tern_with(store, CAT)
            await store.files.write(FileWrite(data=NOTE.data))
            await store.drop_files([CAT.id, NOTE.id, "0" * 64, *HARD_TEXTS])
            assert (await _bytes(store, CAT), await _bytes(store, NOTE)) == (CAT.data, None)
            await store.drop_files([])
            assert await store.check() == ()

    async def test_files_of_messages_outside_a_tern_go_with_their_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            said = (Message(role="user", content="hi", attachments=(CAT.record(),)),)
            await store.append(Append(workflow="w", thread="t", agent="desk", messages=said, now=NOW))
            await store.files.write(FileWrite(data=CAT.data))
            await store.delete_thread(ref("t"))
            assert await _bytes(store, CAT) is None

    async def test_bytes_outlive_the_store_object(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        await store.open()
        await tern_with(store, CAT)
        await store.close()
        await store.open()
        assert await _bytes(store, CAT) == CAT.data
        await store.close()

    async def test_what_is_no_id_names_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for name in (*HARD_TEXTS, "0" * 63, "0" * 64, "A" * 64, f"../{'0' * 61}"):
                record = AttachmentRecord(name="x", media_type="image/png", size=1, id=name)
                assert await store.files.read(PartRequest(attachment=record)) is None
            store.files.remove(["../evil", "", "0" * 64])
