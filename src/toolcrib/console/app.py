"""The console's own small site: one page, its files, and the JSON behind it (X27).

The order of the checks: Host and Origin at the gateway's door, our own page, who it is, then what is asked. The files
are a fixed table, read once; a path that is not in it is nothing (F11). Every answer forbids the browser everything
that the page does not need (J10).
"""

import inspect
import logging
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from toolcrib.console.entry import Entry, Visitor, require_own_page
from toolcrib.console.feed import LiveFeed
from toolcrib.console.picture import TokenPicture
from toolcrib.console.showing import Shades, encode
from toolcrib.console.values import Decision, SearchQuestion, Signed, SignIn, TokenQuestion
from toolcrib.console.views import Views
from toolcrib.errors import CallError, ConfigError
from toolcrib.gateway.auth import default_path
from toolcrib.gateway.door import Door, require_small_body
from toolcrib.gateway.http_connections import Take
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_wire import Field, Head, Refused
from toolcrib.gateway.server import Gateway
from toolcrib.intake.findings import make_visible
from toolcrib.limits import CONSOLE_BODY_MAX_BYTES, CONSOLE_CODE_S

logger = logging.getLogger("toolcrib.console")

PREFIX = "/console"
_API = f"{PREFIX}/api/"
_STATIC = Path(__file__).with_name("static")
_KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
HEADERS: tuple[Field, ...] = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

T = TypeVar("T")
Answer = Callable[[Visitor, bytes], object]
"""Takes who asks and the body; its value, or what it becomes when it is waited for, is sent as JSON."""


class Console:
    """The console of one gateway; `tell` shows the link that signs in, where a person sits at the terminal."""

    prefix = PREFIX

    def __init__(self, gateway: Gateway, door: Door, *, tell: Callable[[str], object] | None = None) -> None:
        shades = Shades(gateway.crib.settings)
        self.entry = Entry(door)
        self.feed = LiveFeed(gateway.crib.activity, shades)
        self._gateway = gateway
        self._door = door
        self._tell = tell
        self._views = Views(gateway, shades)
        self._picture = TokenPicture(gateway.crib, shades)
        self._files = _read_files()
        self._answers: Mapping[str, Mapping[str, Answer]] = {
            "overview": {"GET": lambda visitor, body: self._views.overview(visitor.name)},
            "search": {"POST": lambda visitor, body: self._views.search(_read(body, SearchQuestion))},
            "tokens": {"POST": lambda visitor, body: self._picture.show(_read(body, TokenQuestion).context)},
            "approvals": {
                "GET": lambda visitor, body: self._views.approvals(),
                "POST": lambda visitor, body: self._views.decide(_read(body, Decision), visitor.name),
            },
            "health": {"GET": lambda visitor, body: self._views.health()},
        }

    # What the gateway asks of an annex

    def welcome(self, url: str) -> None:
        """Tells the person at the terminal how to open the page: the link is for their eyes, never for a log."""
        address = f"{url}{PREFIX}/"
        self._gateway.desk.console = address
        logger.info("the console is at %s", address)
        if self._tell is not None:
            code = self.entry.make_code()
            within = f"{CONSOLE_CODE_S / 60:.0f} minutes"
            self._tell(
                f"Open this link to be signed in to the console; it works once, within {within}:\n  {address}#{code}\n"
            )
            return
        tokens = self._door.tokens
        if tokens is not None and not any(entry.role == "console" for entry in tokens.read()):
            where = "" if tokens.path == default_path() else f" --file {shlex.quote(str(tokens.path))}"
            logger.warning("to sign in to the console, make a token: `toolcrib token create NAME --console%s`", where)

    def open(self, head: Head) -> Take:
        """What takes the body, if the request is let in. Raises `Refused`."""
        try:
            return partial(_guarded, self._open(head))
        except Refused as error:
            raise _dressed(error) from None

    def close(self) -> None:
        """Ends the streams."""
        self.feed.close()

    # Inside

    def _open(self, head: Head) -> Take:
        require_small_body(head, CONSOLE_BODY_MAX_BYTES)
        if not head.path.startswith(_API):
            return self._open_file(head)
        require_own_page(head)
        name = head.path.removeprefix(_API)
        if name == "sign-in":
            _require_method(head, ("POST",))
            return partial(self._sign_in, head)
        visitor = self.entry.require(head)
        if name == "sign-out":
            _require_method(head, ("POST",))
            return partial(self._sign_out, head, visitor)
        if name == "activity":
            _require_method(head, ("GET",))
            return partial(self._watch, visitor)
        answers = self._answers.get(name)
        if answers is None:
            raise Refused(404, "There is nothing here.")
        _require_method(head, tuple(answers))
        return partial(self._answer, answers[head.method], visitor)

    def _open_file(self, head: Head) -> Take:
        if head.path == PREFIX:
            raise Refused(308, "The console is one step further.", [(b"location", f"{PREFIX}/".encode())])
        found = self._files.get(head.path)
        if found is None:
            raise Refused(404, "There is nothing here.")
        if head.method not in ("GET", "HEAD"):
            raise Refused(405, "This method is not served here.", [(b"allow", b"GET, HEAD")])
        kind, content = found
        return lambda body, reply: reply.send(200, content, HEADERS, (b"content-type", kind))

    def _sign_in(self, head: Head, body: bytes, reply: Reply) -> None:
        if "origin" not in head.headers:
            raise Refused(403, "A page says where it is from: the header Origin is missing.")
        visitor, cookie = self.entry.sign_in(head, _read(body, SignIn).secret)
        reply.send(200, encode(Signed(token=visitor.token, name=visitor.name)), (*HEADERS, cookie))

    def _sign_out(self, head: Head, visitor: Visitor, body: bytes, reply: Reply) -> None:
        reply.send(200, b"{}", (*HEADERS, self.entry.sign_out(head, visitor)))

    def _watch(self, visitor: Visitor, body: bytes, reply: Reply) -> None:
        self.feed.join(reply, HEADERS, partial(self.entry.is_valid, visitor))

    def _answer(self, answer: Answer, visitor: Visitor, body: bytes, reply: Reply) -> None:
        reply.run_whole(_send(reply, partial(answer, visitor, body)))


