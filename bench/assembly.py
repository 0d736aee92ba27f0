"""What an assembly costs, by what happened since the last one."""

import copy
from collections.abc import Sequence

from bench import original
from bench.catalogs import definitions
from bench.cribs import Servers, frozen, live, settings, with_description
from bench.measure import Case, Family, growth, interleaved, run_family, short
from toolcrib.catalog import Catalog
from toolcrib.crib import Crib
from toolcrib.listing import ListingRenderer
from toolcrib.sources.base import freeze_toolset

CASES = (
    "original", "dicts, checked", "dicts, one changed", "frozen", "one changed", "server flaps", "two scopes", "100 scopes",
    "cold, dicts", "cold, frozen",
)  # fmt: skip


def measure(count: int) -> dict[str, float]:
    """Milliseconds of one assembly in each case."""
    tools, mutable = definitions(count), copy.deepcopy(definitions(count))
    original.REGISTRY.register(tools)
    over_dicts, changing_dicts = live(tools), live(mutable)
    source = Servers(tools)
    over_records = frozen(source)
    changing_source = Servers(tools)
    changing = frozen(changing_source)
    flapping_source = Servers(tools)
    flapping = frozen(flapping_source)
    crib = Crib(source, settings=settings())
    scoped = [crib.session(model_context=200_000, disabled_toolsets=[name]) for name in (source.names * 100)[:100]]
    told, turns = iter(range(10**9)), iter(range(10**9))
    away: list[tuple[str, object]] = []

    def change_dict() -> None:
        mutable[count // 2] = with_description(mutable[count // 2], f"Changed for the {next(told)}. time.")

    def flap() -> None:
        name = away[0][0] if away else source.names[0]
        if away:
            flapping_source.flap(name, away.pop()[1])  # pyright: ignore[reportArgumentType]
        else:
            away.append((name, flapping_source.flap(name, None)))

    few = 15 if count <= 2_000 else 3 if count <= 20_000 else 1
    for session in scoped:
        session.assemble()
    return interleaved(
        {
            "original": Case(lambda: original.assemble(tools)),
            "dicts, checked": Case(over_dicts.assemble),
            "dicts, one changed": Case(changing_dicts.assemble, change_dict),
            "frozen": Case(over_records.assemble),
            "one changed": Case(
                changing.assemble,
                lambda: changing_source.change(with_description(tools[count // 2], f"Changed, {next(told)}.")),
            ),
            "server flaps": Case(flapping.assemble, flap),
            "two scopes": Case(lambda: scoped[next(turns) % 2].assemble()),
            "100 scopes": Case(lambda: scoped[next(turns) % 100].assemble()),
            "cold, dicts": Case(lambda: live(tools).assemble(), most=few),
            "cold, frozen": Case(lambda: frozen(source).assemble(), most=few),
        }
    )


def listing_growth() -> Family:
    """Cost of rendering a listing from nothing, at ten times the tools and ten times the servers."""
    rows: list[list[str]] = []
    for count in (1_000, 10_000):
        for servers in (10, 100, 1_000):
            tools = definitions(count)
            groups = [freeze_toolset(f"mcp-s{n}", tools[n::servers], origin="mcp") for n in range(servers)]
            catalog = Catalog(toolsets=tuple(groups))
            case = Case(lambda catalog=catalog: ListingRenderer().render(catalog, mode="auto", max_chars=16_000))
            took = interleaved({"render": case})["render"]
            rows.append([f"{count:,}", f"{servers:,}", short(took), f"{took * 1000 / count:.2f}"])
    return Family(
        name="listing",
        title="The listing from nothing (CPU)",
        headings=["tools", "servers", "ms", "µs per tool"],
        rows=rows,
    )


def report(sizes: Sequence[int]) -> Family:
    """The table of all sizes."""
    lines: dict[str, dict[int, float]] = {case: {} for case in CASES}
    rows: list[list[str]] = []
    for count in sizes:
        found = measure(count)
        base = found["original"]
        for case in CASES:
            lines[case][count] = found[case]
        rows.append(
            [f"{count:,}", short(base), *(f"{short(found[case])} ({base / found[case]:,.1f}×)" for case in CASES[1:])]
        )
    rows.append(["growth 2,000 → 20,000", *(growth(lines[case], 2_000, 20_000) for case in CASES)])
    return Family(
        name="assembly",
        title="One assembly (CPU ms; × against classifying and encoding every schema, in the same run)",
        headings=["tools", *CASES],
        rows=rows,
        lines=lines,
    )


if __name__ == "__main__":
    run_family("assembly")
