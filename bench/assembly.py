"""What an assembly costs when nothing changed, against serialising every schema for the estimate.

The original encodes every definition with `json.dumps` at every assembly to know what it would cost. Here the same
list is checked for changes (plain dictionaries) or known to be unchanged (frozen records).
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

from bench.catalogs import definitions
from bench.measure import interleaved, table
from toolcrib.crib import Crib
from toolcrib.definitions import Call, JsonObject, Result, text_result
from toolcrib.intake.freezing import freeze_tool
from toolcrib.listing import ListingRenderer
from toolcrib.settings import Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.base import build_toolset
from toolcrib.sources.live import LiveDefinitions

SETTINGS = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")))


async def _run(call: Call) -> Result:
    return text_result("ok")


def server_of(raw: JsonObject) -> str:
    return "mcp-" + cast("dict[str, str]", raw["function"])["name"].partition("__")[0]


def live_crib(tools: list[JsonObject]) -> Crib:
    return Crib(LiveDefinitions("live", lambda: tools, _run, toolset_of=server_of, origin="mcp"), settings=SETTINGS)


class Frozen:
    """A source that hands over frozen records, as our own sources do."""

    name = "frozen"

    def __init__(self, tools: list[JsonObject]) -> None:
        groups: dict[str, list[JsonObject]] = {}
        for raw in tools:
            groups.setdefault(server_of(raw), []).append(raw)
        self._snapshot = tuple(
            build_toolset(name, [freeze_tool(raw, toolset=name, origin="mcp") for raw in raws], origin="mcp")
            for name, raws in groups.items()
        )

    def snapshot(self) -> tuple[object, ...]:
        return self._snapshot

    def watch(self, changed: Callable[[], None]) -> bool:
        return True

    async def call(self, call: Call, context: object) -> Result:
        return text_result("ok")

    async def close(self) -> None:
        return None


def estimate_as_the_original(tools: list[JsonObject]) -> int:
    return sum(len(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in tools)


def measure(count: int, path: Path | None) -> dict[str, float]:
    tools = definitions(count, path)
    live = live_crib(tools).session(model_context=200_000)
    frozen = Crib(Frozen(tools), settings=SETTINGS).session(model_context=200_000)  # pyright: ignore[reportArgumentType]
    changed = definitions(count, path)
    changing = live_crib(changed).session(model_context=200_000)
    flip = [0]

    def one_changed() -> None:
        flip[0] += 1
        function = cast("dict[str, str]", changed[count // 2]["function"])
        function["description"] = f"Changed for the {flip[0]}. time."
        changing.assemble()

    assert live.assemble().decision.tokens == -(-estimate_as_the_original(tools) // 4) or path
    timings = interleaved(
        {
            "original": lambda: estimate_as_the_original(tools),
            "dicts": live.assemble,
            "records": frozen.assemble,
            "changed": one_changed,
        }
    )
    return {name: timing.micros for name, timing in timings.items()}


def listing_growth(path: Path | None) -> list[list[str]]:
    """Cost of rendering a listing from nothing, at ten times the tools and ten times the servers."""
    rows: list[list[str]] = []
    for count in (1_000, 10_000):
        for servers in (10, 100, 1_000):
            tools = [
                freeze_tool(raw, toolset=f"mcp-s{n % servers}", origin="mcp")
                for n, raw in enumerate(definitions(count))
            ]
            groups = [
                build_toolset(f"mcp-s{server}", tools[server::servers], origin="mcp") for server in range(servers)
            ]
            crib = Crib(settings=SETTINGS)
            from toolcrib.catalog import Catalog

            catalog = Catalog(toolsets=tuple(groups))
            took = interleaved(
                {"render": lambda catalog=catalog: ListingRenderer().render(catalog, mode="auto", max_chars=16_000)}
            )["render"]
            rows.append([f"{count:,}", f"{servers:,}", f"{took.micros / 1000:.2f}", f"{took.micros / count:.2f}"])
            asyncio.run(crib.close())
    return rows


def report(path: Path | None, sizes: tuple[int, ...] = (226, 2_000)) -> str:
    rows: list[list[str]] = []
    for count in sizes:
        found = measure(count, path)
        base = found["original"]
        rows.append(
            [f"{count:,}", f"{base:,.0f}"]
            + [f"{found[name]:,.1f} ({base / found[name]:,.0f}×)" for name in ("dicts", "records", "changed")]
        )
    kind = f"definitions of {path.name}" if path else "made-up definitions"
    return "\n".join(
        [
            table(
                f"Assembly of an unchanged catalog, {kind} (CPU µs per assembly, medians of 15; × against json.dumps)",
                ["tools", "json.dumps of every schema", "dicts, checked", "frozen records", "one of them changed"],
                rows,
            ),
            table("Listing from nothing (CPU ms)", ["tools", "servers", "ms", "µs per tool"], listing_growth(path)),
        ]
    )
