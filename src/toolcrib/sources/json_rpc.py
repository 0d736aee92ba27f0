"""JSON-RPC, bounded: lines and bodies have a size, bad ones are counted, and nothing inside is parsed in vain.

An envelope is read with its parts left as raw JSON, so that relaying a message costs the reading of its frame. A line
is assembled in linear time whatever the size of its pieces; one that exceeds its bound is dropped while it arrives,
not kept until it ends. Whatever a peer sends, reading it returns a value or raises `RpcError`.
"""

import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import msgspec
import orjson
from msgspec import UNSET, Raw, Struct, UnsetType

from toolcrib.definitions import Json, JsonObject
from toolcrib.kernel import kernel
from toolcrib.limits import UPSTREAM_NOISE_BYTES_PER_MINUTE
from toolcrib.sources.withheld import NOTHING, SECRET_MAX_CHARS, Withheld

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

Identifier = int | str
"""What names a request on the wire."""

ID_MAX_CHARS = 256


class RpcError(Exception):
    """An error as JSON-RPC carries it."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def body(self) -> JsonObject:
        """The `error` member."""
        error: JsonObject = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class Envelope(Struct, frozen=True):
    """One message; what is absent is `UNSET`."""

    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_DECODER = msgspec.json.Decoder(Envelope)


def read_envelope(data: bytes) -> Envelope:
    """The envelope of one message. Raises `RpcError`: it is no JSON, a batch, or no JSON-RPC."""
    try:
        envelope = _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"This is no JSON-RPC message: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "This is no JSON.") from None
    if envelope.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, 'This is no JSON-RPC message: `jsonrpc` must be "2.0".')
    if isinstance(envelope.id, str) and len(envelope.id) > ID_MAX_CHARS:
        raise RpcError(INVALID_REQUEST, f"An `id` has at most {ID_MAX_CHARS} characters.")
    return envelope


def read_plain(data: bytes) -> tuple[Identifier, str, JsonObject] | None:
    """Id, method and parameters of a request that is exactly that; nothing for any other message, good or bad.

    One reading finds what `read_envelope`, `read_object` and `require_distinct_keys` find in three: a text that is
    written again as it came, or with as many colons and without escapes, names no key twice.
    """
    try:
        message: object = orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    if type(message) is not dict or len(message) != 4:  # pyright: ignore[reportUnknownArgumentType]
        return None
    get = cast("dict[str, object]", message).get
    identifier, method, params = get("id"), get("method"), get("params")
    if get("jsonrpc") != "2.0" or type(method) is not str or type(params) is not dict:
        return None
    if type(identifier) is not int and (type(identifier) is not str or len(identifier) > ID_MAX_CHARS):
        return None
    try:
        again = orjson.dumps(message)
    except TypeError:  # what is nested deeper than this can be read, not written
        return None
    if again != data and (b"\\" in data or again.count(b":") != data.count(b":")):
        return None
    return identifier, method, cast("JsonObject", params)


def require_distinct_keys(data: bytes, envelope: Envelope, params: JsonObject) -> None:
    """Raises `RpcError` if an object names a key twice: which one counts would be anybody's guess (A10).

    Most messages are cleared by counting colons: without escapes, the text has those of what was read, written again,
    and one more for every key that was named before. Only a text with escapes, or with more colons than that, is read
    a second time, key by key.
    """
    if b"\\" not in data:
        ours = (envelope.id, envelope.method, envelope.params, envelope.jsonrpc)
        own = len(ours) - ours.count(UNSET) + f"{envelope.id}{envelope.method}".count(":")
        with suppress(TypeError):  # what is nested deeper than this can be read, not written
            if data.count(b":") == orjson.dumps(params).count(b":") + own:
                return
    try:
        json.loads(data, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "This is no JSON.") from None


def _distinct(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise RpcError(INVALID_REQUEST, "An object of this message names a key twice.")


def require_id(envelope: Envelope) -> Identifier:
    """What a request is answered under. Raises `RpcError`: one without an id would be a notification, null is none."""
    if not isinstance(envelope.id, (int, str)):
        raise RpcError(INVALID_REQUEST, "`id` must be a number or a text.")
    return envelope.id


def read_object(raw: Raw | UnsetType) -> JsonObject:
    """The parameters of a message as an object. Raises `RpcError`."""
    if isinstance(raw, UnsetType):
        return {}
    try:
        value: object = orjson.loads(bytes(raw))
    except (orjson.JSONDecodeError, RecursionError):
        raise RpcError(PARSE_ERROR, "This is no JSON.") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, "`params` must be an object.")
    return cast("JsonObject", value)


def read_error(raw: Raw) -> RpcError:
    """The error that a peer answered, whatever shape it has."""
    try:
        value: object = orjson.loads(bytes(raw))
    except (orjson.JSONDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return RpcError(INTERNAL_ERROR, "The server answered with an error that cannot be read.")
    error = cast("JsonObject", value)
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "The server gave no message.",
        error.get("data"),
    )


def request_line(identifier: Identifier, method: str, params: object) -> bytes:
    """A request as one line; `params` may hold `orjson.Fragment`s."""
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


def notification_line(method: str, params: object = None) -> bytes:
    """A notification as one line."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


