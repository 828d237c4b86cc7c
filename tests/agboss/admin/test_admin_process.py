"""``agboss serve --admin`` as a process."""

from __future__ import annotations

from pathlib import Path

import httpx2
from serving import serving


def test_pages_are_there_when_asked_for_and_only_then(tmp_path: Path) -> None:
    with serving(tmp_path, "--store", "memory://", "--admin") as server:
        page = httpx2.get(f"{server.url}/admin/", follow_redirects=True)
        assert (page.status_code, "There are no threads" in page.text) == (200, True)
        assert httpx2.get(f"{server.url}/admin/static/admin.js").headers["content-type"].startswith("text/javascript")
    with serving(tmp_path, "--store", "memory://") as server:
        assert httpx2.get(f"{server.url}/admin/").status_code == 404
