"""Who may use the console: whoever has the printed link, once, or a token that was made for it (J12).

A page that signed in holds two things, and needs both: a cookie that no script reads and no other site makes a browser
send, and a token that no browser sends by itself (J11). So neither a page elsewhere, nor another port of this machine
that is sent the cookie, can do anything with what it gets. A program sends a console token as `Authorization` instead.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolcrib.errors import ConfigError
from toolcrib.gateway.auth import hash_token
from toolcrib.gateway.door import Door
from toolcrib.gateway.http_wire import Field, Head, Refused
from toolcrib.limits import CONSOLE_CODE_S, CONSOLE_SESSION_S, CONSOLE_SESSIONS

TOKEN_HEADER = "x-toolcrib-console"  # noqa: S105 - the name of a header

_OWN_SITES = ("same-origin", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who is let in."""

    name: str
    token: str
    """What the page sends as a header; none for a program."""
    digest: str | None
    """The token of the file that it hangs on; the printed link hangs on none."""
    expires: float
    cookie: str | None = None
    """Digest of the page's cookie; none for a program."""


class Entry:
    """The sign-ins of one gateway's console."""

    def __init__(self, door: Door, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._door = door
        self._clock = clock
        self._code: tuple[str, float] | None = None
        """Digest of the code of the printed link, and when its time is over."""
        self._visitors: OrderedDict[str, Visitor] = OrderedDict()
        """By the digest of their cookie."""

    def make_code(self) -> str:
        """A code that signs in once, and not for long."""
        code = secrets.token_urlsafe(32)
        self._code = (hash_token(code), self._clock() + CONSOLE_CODE_S)
        return code

    def sign_in(self, head: Head, secret: str) -> tuple[Visitor, Field]:
        """A new visitor, and the cookie for its page. Raises `Refused`."""
        self._door.require_patience(head.address)
        if self._is_code(secret):
            self._code, name, digest = None, "local", None
        else:
            entry = self._door.find_token(secret, "console")
            if entry is None:
                self._door.note_failure(head.address)
                raise Refused(
                    401,
                    "This signs nobody in: the link works once, for an hour; a token must be made for the console.",
                )
            name, digest = entry.name, entry.hash
        cookie, expires = secrets.token_urlsafe(32), self._clock() + CONSOLE_SESSION_S
        kept, token = hash_token(cookie), secrets.token_urlsafe(32)
        visitor = Visitor(name=name, token=token, digest=digest, expires=expires, cookie=kept)
        self._visitors[kept] = visitor
        while len(self._visitors) > CONSOLE_SESSIONS:
            self._visitors.popitem(last=False)
        return visitor, _cookie_field(head.headers, cookie)

    def sign_out(self, head: Head, visitor: Visitor) -> Field:
        """Forgets the visitor; the cookie that says so."""
        if visitor.cookie is not None:
            self._visitors.pop(visitor.cookie, None)
        return _cookie_field(head.headers, "")

    def require(self, head: Head) -> Visitor:
        """Who sent a request. Raises `Refused`."""
        headers = head.headers
        if "authorization" in headers:
            entry = self._door.require_token(head, "console")
            return Visitor(name=entry.name, token="", digest=entry.hash, expires=self._clock() + CONSOLE_SESSION_S)
        visitor = self._find(headers)
        if visitor is None or not self.is_valid(visitor):
            raise Refused(401, "Sign in first.")
        if head.method not in ("GET", "HEAD") and "origin" not in headers:
            raise Refused(403, "A page says where it is from: the header Origin is missing.")
        return visitor

    def is_valid(self, visitor: Visitor) -> bool:
        """Whether somebody who was let in still may be: signing out and revoking the token end it at once."""
        if visitor.expires <= self._clock():
            return False
        if visitor.cookie is not None and visitor.cookie not in self._visitors:
            return False
        if visitor.digest is None:
            return True
        tokens = self._door.tokens
        try:
            return tokens is not None and tokens.current(visitor.digest) is not None
        except ConfigError:
            # A file that cannot be trusted now vouches for nobody.
            return False

    def _find(self, headers: Mapping[str, str]) -> Visitor | None:
        """Who holds both a cookie and its token."""
        given = headers.get(TOKEN_HEADER, "").encode()
        for cookie in _cookies_of(headers):
            visitor = self._visitors.get(hash_token(cookie))
            if visitor is not None and hmac.compare_digest(visitor.token.encode(), given):
                return visitor
        return None

    def _is_code(self, secret: str) -> bool:
        """Whether it is the code of the printed link, unused and in time."""
        if self._code is None:
            return False
        digest, ends = self._code
        return hmac.compare_digest(digest, hash_token(secret)) and self._clock() < ends


def require_own_page(head: Head) -> None:
    """Only our own pages, not those of another port of this machine. Raises `Refused`."""
    headers = head.headers
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin.lower()).netloc != headers.get("host", "").lower():
        raise Refused(403, "Only the console's own page may do this.")
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        raise Refused(403, "Only the console's own page may do this.")


def _cookie_name(headers: Mapping[str, str]) -> str:
    """Browsers keep cookies by host, whatever the port: two consoles of one machine must not share theirs."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"toolcrib-console-{port}" if port.isdigit() else "toolcrib-console"


def _cookie_field(headers: Mapping[str, str], value: str) -> Field:
    secure = "; Secure" if headers.get("origin", "").lower().startswith("https:") else ""
    end = "" if value else "; Max-Age=0"
    text = f"{_cookie_name(headers)}={value}; Path=/console; HttpOnly; SameSite=Strict{secure}{end}"
    return b"set-cookie", text.encode("ascii")


def _cookies_of(headers: Mapping[str, str]) -> Iterator[str]:
    """Those with our name: another server of this machine may have left one that the browser sends before ours."""
    own = f"{_cookie_name(headers)}="
    parts = (part.strip() for part in headers.get("cookie", "").split(";"))
    return (part.removeprefix(own) for part in parts if part.startswith(own))
