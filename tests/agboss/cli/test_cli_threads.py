import json
import sqlite3
from pathlib import Path

from cli_told import DESK, Agboss


def test_list_show_export_delete(desk: Agboss) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    desk("run", "What is my name?", "--thread", thread)
    listed = desk("threads", "list")
    assert thread in listed.out
    shown = desk("threads", "show", thread)
    assert "Q: My name is Pavel.\nA: Noted: My name is Pavel.\n" in shown.out
    assert shown.field("thread") == thread
    assert desk("threads", "show", thread, "--last", "1").out.count("Q: ") == 1
    exported = desk("threads", "export", thread)
    assert [tern["task"] for tern in exported.json["thread"]["terns"]] == ["My name is Pavel.", "What is my name?"]
    assert exported.json["summaries"][0]["text"] == "My name is Pavel."
    refused = desk("threads", "delete", thread)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert desk("threads", "delete", thread, "--yes").out == f"deleted: {thread}\n"
    gone = desk("--json", "threads", "show", thread)
    assert gone.code == 1
    assert gone.json["error"]["code"] == "run.unknown-thread"
    assert "no threads of desk" in desk("threads", "list").err


def test_a_failed_turn_is_shown_as_failed(agboss: Agboss) -> None:
    thread = agboss("run", "--app", "cli_desks:BreakingDesk", "fail", "--json").json["run"]["thread"]
    shown = agboss("threads", "show", thread, "--app", "cli_desks:BreakingDesk")
    assert "A: [failed] " in shown.out


def test_the_limit_of_a_list(desk: Agboss) -> None:
    newest = [desk("run", f"Task {number}.").field("thread") for number in range(3)][-1]
    assert [item["id"] for item in desk("threads", "list", "--limit", "1", "--json").json["threads"]] == [newest]
    assert desk("threads", "list", "--limit", "0").code == 2


def test_memory_show_compact_and_undo(desk: Agboss, agboss: Agboss) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    for task in ("I live in Brno.", "It rains.", "It is late.", "Good night."):
        desk("run", task, "--thread", thread)
    without_key = ("--app", DESK)
    shown = agboss(*without_key, "memory", "show", thread)
    assert shown.code == 0, shown.err
    assert "agent: recaller, memory: turns (reads at most 8 turns, 3 summaries)" in shown.out
    assert '<summary turns="1–2"> My name is Pavel. I live in Brno. </summary>' in shown.out
    assert "total: " in shown.out
    view = agboss(*without_key, "--json", "memory", "show", thread, "--agent", "recaller").json
    assert [row["last_tern"] for row in view["messages"] if row["state"] == "summary"] == [2, 4]
    assert view["left_out"] == []
    undone = agboss(*without_key, "memory", "undo", thread)
    assert undone.out == "retired turns 3–4: It rains. It is late.\n"
    assert desk("memory", "compact", thread).out == "nothing to summarise\n"
    assert desk("memory", "compact", thread, "--json").json["summaries"] == []
    assert agboss(*without_key, "memory", "undo", thread, "--json").json["retired"]["first"] == 1
    assert agboss(*without_key, "memory", "undo", thread).out == "nothing to undo\n"
    assert agboss(*without_key, "memory", "undo", thread, "--json").json == {"retired": None}


def test_memory_names_what_is_left_out(desk: Agboss) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    for number in range(9):
        desk("run", f"Number {number}.", "--thread", thread)
    shown = desk("memory", "show", thread)
    assert "left out: turns 1–4 (beyond what the agent reads)" in shown.out


def test_an_unknown_agent(desk: Agboss) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    told = desk("memory", "show", thread, "--agent", "nobody")
    assert told.code == 2
    assert "name one of: recaller" in told.err


def test_a_store_that_is_none(desk: Agboss, place: Path) -> None:
    (place / "broken.db").write_bytes(b"this is no database, however long it may be" * 100)
    told = desk("threads", "list", "--store", "sqlite:///broken.db", "--json")
    assert told.code == 1
    assert told.json["error"]["code"] == "store.corrupt"
    (place / "folder.db").mkdir()
    with sqlite3.connect(place / "their.db") as connection:
        connection.execute("CREATE TABLE threads (name)")
    connection.close()
    before = (place / "their.db").read_bytes()
    for command in (("threads", "list"), ("threads", "check"), ("memory", "show", "x"), ("spend",), ("run", "hello")):
        for name, code in (("their.db", "store.foreign"), ("folder.db", "store.no-file")):
            told = desk(*command, "--store", f"sqlite:///{name}", "--json")
            assert (told.code, told.json["error"]["code"]) == (1, code)
    assert (place / "their.db").read_bytes() == before
    assert (
        desk("threads", "list", "--store", "sqlite:///no/folder/s.db", "--json").json["error"]["code"] == "cli.no-store"
    )
    assert {item.name for item in place.iterdir()} == {"broken.db", "folder.db", "their.db"}
    bad = desk("--store", "mysql://x", "run", "hello")
    assert bad.code == 2
    assert "scheme 'mysql' is not known" in bad.err
    assert json.loads(desk("--store", "mysql://x", "run", "hello", "--json").out)["error"]["code"] == "store.url"


def test_a_thread_moves_as_json_lines(desk: Agboss, tmp_path: Path) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    lines = desk("threads", "export", thread, "--lines").out
    assert json.loads(lines.splitlines()[0])["thread"] == thread
    assert desk("threads", "export", thread, "--lines", "--json").json["lines"] == lines.splitlines(keepends=True)
    file = tmp_path / "thread.jsonl"
    file.write_text(lines, encoding="utf-8")
    there = desk("--json", "threads", "import", str(file))
    assert (there.code, there.json["error"]["code"]) == (1, "copy.exists")
    copied = desk("threads", "import", str(file), "--thread", "copy")
    assert copied.out == "thread: copy\n"
    assert desk("threads", "delete", thread, "--yes").code == 0
    assert desk("threads", "import", str(file), "--json").json == {"imported": thread, "turns": 1}
    assert 'You said: "My name is Pavel."' in desk("run", "What is my name?", "--thread", thread).out
    assert desk("threads", "check").out.startswith("nothing wrong in sqlite:")
    file.write_text(lines.replace('"tern"', '"turn"', 1), encoding="utf-8")
    wrong = desk("threads", "import", str(file), "--thread", "wrong")
    assert wrong.code == 1
    assert "Line 2 of the copy" in wrong.err
    missing = desk("threads", "import", str(tmp_path / "none"))
    assert (missing.code, "cli.unreadable" in missing.err) == (2, True)


def test_a_fault_in_the_store_is_told_with_exit_code_1(desk: Agboss, tmp_path: Path) -> None:
    thread = desk("run", "My name is Pavel.").field("thread")
    (file,) = tmp_path.rglob("*.db")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE threads SET last_seq = 9")
    connection.close()
    told = desk("threads", "check")
    assert told.code == 1
    assert f"check.counter in thread {thread} of desk: the counter is at 9, there are 1 Terns" in told.out
    assert [item["code"] for item in desk("threads", "check", "--json").json["findings"]] == ["check.counter"]
