"""What queries ask of an index: weighted postings, counts, and rows by name.

`Postings` are one large segment, the rows of it that are gone, and a small segment of what came since, with term
numbers of its own: changing one of 20,000 documents costs what one document costs. The impacts of a term times the
weight that a query gives it are the same numbers for every query of the same index, and of the next index too as long
as the term is as rare there. So a bounded number of bytes of them is kept: as a plain vector where a term is so common
that adding every row is cheaper than looking up which rows hold it. The compiled kernel reads the postings themselves
about as fast as kept numbers, so with it only what several terms give together is kept.

Invariant: `Postings` answer exactly as one fresh segment of the living rows would; only row numbers differ. Sums are
the same numbers, bit for bit, by whichever way they were added up.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.limits import WEIGHTED_MAX_BYTES
from toolcrib.retrieval.forward import Stretch
from toolcrib.retrieval.postings import Floats, Rows, Segment, build_segment

if TYPE_CHECKING:
    from toolcrib._kernel import Held

_DENSE_SHARE = 0.25
"""Share of the rows from which on a term is kept as a vector of all rows."""
_FEW_ROWS = 1_000
"""Rows up to which every term is."""

_PLACES_KEPT = 4_096
"""Postings of a term up to which the rows are kept in the type that the processor adds by: twice the bytes."""

_SIEVE_PLACES = 4
"""Places of the sieve for each name, at least."""
_SIEVED_ROWS = 100
"""Rows from which on names are looked for in order."""

_ENTRY_BYTES = 400
"""What keeping a term costs beside its numbers."""

Numbers = tuple[tuple[int, float], ...]
"""Term numbers with their weights."""
Best = tuple[Numbers, Numbers]
"""Terms of which the best counts, as far as it gives more than others together."""
_Key = tuple[int, float] | Best
_Weighted = tuple[Rows | NDArray[np.intp] | None, Floats]
"""Rows and what is added to them; without rows, what is added to every row."""
_V = TypeVar("_V")

_NO_ROWS: Rows = np.empty(0, dtype=np.int32)


class SegmentReader:
    """Reads one segment for any number of queries."""

    __slots__ = ("_asked", "_compiled", "_impacts", "_kept", "_merged", "_names", "_room", "_sieve", "segment")

    def __init__(self, segment: Segment, impacts: Floats) -> None:
        """`impacts` says what each code of the segment stands for."""
        self.segment = segment
        self._impacts = impacts
        self._compiled = None
        if kernel is not None and segment.rows:
            self._compiled = kernel.postings(segment.rows, segment.starts, segment.documents, segment.codes, impacts)
        self._kept: dict[_Key, _Weighted] = {}
        self._merged: dict[_Key, bytes] = {}
        self._room = WEIGHTED_MAX_BYTES
        self._names: NDArray[np.uint64] | None = None
        self._sieve = b""
        self._asked = False
        """Whether somebody has asked for a name before: most segments are never asked twice, and need no sieve."""

    def add(self, total: Floats, weighted: list[tuple[int, float]]) -> None:
        """Adds the weighted impacts of terms, one after the other, to the rows that hold them."""
        if kernel is not None and self._compiled is not None:
            kernel.add(self._compiled, total, weighted)
            return
        kept = self._kept
        for term in weighted:
            rows, worth = kept.get(term) or self._weigh(*term)
            if rows is None:
                np.add(total, worth, total)
            else:
                np.add.at(total, rows, worth)

    def add_best(self, total: Floats, weighted: Numbers, counted: Numbers) -> None:
        """Adds to each row what the best of some weighted impacts has more than those that were `counted` together."""
        if kernel is not None and self._compiled is not None:
            kernel.add_merged(self._compiled, total, self._packed(self._compiled, (weighted, counted)))
            return
        rows, worth = self._kept.get((weighted, counted)) or self._merge(weighted, counted)
        if rows is None:
            np.add(total, worth, total)
        else:
            np.add.at(total, rows, worth)

    def leading(
        self, weighted: list[tuple[int, float]], bests: Sequence[Best]
    ) -> Callable[[int], tuple[list[int], list[float]]] | None:
        """What gives the best rows without an array of all sums (`selection.Best`), if the kernel is in use."""
        compiled = self._compiled
        if kernel is None or compiled is None:
            return None
        return partial(kernel.leading, compiled, weighted, [self._packed(compiled, best) for best in bests])

    def _packed(self, compiled: "Held", best: Best) -> bytes:
        """What `add_best` adds, in the kernel's form."""
        packed = self._merged.get(best)
        if packed is None:
            packed = kernel.merge(compiled, *best) if kernel is not None else b""
            self._keep_in(self._merged, best, packed, len(packed))
        return packed

    def named(self, wanted: int) -> list[tuple[int, int]]:
        """Kind of name and row of every name with the given hash."""
        if self.segment.rows < _SIEVED_ROWS or not self._asked:
            self._asked = True
            names = self.segment.names
            # Nearly always it is nobody's, which the bytes tell in a tenth of the time.
            if wanted.to_bytes(4, sys.byteorder) not in names.tobytes():
                return []
            kinds, rows = (names == np.uint32(wanted)).nonzero()
            return list(zip(kinds.tolist(), rows.tolist(), strict=True))
        sieve = self._sieve
        if not sieve:
            sieve = self._sieve = _sieve(self.segment)
        if not sieve[wanted & (len(sieve) - 1)]:
            return []
        names = self._names
        if names is None:
            names = self._names = _sorted_names(self.segment)
        # Of the array's own type: any other would have the whole array converted.
        place = int(names.searchsorted(np.uint64(wanted << 32)))
        found: list[tuple[int, int]] = []
        while place < len(names) and (packed := int(names[place])) >> 32 == wanted:
            found.append(divmod(packed & 0xFFFFFFFF, self.segment.rows))
            place += 1
        return found

    def _weigh(self, number: int, weight: float) -> _Weighted:
        segment = self.segment
        span = segment.span(number)
        rows, worth = segment.documents[span], self._impacts[segment.codes[span]]
        worth *= np.float32(weight)
        return self._shape((number, weight), rows, worth)

    def _merge(self, weighted: Numbers, counted: Numbers) -> _Weighted:
        """What each row gets, without looking at rows that hold none of the terms: there may be many of those."""
        segment = self.segment
        best = np.zeros(segment.rows, dtype=np.float32)
        spans = [segment.span(number) for number, _ in weighted]
        for span, (_, weight) in zip(spans, weighted, strict=True):
            rows = segment.documents[span]
            best[rows] = np.maximum(best[rows], self._impacts[segment.codes[span]] * np.float32(weight))
        for number, weight in counted:
            span = segment.span(number)
            best[segment.documents[span]] -= self._impacts[segment.codes[span]] * np.float32(weight)
        found: list[Rows] = []
        worth: list[Floats] = []
        for span in spans:
            rows = segment.documents[span]
            more = best[rows]
            found.append(rows[more > 0.0])
            worth.append(more[more > 0.0])
            best[rows] = 0.0
        return self._shape((weighted, counted), np.concatenate(found), np.concatenate(worth))

    def _shape(self, key: _Key, rows: Rows, worth: Floats) -> _Weighted:
        """Keeps what is added to some rows in the form in which it is added fastest."""
        segment = self.segment
        if len(rows) > _DENSE_SHARE * segment.rows or segment.rows <= _FEW_ROWS:
            every = np.zeros(segment.rows, dtype=np.float32)
            every[rows] = worth
            return self._keep(key, (None, every), every.nbytes)
        if len(rows) > _PLACES_KEPT:
            return self._keep(key, (rows, worth), worth.nbytes)
        return self._keep(key, (rows.astype(np.intp), worth), worth.nbytes * 3)

    def _keep(self, key: _Key, weighted: _Weighted, size: int) -> _Weighted:
        self._keep_in(self._kept, key, weighted, size)
        return weighted

    def _keep_in(self, kept: dict[_Key, _V], key: _Key, value: _V, size: int) -> None:
        size += _ENTRY_BYTES
        if size <= WEIGHTED_MAX_BYTES:
            if size > self._room:
                kept.clear()
                self._room = WEIGHTED_MAX_BYTES
            self._room -= size
            kept[key] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What an index has otherwise than its base: nothing is as long as the base, or as its vocabulary."""

    added: SegmentReader
    """Rows that are numbered after those of the base."""
    numbers: Mapping[int, int]
    """The terms of these rows, with the numbers that they have there."""
    gone: Rows
    """Rows of the base that no longer count, in order."""
    gone_terms: Mapping[int, int]
    """In how many of the gone rows each term occurs."""

    @classmethod
    def of(cls, held: Stretch, impacts: Floats, *, gone: Sequence[int], gone_terms: Mapping[int, int]) -> "Amendment":
        """The amendment by these documents."""
        numbers: dict[int, int] = {}
        own = np.array([numbers.setdefault(term, len(numbers)) for term in held.terms.tolist()], dtype=np.int32)
        renumbered = Stretch(sizes=held.sizes, terms=own, codes=held.codes, names=held.names)
        return cls(
            added=SegmentReader(build_segment(renumbered), impacts),
            numbers=numbers,
            gone=np.array(gone, dtype=np.int32),
            gone_terms=gone_terms,
        )

    def holding(self, number: int) -> int:
        """How many more rows hold a term."""
        own = self.numbers.get(number)
        held = 0 if own is None else self.added.segment.holding(own)
        return held - self.gone_terms.get(number, 0)

    def sums(self, weighted: Iterable[tuple[int, float]], bests: Sequence[Best]) -> Floats:
        """The sums of the added rows."""
        total = np.zeros(self.added.segment.rows, dtype=np.float32)
        self.added.add(total, list(self._own(weighted)))
        for near, counted in bests:
            own = self._own(near)
            if own:
                self.added.add_best(total, own, self._own(counted))
        return total

    def _own(self, weighted: Iterable[tuple[int, float]]) -> Numbers:
        numbers = self.numbers
        return tuple([(numbers[number], weight) for number, weight in weighted if number in numbers])


class Postings:
    """A base segment, without some of its rows, and with some rows added after it."""

    __slots__ = ("_amended", "base", "gone", "living", "rows")

    def __init__(self, base: SegmentReader, amended: Amendment | None = None) -> None:
        self.base = base
        self._amended = amended
        self.gone = amended.gone if amended else _NO_ROWS
        """Rows of the base that no longer count."""
        self.rows = base.segment.rows + (amended.added.segment.rows if amended else 0)
        """Rows in all, the gone ones included."""
        self.living = self.rows - len(self.gone)
        """Rows that count."""

    def holding(self, number: int) -> int:
        """How many living rows hold a term."""
        held = self.base.segment.holding(number)
        return held + self._amended.holding(number) if self._amended else held

    def accumulate(self, weighted: list[tuple[int, float]], bests: Sequence[Best] = ()) -> Floats:
        """The sum of weighted impacts for every row; of each pair of `bests` (`add_best`) once. Gone rows get 0."""
        total = np.zeros(self.rows, dtype=np.float32)
        size = self.base.segment.rows
        part = total[:size] if self._amended else total
        self.base.add(part, weighted)
        for near, counted in bests:
            self.base.add_best(part, near, counted)
        if self._amended:
            total[size:] = self._amended.sums(weighted, bests)
            total[self.gone] = 0.0
        return total

    def leading(
        self, weighted: list[tuple[int, float]], bests: Sequence[Best]
    ) -> Callable[[int], tuple[list[int], list[float]]] | None:
        """What gives the best rows without an array of all sums, where it can be done without one."""
        return None if self._amended else self.base.leading(weighted, bests)

    def named(self, wanted: int) -> list[tuple[int, int]]:
        """Kind of name and row of every living row that has a name with the given hash."""
        found = self.base.named(wanted)
        amended = self._amended
        if amended:
            gone = set(self.gone.tolist()) if found else ()
            found = [(kind, row) for kind, row in found if row not in gone]
            found += [(kind, row + self.base.segment.rows) for kind, row in amended.added.named(wanted)]
        return found


def _sieve(segment: Segment) -> bytes:
    """Which lowest bits of a hash some name has: nearly every query names nothing, and one look says so."""
    places = np.zeros(_SIEVE_PLACES << max(0, segment.names.size - 1).bit_length(), dtype=np.uint8)
    places[segment.names & np.uint32(len(places) - 1)] = 1
    return places.tobytes()


def _sorted_names(segment: Segment) -> NDArray[np.uint64]:
    """Every name as hash, kind and row in one integer."""
    hashes = segment.names.astype(np.uint64).ravel() << np.uint64(32)
    packed = hashes | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    return packed
