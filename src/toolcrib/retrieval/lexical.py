"""Ranks documents by the words that they share with a query: weighted fields, BM25 impacts, and names.

A query that is a tool's name (exposed name, leaf, or toolset and leaf) puts that tool first, whatever else
scores. Otherwise the sum over the query's words decides. If no word matches at all, a literal part of a name
still finds (S23).

Invariant: the ranking is a pure function of the set of documents and the query; equal scores are ordered by
key. Prevents that an answer depends on what was indexed before, or on the order in which sources answered.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain
from threading import Lock
from typing import NamedTuple

import numpy as np

from toolcrib.alongside import common_ends
from toolcrib.limits import DELTA_MAX_SHARE, DELTA_MIN_DOCUMENTS, QUERY_MAX_CHARS, RESULTS_MAX_HITS
from toolcrib.retrieval.aliases import Aliases
from toolcrib.retrieval.analysis import Analyser, FieldWeights, Shares, default_weights, name_hash, names_of
from toolcrib.retrieval.base import NO_EVIDENCE, Document, Grouped, Hit, Ranking
from toolcrib.retrieval.forward import Stretch, joined
from toolcrib.retrieval.postings import Floats, build_segment, read_rows, terms_of
from toolcrib.retrieval.query import Numbers, QueryWeights, Weigher, Word, all_numbers, mass_of, standing_in
from toolcrib.retrieval.reading import Amendment, Postings, SegmentReader
from toolcrib.retrieval.selection import RIVAL_SHARE, Best, best_of, select
from toolcrib.retrieval.spelling import Spelling
from toolcrib.retrieval.text import normal_name

NAME_RANKS = ((6, 9), (2, 8), (4, 7))
"""Exposed name, leaf, toolset with leaf: in any spelling, and in the very same one."""
ALIAS_RANK = 1
"""An alias: any name comes before it."""
_SUBSTRING_ANYWHERE_CHARS = 5
_WORDS = re.compile(r"(?<![^\W_])[^\W\d_][^\W\d_A-Z]+(?![^\W_])")
"""Words as people write them: identifiers of several parts and words with digits are not spelt anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The last whole build: what the next index may be an amendment of."""

    groups: tuple[tuple[Document, ...], ...]
    starts: tuple[int, ...]
    """The row of the first document of each group, and of what would come behind the last."""
    documents: tuple[Document, ...]
    """The documents of all groups."""
    reader: SegmentReader
    aliases: Aliases
    terms: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The terms of rows that were amended: few, and mostly the same ones again."""


class _Usual(NamedTuple):
    weights: FieldWeights
    query: QueryWeights
    impacts: Floats


@cache
def _usual() -> _Usual:
    """What is the same in every retriever that nobody gave other weights; none of it can be changed."""
    weights = default_weights()
    impacts = weights.impact_table()
    impacts.setflags(write=False)
    return _Usual(weights, QueryWeights(), impacts)


