"""A browser without a screen: keeps its cookie, follows links and sends forms with the token that the page carries."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx2
from asgi import client

_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')


class Browser:
    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.page = ""
        self.status = 0

    async def open(self, path: str, **query: Any) -> str:
        """The text of a page, redirects followed."""
        return self._seen(await self.http.get(path, params=query or None, follow_redirects=True))

    async def send(self, path: str, fields: Mapping[str, str] | None = None) -> str:
        """Send a form of the page that was opened last."""
        token = _TOKEN.search(self.page)
        assert token is not None, "the page has no form"
        data = {"form_token": token[1], **(fields or {})}
        return self._seen(await self.http.post(path, data=data, follow_redirects=True))

    def value(self, name: str) -> str:
        """What a field of the page holds."""
        area = re.search(rf'<textarea[^>]* name="{name}"[^>]*>\n(.*?)</textarea>', self.page, re.DOTALL)
        line = re.search(rf'<input[^>]* name="{name}"[^>]* value="([^"]*)"', self.page)
        found = area or line
        assert found is not None, f"the page has no field {name}"
        return unescape(found[1])

    def fields(self, *names: str) -> dict[str, str]:
        """What fields of the page hold, as a browser sends them."""
        return {name: self.value(name).replace("\n", "\r\n") for name in names}

    def _seen(self, answer: httpx2.Response) -> str:
        self.page, self.status = answer.text, answer.status_code
        return self.page


@asynccontextmanager
async def browser(application: Any) -> AsyncGenerator[Browser]:
    async with client(application) as http:
        yield Browser(http)
