"""HTTP/1.1 as bytes: the head of a request as a value, and the head of a response ready to be written."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus

from msgspec import Struct
from msgspec.structs import replace

from toolcrib.kernel import kernel
from toolcrib.limits import REQUEST_MAX_BYTES

Field = tuple[bytes, bytes]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
JSON: Field = (b"content-type", b"application/json")

ONCE = frozenset({"host", "origin", "authorization", "mcp-session-id"})
"""Fields that say who asks and where: a request that says it twice could be meant by either."""
_LISTS = frozenset({"accept"})
"""Fields that may be said in parts."""
_LENGTH = b"content-length"
_LENGTH_DIGITS = 9
_LENGTH_FIELD = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([0-9]{1,9})(?=[ \t]*\r\n)", re.IGNORECASE)
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class Head(Struct, kw_only=True):
    """What a request says before its body. Nothing in it changes but what the application notes at the end."""

    method: str
    path: str
    """The target up to the query, as it was sent: nothing in it is decoded or resolved."""
    headers: Mapping[str, str]
    """By name in small letters; blanks around a value are no part of it."""
    repeated: frozenset[str] = frozenset()
    """Names that occur more than once."""
    address: str = "?"
    """Who sent it."""
    cleared: bool = False
    """Whether the application has found all good that depends on these words alone; who sent them does not."""


class Refused(Exception):
    """A request that ends before anything happened."""

    def __init__(self, status: int, message: str, headers: Sequence[Field] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = tuple(headers)


def too_large() -> Refused:
    """What somebody is told who sends too much."""
    return Refused(413, f"A body has at most {REQUEST_MAX_BYTES} bytes.")


def build_head(fields: Sequence[Field], *, method: str, target: str, address: str) -> Head:
    """The head of a request from its parts."""
    headers: dict[str, str] = {}
    repeated: set[str] = set()
    for name, value in fields:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip(" \t")
        if key in headers:
            repeated.add(key)
            if key in _LISTS:
                text = f"{headers[key]}, {text}"
        headers[key] = text
    return Head(
        method=method,
        path=target.partition("?")[0],
        headers=headers,
        repeated=frozenset(repeated),
        address=address,
    )


def plain_head(fields: Sequence[Field], method: str, target: bytes, version: str) -> bytes:
    """The head as bytes again, without the offer of another protocol."""
    lines = b"".join(b"%b: %b\r\n" % field for field in fields if field[0].lower() != b"upgrade")
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method.encode("latin-1"), target, version.encode(), lines)


def with_length(head: Head, before: Sequence[Field], fields: Sequence[Field]) -> Head | None:
    """The head of these fields, if they are those before but for the length of the body: most of a client's are."""
    if len(fields) != len(before):
        return None
    changed = [(old, new) for old, new in zip(before, fields, strict=True) if old != new]
    if len(changed) != 1:
        return None
    (old, new) = changed[0]
    if old[0] != new[0] or new[0].lower() != _LENGTH or "content-length" in head.repeated:
        return None
    return replace(head, headers={**head.headers, "content-length": new[1].decode("latin-1").strip(" \t")})


class Known:
    """The head of a request as bytes, good for every other that differs in the length of its body alone."""

    __slots__ = ("_after", "_before", "head")

    def __init__(self, before: bytes, after: bytes, head: Head) -> None:
        self._before = before
        self._after = after
        self.head = head

    @classmethod
    def of(cls, data: bytes, head: Head) -> "Known | None":
        """What a request that came as these bytes, and was read as this head, teaches about the next ones.

        Nothing if its length is not said exactly once and plainly: then only the parser knows where its body ends.
        """
        raw = data[: data.find(b"\r\n\r\n") + 4]
        places = list(_LENGTH_FIELD.finditer(raw))
        if len(places) != 1 or head.headers.get("content-length") != places[0][1].decode():
            return None
        if len(raw) + int(places[0][1]) != len(data):
            return None
        if "transfer-encoding" in head.headers or "expect" in head.headers or head.repeated:
            return None
        return cls(raw[: places[0].start(1)], raw[places[0].end(1) :], head)

    def body_of(self, data: bytes, most: int) -> bytes | None:
        """The body, if these bytes are one whole request with this head, and a body of at most so many bytes."""
        before, after = self._before, self._after
        if kernel is not None:
            return kernel.body(data, before, after, _LENGTH_DIGITS, most)
        if not data.startswith(before):
            return None
        at = len(before)
        end = data.find(b"\r", at, at + _LENGTH_DIGITS + 1)
        digits = data[at:end]
        if end < 0 or not digits.isdigit() or not data.startswith(after, end):
            return None
        body, length = data[end + len(after) :], int(digits)
        return body if len(body) == length <= most else None


class ResponseWriter:
    """Writes heads of responses; the date changes once a second."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._second: int = 0
        self._date = b""
        self._json = b""

    def head(
        self, status: int, fields: Sequence[Field], *, length: int | None, keep_alive: bool, chunked: bool
    ) -> bytes:
        """Status line and fields; `length` is of a whole body, else the body is chunked or ends with the connection."""
        lines = [b"HTTP/1.1 %d %b" % (status, _REASONS.get(status, b"")), self._date_line()]
        lines += [b"%b: %b" % field for field in fields]
        if length is not None:
            lines.append(b"content-length: %d" % length)
        elif chunked:
            lines.append(b"transfer-encoding: chunked")
        if not keep_alive:
            lines.append(b"connection: close")
        lines.append(b"\r\n")
        return b"\r\n".join(lines)

    def json_head(self, length: int) -> bytes:
        """The head of the usual response: 200, JSON, and the connection stays open."""
        date = self._date_line()
        if not self._json:
            self._json = b"HTTP/1.1 200 OK\r\n%b\r\n%b: %b\r\ncontent-length: " % (date, *JSON)
        return b"%b%d\r\n\r\n" % (self._json, length)

    def _date_line(self) -> bytes:
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._date = b"date: " + formatdate(second, usegmt=True).encode()
            self._json = b""
        return self._date


def chunk_of(data: bytes) -> bytes:
    """One chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
