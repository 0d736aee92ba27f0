"""Live activity: the feed of the gateway, sent to every page that watches.

Nobody hangs on the path of a call: while somebody watches, the feed is looked at twice a second, and what is new is
written once for all. A page that does not read is cut off (F10), and so is one whose sign-in ended.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from toolcrib.activity import Activity, Event
from toolcrib.console.showing import Shades, encode
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_wire import Field, Refused
from toolcrib.limits import (
    CONSOLE_BACKLOG,
    CONSOLE_BEAT_NOTES,
    CONSOLE_BEAT_S,
    CONSOLE_RECENT_NOTES,
    CONSOLE_STREAMS,
)

logger = logging.getLogger("toolcrib.console")


class LiveFeed:
    """The pages that watch one gateway."""

    def __init__(self, activity: Activity, shades: Shades) -> None:
        self._activity = activity
        self._shades = shades
        self._streams: dict[Reply, Callable[[], bool]] = {}
        """The pages, and whether each may still watch."""
        self._position = 0
        self._beating: asyncio.TimerHandle | None = None

    @property
    def watching(self) -> int:
        """How many pages watch."""
        return len(self._streams)

    def join(self, reply: Reply, fields: Sequence[Field], may_watch: Callable[[], bool]) -> None:
        """Sends the last events to a page, and all that follow. Raises `Refused` if too many watch."""
        self.beat()
        if len(self._streams) >= CONSOLE_STREAMS:
            raise Refused(503, f"{CONSOLE_STREAMS} pages watch already: close one.")
        recent = self._activity.news(0, most=CONSOLE_RECENT_NOTES)
        message = self._message(recent.events, 0)
        self._position = recent.position
        self._streams[reply] = may_watch
        reply.begin_stream(fields)
        reply.push(message)
        if self._beating is None:
            self._beating = reply.loop.call_later(CONSOLE_BEAT_S, self._beat_on, reply.loop)

    def beat(self) -> None:
        """Sends what is new."""
        for reply, may_watch in tuple(self._streams.items()):
            if reply.closed:
                del self._streams[reply]
            elif not may_watch():
                del self._streams[reply]
                reply.close()
        if not self._streams:
            return
        news = self._activity.news(self._position, most=CONSOLE_BEAT_NOTES)
        self._position = news.position
        if not news.events:
            return
        message = self._message(news.events, news.missed)
        for reply in tuple(self._streams):
            try:
                reply.push(message, CONSOLE_BACKLOG)
            except ConnectionError:
                del self._streams[reply]

    def close(self) -> None:
        """Ends all streams."""
        for reply in tuple(self._streams):
            reply.close()
        self._streams.clear()
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    def _beat_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beating = None
        try:
            self.beat()
        except Exception:  # one event that cannot be shown does not end the feed
            logger.exception("the feed left something out")
        if self._streams:
            self._beating = loop.call_later(CONSOLE_BEAT_S, self._beat_on, loop)

    def _message(self, events: Sequence[Event], missed: int) -> bytes:
        return encode({"events": [self._shades.event(event) for event in events], "missed": missed})