def result_line(identifier: Identifier, result: bytes) -> bytes:
    """An answer as one line, around a result that is JSON already."""
    if type(identifier) is int:
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (identifier, result)
    return result_body(identifier, result) + b"\n"


def result_body(identifier: Identifier, result: bytes) -> bytes:
    """An answer around a result that is JSON already."""
    if type(identifier) is int:
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (identifier, result)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(identifier), result)


def one_line(message: bytes) -> bytes:
    """A message without line ends, which JSON has between its parts only: a result is handed on as it is, in a line."""
    return message.replace(b"\n", b" ").replace(b"\r", b" ")


def error_line(identifier: Identifier | None, error: RpcError) -> bytes:
    """An error answer as one line."""
    # Of any size: a client may count further than 64 bits.
    name = b"%d" % identifier if type(identifier) is int else orjson.dumps(identifier)
    try:
        body = orjson.dumps(error.body(), default=str)
    except TypeError:  # data that is nested deeper than can be written is left out
        body = orjson.dumps(RpcError(error.code, error.message).body())
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (name, body)


class LineFramer:
    """Bytes in, whole lines out; a line beyond its bound is dropped as it comes, and counted."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False
        self.overlong = 0
        """Lines that exceeded the bound."""

    def feed(self, data: bytes) -> Sequence[bytes]:
        """The lines that these bytes complete, without blank ones."""
        if not self._parts and not self._skipping and data.endswith(b"\n") and len(data) <= self._max_bytes:
            # Whole lines and nothing else: nearly always, and mostly one.
            if kernel is not None:
                return kernel.lines(data)
            if data.find(b"\n") == len(data) - 1:
                return () if data.isspace() else (data[:-1],)
            return [line for line in data.split(b"\n") if line and not line.isspace()]
        *complete, rest = data.split(b"\n")
        lines: list[bytes] = []
        for piece in complete:
            line = self._finish(piece)
            if line is not None and not line.isspace() and line:
                lines.append(line)
        self._keep(rest)
        return lines

    def end(self) -> bytes:
        """What came after the last line end, if nothing more will come; empty if nothing did."""
        rest = b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return rest

    def _finish(self, piece: bytes) -> bytes | None:
        if self._skipping:
            self._skipping = False
            return None
        if not self._parts:
            if len(piece) > self._max_bytes:
                self.overlong += 1
                return None
            return piece
        self._keep(piece)
        line = None if self._skipping else b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return line

    def _keep(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        if self._size > self._max_bytes:
            self.overlong += 1
            self._parts, self._size, self._skipping = [], 0, True
        else:
            self._parts.append(piece)


_TAIL_LINES = 30
_LINE_CHARS = 2_000
_LINE_BYTES = 4 * (_LINE_CHARS + SECRET_MAX_CHARS + 1)
"""Enough for as many characters and for a secret that begins at the last of them."""


class Noise:
    """What a peer says that is no protocol: logged up to a rate, then only counted (H7)."""

    def __init__(
        self, logger: logging.Logger, label: str, clock: Callable[[], float], withheld: Withheld = NOTHING
    ) -> None:
        self._logger = logger
        self._label = label
        self._clock = clock
        self._withheld = withheld
        self._since = clock()
        self._room = UPSTREAM_NOISE_BYTES_PER_MINUTE
        self.lines = 0
        """Lines in all."""
        self.unlogged = 0
        """Lines that were only counted."""
        self._tail = deque[str](maxlen=_TAIL_LINES)
        self._unread = deque[bytes](maxlen=_TAIL_LINES)
        """The last of those that were only counted, as they came: most are never looked at."""

    @property
    def tail(self) -> Sequence[str]:
        """The last lines, for the reason of a failure."""
        self._catch_up()
        return self._tail

    def take(self, text: bytes) -> None:
        """Takes one line; control characters are made visible, so that no log can be forged."""
        self.lines += 1
        if self._clock() - self._since >= 60:
            self._since, self._room = self._clock(), UPSTREAM_NOISE_BYTES_PER_MINUTE
        if self._room <= 0:
            self.unlogged += 1
            self._unread.append(text[:_LINE_BYTES])
            return
        self._room -= len(text)
        if self._room <= 0:
            self._logger.warning(
                "%s: more than %d bytes a minute that are no messages: the rest is counted, not logged",
                self._label, UPSTREAM_NOISE_BYTES_PER_MINUTE,
            )  # fmt: skip
        self._catch_up()
        self._logger.debug("%s: %s", self._label, self._keep(text))

    def _catch_up(self) -> None:
        while self._unread:
            self._keep(self._unread.popleft())

    def _keep(self, text: bytes) -> str:
        line = visible(self._withheld.cut(text[:_LINE_BYTES].decode(errors="replace"), _LINE_CHARS))
        if line.strip():
            self._tail.append(line.rstrip())
        return line


def visible(text: str) -> str:
    """The text with everything that a terminal would obey or hide written out."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
