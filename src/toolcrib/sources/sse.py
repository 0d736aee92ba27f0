"""Server-sent events, bounded: bytes in, events out, and an error instead of a line or an event without end."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.errors import SourceProtocolError


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event."""

    name: str
    data: bytes
    id: str | None = None


class EventReader:
    """Reads events from pieces of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._rest_size = 0
        self._name = "message"
        self._data: list[bytes] = []
        self._size = 0
        self._id: str | None = None
        self.retry_ms: int | None = None
        """How long the server asks to wait before a reconnection."""

    def feed(self, data: bytes) -> Sequence[ServerEvent]:
        """The events that these bytes complete. Raises `SourceProtocolError`."""
        *complete, rest = data.split(b"\n")
        events: list[ServerEvent] = []
        for piece in complete:
            line = b"".join((*self._parts, piece)).removesuffix(b"\r")
            self._parts, self._rest_size = [], 0
            event = self._take(line)
            if event is not None:
                events.append(event)
        if rest:
            self._parts.append(rest)
            self._rest_size += len(rest)
        if self._rest_size > self._max_bytes or self._size > self._max_bytes:
            raise SourceProtocolError(f"it sent an event of more than {self._max_bytes} bytes")
        return events

    def _take(self, line: bytes) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._name, b"\n".join(self._data), self._id) if self._data else None
            self._name, self._data, self._size = "message", [], 0
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value[:200].decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value[:1_000].decode(errors="replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        return None
