"""Powers of two, in steps that every processor and the compiled kernel round alike.

numpy's own differ in the last bit from one processor to the next. What is made of states is rounded to whole numbers
soon after, where such a bit can become a whole unit.
"""

from typing import Final

import numpy as np

from toolcrib.retrieval.vectors import Floats

_MOST = np.float32(87.0)
"""Powers beyond this, and below its negative, are held back: everything stays finite, and no number is so small that it
is rounded otherwise."""
_SERIES: Final = tuple(map(np.float32, (0.00957009010, 0.0559178591, 0.240247458, 0.693121791, 0.999999285)))
"""Two to a power from -1/2 to 1/2 is at most three millionths of it beside the sum of these times its powers."""
_ZERO_EXPONENT = np.int32(127)
_FRACTION_BITS = 23
_BEND = np.float32(-1.702 * 1.44269504)
_ONE = np.float32(1.0)


def raise_two(powers: Floats) -> Floats:
    """Two to each of some powers, in place."""
    np.clip(powers, -_MOST, _MOST, out=powers)
    whole = np.rint(powers)
    powers -= whole
    sums = powers * _SERIES[0]
    for each in _SERIES[1:-1]:
        sums += each
        sums *= powers
    sums += _SERIES[-1]
    shifts = whole.astype(np.int32)
    shifts += _ZERO_EXPONENT
    shifts <<= _FRACTION_BITS
    return np.multiply(sums, shifts.view(np.float32), out=powers)


def bend(wide: Floats) -> Floats:
    """Each number times the sigmoid of 1.702 times it, in place."""
    powers = raise_two(wide * _BEND)
    powers += _ONE
    wide /= powers
    return wide
