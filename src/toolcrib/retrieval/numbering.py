"""Gives every term a number, and turns texts into numbers many at a time.

A written form (a run of letters and digits) is taken apart once, however often it occurs: after that a text costs one
split and one look-up per run, and all further arithmetic happens in arrays. A number is never given anew.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.limits import FIELD_MAX_RUNS, RUN_MEMO_MAX_RUNS, TERM_MAX_CHARS
from toolcrib.retrieval.families import Families
from toolcrib.retrieval.text import BORDER, ascii_runs, has_plain_runs, run_terms, runs_of

if TYPE_CHECKING:
    from toolcrib._kernel import Runs

Numbers = NDArray[np.int32]

_BORDER_CHAR = BORDER.decode()
_END = f" {_BORDER_CHAR} "
_AT_BORDER, _CUT = -1, -2
"""Codes that stand for no term; those below stand for several."""
_SEED = "terms"
"""Hashed, it is another number in every process: nobody can guess where terms and runs go."""


class Numbering:
    """The terms of one analyser."""

    __slots__ = ("_runs", "families", "memo", "vocabulary")

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = kernel.vocabulary(hash(_SEED)) if kernel is not None else {}
        self._runs = _Runs(self.vocabulary)
        self.memo = _memo(self.vocabulary)
        """What the compiled kernel remembers of runs: all but those of texts that are not all ASCII."""
        self.families = Families(self.vocabulary)

    def numbers(self, texts: Iterable[Sequence[str]]) -> tuple[Numbers, Numbers]:
        """The term numbers of all texts, and the place of the text that each belongs to; in no order."""
        codes = self._runs.codes_of(texts)
        places = np.cumsum(codes == _AT_BORDER, dtype=np.int32)
        if len(codes) > FIELD_MAX_RUNS:
            codes = _shortened(codes, places)
        single, several = codes >= 0, np.flatnonzero(codes < _CUT)
        if not len(several):
            return codes[single], places[single]
        terms, sizes = self._runs.expand(codes[several])
        return (
            np.concatenate((codes[single], terms)),
            np.concatenate((places[single], np.repeat(places[several], sizes))),
        )

    def runs(self, text: str) -> list[tuple[int, ...]]:
        """The numbers of the terms of each run of a text."""
        return [self._runs.terms(run) for run in map(str.encode, runs_of(text))]

    @property
    def held(self) -> int:
        """How many written forms are remembered."""
        return len(self._runs) + (kernel.run_count(self.memo) if kernel is not None and self.memo is not None else 0)

    def rest(self) -> None:
        """Forgets written forms if they have become many; terms keep their numbers."""
        if self.held > RUN_MEMO_MAX_RUNS:
            self._runs, self.memo = _Runs(self.vocabulary), _memo(self.vocabulary)


def _memo(vocabulary: dict[str, int]) -> "Runs | None":
    return kernel.runs(vocabulary) if kernel is not None else None


class _Runs(dict[bytes, int]):
    """What each run stands for: one term (its number), a border, or several terms (below `_CUT`)."""

    __slots__ = ("_ends", "_several", "_vocabulary")

    def __init__(self, vocabulary: dict[str, int]) -> None:
        super().__init__({BORDER: _AT_BORDER})
        self._vocabulary = vocabulary
        self._several = array("i")
        """The terms of all runs that have not exactly one, one run after the other."""
        self._ends = array("i", [0])

    def codes_of(self, texts: Iterable[Sequence[str]]) -> Numbers:
        """The codes of all runs of all texts, each text ended by a border."""
        codes = bytearray()
        for part in _runs_of(texts):
            if isinstance(part, list):
                codes += np.fromiter(map(self.__getitem__, part), dtype=np.int32, count=len(part)).tobytes()
            else:
                runs = ascii_runs(part)
                codes += np.fromiter(map(self.__getitem__, runs), dtype=np.int32, count=len(runs)).tobytes()
        return np.frombuffer(codes, dtype=np.int32)

    def __missing__(self, run: bytes) -> int:
        vocabulary = self._vocabulary
        if run.islower() and run.isalpha() and len(run) <= TERM_MAX_CHARS:
            code = vocabulary.setdefault(run.decode(), len(vocabulary))
        else:
            numbers = [vocabulary.setdefault(term, len(vocabulary)) for term in run_terms(run.decode())]
            code = numbers[0] if len(numbers) == 1 else self._keep(numbers)
        self[run] = code
        return code

    def _keep(self, numbers: list[int]) -> int:
        self._several.extend(numbers)
        self._ends.append(len(self._several))
        return _CUT + 1 - len(self._ends)

    def terms(self, run: bytes) -> tuple[int, ...]:
        """The terms of one run."""
        code = self[run]
        if code >= 0:
            return (code,)
        which = _CUT - 1 - code
        return tuple(self._several[self._ends[which] : self._ends[which + 1]])

    def expand(self, codes: Numbers) -> tuple[Numbers, Numbers]:
        """The terms of runs that have not exactly one, and how many each has."""
        # Views, not copies; what is taken from them is one, so that both can grow again.
        ends, several = np.frombuffer(self._ends, dtype=np.int32), np.frombuffer(self._several, dtype=np.int32)
        which = _CUT - 1 - codes
        starts, sizes = ends[which], ends[which + 1] - ends[which]
        before = np.cumsum(sizes, dtype=np.int32) - sizes
        return several[np.repeat(starts - before, sizes) + np.arange(sizes.sum())], sizes


def _shortened(codes: Numbers, places: Numbers) -> Numbers:
    """The codes, with those cut that stand behind the first `FIELD_MAX_RUNS` of their text."""
    borders = np.flatnonzero(codes == _AT_BORDER)
    if np.diff(borders, prepend=-1).max() <= FIELD_MAX_RUNS + 1:
        return codes
    begins = np.concatenate(([0], borders + 1))
    return np.where((np.arange(len(codes)) - begins[places] < FIELD_MAX_RUNS) | (codes == _AT_BORDER), codes, _CUT)


def _runs_of(texts: Iterable[Sequence[str]]) -> Iterator[bytes | list[bytes]]:
    """All texts, each ended by a border: the runs of some, and stretches of ASCII that can be split many at a time."""
    plain: list[bytes] = []
    for group in texts:
        joined = _END.join((*group, ""))
        if joined.count(_BORDER_CHAR) == len(group) and has_plain_runs(joined):
            plain.append(joined.encode("ascii", "replace"))
            continue
        yield b"".join(plain)
        plain.clear()
        for text in group:
            yield [*map(str.encode, runs_of(text)), BORDER]
    yield b"".join(plain)
