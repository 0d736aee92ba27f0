"""The settings that Toolcrib understands, with their defaults and bounds.

Every field here is a key of the configuration file of the same name, and has its line in docs/configuration.md.
The values are immutable; `toolcrib.config` reads them from files and says where each one came from.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from toolcrib.limits import (
    AGENT_STEPS,
    APPROVAL_TTL_S,
    CALL_DEADLINE_S,
    CONCURRENCY_GLOBAL,
    CONCURRENCY_PER_SESSION,
    CONCURRENCY_PER_TOOLSET,
    IDLE_STOP_S,
    MODEL_OUTPUT_TOKENS,
    MODEL_TIMEOUT_S,
    RESULT_MAX_CHARS,
)  # fmt: skip

Mode = Literal["auto", "on", "off"]
Verdict = Literal["allow", "ask", "deny"]
PinMode = Literal["off", "warn", "enforce"]
SemanticTier = Literal["static", "off"]
Abstention = Literal["usual", "cautious", "off"]
ScreeningMode = Literal["off", "warn", "hold", "strict"]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the file: unknown keys are errors."""


class RerankerSettings(_Section, frozen=True):
    """`tools.tool_search.reranker`: an OpenAI-compatible embeddings endpoint (S24)."""

    enabled: bool = False
    endpoint: str = "http://localhost:11434/v1/embeddings"
    model: str = "nomic-embed-text-v2-moe"
    mode: Literal["rerank", "rrf"] = "rerank"


class ToolSearchSettings(_Section, frozen=True):
    """`tools.tool_search`: when to defer, what to show, how to search."""

    enabled: Mode = "auto"
    threshold_pct: Annotated[float, Meta(ge=0, le=100)] = 10.0
    threshold_max_tokens: Positive = 20_000
    search_default_limit: Annotated[int, Meta(ge=1, le=50)] = 5
    max_search_limit: Annotated[int, Meta(ge=1, le=50)] = 20
    search_result_max_tokens: Annotated[int, Meta(ge=200, le=100_000)] = 1_500
    listing: Mode = "auto"
    listing_max_tokens: Annotated[int, Meta(ge=200, le=60_000)] | None = None
    """The threshold, but at most 4,000, if not given."""
    retrieval: Literal["lexical", "hybrid"] = "hybrid"
    semantic: SemanticTier = "static"
    """What meaning comes from: the model that ships with the package, or nothing (which is `retrieval: lexical`)."""
    abstention: Abstention = "usual"
    """How readily a search by meaning answers with nothing; `off` shows what comes nearest, as doubtful (X2)."""
    reranker: RerankerSettings = RerankerSettings()


class ToolsSettings(_Section, frozen=True):
    """`tools`: everything about the array that the model sees."""

    tool_search: ToolSearchSettings = ToolSearchSettings()
    core: tuple[str, ...] | None = None
    """Names that never defer; the default list if not given."""
    aliases: dict[str, tuple[str, ...]] = {}
    """Words for a tool (`create_issue`) or a toolset (`mcp-github`), used for ranking only (X8)."""


class ApprovalRules(_Section, frozen=True):
    """Which calls somebody must agree to, and which are refused."""

    default: Verdict = "allow"
    rules: dict[str, Verdict] = {}
    """Pattern → verdict, on the real name or on `toolset/name`. The strictest match wins; `*` is asked last. `ask` and
    `deny` also count for a tool's own name without its server's prefix, where they make the verdict stricter."""
    destructive: Verdict = "allow"
    """For tools whose source calls them destructive; can only make a verdict stricter."""


class ApprovalSettings(ApprovalRules, frozen=True):
    """`approvals`: what counts for everybody, and how long an answer may take."""

    ttl_s: Seconds = APPROVAL_TTL_S
    """Seconds that a question stays open and a grant stays valid, wherever somebody is asked."""


class LimitSettings(_Section, frozen=True):
    """`limits`: how much may run at once, and for how long."""

    call_deadline_s: Seconds = CALL_DEADLINE_S
    concurrency_global: Positive = CONCURRENCY_GLOBAL
    concurrency_per_toolset: Positive = CONCURRENCY_PER_TOOLSET
    concurrency_per_session: Positive = CONCURRENCY_PER_SESSION
    result_max_chars: Annotated[int, Meta(ge=200)] = RESULT_MAX_CHARS


class PythonSourceSettings(_Section, frozen=True):
    """One entry of `python`: the functions of a module as a toolset."""

    module: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


class ActivitySettings(_Section, frozen=True):
    """`activity`: where the feed of what really ran goes, and how much it says."""

    file: str | None = None
    """Relative to the configuration file."""
    arguments: Literal["shapes", "values"] = "shapes"
    queries: bool = False
    """Whether to keep the words of searches, for `toolcrib learn`."""


