"""Values beside objects: made once per object, and gone with it."""

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.alongside import Alongside, common_ends


class Thing:
    def __init__(self, number: int) -> None:
        self.number = number


POOL = [Thing(number) for number in range(6)]
CHOICE = st.lists(st.sampled_from(POOL), unique=True).map(tuple)


@given(st.lists(CHOICE, max_size=8))
def test_whatever_came_before_every_member_gets_its_own_value_and_is_asked_once(
    passes: list[tuple[Thing, ...]],
) -> None:
    asked: list[int] = []

    def make(thing: Thing) -> str:
        asked.append(thing.number)
        return f"value {thing.number}"

    beside = Alongside(make)
    for members in passes:
        assert beside.of(members) == tuple(f"value {thing.number}" for thing in members)
    assert len(asked) == len(set(asked))


def test_a_value_goes_with_its_object() -> None:
    beside: Alongside[Thing, str] = Alongside(lambda thing: str(thing.number))
    thing = Thing(1)
    gone = weakref.ref(thing)
    beside.of((thing,))
    beside.of(())
    del thing
    gc.collect()
    assert gone() is None


@given(CHOICE, CHOICE)
def test_common_ends_never_overlap(first: tuple[Thing, ...], second: tuple[Thing, ...]) -> None:
    head, tail = common_ends(first, second)
    assert head + tail <= min(len(first), len(second))
    assert first[:head] == second[:head]
    assert first[len(first) - tail :] == second[len(second) - tail :]
