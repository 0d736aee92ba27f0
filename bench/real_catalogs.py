"""How search and abstention do on catalogs of real servers, with queries on which nothing was fitted or chosen.

    python -m bench.real_catalogs TOOLS.jsonl

Each line of TOOLS is a tool as its server gave it, with `server` beside it. `real_catalogs.jsonl` has eight catalogs, each a
line that names its servers and, below it, the queries asked of them: `asked` as a model writes to a search tool, `told` as
a person tells it, mostly in other words than the tool's; `absent_near` for what no tool does although one of the servers
might, `absent_far` for what none of the servers is about. They were written by reading the catalogs, without searching.

Printed are, by kind of query, how many are emptied, how many of those name a right tool as the nearest, how many are
marked as doubtful, and the recall of the first five; then what other floors would do. With `--languages` the same queries are
asked in eighteen other languages, a ninth of them in each (`real_languages.jsonl`: translated from the English ones alone, by
nobody who knew the dictionaries); `named` are those whose first five, or nearest, hold a right tool.
"""

import argparse
import json
import os
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
LANGUAGES = Path(__file__).parent / "real_languages.jsonl"
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


def in_other_languages(catalogs: Sequence[RealCatalog], lines: Iterable[str]) -> dict[str, list[RealCatalog]]:
    """The catalogs with their queries as they are asked in each language."""
    said: dict[str, dict[str, str]] = {}
    for row in map(json.loads, lines):
        said.setdefault(row["lang"], {})[row["of"]] = row["text"]
    return {
        language: [
            replace(
                catalog,
                queries=[replace(each, text=texts[each.text]) for each in catalog.queries if each.text in texts],
            )
            for catalog in catalogs
        ]
        for language, texts in said.items()
    }


def report_languages(found: Mapping[str, Mapping[str, Tally]]) -> str:
    """One row a language, and the mean of all."""
    rows = ["| language | answerable | emptied | named or found | near | far |", "|---|---|---|---|---|---|"]
    sums = [0.0] * 4
    for language, kinds in found.items():
        asked = [kinds[kind] for kind in KINDS if kind not in ABSENT]
        queries = sum(each.queries for each in asked)
        shares = [
            sum(each.emptied for each in asked) / queries,
            sum(each.recall + each.named for each in asked) / queries,
            *(kinds[kind].emptied / kinds[kind].queries for kind in ABSENT),
        ]
        sums = [total + share for total, share in zip(sums, shares, strict=True)]
        rows.append(f"| {language} | {queries} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    rows.append("| mean | | " + " | ".join(f"{total / len(found):.1%}" for total in sums) + " |")
    return "\n".join(rows)


def measure_languages(source: Path) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    catalogs, tools = read_catalogs(QUERIES.read_text("utf-8").splitlines()), read_tools(source)
    asked = in_other_languages(catalogs, LANGUAGES.read_text("utf-8").splitlines())
    print(report_languages({name: tallies(each, tools, model, Calibration()) for name, each in asked.items()}))


def measure(source: Path) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=Path, help="tools as their servers gave them, one a line")
    parser.add_argument("--languages", action="store_true", help="ask in eighteen other languages")
    options = parser.parse_args()
    (measure_languages if options.languages else measure)(options.tools)


if __name__ == "__main__":
    main()
