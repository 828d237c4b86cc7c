"""One page: who may see it, how it is rendered, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agboss.admin.compacting import Compactions
from agboss.admin.sessions import COOKIE, Note, Sessions
from agboss.admin.showing import ROOT, url
from agboss.errors import AgbossError
from agboss.server.endpoint import Call, Service
from agboss.server.guard import OWNER
from agboss.server.metrics import ROUTE
from agboss.server.problems import ServerError, problem_of, unexpected
from agboss_memory.records import Record

FORM_FIELD = "form_token"
MOST_FIELDS = 500
"""Fields of a form: an agent's form has two for each tool."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Admin(Record, kw_only=True):
    """What all pages share."""

    service: Service
    sessions: Sessions
    compactions: Compactions
    templates: Environment


class Visit:
    """One request of a browser."""

    def __init__(self, request: Request, admin: Admin) -> None:
        self.admin = admin
        self.request = request
        self.session = admin.sessions.identify(request.cookies.get(COOKIE))
        if owner := admin.sessions.owner(self.session):
            request.scope[OWNER] = owner
        self.call = Call(request, admin.service)
        self.owner = self.call.owner
        self.served = admin.service.served
        self._fields: dict[str, str] = {}

    @property
    def logged_in(self) -> bool:
        """Whether the pages may be seen."""
        return self.owner is not None or not self.admin.sessions.needs_login

    async def read_form(self) -> None:
        """Read the form. Raises ServerError when it did not come from one of our pages."""
        form = await self.request.form(max_files=0, max_fields=MOST_FIELDS)
        self._fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if not self.admin.sessions.is_form_token(self.session, self.field(FORM_FIELD)):
            text = "the form is out of date"
            raise ServerError("server.bad-form", text, "go back, load the page again and send it anew", status=403)

    @property
    def fields(self) -> Mapping[str, str]:
        """All fields of the form, their line ends as they are in Python."""
        return {name: value.replace("\r\n", "\n") for name, value in self._fields.items()}

    def field(self, name: str) -> str:
        """A field of the form, its line ends as they are in Python; empty when it is not there."""
        return self._fields.get(name, "").replace("\r\n", "\n")

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page from a template."""
        text = self.admin.templates.get_template(template).render(
            form_token=self.admin.sessions.form_token(self.session),
            form_field=FORM_FIELD,
            note=self.admin.sessions.take_note(self.session),
            owner=self.owner,
            logged_in=self.logged_in,
            can_log_out=self.admin.sessions.owner(self.session) is not None,
            **values,
        )
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def redirect(self, target: str, note: Note | None = None) -> Response:
        """Go on to another page, which shows the note."""
        if note is not None:
            self.admin.sessions.tell(self.session, note)
        return RedirectResponse(target, 303)

    def failure(self, error: AgbossError) -> Response:
        """An error as a page."""
        problem = problem_of(error)
        response = self.render("error.html", problem.status, problem=problem)
        response.headers.update(error.data.get("headers", {}))
        return response


def failed(error: AgbossError) -> Note:
    """An error as a note."""
    problem = problem_of(error)
    return Note(text=problem.detail, failed=True, code=problem.code, hint=problem.hint)


Handler = Callable[[Visit], Awaitable[Response]]


class Page(Record, kw_only=True):
    """A route of the admin pages.

    Attributes:
        path: Below ``/admin``.
        handler: Answers it.
        method: ``GET``, or ``POST`` for what a form does.
        open: Seen by whoever has not logged in.
    """

    path: str
    handler: Handler
    method: str = "GET"
    open: bool = False

    def route(self, admin: Admin) -> Route:
        """The route as the router takes it."""

        async def answer(request: Request) -> Response:
            request.scope[ROUTE] = ROOT + self.path
            visit = Visit(request, admin)
            try:
                response = await self._answer(visit)
            except AgbossError as error:
                response = visit.failure(error)
            except HTTPException as error:
                response = visit.failure(ServerError("server.bad-request", error.detail, status=error.status_code))
            except Exception as error:
                response = visit.failure(unexpected(error))
            if request.cookies.get(COOKIE) != visit.session:
                secure = request.url.scheme == "https"  # a proxy that was declared says so as well
                response.set_cookie(COOKIE, visit.session, path=ROOT, httponly=True, samesite="strict", secure=secure)
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["Referrer-Policy"] = "same-origin"  # with no-referrer a form's Origin is null
            return response

        return Route(self.path, answer, methods=[self.method])

    async def _answer(self, visit: Visit) -> Response:
        if not (visit.logged_in or self.open):
            return visit.redirect(url("login"))
        if self.method == "POST":
            await visit.read_form()
        return await self.handler(visit)
