"""Learns how telling each query word is, and prints the table of `toolcrib/retrieval/salience.py`.

    python -m bench.salience PAIRS.jsonl > table

Each line of PAIRS is `{"query", "name", "description", "params", "source"}`: a request and a tool that
answers it. For every word of the requests we compare how often the right tool's own text holds it with how
often any tool's text does. A word that the right tool holds no more often than any other (I, please, the)
tells nothing, however rare it is in a catalog. Log odds are averaged over sources; a word counts from
`MIN_COUNT` requests in `MIN_SOURCES` sources on, because a word of one domain (beach, classify) looks dull
in another.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from toolcrib.retrieval.text import family, query_terms, terms

MIN_COUNT = 200
MIN_SOURCES = 3
FULL = 1.5
"""Log odds from which on a word counts in full."""
PER_TOOL = 30
PRIOR = 5.0


@dataclass
class Source:
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    tools: dict[str, set[str]] = field(default_factory=dict)

    def holding(self, word: str) -> float:
        return (sum(word in held for held in self.tools.values()) + 0.5) / (len(self.tools) + 1)


def families(text: str) -> set[str]:
    return {family(term) for term in terms(text)}


def read(path: Path) -> dict[str, Source]:
    sources: dict[str, Source] = defaultdict(Source)
    held: dict[tuple[str, str], set[str]] = defaultdict(set)
    first: dict[tuple[str, str], str] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            place = (pair["source"], pair["query"])
            words = families(f"{pair['name']} {pair['description']} {' '.join(pair['params'])}")
            sources[pair["source"]].tools[pair["name"]] = words
            first.setdefault(place, pair["name"])
            held[place] |= words
    seen: Counter[tuple[str, str]] = Counter()
    for (source, query), words in held.items():
        tool = (source, first[source, query])
        seen[tool] += 1
        if seen[tool] > PER_TOOL:
            continue
        for word in {family(term) for term in query_terms(query)}:
            sources[source].asked[word] += 1
            sources[source].answered[word] += word in words
    return sources


def log_odds(word: str, sources: dict[str, Source]) -> float:
    total = weight = 0.0
    for source in sources.values():
        asked = source.asked[word]
        if asked:
            anywhere = source.holding(word)
            right = (source.answered[word] + PRIOR * anywhere) / (asked + PRIOR)
            each = math.sqrt(min(asked, 200))
            total += each * (math.log(right / (1 - right + 1e-9)) - math.log(anywhere / (1 - anywhere + 1e-9)))
            weight += each
    return total / weight


def learn(path: Path) -> None:
    sources = read(path)
    words = {word for source in sources.values() for word in source.asked}
    by_value: dict[int, list[str]] = defaultdict(list)
    for word in sorted(words):
        counts = [source.asked[word] for source in sources.values() if source.asked[word]]
        if sum(counts) >= MIN_COUNT and len(counts) >= MIN_SOURCES:
            value = log_odds(word, sources) / FULL
            if value < 0.95:
                by_value[max(3, round(value * 10) * 10)].append(word)
    for percent, group in sorted(by_value.items()):
        print(percent, " ".join(group))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, help="requests and tools that answer them, one pair a line")
    learn(parser.parse_args().pairs)


if __name__ == "__main__":
    main()
