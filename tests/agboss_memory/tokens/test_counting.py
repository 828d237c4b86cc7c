"""Exact counts: toktok, tiktoken, and neither."""

import asyncio
import logging
import subprocess
import sys
import time
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from agboss_memory.tokens import HeuristicCounter, TiktokenCounter, count_async, most_tokens

_TEXTS = st.text(st.one_of(st.sampled_from(" \n\t'a1.漢🚀é\u0301\ud800"), st.characters(exclude_categories=())))

# The shape of the public patterns: words with one character before them, digits by three, signs, white space.
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PAIRS = (
    b"  ",
    b"    ",
    b"aa",
    b"aaaa",
    b"__",
    b"____",
    b"th",
    b"the",
    b" th",
    b" the",
    b"\n\n",
    b"\xe6\xbc",
    b"\xe6\xbc\xa2",
)


@pytest.fixture
def no_toktok(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra ``fast`` were not installed and nothing had been counted yet."""
    monkeypatch.setitem(sys.modules, "toktok", None)
    monkeypatch.setattr("agboss_memory.tokens.vocabulary._loaded", {})


@pytest.fixture(scope="module")
def small_encoding() -> tiktoken.Encoding:
    """A tiktoken encoding whose ranks need no download."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token: 256 + place for place, token in enumerate(_PAIRS)}
    return tiktoken.Encoding("small", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 999})


@pytest.fixture
def tiktoken_counter(
    no_toktok: None, small_encoding: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch
) -> TiktokenCounter:
    """A counter that uses tiktoken itself."""

    def get_encoding(name: str) -> tiktoken.Encoding:
        return small_encoding

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    return TiktokenCounter("o200k_base")


@pytest.fixture(params=["toktok", "tiktoken"])
def counter(request: pytest.FixtureRequest) -> TiktokenCounter:
    """A counter with either library."""
    if request.param == "toktok":
        pytest.importorskip("toktok")
        return TiktokenCounter()
    return request.getfixturevalue("tiktoken_counter")


def _check_cut(counter: TiktokenCounter, text: str, limit: int) -> None:
    kept = counter.truncate(text, limit)
    assert text.startswith(kept)
    assert counter.count([kept])[0] <= max(limit, 0)
    if len(kept) < len(text) and limit > 0:
        assert counter.count([text[: len(kept) + 1]])[0] > limit


def test_known_counts() -> None:
    pytest.importorskip("toktok")
    counter = TiktokenCounter()
    assert counter.name == "o200k_base"
    assert counter.count(["", "hello world", " "]) == [0, 2, 1]
    assert counter.count([]) == []


def test_b077_control_tokens_are_plain_text(counter: TiktokenCounter) -> None:
    text = "before <|endoftext|> and <|im_start|>system"
    assert counter.count(["<|endoftext|>"])[0] > 1
    assert counter.count([text])[0] > counter.count(["before  and system"])[0]
    assert counter.truncate(text, 1000) == text


def test_lone_surrogates_count(counter: TiktokenCounter) -> None:
    assert counter.count(["\ud800", "a\udfffb"]) == counter.count(["\ufffd", "a\ufffdb"])
    assert counter.truncate("\ud800" * 9, 1000) == "\ud800" * 9


@pytest.mark.parametrize("run", ["a" * 200_000, "_" * 200_000, " " * 1_000_000, "\n" * 1_000_000, "漢" * 100_000])
def test_b079_hostile_runs_are_counted_within_a_second(counter: TiktokenCounter, run: str) -> None:
    counter.count(["warm"])
    begun = time.process_time()
    (tokens,) = counter.count([run])
    assert time.process_time() - begun < 1
    assert 0 < tokens <= 3 * len(run)
    kept = counter.truncate(run, 50)
    assert 0 < len(kept) < len(run)


