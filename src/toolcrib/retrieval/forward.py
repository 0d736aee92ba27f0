"""What analysis found, document by document, in flat arrays: five bytes a term and no object per document."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NAMES = 3
"""Names that a document answers to, each as a hash of 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some documents: the terms of the first, then those of the second, and so on."""

    sizes: NDArray[np.int64]
    """How many terms each has."""
    terms: NDArray[np.int32]
    codes: NDArray[np.uint8]
    """The impact of each term, as a place in a table of impacts."""
    names: NDArray[np.uint32]
    """One row per document."""


def joined(parts: Iterable[Stretch]) -> Stretch:
    """One stretch after the other.

    Parts may be made while they are joined: memory that holds many small arrays for a while is not given back.
    """
    sizes, terms, codes, names = bytearray(), bytearray(), bytearray(), bytearray()
    for part in parts:
        sizes += part.sizes.tobytes()
        terms += part.terms.tobytes()
        codes += part.codes.tobytes()
        names += part.names.tobytes()
    return Stretch(
        sizes=np.frombuffer(sizes, dtype=np.int64),
        terms=np.frombuffer(terms, dtype=np.int32),
        codes=np.frombuffer(codes, dtype=np.uint8),
        names=np.frombuffer(names, dtype=np.uint32).reshape(-1, NAMES),
    )
