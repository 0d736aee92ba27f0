"""Values derived from immutable objects, one beside each, for as long as the objects are there.

What a crib derives from its toolsets (verdicts, parts, blocks of the listing, documents) is derived for all of them at
once, again and again, and nearly always all but one are the same objects as the last time. So the last time is kept as
a whole and compared from both ends: hundreds of toolsets cost one pass in C, and only what lies between is looked up.
Dropping any of it changes nothing but time (S18).
"""

from collections.abc import Callable, Iterable
from operator import is_
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from toolcrib.kernel import kernel

K = TypeVar("K")
V = TypeVar("V")


class Alongside(Generic[K, V]):
    """Keeps what `make` gives for each object; the value must not hold the object, or it would never go."""

    __slots__ = ("_kept", "_last", "_make")

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        self._kept: WeakKeyDictionary[K, V] = WeakKeyDictionary()
        self._last: tuple[tuple[K, ...], tuple[V, ...]] = ((), ())

    def of(self, members: tuple[K, ...]) -> tuple[V, ...]:
        """The values of all members, in their order."""
        before, values = self._last
        if members is before:
            return values
        head, tail = common_ends(before, members)
        fresh = members[head : len(members) - tail]
        # At first nothing is known of any: looking it up would take as long as noting it does.
        between = [self.one(member) for member in fresh] if self._kept else [self._new(member) for member in fresh]
        values = spliced(values, head, tail, between)
        self._last = (members, values)
        return values

    def one(self, member: K) -> V:
        """The value of one member."""
        value = self._kept.get(member)
        return self._new(member) if value is None else value

    def _new(self, member: K) -> V:
        value = self._kept[member] = self._make(member)
        return value


def spliced(before: tuple[V, ...], head: int, tail: int, between: Iterable[V]) -> tuple[V, ...]:
    """As many from the start and from the end as `common_ends` found, with something else between them."""
    return (*before[:head], *between, *before[len(before) - tail :])


def common_ends(first: tuple[object, ...], second: tuple[object, ...]) -> tuple[int, int]:
    """How many objects at the start and at the end are the same ones."""
    if kernel is not None:
        return kernel.common_ends(first, second)
    head = _common(first, second)
    return head, min(_common(first[::-1], second[::-1]), min(len(first), len(second)) - head)


def _common(first: tuple[object, ...], second: tuple[object, ...]) -> int:
    """How many objects at the start are the same ones."""
    same = list(map(is_, first, second))
    return same.index(False) if False in same else len(same)
