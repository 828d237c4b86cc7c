"""Log in with a token, log out, and the two files that pages load."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from agboss.admin.page import Page, Visit
from agboss.admin.sessions import Note
from agboss.admin.showing import url
from agboss.server.problems import ServerError

_FILES = {"admin.css": "text/css", "admin.js": "text/javascript"}


async def home(visit: Visit) -> Response:
    """``/admin/``."""
    return visit.redirect(url("threads"))


async def form(visit: Visit) -> Response:
    """``/admin/login``."""
    return visit.redirect(url("threads")) if visit.logged_in else visit.render("login.html")


async def log_in(visit: Visit) -> Response:
    """A token was sent."""
    session = visit.admin.sessions.log_in(visit.field("token").strip())
    if session is None:
        note = Note(text="This token is not known.", failed=True, code="server.unauthorized")
        return visit.redirect(url("login"), note)
    visit.session = session
    return visit.redirect(url("threads"))


async def log_out(visit: Visit) -> Response:
    """Forget the browser."""
    visit.admin.sessions.log_out(visit.session)
    visit.session = visit.admin.sessions.identify(None)
    return visit.redirect(url("login"))


async def static(visit: Visit) -> Response:
    """Style and script."""
    name = visit.call.path("name")
    if name not in _FILES:
        return await nowhere(visit)
    return Response(_file(name), media_type=_FILES[name])


async def nowhere(visit: Visit) -> Response:
    """No page has this path."""
    raise ServerError("server.not-found", "there is no such page", "use the links above", status=404)


@cache
def _file(name: str) -> bytes:
    return files("agboss.admin").joinpath("static", name).read_bytes()


PAGES = (
    Page(path="/", handler=home),
    Page(path="/login", handler=form, open=True),
    Page(path="/login", handler=log_in, method="POST", open=True),
    Page(path="/logout", handler=log_out, method="POST"),
    Page(path="/static/{name}", handler=static, open=True),
)
ELSEWHERE = Page(path="/{rest:path}", handler=nowhere)