class ServerSettings(_Section, frozen=True):
    """One entry of `mcpServers`: the keys that every MCP client knows, and ours.

    A value of `env` or `headers`, or `url`, may be `${NAME}`: the variable of that name, and nothing around it but
    `Bearer ` or `Basic `.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    """Found out from `command` and `url` if not given."""
    start: Literal["eager", "on_demand", "idle_stop"] = "eager"
    timeout: Seconds | None = None
    """Seconds that one call may take, if less than `limits.call_deadline_s`."""
    disabled: bool = False
    trust: bool = False
    """Whether its annotations may lower a requirement, not only raise it."""
    prefix: str | None = None
    """What its names start with; the server's name if not given, nothing if empty."""
    include: tuple[str, ...] = ("*",)
    """Patterns of its own names of tools to take."""
    exclude: tuple[str, ...] = ()
    """Patterns of its own names of tools to leave out, whatever `include` says."""
    era: Literal["auto", "legacy", "modern", "mirror"] = "auto"
    """The protocol to speak: the newest that it knows, the old one, the new one, or the caller's own."""
    idle_stop: Seconds = IDLE_STOP_S
    """Seconds without a call after which an `idle_stop` server ends."""
    oauth: bool = False
    """Whether to sign in with OAuth; the token is kept for the next time."""

    def __repr__(self) -> str:
        # What is in `env` and `headers` is nobody's business but the server's (J3).
        shown = {
            name: dict.fromkeys(value, "***") if name in {"env", "headers"} and value else value
            for name, value in structs.asdict(self).items()
        }
        return f"ServerSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class ProfileSettings(_Section, frozen=True):
    """One entry of `profiles`: what whoever holds its token may do (X19)."""

    toolsets: tuple[str, ...] | None = None
    """Toolsets that are granted; all if not given."""
    disabled_toolsets: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """Patterns of tools that are granted, within the toolsets; all if not given."""
    read_only: bool = False
    """Only tools that say that they change nothing."""
    always_visible: tuple[str, ...] = ()
    """Patterns of tools that stay in the list, whatever the gate says."""
    required_tools: tuple[str, ...] = ()
    """Tools without which the gateway must not start."""
    context: Positive | None = None
    """The context window of the model behind it, in tokens."""
    approvals: ApprovalRules = ApprovalRules()
    """Its own rules besides the general ones: the stricter verdict counts, so that they can only narrow."""


class GatewaySettings(_Section, frozen=True):
    """`gateway`: how clients reach it."""

    hosts: tuple[str, ...] = ()
    """Names, besides loopback, that clients may use for this machine in the `Host` header."""
    origins: tuple[str, ...] = ()
    """Web origins, besides loopback, whose pages may talk to it."""
    tokens: str | None = None
    """The file of tokens, relative to the configuration file; in the user's configuration directory if not given."""
    startup_wait: Seconds = 10.0
    """Seconds that a first list waits for servers that are still starting."""


class AgentSettings(_Section, frozen=True):
    """`agent`: the model that `toolcrib chat` and `toolcrib run` talk to, and how far they may go."""

    api: Literal["openai_chat", "openai_responses", "anthropic"] = "openai_chat"
    """The wire format: `openai_chat` for everything that is OpenAI-compatible."""
    model: str | None = None
    endpoint: str | None = None
    """Base address; the vendor's own if not given."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; the vendor's usual one if not given."""
    context: Positive | None = None
    """Context window in tokens, if neither the endpoint nor our table knows it (S14)."""
    reveal: Literal["auto", "bridge", "native"] = "auto"
    """How deferred tools reach the model: through the bridge, or through the model API's own search (X12)."""
    max_steps: Positive = AGENT_STEPS
    max_output_tokens: Positive = MODEL_OUTPUT_TOKENS
    timeout_s: Seconds = MODEL_TIMEOUT_S
    workdir: str = "."
    """The directory that file tools stay in and that commands start in."""
    memory: str = ".toolcrib/memory.md"
    """The file of the `memory` tool, inside `workdir`."""


class Settings(_Section, frozen=True):
    """The whole file."""

    tools: ToolsSettings = ToolsSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    limits: LimitSettings = LimitSettings()
    activity: ActivitySettings = ActivitySettings()
    pins: PinMode = "warn"
    """What happens to a tool of an MCP source whose definition or launch is not as the lock file approves it:
    `off` compares nothing, `warn` serves and reports it, `enforce` holds it back (everything, if there is no lock)."""
    lock: str | None = None
    """The lock file, relative to the configuration file; if not given, it lies beside it and is named like it:
    `toolcrib.lock` for `toolcrib.yaml`."""
    screening: ScreeningMode = "hold"
    """What happens to a tool of an MCP source that looks wrong: `off` looks at nothing, `warn` reports, `hold` holds
    back hard findings (hidden characters, encoded or self-concealing orders, look-alike names) and reports the rest,
    `strict` holds back whatever has a finding. What the lock approves as it stands is never held back for it."""
    agent: AgentSettings = AgentSettings()
    python: dict[str, PythonSourceSettings] = {}
    """Toolset name → module."""
    mcpServers: dict[str, ServerSettings] = {}
    """Server name → how to reach it."""
    profiles: dict[str, ProfileSettings] = {}
    """Profile name → what it grants."""
    gateway: GatewaySettings = GatewaySettings()
    plugins: bool = False
    """Whether to load the entry points of `toolcrib.plugins`."""