class LexicalRetriever:
    """Builds lexical indexes; what the last whole build knows of a document is not found out again."""

    __slots__ = ("_analyser", "_base", "_impacts", "_lock", "_query", "_rival", "_spelling", "_weights")

    def __init__(
        self,
        weights: FieldWeights | None = None,
        *,
        query: QueryWeights | None = None,
        rival: float = RIVAL_SHARE,
    ) -> None:
        self._rival = rival
        usual = _usual()
        self._weights = weights if weights is not None else usual.weights
        self._query = query if query is not None else usual.query
        self._analyser = Analyser(self._weights)
        self._spelling = Spelling(self._analyser.vocabulary)
        self._impacts = usual.impacts if weights is None else self._weights.impact_table()
        self._base: _Base | None = None
        self._lock = Lock()

    def index(self, documents: Sequence[Document]) -> "LexicalIndex":
        """The index of exactly these documents; their order does not matter."""
        with self._lock:
            if self._analyser.full:
                self._analyser, self._base = Analyser(self._weights), None
                self._spelling = Spelling(self._analyser.vocabulary)
            groups = documents.groups if isinstance(documents, Grouped) else (tuple(documents),)
            amendment = self._amend(groups)
            if amendment is None:
                amendment = self._build(groups)
            postings, by_row = amendment
            base = self._base
            known = base.aliases if base is not None and base.documents is by_row.base else Aliases(by_row.base)
            return LexicalIndex(
                postings=postings,
                documents=by_row,
                aliases=(known, Aliases(by_row.added)),
                analyser=self._analyser,
                spelling=self._spelling,
                query=self._query,
                rival=self._rival,
            )

    def _build(self, groups: tuple[tuple[Document, ...], ...]) -> "_Parts":
        given = tuple(chain.from_iterable(groups))
        base = self._base
        known = _rows_known(base.documents, given) if base else []
        if base and known:
            places, taken = np.array(known).T
            others = sorted(set(range(len(given))).difference(places.tolist()))
            held = joined((read_rows(base.reader.segment, taken), self._analyse([given[place] for place in others])))
            segment = build_segment(held, np.concatenate((places, np.array(others, dtype=np.int64))))
        else:
            segment = build_segment(self._analyse(given))
        reader = SegmentReader(segment, self._impacts)
        # A part of the base does not take its place: the whole, with one tool changed, may be asked for next.
        if base is None or len(known) < len(given):
            starts = tuple(accumulate(map(len, groups), initial=0))
            aliases = Aliases(given)
            self._base = _Base(groups=groups, starts=starts, documents=given, reader=reader, aliases=aliases)
        return Postings(reader), ByRow(given)

    def _analyse(self, documents: Sequence[Document]) -> Stretch:
        return self._analyser.analyse(documents)

    def _count_terms(self, base: _Base, rows: Sequence[int]) -> Counter[int]:
        """In how many of these rows of the base each term occurs."""
        known = base.terms
        fresh = [row for row in rows if row not in known]
        if fresh:
            held = self._analyse([base.documents[row] for row in fresh])
            known.update(zip(fresh, terms_of(held), strict=True))
        return Counter(chain.from_iterable([known[row] for row in rows]))

    def _amend(self, groups: tuple[tuple[Document, ...], ...]) -> "_Parts | None":
        base = self._base
        if base is None:
            return None
        old = base.documents
        # First whole groups, then the documents of what is left: few objects are touched.
        start, end = common_ends(base.groups, groups)
        head, tail = base.starts[start], len(old) - base.starts[len(base.groups) - end]
        after = tuple(chain.from_iterable(groups[start : len(groups) - end]))
        first, last = common_ends(old[head : len(old) - tail], after)
        head, tail, after = head + first, tail + last, after[first : len(after) - last]
        before = range(head, len(old) - tail)
        if not before and not after:
            return Postings(base.reader), ByRow(old)
        if max(len(before), len(after)) > max(DELTA_MIN_DOCUMENTS, DELTA_MAX_SHARE * len(old)):
            return None
        kept = {old[row].digest: row for row in before}
        added: list[Document] = []
        window: list[int] = []
        for document in after:
            row = kept.pop(document.digest, None)
            if row is None:
                row = len(old) + len(added)
                added.append(document)
            window.append(row)
        gone = sorted(kept.values())
        amendment = Amendment.of(
            self._analyse(added), self._impacts, gone=gone, gone_terms=self._count_terms(base, gone)
        )
        return Postings(base.reader, amendment), ByRow(old, tuple(added), head, tuple(window), tail)


def _rows_known(old: tuple[Document, ...], given: tuple[Document, ...]) -> list[tuple[int, int]]:
    """Places of documents that are among the old ones, with their rows: the same object, else the same content."""
    rows = {id(document): row for row, document in enumerate(old)}
    found = [(place, row) for place, document in enumerate(given) if (row := rows.pop(id(document), -1)) >= 0]
    held = {place for place, _ in found}
    left = {old[row].digest: row for row in rows.values()}
    others = [place for place in range(len(given)) if place not in held] if left else ()
    found += [(place, row) for place in others if (row := left.pop(given[place].digest, -1)) >= 0]
    return sorted(found)


class ByRow:
    """The document of a row: first those of the base, then the added ones."""

    __slots__ = ("_head", "_tail", "_window", "added", "base", "get")

    def __init__(
        self,
        base: tuple[Document, ...],
        added: tuple[Document, ...] = (),
        head: int = 0,
        window: tuple[int, ...] = (),
        tail: int | None = None,
    ) -> None:
        """In the order in which they were given: `head` rows of the base, those of the window, the last `tail` rows."""
        self.base = base
        self.added = added
        self._head = head
        self._window = window
        self._tail = len(base) if tail is None else tail
        self.get: Callable[[int], Document] = self.__getitem__ if added else base.__getitem__
        """The document of a row, by the shortest way."""

    def __getitem__(self, row: int) -> Document:
        size = len(self.base)
        return self.base[row] if row < size else self.added[row - size]

    @property
    def order(self) -> list[int]:
        """The living rows, in the order in which their documents were given."""
        size = len(self.base)
        return [*range(self._head), *self._window, *range(size - self._tail, size)]


