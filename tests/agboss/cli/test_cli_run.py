import signal
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from cli_told import COMMAND, DESK, Agboss, environment

from agboss.cli.turns import money

STAND_INS = (
    "warning: offline: agent 'recaller' uses local:extractive instead of moonshotai/kimi-k2.6\n"
    "warning: offline: compaction uses local:extractive instead of moonshotai/kimi-k2.6\n"
)


def test_run_prints_answer_thread_memory_and_spend(desk: Agboss) -> None:
    first = desk("run", "My name is Pavel.")
    thread = first.field("thread")
    assert (first.code, first.err) == (0, STAND_INS)
    assert first.out == f"Noted: My name is Pavel.\nthread: {thread}\nspend: $0.00\n"
    second = desk("run", "What is my name?", "--thread", thread)
    assert second.out == (
        f'You said: "My name is Pavel."\nthread: {thread}\nmemory: turns 1–2 → summary 1/3\nspend: $0.00\n'
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--app", DESK, "--offline", "--json", "--store", "sqlite:///a.db", "run", "Hello, I am Pavel."),
        ("run", "--app", DESK, "--offline", "--json", "--store", "sqlite:///a.db", "Hello, I am Pavel."),
        ("run", "Hello, I am Pavel.", "--store", "sqlite:///a.db", "--json", "--offline", "--app", DESK),
        (
            "--json",
            "--app",
            "missing:Desk",
            "run",
            "--app",
            DESK,
            "--offline",
            "Hello, I am Pavel.",
            "--store=sqlite:///a.db",
        ),
    ],
)
def test_shared_options_hold_before_and_after_the_command(agboss: Agboss, arguments: tuple[str, ...]) -> None:
    told = agboss(*arguments)
    assert told.code == 0, told
    assert told.json["answer"] == "Noted: Hello, I am Pavel."
    assert told.json["status"] == "answered"
    listed = agboss("threads", "--app", DESK, "list", "--json", "--store", "sqlite:///a.db")
    assert [item["id"] for item in listed.json["threads"]] == [told.json["thread"]]


def test_json_of_a_compacting_turn_holds_the_whole_result(desk: Agboss) -> None:
    thread = desk("run", "My name is Pavel.", "--json").json["thread"]
    result = desk("--json", "run", "What is my name?", "--thread", thread).json
    assert result["memory"] == "turns 1–2 → summary 1/3"
    assert result["path"] == ["task-start", "recaller", "answer-finish"]
    assert result["spend"] == "0"
    assert result["compaction"]["summaries"][0]["text"] == "My name is Pavel."
    assert len(result["warnings"]) == 2


def test_an_unknown_thread_is_no_first_contact(desk: Agboss) -> None:
    told = desk("run", "Hello", "--thread", "nobody")
    assert (told.code, told.out) == (1, "")
    assert "error: " in told.err
    assert "'nobody'" in told.err
    assert desk("run", "Hello", "--thread", "nobody", "--json").json["error"]["code"] == "run.unknown-thread"
    assert desk("threads", "list", "--json").json == {"threads": []}


def test_a_failed_turn_tells_its_cause_and_its_thread(agboss: Agboss) -> None:
    told = agboss("run", "--app", "cli_desks:BreakingDesk", "please fail")
    assert told.code == 1
    assert told.field("thread")
    assert "error: action 'breaks' failed: ZeroDivisionError: nothing to divide by [action.failed]" in told.err
    assert "Traceback" not in told.err


def test_json_is_one_document_whatever_the_workflow_prints(agboss: Agboss) -> None:
    good = agboss("run", "--app", "cli_desks:BreakingDesk", "go", "--json")
    assert good.json["answer"] == "done: go"
    assert "printed by the workflow" in good.err
    failed = agboss("run", "--app", "cli_desks:BreakingDesk", "fail", "--json")
    assert failed.code == 1
    assert failed.json["error"]["code"] == "action.failed"
    assert failed.json["run"]["status"] == "failed"


def test_a_typed_start_takes_json(agboss: Agboss) -> None:
    base = ("run", "--app", "cli_desks:TypedDesk", "--offline")
    assert agboss(*base, '{"text": "I live in Brno."}').out.startswith("Noted: I live in Brno.\n")
    plain = agboss(*base, "I live in Brno.")
    assert plain.code == 2
    assert """hint: write it as '{"text": ...}'""" in plain.err
    assert agboss(*base, '{"words": 1}').code == 2


def test_a_missing_key_is_told_with_its_remedy(process: Agboss) -> None:
    told = process("run", "--app", DESK, "Hello")
    assert (told.code, told.out) == (1, "")
    assert "OPENROUTER_API_KEY" in told.err
    assert "--offline" in told.err
    assert "Traceback" not in told.err
    as_json = process("run", "--app", DESK, "Hello", "--json")
    assert as_json.json["error"]["code"] == "model.no-key"
    assert set(as_json.json["error"]) == {"code", "message", "hint"}


@pytest.mark.parametrize(
    "encoding", [{}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_utf8_whatever_the_locale(process: Agboss, encoding: dict[str, str]) -> None:
    told = process("run", "--app", DESK, "--offline", "Я живу в Брно – 日本.", **encoding)
    assert told.code == 0, told.err
    assert told.out.startswith("Noted: Я живу в Брно – 日本.\n")


def test_piped_input_is_utf8_whatever_the_locale(process: Agboss) -> None:
    lines = "Čau – 日本.\nСколько?\n"
    told = process("chat", "--app", DESK, "--offline", text=lines, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert told.out.startswith("Noted: Čau – 日本.\n")
    assert "memory: turns 1–2 → summary 1/3" in told.out


def test_an_interrupted_turn_is_stored_as_cancelled(agboss: Agboss, place: Path) -> None:
    app = ("--app", "cli_desks:WaitingDesk")
    # A suite that runs in the background of a shell hands on that SIGINT is ignored.
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    running = subprocess.Popen(
        [COMMAND[0], "-c", f"{heeded}; {COMMAND[2]}", *app, "run", "hello"],
        env=environment(),
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    assert running.communicate()[1] == "interrupted\n"
    assert running.returncode == 130
    (thread,) = agboss(*app, "threads", "list", "--json").json["threads"]
    (tern,) = agboss(*app, "threads", "show", thread["id"], "--json").json["terns"]
    assert tern["status"] == "cancelled"


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unknown"),
        (Decimal(0), "$0.00"),
        (Decimal("0.0012"), "$0.0012"),
        (Decimal("0.00000123"), "$0.0000012"),
        (Decimal("0.5"), "$0.50"),
        (Decimal("12.345"), "$12.35"),
    ],
)
def test_money(usd: Decimal | None, text: str) -> None:
    assert money(usd) == text


@pytest.mark.parametrize("task", ["", " \n"])
def test_an_empty_task_is_a_usage_error(desk: Agboss, task: str) -> None:
    told = desk("run", task)
    assert (told.code, told.out) == (2, "")
    assert "the task is empty" in told.err
    assert desk("threads", "list", "--json").json["error"]["code"] == "cli.no-store"


def test_retries_are_not_logged_to_the_terminal(process: Agboss, place: Path) -> None:
    (place / "far.py").write_text(
        "from agboss import agent, ModelSpec\n"
        "@agent(model=ModelSpec('openai-compatible:m', base_url='http://127.0.0.1:1/v1'))\n"
        "class Far:\n    'Answers.'\n"
    )
    told = process("run", "--app", "far:Far", "Hello")
    assert told.code == 1
    assert "stamina" not in told.err
    assert "model.connection" in told.err