@settings(deadline=None)
@given(text=_TEXTS, limit=st.integers(-1, 60))
def test_truncating_keeps_the_longest_prefix_with_toktok(text: str, limit: int) -> None:
    pytest.importorskip("toktok")
    _check_cut(TiktokenCounter(), text, limit)


def test_truncating_keeps_the_longest_prefix_with_tiktoken(tiktoken_counter: TiktokenCounter) -> None:
    @settings(deadline=None)
    @given(text=_TEXTS, limit=st.integers(-1, 60))
    def check(text: str, limit: int) -> None:
        _check_cut(tiktoken_counter, text, limit)

    check()


def test_pieces_add_up_to_the_whole(tiktoken_counter: TiktokenCounter, small_encoding: tiktoken.Encoding) -> None:
    words = st.lists(
        st.sampled_from(["the", " ", "  ", "\n", "aaaa", "1234", ",", "don't", "漢字", " the"]), min_size=1
    )

    @settings(max_examples=40, deadline=None)
    @given(words)
    def check(parts: list[str]) -> None:
        block = "".join(parts) + "the "
        text = block * (30_000 // len(block) + 1)
        assert tiktoken_counter.count([text]) == [len(small_encoding.encode_ordinary(text))]

    check()


@pytest.fixture
def offline(no_toktok: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No rank file to be had; the list says what was asked for."""
    asked: list[str] = []

    def get_encoding(name: str) -> Any:
        asked.append(name)
        raise ConnectionError("name resolution failed")

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    return asked


def test_b078_offline_the_estimate_counts_after_one_warning(
    offline: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    counter = TiktokenCounter()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert counter.count(["hello world", "漢字"]) == HeuristicCounter().count(["hello world", "漢字"])
            assert TiktokenCounter().truncate("hello world", 1) == "hell"
    assert counter.name == "heuristic"
    assert offline == ["o200k_base"]
    assert len(caplog.records) == 1
    assert "name resolution failed" in caplog.text


def test_b078_a_network_that_never_answers_does_not_stall(
    no_toktok: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import threading

    answer = threading.Event()

    def get_encoding(name: str) -> Any:
        answer.wait(30)
        raise ConnectionError

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    monkeypatch.setattr("agboss_memory.tokens.vocabulary.DOWNLOAD_SECONDS", 0.01)
    assert TiktokenCounter().count(["abcd"]) == [1]
    assert "no answer" in caplog.text
    answer.set()


def test_an_unknown_encoding_is_estimated(no_toktok: None, caplog: pytest.LogCaptureFixture) -> None:
    assert TiktokenCounter("no_such_encoding").count(["abcd"]) == [1]
    assert "no_such_encoding" in caplog.text


async def test_b079_long_texts_are_counted_off_the_event_loop() -> None:
    import threading

    class Spy:
        name = "spy"

        def __init__(self) -> None:
            self.threads: list[int] = []

        def count(self, texts: Any) -> list[int]:
            self.threads.append(threading.get_ident())
            return [len(text) for text in texts]

        def truncate(self, text: str, limit: int) -> str:
            return text[:limit]

    spy = Spy()
    assert await count_async(spy, ["x" * 10, "y"]) == [10, 1]
    assert await count_async(spy, ["x" * 30_000]) == [30_000]
    here = threading.get_ident()
    assert (spy.threads[0] == here, spy.threads[1] == here) == (True, False)


async def test_loading_leaves_the_event_loop_free() -> None:
    counter = TiktokenCounter()
    await asyncio.wait_for(counter.load(), 30)
    assert counter.count(["hello"])[0] > 0


def test_b078_nothing_heavy_is_imported_with_the_package() -> None:
    code = (
        "import sys, agboss_memory.tokens; print([m for m in ('toktok', 'tiktoken', 'requests') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@given(_TEXTS)
def test_no_text_has_more_tokens_than_bytes(text: str) -> None:
    for counter in (HeuristicCounter(), TiktokenCounter(), TiktokenCounter("cl100k_base")):
        assert counter.count([text])[0] <= most_tokens(text)
