"""What runs of the documentation: every page becomes a small project, in a folder of its own, without a network.

* ``python`` blocks are one program per page, in order; what it prints must be the page's ``# >`` lines.
* A ``python`` block that defines ``test_...`` runs under pytest, with the names of the blocks before it.
* A block with ``title="name"`` is written to that file.
* ``console`` blocks are typed into a shell; what they show must be what comes out. ``$THREAD`` is the last thread.
* ``...`` in shown output stands for anything. ``sh`` blocks (installing, building, keys) do not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(?P<language>\w+)?(?P<rest>[^\n`]*)\n(?P<code>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_TEST = re.compile(r"^(async )?def test_", re.MULTILINE)
_THREAD = re.compile(r"^thread: (\S+)$", re.MULTILINE)
OFFLINE = ("README.md",)
"""Pages that show what is printed with AGBOSS_OFFLINE=1; the others name local models themselves."""

SECONDS = 100.0
"""Longest time that one program or command of a page may take."""

_IMPORT = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_path(sys.argv[1])"
_CONFTEST = """\
import os

os.environ["AGBOSS_OFFLINE"] = "{offline}"
try:
    import page
finally:
    del os.environ["AGBOSS_OFFLINE"]
"""
_AGBOSS = "import sys; from agboss.cli import main; main()"


@dataclass(frozen=True)
class Block:
    language: str
    title: str | None
    code: str
    line: int

    @property
    def is_test(self) -> bool:
        return self.language == "python" and _TEST.search(self.code) is not None


@dataclass
class Page:
    path: Path
    blocks: list[Block] = field(default_factory=list[Block])

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def of(self, language: str) -> list[Block]:
        return [block for block in self.blocks if block.language == language]


def read_page(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    page = Page(path)
    for found in _FENCE.finditer(text):
        title = _TITLE.search(found["rest"])
        line = text.count("\n", 0, found.start()) + 2
        page.blocks.append(Block(found["language"] or "", title[1] if title else None, found["code"], line))
    return page


def all_pages() -> list[Page]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [read_page(path) for path in paths]


def matches(shown: str, got: str) -> bool:
    """Whether ``got`` is what is shown, line by line; ``...`` stands for anything within a line, or for any lines."""
    lines = [line.rstrip() for line in shown.strip("\n").split("\n")]
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") for line in lines
    )
    trimmed = "\n".join(line.rstrip() for line in got.strip("\n").split("\n"))
    return re.fullmatch(pattern, trimmed) is not None


class Project:
    """One page at work in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys = [name for name in os.environ if name.endswith("_API_KEY") or name.startswith(("AGBOSS_", "COV"))]
        self.environ = {name: value for name, value in os.environ.items() if name not in keys}
        self.environ |= {
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "PYTHONWARNINGS": "error",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "AGBOSS_BLOCK_MODELS": "1",
            "COLUMNS": "80",
            "THREAD": "",
        }

    def run(self, page: Page) -> None:
        """Run all of a page. Raises AssertionError that names the block."""
        self._program(page)
        for block in page.blocks:
            if block.title is not None:
                self._write(page, block)
            if block.language == "console":
                self._console(page, block)

    def _program(self, page: Page) -> None:
        blocks = [block for block in page.of("python") if block.title is None]
        plain, tests = [b for b in blocks if not b.is_test], [b for b in blocks if b.is_test]
        program = _placed(plain)
        (self.folder / "page.py").write_text(program, encoding="utf-8")
        offline = "1" if page.name in OFFLINE else "0"
        if plain:
            done = self._call([sys.executable, "page.py"], AGBOSS_OFFLINE=offline)
            assert done.returncode == 0, f"{page.name}: the program failed\n{done.stdout}{done.stderr}"
            shown = "\n".join(re.findall(r"^[ \t]*# > ?(.*)$", program, re.MULTILINE))
            assert matches(shown, done.stdout), f"{page.name}: shown\n{shown}\nprinted\n{done.stdout}"
        if tests:
            (self.folder / "conftest.py").write_text(_CONFTEST.format(offline=offline), encoding="utf-8")
            (self.folder / "test_page.py").write_text("from page import *\n" + _placed(tests), encoding="utf-8")
            self._pytest(page, "test_page.py")
            (self.folder / "conftest.py").unlink()

    def _write(self, page: Page, block: Block) -> None:
        assert block.title is not None
        path = self.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, encoding="utf-8")
        if block.is_test:
            self._pytest(page, block.title)
        elif block.language == "python":
            done = self._call([sys.executable, "-c", _IMPORT, block.title])
            assert done.returncode == 0, f"{page.name}: {block.title}\n{done.stdout}{done.stderr}"

    def _pytest(self, page: Page, name: str) -> None:
        done = self._call([sys.executable, "-m", "pytest", *_PYTEST, name])
        assert done.returncode == 0, f"{page.name}: {name}\n{done.stdout}{done.stderr}"

    def _console(self, page: Page, block: Block) -> None:
        for command, shown in _commands(block.code):
            done = self._call(_argv(command))
            where = f"{page.name}, line {block.line}: $ {command}"
            assert done.returncode in (0, 1, 2), f"{where}\n{done.stdout}{done.stderr}"
            found = _THREAD.findall(done.stdout)
            if found:
                self.environ["THREAD"] = found[-1]
            if shown:
                assert matches(shown, done.stdout), f"{where}\nshown\n{shown}\nprinted\n{done.stdout}{done.stderr}"
            else:
                assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"

    def _call(self, argv: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.environ["THREAD"] if item == "$THREAD" else item for item in argv],
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )


_PYTEST = [
    *("-q", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "agboss.testing.plugin", "--rootdir=."),
    *("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", "-o", "pythonpath=."),
    *("-c", os.devnull),
]


def _placed(blocks: list[Block]) -> str:
    """The blocks' code on the lines where it stands in the page, so that a traceback names them."""
    text = ""
    for block in blocks:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.code
    return text


def _commands(code: str) -> list[tuple[str, str]]:
    """Each command with the output shown below it."""
    found: list[tuple[str, list[str]]] = []
    for line in code.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def _argv(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    if words[0] == "agboss":
        return [sys.executable, "-W", "ignore", "-c", _AGBOSS, *words[1:]]
    if words[0] == "pytest":
        return [sys.executable, "-m", "pytest", *_PYTEST, *words[1:]]
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    raise AssertionError(f"a console block may call agboss, pytest or python, not {words[0]!r}")
