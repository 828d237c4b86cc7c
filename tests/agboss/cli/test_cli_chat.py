import os
import pty
import subprocess
from pathlib import Path

from cli_told import COMMAND, DESK, Agboss, environment


def test_piped_chat_ends_at_exit_and_remembers(desk: Agboss) -> None:
    told = desk("chat", text="My name is Pavel.\n\nWhat is my name?\n/exit\nnever said\n")
    thread = told.field("thread")
    assert told.code == 0
    assert told.out == (
        f'Noted: My name is Pavel.\nthread: {thread}\nYou said: "My name is Pavel."\n'
        "memory: turns 1–2 → summary 1/3\nspend: $0.00\n"
    )
    assert told.err.count("uses local:extractive") == 2
    assert desk("chat", "--thread", thread, text="Who are you").out.endswith("spend: $0.00\n")
    assert len(desk("threads", "show", thread, "--json").json["terns"]) == 3


def test_chat_as_one_document(desk: Agboss) -> None:
    told = desk("chat", "--json", text="My name is Pavel.\nWhat is my name?\n")
    assert [turn["tern"] for turn in told.json["turns"]] == [1, 2]
    assert told.json["thread"] == told.json["turns"][1]["thread"]
    assert desk("chat", "--json", text="").json == {"thread": None, "turns": []}


def test_a_failed_turn_does_not_end_the_chat(agboss: Agboss) -> None:
    told = agboss("chat", "--app", "cli_desks:BreakingDesk", text="fail\ngo\n")
    assert told.code == 1
    assert "done: go" in told.out
    assert "ZeroDivisionError" in told.err


def test_chat_in_an_unknown_thread_ends(desk: Agboss) -> None:
    told = desk("chat", "--thread", "nobody", text="hello\nhello\n")
    assert (told.code, told.out) == (1, "")


def in_terminal(
    place: Path, arguments: tuple[str, ...], typed: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, str]:
    """Run a command in a terminal of its own. ``typed``: what must be seen next, and what is typed then."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm", COLUMNS="80", LINES="24", PROMPT_TOOLKIT_NO_CPR="1")
    running = subprocess.Popen([*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=place)
    os.close(theirs)
    waiting, seen, read = list(typed), b"", 0
    while piece := _read(ours):
        seen += piece
        while waiting and (at := seen.find(waiting[0][0], read)) >= 0:
            expected, keys = waiting.pop(0)
            read = at + len(expected)
            if keys:
                os.write(ours, keys)
    os.close(ours)
    return running.wait(), seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # its last user has closed it
        return b""


def test_run_in_a_terminal_streams_and_says_the_same(place: Path) -> None:
    code, seen = in_terminal(place, ("--app", DESK, "--offline", "run", "My name is Pavel."))
    assert code == 0
    assert "Noted: My name is Pavel." in seen
    assert "thread: " in seen
    assert "spend: $0.00" in seen
    assert seen.count("uses local:extractive") == 2


def test_chat_in_a_terminal(place: Path) -> None:
    typed = (
        (b"you>", b"My name is Pavel.\r"),
        (b"thread: ", b""),
        (b"you>", b"What is my name?\r"),
        (b"memory: ", b""),
        (b"you>", b"/exit\r"),
    )
    code, seen = in_terminal(place, ("--app", DESK, "--offline", "chat"), typed)
    assert code == 0
    assert 'You said: "My name is Pavel."' in seen
    assert "memory: turns 1–2 → summary 1/3" in seen


def test_chat_in_an_unknown_thread_ends_without_a_line(desk: Agboss) -> None:
    told = desk("chat", "--thread", "nobody", text="")
    assert (told.code, told.out) == (1, "")
    assert "'nobody'" in told.err


def test_help_in_a_chat_is_no_task(desk: Agboss) -> None:
    told = desk("chat", text="/help\n")
    assert (told.code, told.out) == (0, "")
    assert "/exit" in told.err
    assert desk("threads", "list", "--json").json == {"threads": []}
