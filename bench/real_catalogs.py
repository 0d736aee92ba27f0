"""How search and abstention do on catalogs of real servers, with queries on which nothing was fitted or chosen.

    python -m bench.real_catalogs TOOLS.jsonl

Each line of TOOLS is a tool as its server gave it, with `server` beside it. `real_catalogs.jsonl` has eight catalogs, each a
line that names its servers and, below it, the queries asked of them: `asked` as a model writes to a search tool, `told` as
a person tells it, mostly in other words than the tool's; `absent_near` for what no tool does although one of the servers
might, `absent_far` for what none of the servers is about. They were written by reading the catalogs, without searching.

Printed are, by kind of query, how many are emptied, how many of those name a right tool as the nearest, how many are
marked as doubtful, and the recall of the first five; then what other floors would do.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolcrib.evals.corpus import read_tools
from toolcrib.retrieval.base import PlainDocument, Ranking
from toolcrib.retrieval.confidence import Calibration
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory

QUERIES = Path(__file__).parent / "real_catalogs.jsonl"
ABSENT = ("absent_near", "absent_far")
KINDS = ("asked", "told", *ABSENT)
HITS = 5
LOWER = (0.0, 0.4, 0.8, 1.2, 1.6, 2.0)
"""How much lower than those that ship floors are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query."""

    text: str
    kind: str
    relevant: frozenset[str]
    """`server/tool` of each tool that does it; none if no tool does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCatalog:
    """Some servers, and what is asked of them."""

    servers: frozenset[str]
    queries: Sequence[Asked]


@dataclass(slots=True)
class Tally:
    """What became of the queries of one kind."""

    queries: int = 0
    emptied: int = 0
    named: int = 0
    """Emptied, with a right tool among the nearest."""
    doubtful: int = 0
    recall: float = 0.0

    def add(self, asked: Asked, found: Ranking) -> None:
        self.queries += 1
        self.emptied += found.abstained
        self.named += found.abstained and not asked.relevant.isdisjoint(found.nearest)
        self.doubtful += found.doubtful
        if asked.relevant:
            hits = {hit.key for hit in found.hits}
            self.recall += len(hits & asked.relevant) / min(HITS, len(asked.relevant))


def read_catalogs(lines: Iterable[str]) -> list[RealCatalog]:
    """The catalogs, each with the queries that stand below it."""
    found: list[tuple[frozenset[str], list[Asked]]] = []
    for row in map(json.loads, lines):
        if "servers" in row:
            found.append((frozenset(row["servers"]), []))
        else:
            asked = Asked(text=row["query"], kind=row["category"], relevant=frozenset(row["relevant"]))
            found[-1][1].append(asked)
    return [RealCatalog(servers=servers, queries=queries) for servers, queries in found]


def tools_of(catalog: RealCatalog, tools: Sequence[PlainDocument]) -> list[PlainDocument]:
    """The tools of its servers, by `server/tool`."""
    own = [tool for tool in tools if tool.toolset in catalog.servers]
    return [replace(tool, key=f"{tool.toolset}/{tool.leaf}") for tool in own]


def tallies(
    catalogs: Sequence[RealCatalog], tools: Sequence[PlainDocument], model: StaticModel, calibration: Calibration
) -> dict[str, Tally]:
    """What becomes of all queries, by kind."""
    found = {kind: Tally() for kind in KINDS}
    for catalog in catalogs:
        retriever = HybridRetriever(load=lambda: model, calibration=calibration)
        index = retriever.index(tools_of(catalog, tools))
        retriever.settle()
        for asked in catalog.queries:
            found[asked.kind].add(asked, index.search(asked.text, limit=HITS))
    return found


def report(found: Mapping[str, Tally]) -> str:
    rows = [
        "| kind | queries | emptied | of those, a right tool is named | doubtful | recall@5 |",
        "|---|---|---|---|---|---|",
    ]
    for kind, each in found.items():
        named, recall = ("", "") if kind in ABSENT else (f"{each.named}", f"{each.recall / each.queries:.3f}")
        share = f"{each.emptied} ({each.emptied / each.queries:.1%})"
        rows.append(f"| {kind} | {each.queries} | {share} | {named} | {each.doubtful} | {recall} |")
    return "\n".join(rows)


def main(source: Path) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    catalogs, tools = read_catalogs(QUERIES.read_text("utf-8").splitlines()), read_tools(source)
    for lower in LOWER:
        found = tallies(catalogs, tools, model, Calibration().lowered(lower))
        if not lower:
            print(report(found), "\n")
        print(
            f"floors {lower:.1f} lower: emptied "
            + ", ".join(f"{kind} {each.emptied / each.queries:.1%}" for kind, each in found.items())
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
