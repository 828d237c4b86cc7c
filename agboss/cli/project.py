"""``agboss new``: a small project that runs offline and has a test."""

from __future__ import annotations

import keyword
import re
import sys
import tempfile
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from agboss.cli.faults import CommandError
from agboss.cli.options import Session, command

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
LONGEST = 40
"""Characters of a project's name."""

_TAKEN = frozenset({"agboss", "agboss-memory", "tests", "test"})

_FILES = {
    "pyproject.toml": """\
[project]
name = "$name"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["agboss[all]"]

[project.optional-dependencies]
testing = ["agboss[testing]"]

[tool.agboss]
app = "$module:$cls"

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
""",
    ".gitignore": ".agboss/\n.venv/\n__pycache__/\n",
    "$module.py": '''\
"""The $name workflow: one agent whose older turns become summaries."""

from agboss import AnswerFinish, Compaction, Defaults, History, TaskStart, agent, chain, workflow


@agent(description="Answers from what was said", model="openai:gpt-5-mini")
class Helper:
    """Answer the task briefly. Use what was said in earlier turns."""


@workflow(
    name="$name",
    version="0.1.0",
    flow=[chain(TaskStart, Helper, AnswerFinish)],
    defaults=Defaults(history=History(limit=6, summaries=3)),
    compaction=Compaction(every=4, keep=3),
)
class $cls: ...
''',
    "tests/test_$module.py": """\
from agboss.testing import MakeApp, MockCompaction, MockLlm, reply
from $module import $cls, Helper


async def test_a_summary_outlives_its_turns(agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction) -> None:
    mock_llm(Helper).then_return(*[reply(f"Answer {number}.") for number in range(1, 6)])
    mock_compaction.then_return("The user is called Ada.")
    async with agboss_app($cls) as app:
        first = await app.execute("My name is Ada.")
        for task in ("I live in Turin.", "I like tea.", "It rains."):
            last = await app.execute(task, thread=first.thread)
        assert last.memory == "turns 1–4 → summary 1/3"
        await app.execute("What is my name?", thread=first.thread)
    assert "The user is called Ada." in mock_llm(Helper).requests[-1].text
""",
    "README.md": """\
# $name

    pip install 'agboss[all,testing]'
    agboss run --offline "My name is Ada."   # built-in stand-ins, no key
    agboss chat --offline
    agboss check                             # what the workflow needs
    pytest

For real answers set the key of the model that `$module.py` names (`agboss check` says which) and leave out `--offline`.
Threads are kept in `.agboss/agboss.db`: see `agboss threads list` and `agboss memory show THREAD`.
""",
}


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "new")(new)


def new(
    session: Session, name: Annotated[str, typer.Argument(help="Lowercase letters, digits and single dashes.")]
) -> None:
    """Write a project folder: a workflow with memory, its settings and a test."""
    module, cls = _names(name)
    files = write_project(Path.cwd() / name, name=name, module=module, cls=cls)
    out = session.out
    if out.as_json:
        out.document({"project": name, "app": f"{module}:{cls}", "files": files})
        return
    for file in files:
        out.line(f"wrote {name}/{file}")
    out.line()
    out.line(f'next: cd {name} && agboss run --offline "My name is Ada."', "bold")


def write_project(folder: Path, *, name: str, module: str, cls: str) -> list[str]:
    """Write the files, all or none; gives their paths within ``folder``.

    Raises:
        CommandError: Something of that name is there, or the folder cannot be written.
    """
    if folder.exists() or folder.is_symlink():
        raise CommandError("cli.exists", f"{folder} is there already", "choose another name; nothing was written")
    values = {"name": name, "module": module, "cls": cls}
    texts = {Template(path).substitute(values): Template(text).substitute(values) for path, text in _FILES.items()}
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".agboss-new-") as work:
            made = Path(work) / name
            for path, text in texts.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
            made.rename(folder)
    except OSError as error:
        raise CommandError(
            "cli.cannot-write", f"{folder} cannot be written: {error}", "choose another folder"
        ) from error
    return sorted(texts)


def _names(name: str) -> tuple[str, str]:
    module = name.replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        what = f"use up to {LONGEST} lowercase letters, digits and single dashes, beginning with a letter"
        raise CommandError("cli.bad-name", f"{name!r} is no name for a project", what)
    if name in _TAKEN or keyword.iskeyword(module) or module in sys.stdlib_module_names:
        raise CommandError("cli.bad-name", f"{name!r} would hide a module of that name", f"try {name}-desk")
    return module, "".join(part.capitalize() for part in name.split("-"))
