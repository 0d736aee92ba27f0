"""The feed of what really ran: one event per stage, under the real tool's name (X15).

The terminal, the console, the log file and the tests read the same events. By default an event holds the *shape* of
arguments (keys, types, lengths), never their values. A sink that fails is counted and left out; it never fails a
call.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import orjson
from msgspec import Struct

from toolcrib.definitions import Json, JsonObject
from toolcrib.dialects.base import kind_of
from toolcrib.errors import ConfigError
from toolcrib.kernel import kernel
from toolcrib.limits import ACTIVITY_EVENTS, ACTIVITY_FILE_MAX_BYTES, QUERY_WORDS_KEPT

Outcome = Literal["ok", "refused", "failed", "info"]

DISPATCH, DONE = "dispatch", "done"
"""The stage that shows the arguments, and the one that sums up a call."""

_PARTS = 8
"""The feed is kept in so many parts and the one that is being filled, so that letting go of the oldest costs little."""
_SHAPE_KEYS = 50
_SHAPE_KEY_CHARS = 64
_SHAPE_DEPTH = 3
_SHAPE_NARROWS = 5
"""How many times fewer keys each level down shows: some 1,500 in all at most, whatever a client sends."""
_WORD_MIN = 2
_WORD_MAX = 24
_FILLER_TEXT = (
    "a all an and any are as at be by can do for from get give has have how i in into is it me my need new of on or "
    "our please show some that the their them there this to tool tools up use using want was what when where which "
    "who with you your"
)
_FILLERS = frozenset(_FILLER_TEXT.split())
"""Words that say nothing of what is wanted."""


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened."""

    stage: str
    """`assemble`, `search`, `describe`, `decide`, or a stage of a call: `scope`, ..., `dispatch`, `done`."""
    outcome: Outcome = "ok"
    session: str = ""
    principal: str = ""
    call_id: str | None = None
    tool: str | None = None
    """The real tool; never a bridge name for a call."""
    toolset: str | None = None
    route: str | None = None
    duration_ms: float | None = None
    tokens: int | None = None
    """What the stage put into the conversation, by the usual estimate."""
    code: str | None = None
    """The error's code, if it was refused or failed."""
    reason: str | None = None
    """The true reason, for the operator."""
    arguments: Json = None
    """The arguments' shape, or their values if the operator asked for them."""
    detail: Json = None
    at: float = 0.0
    """Seconds since the epoch."""

    def as_json(self) -> JsonObject:
        """The event without what it does not say."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in values if value is not None and value != ""}


class Trace(Struct, frozen=True, kw_only=True, gc=False):
    """What all events of one call have in common."""

    session: str
    principal: str
    call_id: str
    tool: str
    toolset: str | None
    route: str


class Passage(Struct, frozen=True, gc=False):
    """Stages that one call has passed without a stop, as they were noted; nothing in it is a value of the call."""

    trace: Trace
    stages: Sequence[str]
    seconds: Sequence[float]
    """What each of them took."""
    outcome: Outcome
    """Of the last one; those before it went well."""
    at: float
    """When the last one ended."""
    arguments: Json = None
    """What the dispatch shows of them."""
    tokens: int | None = None
    code: str | None = None
    """Both of the last one."""


class News(Struct, frozen=True, kw_only=True):
    """What came into the feed since somebody last looked."""

    events: Sequence[Event]
    position: int
    """Where to look from the next time."""
    missed: int
    """Notes (single events, and stages of a call that were noted together) that came besides, and are left out."""


def _events_of(passage: Passage) -> list[Event]:
    """The events of the stages; made only when somebody reads them."""
    trace, stages, last = passage.trace, passage.stages, len(passage.stages) - 1
    # The last stage of a call tells how long all of them took: it came right after the one before it.
    ends = [passage.at] * len(stages)
    for number in range(last - 1, -1, -1):
        ends[number] = ends[number + 1] - (0.0 if stages[number + 1] == DONE else passage.seconds[number + 1])
    return [
        Event(
            stage=stage,
            outcome=passage.outcome if number == last else "ok",
            session=trace.session,
            principal=trace.principal,
            call_id=trace.call_id,
            tool=trace.tool,
            toolset=trace.toolset,
            route=trace.route,
            duration_ms=round(seconds * 1000, 3),
            tokens=passage.tokens if number == last else None,
            code=passage.code if number == last else None,
            arguments=passage.arguments if stage == DISPATCH else None,
            at=ends[number],
        )
        for number, (stage, seconds) in enumerate(zip(stages, passage.seconds, strict=True))
    ]


class Sink(Protocol):
    """Takes events."""

    def __call__(self, event: Event) -> None:
        """Takes one event; may fail."""
        ...


class Activity:
    """The feed of one crib: keeps the last events and hands each to its sinks."""

    def __init__(self, *, clock: Callable[[], float], keep: int = ACTIVITY_EVENTS) -> None:
        self.now = clock
        """The time that an event should bear."""
        self._keep = keep
        self._noted: list[Event | Passage] = []
        self._before: deque[list[Event | Passage]] = deque(maxlen=_PARTS)
        """The parts that are full. They hold enough together; when one more is, the first goes as a whole."""
        self._room = self._part = -(-keep // _PARTS)
        """Events that the part that is being filled still takes, and that any part does."""
        self._filled = 0
        """Items of all parts that were ever full."""
        self._sinks: list[Sink] = []
        self.dropped = 0
        """Events that a sink failed to take."""

    @property
    def events(self) -> tuple[Event, ...]:
        """The last events, oldest first."""
        found: list[Event] = []
        for item in chain(*self._before, self._noted):
            found += [item] if isinstance(item, Event) else _events_of(item)
        return tuple(found[-self._keep :])

    def news(self, position: int, *, most: int) -> News:
        """What came since a position, at most so many of the last notes; 0 is the beginning.

        Whoever looks from time to time costs a call nothing, unlike a sink.
        """
        noted, filled = self._noted, self._filled
        fresh = max(0, filled + len(noted) - position)
        wanted = min(fresh, most)
        kept = noted if wanted <= len(noted) else [*chain(*self._before, noted)]
        items = kept[max(0, len(kept) - wanted) :]
        events: list[Event] = []
        for item in items:
            events += [item] if isinstance(item, Event) else _events_of(item)
        return News(events=events, position=filled + len(noted), missed=fresh - len(items))

    def add_sink(self, sink: Sink) -> None:
        """Hands every further event to `sink`."""
        self._sinks.append(sink)

    def record(self, event: Event) -> None:
        """Takes an event."""
        self._noted.append(event)
        self._room -= 1
        if self._room <= 0:
            self._begin_part()
        for sink in self._sinks:
            try:
                sink(event)
            except Exception:  # an observer never fails a call (X14)
                self.dropped += 1

    def note_stages(
        self,
        trace: Trace,
        stages: Sequence[str],
        seconds: Sequence[float],
        outcome: Outcome = "ok",
        arguments: Json = None,
        tokens: int | None = None,
        code: str | None = None,
    ) -> None:
        """Takes the stages that a call has passed since the last time, and how long each took.

        While nobody listens this is all it costs.
        """
        passage = Passage(trace, stages, seconds, outcome, self.now(), arguments, tokens, code)
        if self._sinks:
            for event in _events_of(passage):
                self.record(event)
            return
        self._noted.append(passage)
        self._room -= len(stages)
        if self._room <= 0:
            self._begin_part()

    def _begin_part(self) -> None:
        if self._room > 0:  # another thread was sooner
            return
        full = self._noted
        self._noted, self._room = [], self._part
        self._filled += len(full)
        self._before.append(full)


class JsonlSink:
    """Writes events to a file, one JSON object a line; rotated at a size, readable by its owner only.

    Raises `ConfigError` if the file cannot be written.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = ACTIVITY_FILE_MAX_BYTES) -> None:
        self._path = Path(path)
        self._max_bytes = max_bytes
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as file:
                self._size = file.tell() if file.seekable() else 0  # a pipe, such as `/dev/stderr` often is
        except OSError as error:
            raise ConfigError(
                f"The feed cannot be written to {self._path}: {error.strerror or error}. Change `activity.file`."
            ) from None

    def __call__(self, event: Event) -> None:
        """Appends one line."""
        line = _line_of(event)
        if self._size + len(line) > self._max_bytes and self._size:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._size = 0
        with self._open() as file:
            file.write(line)
        self._size += len(line)

    def _open(self) -> BinaryIO:
        """The file, made anew where somebody has taken it away, as a log rotation does."""
        return open(self._path, "ab", opener=_for_its_owner)


