"""A turn that waits for a decision, at the command line: told, asked about, decided."""

from pathlib import Path

from cli_told import Agboss, Told
from test_cli_chat import in_terminal

DESK = ("--app", "cli_desks:RefundDesk")
ASKED = 'clerk wants refund({"order": "A1"})'


def waiting(agboss: Agboss) -> tuple[str, str]:
    """The thread and the id of the call that waits in it."""
    told = agboss(*DESK, "run", "Refund A1")
    assert (told.code, told.field("status"), told.field("waits")) == (0, "paused", ASKED)
    thread = told.field("thread")
    command = told.field("decide")
    assert command.startswith(f"agboss resume {thread} --pause 1-")
    return thread, command.split()[4]


def test_what_waits_is_told_and_decided(agboss: Agboss) -> None:
    thread, pause = waiting(agboss)
    shown = agboss(*DESK, "threads", "show", thread)
    assert "A: [paused]" in shown.out
    assert shown.field("waits") == ASKED
    assert [one["id"] for one in agboss(*DESK, "threads", "show", thread, "--json").json["pauses"]] == [pause]
    nobody = agboss(*DESK, "resume", thread)
    assert nobody.code == 2
    assert "cli.no-decision" in nobody.err
    assert agboss(*DESK, "resume", thread, "--approve", "--deny").code == 2
    done = agboss(*DESK, "resume", thread, "--approve", "--pause", pause)
    assert (done.code, done.out.splitlines()[0]) == (0, "Result: refunded A1")
    assert agboss(*DESK, "resume", thread, "--approve", "--pause", pause).out.splitlines()[0] == "Result: refunded A1"
    refused = agboss(*DESK, "resume", thread, "--deny", "--pause", pause)
    assert refused.code == 1
    assert "pause.decided" in refused.err
    for arguments in ((), ("--approve",), ("--cancel",)):
        none = agboss(*DESK, "resume", thread, *arguments)
        assert none.code == 1
        assert "pause.none" in none.err


def test_denied_with_a_reason_and_other_arguments(agboss: Agboss) -> None:
    thread, _ = waiting(agboss)
    done = agboss(*DESK, "resume", thread, "--deny", "--reason", "too late", "--json")
    assert done.json["answer"] == "Result: Error: not run, a person denied this call of refund: too late"
    thread, _ = waiting(agboss)
    assert agboss(*DESK, "resume", thread, "--approve", "--arguments", "[]").code == 2
    done = agboss(*DESK, "resume", thread, "--approve", "--arguments", '{"order": "B2"}')
    assert "refunded B2" in done.out


def test_cancelled(agboss: Agboss) -> None:
    for more, told in (((), "cancelled: "), (("--json",), '"cancelled"')):
        thread, _ = waiting(agboss)
        assert told in agboss(*DESK, "resume", thread, "--cancel", *more).out
        assert "A: [cancelled]" in agboss(*DESK, "threads", "show", thread).out


def test_a_piped_chat_tells_how_to_decide(agboss: Agboss) -> None:
    told = agboss(*DESK, "chat", text="Refund A1\n")
    assert told.code == 0
    assert told.field("waits") == ASKED


def test_a_terminal_asks(place: Path) -> None:
    typed = ((b"Approve refund?", b"y\r"),)
    code, seen = in_terminal(place, (*DESK, "run", "Refund A1"), typed)
    assert code == 0
    assert ASKED in seen
    assert "Result: refunded A1" in seen
    typed = ((b"Approve refund?", b"n\r"), (b"Why not", b"no\r"))
    code, seen = in_terminal(place, (*DESK, "run", "Refund A1"), typed)
    assert "denied this call of refund: no" in seen
    code, seen = in_terminal(place, (*DESK, "run", "Refund A1"), ((b"Approve refund?", b"\x04"),))
    assert code == 0
    assert "agboss resume" in seen


def test_resume_in_a_terminal_asks(place: Path, process: Agboss) -> None:
    told: Told = process(*DESK, "run", "Refund A1")
    code, seen = in_terminal(place, (*DESK, "resume", told.field("thread")), ((b"Approve refund?", b"y\r"),))
    assert code == 0
    assert "Result: refunded A1" in seen
