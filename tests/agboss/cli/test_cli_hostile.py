"""Text that would steer a terminal or turn a line around is shown by number, wherever a command prints it."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import cli_desks
import pytest
from cli_told import Agboss
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agboss.cli.output import Output, visible
from agboss.errors import AgbossError

HOSTILE = "a\u202eb\x1b[2Jc\x9bd\re\u2066f\x7f"
SHOWN = "a⟦202E⟧b⟦001B⟧[2Jc⟦009B⟧d⟦000D⟧e⟦2066⟧f⟦007F⟧"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    told = visible(text)
    assert all(one in "\n\t" or unicodedata.category(one) != "Cc" for one in told)
    assert not {unicodedata.bidirectional(one) for one in told} & {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI"}
    assert visible(told) == told


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("two\nlines\tand a tab", "\U0001f9d1\u200d\U0001f680", "שלום", ""):
        assert visible(text) == text
    assert visible("one\r\ntwo") == "one\ntwo"


def test_run_and_threads_and_memory(desk: Agboss) -> None:
    ran = desk("run", f"My name is {HOSTILE}.")
    thread = ran.field("thread")
    assert ran.out.splitlines()[0] == f"Noted: My name is {SHOWN}."
    shown = desk("threads", "show", thread)
    assert f"Q: My name is {SHOWN}.\nA: Noted: My name is {SHOWN}.\n" in shown.out
    desk("run", "What is my name?", "--thread", thread)
    for command in (("memory", "show", thread), ("threads", "list")):
        assert not set(HOSTILE) - set("abcdef[2J") & set(desk(*command).out)


def test_json_and_copies_keep_what_was_said(desk: Agboss) -> None:
    told = desk("run", f"My name is {HOSTILE}.", "--json").json
    assert told["answer"] == f"Noted: My name is {HOSTILE}."
    lines = [json.loads(line) for line in desk("threads", "export", told["thread"], "--lines").out.splitlines()]
    assert f"My name is {HOSTILE}." in [line.get("tern", {}).get("task") for line in lines]


def test_a_call_that_waits(agboss: Agboss, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = ("--app", "cli_desks:RefundDesk")
    arguments = json.dumps({"order": HOSTILE}, ensure_ascii=False)
    monkeypatch.setattr(cli_desks, "ORDER", arguments)
    told = agboss(*desk, "run", "Refund A1")
    escaped = SHOWN.replace("⟦001B⟧", "\\u001b").replace("⟦000D⟧", "\\r")
    assert told.field("waits") == f'clerk wants refund({{"order": "{escaped}"}})'
    assert agboss(*desk, "threads", "show", told.field("thread")).field("waits") == told.field("waits")


def test_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    output = Output(as_json=False)
    for show in (output.write, output.line, output.copy, output.warn, output.note):
        show(HOSTILE)
    output.field("waits", HOSTILE)
    output.table([("x", {"no_wrap": True})], [(HOSTILE,)])
    output.error(AgbossError("some.code", HOSTILE, HOSTILE))
    assert isinstance(output.progress_console, Console)
    for stream in (out.getvalue(), err.getvalue()):
        assert "\u202e" not in stream
        assert "\x1b[2J" not in stream
        assert "⟦202E⟧" in stream