def _line_of(event: Event) -> bytes:
    told = event.as_json()
    try:
        return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE, default=str)
    except TypeError:  # half a surrogate pair in the name that somebody called: no way to stay out of the file
        text = json.dumps(told, separators=(",", ":"), ensure_ascii=False, default=str)
        return text.encode(errors="replace") + b"\n"


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def query_words(queries: Sequence[str]) -> list[str]:
    """What the feed may keep of searches: their plain words, sorted.

    Order, numbers, names of places on a disk or a network and everything joined by a sign are left out, so that a
    line of the feed tells what was wanted and not what it was wanted for.
    """
    words = {
        word.lower()
        for query in queries
        for token in query.split()
        for word in [token.strip(".,;:!?()[]\"'`")]
        if word.isalpha() and _WORD_MIN <= len(word) <= _WORD_MAX
    }
    return sorted(words - _FILLERS)[:QUERY_WORDS_KEPT]


def shape_of(value: Json, depth: int = 0, keys: int = _SHAPE_KEYS) -> Json:
    """Keys, types and lengths of a value: enough to see what went wrong, too little to leak what it was."""
    if kernel is not None and not depth:
        shape = kernel.shape(value, _SHAPE_DEPTH, _SHAPE_KEYS, _SHAPE_KEY_CHARS, _SHAPE_NARROWS)
        if shape is not None:
            return shape
    if isinstance(value, str):
        return f"string({len(value)})"
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - asking for a dict alone is far cheaper
        if depth >= _SHAPE_DEPTH:
            return f"object({len(value)})"
        items = value.items() if len(value) <= keys else list(value.items())[:keys]
        deeper, fewer = depth + 1, keys // _SHAPE_NARROWS
        return {str(key)[:_SHAPE_KEY_CHARS]: shape_of(item, deeper, fewer) for key, item in items}
    if isinstance(value, list):
        return f"array({len(value)})"
    return kind_of(value)
