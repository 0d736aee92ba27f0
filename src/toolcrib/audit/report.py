"""From what servers list to what they cost: pure figures, the same as `toolcrib tokens` gives.

The comparison is honest in both directions. Where the gate would leave everything attached, nothing is saved. And a
search is not free: it is one more request, and its answer stays in the conversation for the rest of it. What a search
costs is measured on these very tools, and the break-even says how many of them a conversation can afford.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import orjson

from toolcrib.assembly import Assembly
from toolcrib.audit.tokenizers import Tokenizer
from toolcrib.audit.weighing import answer_sizes, direct_tokens, open_searched
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject, Tool, Toolset, canonical_json
from toolcrib.dialects import require_dialect
from toolcrib.evals.break_even import TURNS, break_even_searches, search_cost
from toolcrib.gate import GateDecision
from toolcrib.intake.naming import fold
from toolcrib.limits import AUDIT_BIGGEST_TOOLS, AUDIT_SAMPLE_SEARCHES
from toolcrib.settings import Settings
from toolcrib.sources.base import freeze_toolset
from toolcrib.sources.listed import ListedToolsets
from toolcrib.tokens import estimate_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a server's tools are not known."""

    reason: str
    status: str = "failed"
    """`failed`, or `skipped` if nobody tried."""


Listed = Sequence[JsonObject] | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    """One server."""

    name: str
    status: str
    """`ok`, `failed` or `skipped`."""
    tools: int = 0
    tokens: int = 0
    """Per turn, by the estimate."""
    exact: int | None = None
    left_out: int = 0
    """Definitions that cannot be used."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCost:
    """One tool."""

    name: str
    server: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """One tool that several servers have."""

    name: str
    servers: tuple[str, ...]
    same: bool
    """Whether description and schema are the same too; else only the name is."""
    tokens: int
    """What all but one of them cost per turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a whole conversation costs, all requests together."""

    turns: int
    now: int
    with_toolcrib: int
    """With as many searches as `searches`."""
    searches: int
    search_tokens: int
    """The median answer of a search on these tools."""
    measured: int
    """Searches that the median is taken from."""
    break_even: int | None
    """Searches in one conversation up to which tool search is cheaper; nothing if it would not be in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What one client pays for the servers of its own."""

    client: str
    servers: int
    tokens: int
    with_toolcrib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Everything that an audit found."""

    servers: tuple[ServerCost, ...]
    total_tokens: int
    with_toolcrib_tokens: int
    context: int | None
    decision: GateDecision
    forced_tokens: int
    """What a turn would cost with tool search switched on, whatever the gate says."""
    tools: int
    biggest: tuple[ToolCost, ...]
    duplicates: tuple[Duplicate, ...]
    conversation: Conversation
    clients: tuple[ClientCost, ...] = ()
    tokenizer: str | None = None
    exact_total: int | None = None
    exact_with_toolcrib: int | None = None

    @property
    def activated(self) -> bool:
        """Whether tool search would be in use."""
        return self.decision.defer

    @property
    def saved_pct(self) -> float:
        """The share that is saved per turn."""
        return round(100 * (1 - self.with_toolcrib_tokens / self.total_tokens), 2) if self.total_tokens else 0.0


def build_report(
    listed: Mapping[str, Listed],
    *,
    context: int | None = None,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    clients: Mapping[str, Sequence[str]] | None = None,
) -> AuditReport:
    """The report on servers, given what each of them lists.

    Args:
        listed: Server → definitions, or why there are none.
        context: The model's window, in tokens.
        settings: What the gate and the listing go by.
        tokenizer: For exact figures beside the estimates.
        clients: Client → its servers; no client pays for another's.
    """
    toolsets = {
        name: freeze_toolset(f"mcp-{name}", definitions, origin="mcp")
        for name, definitions in listed.items()
        if not isinstance(definitions, Failure)
    }
    crib = Crib(ListedToolsets("audit", tuple(toolsets.values())), settings=settings)
    assembly = crib.session(model_context=context).assemble().assembly
    forced = open_searched(tuple(toolsets.values()), crib.settings)
    tools = [tool for toolset in toolsets.values() for tool in toolset.tools]
    total = direct_tokens(toolsets.values())
    names = {toolset.name: name for name, toolset in toolsets.items()}
    biggest = sorted(tools, key=lambda tool: (-tool.chars, tool.name))[:AUDIT_BIGGEST_TOOLS]
    return AuditReport(
        servers=tuple(_server(name, item, toolsets.get(name), tokenizer) for name, item in listed.items()),
        total_tokens=total,
        with_toolcrib_tokens=assembly.tokens,
        context=context,
        decision=assembly.decision,
        forced_tokens=forced.session(model_context=context).assemble().assembly.tokens,
        tools=len(tools),
        biggest=tuple(
            ToolCost(name=tool.leaf, server=names[tool.toolset], tokens=estimate_tokens(tool.chars)) for tool in biggest
        ),
        duplicates=find_duplicates(toolsets),
        conversation=_conversation(crib, assembly, total),
        clients=_clients(listed, clients or {}, context=context, settings=settings),
        tokenizer=tokenizer.name if tokenizer else None,
        exact_total=sum(_exact(tool, tokenizer) for tool in tools) if tokenizer else None,
        exact_with_toolcrib=sum(_exact(tool, tokenizer) for tool in assembly.tools) if tokenizer else None,
    )


