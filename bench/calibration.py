"""Fits `toolcrib/retrieval/confidence.py` on development sets, and says how well it abstains.

    python -m bench.calibration DIRECTORY [OWN_TOOLS OWN_QUERIES]

DIRECTORY holds one folder per set with `tools.jsonl` and `queries.jsonl`. Answerable queries are those of the sets.
Absent abilities are probed in two ways: a query of another set whose right tools have no near relative here
(`foreign`), and a query whose right tools, with everything that resembles them, are taken out of its own catalog
(`near`). Many of these are not absent: another tool does what is asked. So each was read with its six best hits, and
`absent.tsv` has the verdicts, by the start of the check sum of kind, catalog and query: 0 no hit does it, 1 perhaps,
2 one does. Those with 1 are left out; those with 2 are `met`: nothing is fitted on them, and how many of them get
nothing is said. A probe that nobody has read counts as absent, and their number is printed. Queries that are not
compared with tools piece by piece, since they meet them by words alone, are left out: they have a line of their own.

Printed are the lines, fitted on everything (the second with what was read together), and what several floors would do: first in the mean of the sets, each
judged by lines and floors that were fitted without it and its relatives (`held out`), then for the project's own corpus,
which is never fitted on. Last, what the lines and the floor that ship do, and how many answers several levels of doubt
would mark or empty.
"""

import argparse
import hashlib
import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.ablation import NEVER
from toolcrib.evals.corpus import Query, read_queries, read_tools
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.confidence import SURE, Calibration, Line, Signals
from toolcrib.retrieval.courtesy import plainly
from toolcrib.retrieval.hybrid import HybridIndex, HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory
from toolcrib.retrieval.vectors import unit

