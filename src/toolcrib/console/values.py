"""What the page sends and what it gets, as types: a field that is not here cannot be sent.

None of them says how a server is started (J9): servers come from the configuration file and from nowhere else.
"""

from typing import Annotated

from msgspec import Meta, Struct

from toolcrib.definitions import Json
from toolcrib.limits import CLIENT_WINDOW_TOKENS

Text = Annotated[str, Meta(max_length=4_096)]


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    """`POST api/sign-in`."""

    secret: Text
    """The code of the printed link, or a token that was made for the console."""


class SearchQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST api/search`."""

    query: Text
    profile: Text = "default"
    limit: Annotated[int, Meta(ge=1, le=50)] | None = None


class TokenQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST api/tokens`."""

    context: Annotated[int, Meta(ge=1, le=100_000_000)] = CLIENT_WINDOW_TOKENS
    """The window of the model, in tokens."""


class Decision(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST api/approvals`."""

    id: Text
    allow: bool


class Signed(Struct, frozen=True, kw_only=True):
    """Somebody is signed in."""

    token: str
    """To be sent with every request, besides the cookie."""
    name: str


class Overview(Struct, frozen=True, kw_only=True):
    """`GET api/overview`."""

    version: str
    name: str
    """Who is signed in."""
    profiles: tuple[str, ...]
    servers: int
    tools: int
    in_flight: int
    waiting: int
    """Calls that wait for approval."""
    down: int
    """Servers that are down."""


class SearchView(Struct, frozen=True, kw_only=True):
    """The answer to a search, with its reasons."""

    query: str
    read_as: str
    """What was looked up, where that is not what was typed."""
    profile: str
    total_available: Json
    matches: tuple[Json, ...]
    abstained: bool
    doubtful: bool
    confidence: float
    nearest: tuple[str, ...]
    retrieval: str
    tokens: int
    ms: float
    """What the search took; the reasons took more."""
    answer: str
    """What the model would read, but for what servers should keep to themselves."""


class WaitingView(Struct, frozen=True, kw_only=True):
    """A call that waits for approval."""

    id: str
    tool: str
    toolset: str
    principal: str
    arguments: str
    rule: str
    left_s: float


class ServerView(Struct, frozen=True, kw_only=True):
    """How one server is."""

    name: str
    kind: str
    """`program` or `http`."""
    start: str
    state: str
    reason: str | None
    since_s: float
    tools: int
    left_out: int
    """Definitions that cannot be used."""
    held_back: int
    """Tools that no session gets."""
    restarts: int
    failure: str | None
    failure_s: float | None
    protocol: str | None
    garbage: int
    """Lines that were no messages."""