def report_json(report: AuditReport) -> JsonObject:
    """The report with the keys that scripts rely on."""
    conversation = report.conversation
    exact: JsonObject = {}
    if report.tokenizer:
        exact["exact"] = {
            "tokenizer": report.tokenizer,
            "total_tokens": report.exact_total,
            "with_toolcrib_tokens": report.exact_with_toolcrib,
        }
    return {
        "servers": [_server_json(server) for server in report.servers],
        "total_tokens": report.total_tokens,
        "with_toolcrib_tokens": report.with_toolcrib_tokens,
        "saved_pct": report.saved_pct,
        "context": report.context,
        "activated": report.activated,
        "reason": str(report.decision),
        "forced_tokens": report.forced_tokens,
        "n_tools": report.tools,
        "biggest": [{"name": item.name, "server": item.server, "tokens": item.tokens} for item in report.biggest],
        "duplicates": [
            {"name": item.name, "servers": list(item.servers), "same": item.same, "tokens": item.tokens}
            for item in report.duplicates
        ],
        "conversation": {
            "turns": conversation.turns,
            "now_tokens": conversation.now,
            "with_toolcrib_tokens": conversation.with_toolcrib,
            "searches": conversation.searches,
            "search_tokens": conversation.search_tokens,
            "searches_measured": conversation.measured,
            "break_even_searches": conversation.break_even,
        },
        "clients": [
            {
                "client": item.client,
                "servers": item.servers,
                "tokens": item.tokens,
                "with_toolcrib_tokens": item.with_toolcrib,
            }
            for item in report.clients
        ],
        **exact,
    }


def find_duplicates(toolsets: Mapping[str, Toolset]) -> tuple[Duplicate, ...]:
    """Tools that more than one server has, the costliest first."""
    groups: dict[str, list[tuple[str, Tool]]] = {}
    for server, toolset in toolsets.items():
        for tool in toolset.tools:
            groups.setdefault(fold(tool.leaf), []).append((server, tool))
    found = [
        Duplicate(
            name=members[0][1].leaf,
            servers=tuple(dict.fromkeys(server for server, _ in members)),
            same=len({canonical_json([tool.description, tool.parameters]) for _, tool in members}) == 1,
            tokens=estimate_tokens(sum(tool.chars for _, tool in members) - max(tool.chars for _, tool in members)),
        )
        for members in groups.values()
        if len({server for server, _ in members}) > 1
    ]
    return tuple(sorted(found, key=lambda item: (-item.tokens, item.name)))


def _conversation(crib: Crib, assembly: Assembly, total: int) -> Conversation:
    now = TURNS * total
    if not assembly.activated:
        return Conversation(
            turns=TURNS, now=now, with_toolcrib=now, searches=0, search_tokens=0, measured=0, break_even=None
        )
    sizes = answer_sizes(crib, _first_words(list(assembly.catalog)))
    answer = int(median(sizes)) if sizes else 0
    # The usual conversation has a handful of needs, each met by one search.
    searches = min(3, assembly.catalog.size)
    cost = search_cost(visible=assembly.tokens, answer=answer)
    return Conversation(
        turns=TURNS,
        now=now,
        with_toolcrib=TURNS * assembly.tokens + searches * cost,
        searches=searches,
        search_tokens=answer,
        measured=len(sizes),
        break_even=break_even_searches(direct=total, visible=assembly.tokens, answer=answer),
    )


def _first_words(tools: Sequence[Tool]) -> Iterator[str]:
    """Searches for tools of this catalog: tools evenly spread, each by its own first words."""
    step = max(1, len(tools) // AUDIT_SAMPLE_SEARCHES)
    for tool in tools[::step][:AUDIT_SAMPLE_SEARCHES]:
        yield " ".join((tool.description or tool.leaf.replace("_", " ")).split()[:8])


def _server(name: str, item: Listed, toolset: Toolset | None, tokenizer: Tokenizer | None) -> ServerCost:
    if isinstance(item, Failure) or toolset is None:
        return ServerCost(
            name=name,
            status=item.status if isinstance(item, Failure) else "failed",
            error=item.reason if isinstance(item, Failure) else None,
        )
    return ServerCost(
        name=name,
        status="ok",
        tools=len(toolset.tools),
        tokens=estimate_tokens(toolset.chars),
        exact=sum(_exact(tool, tokenizer) for tool in toolset.tools) if tokenizer else None,
        left_out=len(toolset.skipped),
    )


def _server_json(server: ServerCost) -> JsonObject:
    found: JsonObject = {
        "name": server.name,
        "status": server.status,
        "tools": server.tools,
        "tokens": server.tokens,
    }
    if server.exact is not None:
        found["exact_tokens"] = server.exact
    if server.left_out:
        found["left_out"] = server.left_out
    if server.error is not None:
        found["error"] = server.error
    return found


def _clients(
    listed: Mapping[str, Listed],
    clients: Mapping[str, Sequence[str]],
    *,
    context: int | None,
    settings: Settings | None,
) -> tuple[ClientCost, ...]:
    found: list[ClientCost] = []
    for client, names in clients.items():
        toolsets = tuple(
            freeze_toolset(f"mcp-{name}", item, origin="mcp")
            for name in names
            if not isinstance(item := listed.get(name, ()), Failure)
        )
        crib = Crib(ListedToolsets("audit", toolsets), settings=settings)
        assembly = crib.session(model_context=context).assemble().assembly
        found.append(
            ClientCost(
                client=client,
                servers=len(toolsets),
                tokens=direct_tokens(toolsets),
                with_toolcrib=assembly.tokens,
            )
        )
    return tuple(found)


def _exact(tool: Tool, tokenizer: Tokenizer | None) -> int:
    if tokenizer is None:
        return 0
    return tokenizer.count(orjson.dumps(require_dialect("openai_chat").write_tool(tool)).decode())