def _guarded(take: Take, body: bytes, reply: Reply) -> None:
    try:
        take(body, reply)
    except Refused as error:
        raise _dressed(error) from None


async def _send(reply: Reply, answer: Callable[[], object]) -> None:
    try:
        value = answer()
        if inspect.isawaitable(value):
            value = await value
        reply.send(200, encode(value), HEADERS)
    except Refused as error:
        reply.refuse(_dressed(error))
    except CallError as error:
        reply.refuse(_dressed(Refused(400, error.message)))
    except ConfigError as error:
        reply.refuse(_dressed(Refused(409, str(error))))
    except Exception:
        logger.exception("a request failed")
        reply.refuse(_dressed(Refused(500, "The console failed; the gateway's log says why.")))


def _read(body: bytes, kind: type[T]) -> T:
    """What a page sent. Raises `Refused`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, f"This is not what is asked for here: {error}.") from None


def _require_method(head: Head, allowed: tuple[str, ...]) -> None:
    if head.method not in allowed:
        raise Refused(405, "This method is not served here.", [(b"allow", ", ".join(allowed).encode())])
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if head.method == "POST" and kind != "application/json":
        raise Refused(415, "The body must be application/json.")


def _dressed(error: Refused) -> Refused:
    """A refusal with the headers of the console, safe to show."""
    return Refused(error.status, make_visible(str(error)), (*error.headers, *HEADERS))


def _read_files() -> Mapping[str, tuple[bytes, bytes]]:
    files = {
        f"{PREFIX}/{path.name}": (_KINDS[path.suffix], path.read_bytes())
        for path in sorted(_STATIC.iterdir())
        if path.suffix in _KINDS
    }
    return {**files, f"{PREFIX}/": files[f"{PREFIX}/index.html"]}