_Parts = tuple[Postings, ByRow]


class Match(NamedTuple):
    """What the words and the names of an index say to one query, row by row."""

    words: Sequence[Word]
    scores: Floats
    """Sum over the words; gone rows have 0."""
    named: Mapping[int, int]
    """Rows whose name the query is, with the rank of that kind of name (`NAME_RANKS`)."""
    mass: float
    """What a document that held every word of the query could be worth, roughly."""

    @property
    def share(self) -> float:
        """How much of what the query says the best row holds; what no row has counts against it."""
        return float(self.scores.max(initial=0.0)) / self.mass if self.mass > 0.0 else 0.0


class LexicalIndex:
    """Searchable documents; immutable."""

    __slots__ = ("_aliases", "_analyser", "_documents", "_names", "_size", "_weigher", "postings", "rival")

    def __init__(
        self,
        *,
        postings: Postings,
        documents: ByRow,
        aliases: tuple[Aliases, Aliases],
        analyser: Analyser,
        spelling: Spelling,
        query: QueryWeights,
        rival: float,
    ) -> None:
        self.rival = rival
        """How good a rival must be, against what it displaces (`selection`)."""
        self._documents = documents
        self._aliases = aliases
        self._analyser = analyser
        self._weigher = Weigher(analyser=analyser, spelling=spelling, postings=postings, weights=query)
        self.postings = postings
        self._size = postings.living
        self._names: tuple[str, list[str]] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def documents(self) -> ByRow:
        """The documents by row."""
        return self._documents

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks the documents for `query`. Never raises, whatever the string."""
        limit = min(limit, RESULTS_MAX_HITS, self._size)
        if limit <= 0:
            return Ranking(hits=(), abstained=False, confidence=0.0)
        words, named = self._weigher.words(query), self.named(query)
        found = select(self._best(words, named), self._documents.get, limit=limit, rival=self.rival)
        if not found:
            return self.by_substring(query, limit)
        misspelt = any(word.misspelt for word in words) and not named
        read_as = self.respelt(query[:QUERY_MAX_CHARS], _knows_nothing) if misspelt else ""
        if explain:
            is_named = {self._documents[row].key for row in named}
            evidence = [
                self.evidence(document, words, score, named=document.key in is_named) for score, document in found
            ]
            hits = [
                Hit(document.key, score, told, document)
                for (score, document), told in zip(found, evidence, strict=True)
            ]
        else:
            hits = [Hit(document.key, score, NO_EVIDENCE, document) for score, document in found]
        confidence = lexical_confidence(words, named, found[0][0])
        return Ranking(
            hits=tuple(hits), abstained=False, confidence=confidence, read_as="" if read_as == query else read_as
        )

    def match(self, query: str, beside: Sequence[str] = (), *, named: str | None = None) -> Match:
        """Scores every row for a query, and for what means the same as some of it; `named` is looked up as a name."""
        words = alone = self._weigher.words(query)
        if beside:
            words = self._weigher.words(_side_by_side(query, beside))
        rows = self.named(query if named is None else named)
        return Match(words=words, scores=self._sums(words), named=rows, mass=mass_of(alone))

    def respelt(self, query: str, known: Callable[[str], bool]) -> str:
        """The query with misspelt words as they are spelt here; a word that is known elsewhere stays as it is."""

        def meant(found: re.Match[str]) -> str:
            word = found[0].lower()
            return found[0] if known(word) else self._weigher.respelt(word) or found[0]

        return _WORDS.sub(meant, query[:QUERY_MAX_CHARS]) + query[QUERY_MAX_CHARS:]

    def word_scores(self, text: str) -> Floats:
        """What the words of a text give to every row."""
        return self._sums(self._weigher.words(text))

    def _sums(self, words: Sequence[Word]) -> Floats:
        return self.postings.accumulate(all_numbers(words), standing_in(words))

    def _best(self, words: Sequence[Word], named: Mapping[int, int]) -> Best:
        weighted, bests = all_numbers(words), standing_in(words)
        leading = None if named else self.postings.leading(weighted, bests)
        return leading or best_of(lift_named(self.postings.accumulate(weighted, bests), named))

    def scores(self, query: str) -> Floats:
        """The score of every document, names not counted, in the order in which they were given."""
        return self.match(query).scores[self._documents.order]

    def by_substring(self, query: str, limit: int) -> Ranking:
        """The answer when no word matches: documents whose name holds the query as a part (S23)."""
        part = normal_name(query[:QUERY_MAX_CHARS])
        lines, keys = self._names_on_lines()
        found: list[str] = []
        # Nearly always no name holds it: one look at all of them tells.
        if part and part in lines:
            for name, key in zip(lines.split("\n"), keys, strict=True):
                at = name.find(part)
                if at == 0 or (at > 0 and len(part) >= _SUBSTRING_ANYWHERE_CHARS):
                    found.append(key)
        hits = tuple(Hit(key=key, score=0.0, evidence={"substring": 0.0}) for key in sorted(found)[:limit])
        return Ranking(hits=hits, abstained=not hits, confidence=0.5 if hits else 0.0)

    def _names_on_lines(self) -> tuple[str, list[str]]:
        """The names as they are compared, a line each, and the keys that they belong to; made when first needed."""
        if self._names is None:
            keys = [self._documents[row].key for row in self._documents.order]
            self._names = ("\n".join(map(normal_name, keys)), keys)
        return self._names

    def evidence(
        self, document: Document, words: Sequence[Word], score: float | None, *, named: bool = False
    ) -> dict[str, float]:
        """What each field gave to a document by words; of a score the rest is what its name gave, if it is named.

        If not, it is what rounding takes from the largest part, or adds to it.
        """
        weights = {number: weight for word in words for number, weight in word.numbers}
        shares = self._analyser.shares(document)
        parts = self._analyser.parts(shares, weights)
        parts["neighbours"] = sum(self._stand_in(shares, *pair) for pair in standing_in(words))
        if score is not None:
            rest = score - sum(parts.values())
            part = "exact_name" if named else max(parts, key=parts.__getitem__)
            parts[part] = parts.get(part, 0.0) + rest
        return {name: round(value, 4) for name, value in parts.items() if abs(value) >= 0.0005}

    def _stand_in(self, shares: Shares, near: Numbers, own: Numbers) -> float:
        """What the best of the terms near to a word gives to a document more than the word itself."""
        best = max(sum(self._analyser.parts(shares, {number: weight}).values()) for number, weight in near)
        return max(0.0, best - sum(self._analyser.parts(shares, dict(own)).values()))

    def named(self, query: str) -> dict[int, int]:
        """The rows that the query names, and how well."""
        wanted = normal_name(query[:QUERY_MAX_CHARS])
        named: dict[int, int] = {}
        for kind, row in self.postings.named(name_hash(query[:QUERY_MAX_CHARS])) if wanted else ():
            names = names_of(self._documents[row])
            if normal_name(names[kind]) == wanted:
                named[row] = max(named.get(row, 0), NAME_RANKS[kind][query.strip() == names[kind]])
        for row in self._called(wanted) if wanted else ():
            named.setdefault(row, ALIAS_RANK)
        return named

    def _called(self, wanted: str) -> list[int]:
        """The rows with an alias that is written so."""
        base, added = self._aliases
        rows = [*base.rows(wanted), *(len(self._documents.base) + row for row in added.rows(wanted))]
        gone = self.postings.gone
        return [row for row in rows if row not in gone] if rows else rows


def _side_by_side(query: str, beside: Sequence[str]) -> str:
    """A query and what means the same, each with room of its own in what is looked up."""
    text = " ".join((query, *beside))
    if len(text) <= QUERY_MAX_CHARS:
        return text
    room = QUERY_MAX_CHARS // 3
    return " ".join((query[:room], beside[0][:room], *beside[1:]))


def _knows_nothing(_: str) -> bool:
    return False


def lift_named(scores: Floats, named: Mapping[int, int]) -> Floats:
    """The scores with the named rows above all others, better kinds of names above worse ones."""
    if named:
        step = np.float32(max(1.0, float(scores.max(initial=0.0))))
        for row, rank in named.items():
            scores[row] += step * np.float32(rank)
    return scores


def lexical_confidence(words: Sequence[Word], named: Mapping[int, int], best: float) -> float:
    """How likely the first hit is meant, from words alone: the share of what the query asks that it holds."""
    if named:
        return 1.0
    mass = mass_of(words)
    return min(1.0, best / mass) if mass > 0.0 else 0.0
