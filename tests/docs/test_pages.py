from pathlib import Path

import pytest
from pages import Page, Project, all_pages, matches

PAGES = [page for page in all_pages() if page.of("python") or page.of("console")]
RUNNABLE = ("python", "console")
"""Blocks that the suite runs. ``sh`` blocks may install, build and set keys; the others are data."""


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
@pytest.mark.timeout(300)
def test_every_block_of_a_page_runs_and_shows_what_it_prints(page: Page, tmp_path: Path) -> None:
    Project(tmp_path).run(page)


def test_no_block_escapes_the_suite_under_another_name() -> None:
    data = {"text", "toml", "json", "sh"}
    for page in all_pages():
        for block in page.blocks:
            where = f"{page.name}, line {block.line}"
            assert block.language in {*RUNNABLE, *data}, f"{where}: name the block's language"
            if block.language == "sh":
                first = {line.split()[0] for line in block.code.splitlines() if line.strip()}
                assert first <= {"make", "pip", "export", "git", "cd"}, f"{where}: use a console block"


def test_dots_stand_for_anything_and_nothing_else_is_forgiven() -> None:
    assert matches("thread: ...\nspend: $0.00", "thread: 0198\nspend: $0.00\n")
    assert matches("a\n...\nd", "a\nb\nc\nd")
    assert not matches("a\nb", "a\nb\nc")
    assert not matches("a.b", "axb")