PER_SET = 200
FOREIGN = 200
NEAR = 60
LARGEST = 5_000
"""Tools of a catalog from which on nothing is foreign."""
RELATIVE = 0.6
"""Cosine of two tools from which on one may do the other's work."""
CAUTION, CAUTION_TOGETHER = 5.0, 1.0
"""What an answerable query counts against an absent one when a line is fitted; with what was read together."""
EMPTIED = (0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02)
DOUBTS = (-0.2, 0.2, 0.6, 1.0)
"""Levels of doubt to look at: answers below are marked, or emptied."""
ALL = replace(NEVER, hopeless=-math.inf, clear=math.inf, sure_words=math.inf, doubt=math.inf)
"""Reads the best tools together with every query that is read at all, and with each of its clauses."""
SIGNALS = tuple(field.name for field in fields(Signals))
FITS = ("nearest", "elsewhere", "both", "length", "length_nearest", "length_elsewhere", "compared", "size", "offset")
TOGETHER = (*(name for name in FITS if name not in ("compared", "both")), "together")
BAND = (-4.0, 3.0)
"""Values of the first line between which the one with what was read together is fitted: it decides near the middle."""
FIRST = ("nearest", "elsewhere", "words", "lead", "offset")
VERDICTS = Path(__file__).parent / "absent.tsv"
PERHAPS = 1
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Decision = Callable[[Calibration, Signals], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One query against one catalog."""

    kind: str
    """`answerable`, `foreign`, `near` or `met`."""
    catalog: str
    source: str
    signals: Signals
    right: bool
    """Whether the first hit was right."""
    read: bool = True
    """Whether an absent ability was judged to be one by reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    documents: list[PlainDocument]
    queries: list[Query]
    vectors: NDArray[np.float32]

    def right(self, query: Query) -> list[int]:
        return [row for row, document in enumerate(self.documents) if document.key in query.relevant]


def relatives(name: str) -> str:
    return name.split("_")[0]


def indexed(documents: list[PlainDocument], model: StaticModel, calibration: Calibration = ALL) -> HybridIndex:
    """An index that never abstains: what is fitted must not depend on what was fitted before."""
    retriever = HybridRetriever(load=lambda: model, calibration=calibration)
    index = retriever.index(documents)
    retriever.settle()
    assert isinstance(index, HybridIndex)
    return index


def read_sets(directory: Path, model: StaticModel) -> dict[str, Set]:
    found: dict[str, Set] = {}
    for path in sorted(directory.iterdir()):
        if (path / "queries.jsonl").exists():
            documents = read_tools(path / "tools.jsonl")
            queries = [query for query in read_queries(path / "queries.jsonl") if query.relevant]
            vectors = unit(model.embed_documents(documents))
            found[path.name] = Set(documents=documents, queries=queries, vectors=vectors)
    return found


def verdict_key(kind: str, catalog: str, text: str) -> str:
    """What names a probe in `absent.tsv`."""
    return hashlib.sha256("\t".join((kind, catalog, text)).encode()).hexdigest()[:10]


def read_verdicts(path: Path = VERDICTS) -> dict[str, int]:
    lines = path.read_text("utf-8").splitlines()
    return {key: int(verdict) for key, verdict in (line.split("\t") for line in lines)}


def probes(sets: dict[str, Set], model: StaticModel) -> list[Probe]:
    verdicts = read_verdicts()
    rng = random.Random(7)
    found: list[Probe] = []
    for name, each in sets.items():
        index, ranks = indexed(each.documents, model), indexed(each.documents, model, NEVER)

        def seen(kind: str, source: str, text: str, index: HybridIndex = index, right: bool = False) -> None:
            read = True
            if kind != "answerable":
                verdict = verdicts.get(verdict_key(kind, name, text))  # noqa: B023
                if verdict == PERHAPS:
                    return
                kind, read = "met" if verdict else kind, verdict is not None
            signals = index.signals(text)
            if signals.compared is not None:
                found.append(Probe(kind=kind, catalog=name, source=source, signals=signals, right=right, read=read))  # noqa: B023

        asked = rng.sample(each.queries, min(PER_SET, len(each.queries)))
        for query in asked:
            hits = ranks.search(query.text, limit=1).hits
            seen("answerable", name, query.text, right=bool(hits) and hits[0].key in query.relevant)
        if len(each.documents) > LARGEST:
            continue
        for query in asked[:NEAR]:
            rest = remaining(each, query)
            if rest:
                seen("near", name, query.text, indexed(rest, model))
        others = [other for other in sets if relatives(other) != relatives(name)]
        for _ in range(FOREIGN):
            source = sets[other := rng.choice(others)]
            query = rng.choice(source.queries)
            right = source.right(query)
            if right and float((each.vectors @ source.vectors[right].T).max()) < RELATIVE:
                seen("foreign", other, query.text)
    return found


def remaining(each: Set, query: Query) -> list[PlainDocument]:
    """The tools without the right ones and all that resembles them; none if that says nothing."""
    right = each.right(query)
    if not 0 < len(right) <= 2:
        return []
    gone = (each.vectors @ each.vectors[right].T).max(axis=1) > RELATIVE
    if gone.sum() > len(each.documents) * 0.05 + len(right):
        return []
    return [document for document, out in zip(each.documents, gone, strict=True) if not out]


class Table:
    """Probes as numbers."""

    def __init__(self, found: list[Probe]) -> None:
        column = {
            name: np.array([getattr(probe.signals, name) or 0.0 for probe in found], dtype=float) for name in SIGNALS
        }
        # As `Line.value` takes it.
        for name in ("compared", "together"):
            column[name] = np.clip(column[name], -SURE, SURE)
        column["size"] = np.array([probe.signals.size for probe in found])
        column["both"] = column["nearest"] * column["elsewhere"]
        column["length_nearest"] = column["length"] * column["nearest"]
        column["length_elsewhere"] = column["length"] * column["elsewhere"]
        column["offset"] = np.ones(len(found))
        self.column = column
        self.kind = np.array([probe.kind for probe in found])
        self.catalog = np.array([probe.catalog for probe in found])
        self.right = np.array([probe.right for probe in found])
        self.unsaid = np.maximum(0.0, Calibration().short - column["length"])
        self.signals = [probe.signals for probe in found]
        self.read = np.array([probe.signals.together is not None for probe in found])
        self.open = column["words"] < Calibration().sure_words
        self.touches = np.array([[relatives(probe.catalog), relatives(probe.source)] for probe in found])

    def rows(self, names: tuple[str, ...]) -> Floats:
        return np.stack([self.column[name] for name in names], axis=1)

    def weights(self, among: Mask, caution: float = CAUTION) -> Floats:
        """Every set counts the same, and what is answerable so many times as much as both kinds of absence."""
        weights = np.zeros(len(self.kind))
        for kind, share in (("answerable", caution), ("foreign", 0.6), ("near", 0.4)):
            here = among & (self.kind == kind)
            for name in set(self.catalog[here]):
                rows = here & (self.catalog == name)
                weights[rows] = share / rows.sum() / len(set(self.catalog[here]))
        return weights

    def shares(self, emptied: Mask, kind: str, among: Mask | None = None) -> dict[str, float]:
        rows = (self.kind == kind) & (among if among is not None else True)
        return {str(name): float(emptied[rows & (self.catalog == name)].mean()) for name in set(self.catalog[rows])}

    def share(self, emptied: Mask, kind: str) -> float:
        """The share of all probes of a kind, whatever their set."""
        rows = self.kind == kind
        return float(emptied[rows].mean()) if rows.any() else math.nan

    def floor(self, values: Floats, among: Mask, share: float, steep: float) -> float:
        """Below which this share of the answerable lies, every set counting the same, if short queries have a lower one."""
        rows = np.flatnonzero(among & (self.kind == "answerable"))
        lifted = values + steep * self.unsaid
        order = rows[np.argsort(lifted[rows])]
        below = np.cumsum(self.weights(among)[order]) / CAUTION
        return float(lifted[order[min(int(np.searchsorted(below, share)), len(order) - 1)]])


def as_seen(signals: Signals, calibration: Calibration) -> Signals:
    """What a search would see: nothing that was read together where that is not done."""
    apart = replace(signals, together=None)
    return signals if calibration.unsettled(apart) else apart


def logistic(rows: Floats, right: Floats, weights: Floats, *, ridge: float = 1e-5, rounds: int = 50) -> Floats:
    line = np.zeros(rows.shape[1])
    weights = weights / weights.sum()
    for _ in range(rounds):
        chance = 1.0 / (1.0 + np.exp(-np.clip(rows @ line, -30, 30)))
        slope = rows.T @ (weights * (chance - right)) + ridge * line
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + ridge * np.eye(len(line))
        line -= np.linalg.solve(curve, slope)
    return line


def fitted(table: Table, among: Mask, names: tuple[str, ...], caution: float = CAUTION) -> Floats:
    """The line over these signals."""
    rows, answerable = table.rows(names)[among], (table.kind[among] == "answerable").astype(float)
    return logistic(rows, answerable, table.weights(among, caution)[among])


def fitted_both(table: Table, among: Mask) -> tuple[Floats, Floats]:
    """The line without what was read together, and the one with it for what the first leaves open."""
    apart = fitted(table, among, FITS)
    values = table.rows(FITS) @ apart
    open_yet = among & table.read & table.open & (values >= BAND[0]) & (values < BAND[1])
    return apart, fitted(table, open_yet, TOGETHER, CAUTION_TOGETHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The values of both lines, and which probes the second decides."""

    apart: Floats
    together: Floats
    unsettled: Mask

    @classmethod
    def by(cls, table: Table, among: Mask) -> "Judged":
        """By lines that are fitted on some probes."""
        apart, together = (
            table.rows(names) @ weights
            for names, weights in zip((FITS, TOGETHER), fitted_both(table, among), strict=True)
        )
        ships = Calibration()
        return cls(
            apart=apart,
            together=together,
            unsettled=table.read & table.open & (apart >= ships.hopeless) & (apart < ships.clear),
        )

    def ordered(self) -> Floats:
        """From the least likely to the most: what is settled stands at the ends."""
        ends = np.where(self.apart < Calibration().hopeless, -math.inf, math.inf)
        return np.where(self.unsettled, self.together, ends)

    def floors(self, table: Table, among: Mask, share: float) -> tuple[float, float]:
        """Below which this share of the answerable lies: with what was read together, and without."""
        ships = Calibration()
        return (
            table.floor(self.ordered(), among, share, ships.steep),
            table.floor(self.apart, among, share, ships.steep_apart),
        )

    def emptied(self, table: Table, floors: tuple[float, float]) -> Mask:
        """Which probes would be answered with nothing, with these floors."""
        ships = Calibration()
        floor, floor_apart = floors[0] - ships.steep * table.unsaid, floors[1] - ships.steep_apart * table.unsaid
        below = np.where(self.unsettled, self.together < floor, self.apart < floor_apart)
        return below & table.open


def held_out(table: Table, share: float) -> Mask:
    """Which probes would be answered with nothing, each judged without its set and the relatives of that."""
    emptied = np.zeros(len(table.kind), dtype=bool)
    for family in sorted(set(table.touches[:, 0])):
        others = ~(table.touches == family).any(axis=1)
        judged = Judged.by(table, others)
        here = table.touches[:, 0] == family
        emptied[here] = judged.emptied(table, judged.floors(table, others, share))[here]
    return emptied


def line(names: tuple[str, ...], weights: Floats) -> Line:
    rounded = {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}
    return Line(**{"words": 0.0, "lead": 0.0, **rounded})


def mean(shares: dict[str, float]) -> float:
    return sum(shares.values()) / len(shares) if shares else math.nan


def describe(table: Table, judged: Mask) -> str:
    """How many of the answerable and of the absent were judged to have nothing that fits."""
    answerable = table.shares(judged, "answerable")
    worst = sorted(answerable.items(), key=lambda each: -each[1])[:3]
    caught = " ".join(
        f"{kind} {mean(table.shares(judged, kind)):.1%} ({table.share(judged, kind):.1%})"
        for kind in ("foreign", "near", "met")
    )
    named = ", ".join(f"{name} {share:.1%}" for name, share in worst)
    of_all = table.share(judged, "answerable")
    return f"answerable {mean(answerable):.2%} ({of_all:.2%} of all; most: {named}); caught (of all): {caught}"


def own_corpus(tools: Path, queries: Path, model: StaticModel) -> Callable[[Calibration, Decision], str]:
    documents = read_tools(tools)
    index, names = indexed(documents, model), LexicalRetriever().index(documents)
    asked = [
        (query.category, index.signals(query.text), bool(names.named(query.text) or names.named(plainly(query.text))))
        for query in read_queries(queries)
    ]

    def judged(calibration: Calibration, decides: Decision) -> str:
        counts: dict[str, list[int]] = {}
        for category, seen, named in asked:
            count = counts.setdefault(category, [0, 0])
            count[0] += not named and decides(calibration, as_seen(seen, calibration))
            count[1] += 1
        return "own corpus: " + " ".join(f"{category} {n}/{of}" for category, (n, of) in sorted(counts.items()) if n)

    return judged


def no_corpus(calibration: Calibration, decides: Decision) -> str:
    return ""


def calibrate(directory: Path, own: list[Path]) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    found = probes(read_sets(directory, model), model)
    table = Table(found)
    everything = np.ones(len(table.kind), dtype=bool)
    counts = {kind: int((table.kind == kind).sum()) for kind in ("answerable", "foreign", "near", "met")}
    print(counts, f"nobody has read {sum(not probe.read for probe in found)} of the absent")
    print(
        "first_right",
        line(FIRST, logistic(table.rows(FIRST), table.right.astype(float), (table.kind != "met").astype(float))),
    )
    fits, together = map(line, (FITS, TOGETHER), fitted_both(table, everything))
    print("fits", fits)
    print("fits_together", together)
    told = own_corpus(own[0], own[1], model) if own else no_corpus
    judged = Judged.by(table, everything)
    print(f"read together: {describe(table, judged.unsettled)}")
    print(f"  of the largest set {table.shares(judged.unsettled, 'answerable').get('scale_mcp', math.nan):.1%}")
    ships = Calibration()
    for share in EMPTIED:
        floor, apart = judged.floors(table, everything, share)
        calibration = replace(ships, fits=fits, fits_together=together, floor=floor, floor_apart=apart)
        print(
            f"floor {floor:.2f} (apart {apart:.2f}): held out: "
            f"{describe(table, held_out(table, share))}\n  {told(calibration, Calibration.abstains)}"
        )
    now = np.array([ships.abstains(as_seen(seen, ships)) for seen in table.signals])
    print(f"ships: {describe(table, now)}\n  {told(ships, Calibration.abstains)}")
    alone = replace(ships, clear=-math.inf)
    without = np.array([alone.abstains(as_seen(seen, alone)) for seen in table.signals])
    print(f"ships, nothing read together: {describe(table, without)}\n  {told(alone, Calibration.abstains)}")
    for level in sorted({*DOUBTS, ships.doubt}):
        each = replace(ships, doubt=level)
        marked = np.array([each.doubts(as_seen(seen, each)) for seen in table.signals])
        print(
            f"doubt {level}{' (ships)' if level == ships.doubt else ''}: {describe(table, marked)}\n"
            f"  {told(each, Calibration.doubts)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="one folder per set")
    parser.add_argument("own", type=Path, nargs="*", help="two files: tools and queries of the project's own corpus")
    options = parser.parse_args()
    if len(options.own) not in {0, 2}:
        parser.error("give both files of the project's own corpus, or none")
    calibrate(options.directory, options.own)


if __name__ == "__main__":
    main()
