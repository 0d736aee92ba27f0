"""Sessions of old clients over HTTP: random ids, bound to who opened them, with an end.

An id that belongs to somebody else is answered like one that never was (G5). Of who has the most, the longest unused
session makes room for a new one: nobody ends the sessions of others by opening many. One that nobody uses ends; a call
under way and an open stream are use.
"""

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from toolcrib.execution.errands import Errand
from toolcrib.gateway.changes import ChangeFeed, Subscription
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.profiles import Principal
from toolcrib.gateway.relay import Client
from toolcrib.limits import SESSION_IDLE_S, SESSIONS_MAX
from toolcrib.sources.json_rpc import Identifier


@dataclass(kw_only=True, eq=False)
class HttpSession:
    """One old client."""

    id: str
    client: Client
    used_at: float
    stream: Reply | None = None
    """Where messages that belong to no request go, while the client listens."""
    subscription: Subscription | None = None
    running: "dict[Identifier, asyncio.Task[None] | Errand]" = field(
        default_factory=dict[Identifier, "asyncio.Task[None] | Errand"]
    )
    """Requests under way."""
    cancelled: set[Identifier] = field(default_factory=set[Identifier])
    """Requests that the client itself cancelled, or that ended with the session: they are answered with an error."""

    @property
    def is_used(self) -> bool:
        """Whether the client waits for something now, or listens."""
        return bool(self.running) or (self.stream is not None and not self.stream.closed)

    def forget(self, identifier: Identifier) -> None:
        """A request has ended."""
        self.running.pop(identifier, None)
        if self.cancelled:
            self.cancelled.discard(identifier)

    def push(self, message: bytes) -> None:
        """Sends a message that belongs to no request; without a listener it is lost, as the protocol has it."""
        if self.stream is not None and not self.stream.closed:
            self.stream.push(message)

    def close(self) -> None:
        """Ends it."""
        if self.subscription is not None:
            self.subscription.close()
        if self.stream is not None:
            self.stream.close()
        self.client.left()

    def cancel(self) -> None:
        """Ends what it asked for; whoever still waits is told."""
        self.cancelled.update(self.running)
        for work in tuple(self.running.values()):
            work.cancel()


class HttpSessions:
    """All sessions, the longest unused first."""

    def __init__(self, changes: ChangeFeed, *, clock: Callable[[], float]) -> None:
        self._changes = changes
        self._clock = clock
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, client: Client) -> HttpSession:
        """A new session of a client."""
        self._sweep()
        while len(self._sessions) >= SESSIONS_MAX:
            self.end(self._least_missed())
        session = HttpSession(id=secrets.token_urlsafe(24), client=client, used_at=self._clock())
        session.subscription = self._changes.follow(client, session.push)
        self._sessions[session.id] = session
        return session

    def find(self, identifier: str, principal: Principal) -> HttpSession | None:
        """The principal's session of that id, if it is alive."""
        session = self._sessions.get(identifier)
        if session is None or (session.client.principal is not principal and session.client.principal != principal):
            return None
        if self._clock() - session.used_at > SESSION_IDLE_S and not session.is_used:
            self.end(session)
            return None
        self._use(session)
        return session

    def note_use(self) -> None:
        """Notes which sessions are used though nothing is asked: is to be called every now and then."""
        for session in [session for session in self._sessions.values() if session.is_used]:
            self._use(session)

    def end_if(self, is_refused: Callable[[Principal], bool]) -> None:
        """Ends the sessions of principals that are not let in any more."""
        for session in [session for session in self._sessions.values() if is_refused(session.client.principal)]:
            self.end(session)

    def end(self, session: HttpSession) -> None:
        """Ends a session, and what was asked in it."""
        self._sessions.pop(session.id, None)
        session.close()
        session.cancel()

    def close(self) -> None:
        """Ends all of them; what is under way may still be answered (K12)."""
        while self._sessions:
            self._sessions.popitem()[1].close()

    def _use(self, session: HttpSession) -> None:
        session.used_at = self._clock()
        self._sessions.move_to_end(session.id)

    def _least_missed(self) -> HttpSession:
        """Of who has the most sessions the longest unused one."""
        counts = Counter(session.client.principal.name for session in self._sessions.values())
        name = counts.most_common(1)[0][0]
        theirs = [session for session in self._sessions.values() if session.client.principal.name == name]
        return next((session for session in theirs if not session.is_used), theirs[0])

    def _sweep(self) -> None:
        self.note_use()
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            if self._clock() - oldest.used_at <= SESSION_IDLE_S:
                return
            self.end(oldest)
