"""Store URLs."""

from pathlib import Path

import pytest

from agboss_memory.errors import StoreUrlError
from agboss_memory.stores import MemoryStore, SqliteStore, open_store


async def test_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_store("memory://"), MemoryStore)
    relative = open_store("sqlite:///a/rel.db?timeout=1.5&synchronous=normal")
    assert isinstance(relative, SqliteStore)
    absolute = open_store(f"sqlite:///{tmp_path}/b/what%3F.db")
    monkeypatch.chdir("/")
    for store in (relative, absolute):
        await store.open()
        await store.close()
    assert (tmp_path / "a" / "rel.db").is_file()
    assert (tmp_path / "b" / "what?.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "log.db",
        "postgres://x/y",
        "memory://x",
        "memory://?a=1",
        "sqlite://",
        "sqlite:///",
        "sqlite://rel.db",
        "sqlite:///:memory:",
        "sqlite:///dir/",
        "sqlite:///x%00.db",
        "sqlite:///x.db?mode=ro",
        "sqlite:///x.db?timeout=soon",
        "sqlite:///x.db?timeout=-1",
        "sqlite:///x.db?timeout=nan",
        "sqlite:///x.db?synchronous=OFF",
    ],
)
def test_others_are_refused_with_the_right_forms(url: str) -> None:
    with pytest.raises(StoreUrlError) as caught:
        open_store(url)
    assert caught.value.code == "store.url"
    assert "sqlite:////absolute/path.db" in caught.value.hint
