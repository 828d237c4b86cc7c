"""Who a browser is: a cookie, the token of its forms, and what it is still to be told."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic

from agboss.server.settings import digest
from agboss_memory.records import Record

COOKIE = "agboss_admin"
LASTS = 12 * 3600.0
"""Seconds that a login lasts."""

MOST = 1000
"""Browsers that are logged in, or are still to be told something; the oldest is forgotten first."""

_ID = re.compile(r"[A-Za-z0-9_-]{43}")


class Note(Record, kw_only=True):
    """What a browser is told on its next page.

    Attributes:
        text: What happened.
        failed: Whether it is an error.
        code: Stable code of the error, or empty.
        hint: What to do about it, or empty.
    """

    text: str
    failed: bool = False
    code: str = ""
    hint: str = ""


class Sessions:
    """Browsers by the random text of their cookie. The process forgets them when it ends.

    Args:
        owners: Owner by digest of the token; empty = nobody needs to log in.
        clock: Gives seconds.
    """

    def __init__(self, owners: Mapping[bytes, str], clock: Callable[[], float] = monotonic) -> None:
        self._owners = owners
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._notes: OrderedDict[str, Note] = OrderedDict()

    @property
    def needs_login(self) -> bool:
        """Whether tokens are asked for."""
        return bool(self._owners)

    def identify(self, cookie: str | None) -> str:
        """The id in a cookie, or a fresh one."""
        return cookie if cookie is not None and _ID.fullmatch(cookie) else secrets.token_urlsafe(32)

    def owner(self, session: str) -> str | None:
        """Who has logged in; None = nobody."""
        owner, until = self._known.get(session, (None, 0.0))
        return owner if self._clock() < until else None

    def log_in(self, token: str) -> str | None:
        """A new session for the owner of a token, None when it is nobody's; all are compared."""
        given = digest(token)
        found: str | None = None
        for known, owner in self._owners.items():
            if hmac.compare_digest(known, given):
                found = owner
        if found is None:
            return None
        session = secrets.token_urlsafe(32)  # never the id from before: somebody may have planted it
        self._known[session] = (found, self._clock() + LASTS)
        _bound(self._known)
        return session

    def log_out(self, session: str) -> None:
        """Forget a session."""
        self._known.pop(session, None)
        self._notes.pop(session, None)

    def form_token(self, session: str) -> str:
        """What each form of the session carries: no other site can know it."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, session: str, given: str) -> bool:
        """Whether a form came from a page of this session."""
        return hmac.compare_digest(self.form_token(session).encode(), given.encode("utf-8", "replace"))

    def tell(self, session: str, note: Note) -> None:
        """Show a note on the next page."""
        self._notes[session] = note
        _bound(self._notes)

    def take_note(self, session: str) -> Note | None:
        """What is to be shown now, once."""
        return self._notes.pop(session, None)


def _bound(known: OrderedDict[str, object] | OrderedDict[str, tuple[str, float]] | OrderedDict[str, Note]) -> None:
    if len(known) > MOST:
        known.popitem(last=False)
