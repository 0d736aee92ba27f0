"""Places: never more at once than there are, in the order of coming, and none is lost."""

import asyncio

import pytest

from toolcrib.execution.places import Places


async def test_a_free_place_is_taken_at_once_and_the_last_one_is_the_last() -> None:
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.give()
    assert places.free == 1


async def test_a_place_that_is_given_back_goes_to_whoever_waited_longest() -> None:
    places, order = Places(1), list[str]()
    assert places.take()

    async def come(name: str) -> None:
        await places.wait()
        order.append(name)

    tasks = [asyncio.create_task(come(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    places.give()
    assert not places.take()
    await tasks[0]
    assert order == ["first"]
    places.give()
    await tasks[1]
    assert order == ["first", "second"]


async def test_whoever_leaves_the_line_leaves_no_place_behind() -> None:
    places = Places(1)
    assert places.take()
    waiting = asyncio.create_task(places.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    places.give()
    assert places.free == 1


async def test_a_place_that_comes_at_the_moment_of_leaving_goes_to_the_next() -> None:
    places = Places(1)
    assert places.take()
    leaving, staying = asyncio.create_task(places.wait()), asyncio.create_task(places.wait())
    await asyncio.sleep(0)
    places.give()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await staying


async def test_places_that_are_given_back_together_are_all_free_for_whoever_is_told() -> None:
    first, second, third = Places(1), Places(1), Places(1)
    assert first.take_with(second, third)
    found: list[int] = []

    class Next:
        def accept(self) -> bool:
            found.extend((second.free, third.free))
            return True

    assert not first.take_or_line_up(Next())
    first.give_with(second, third)
    assert found == [1, 1]
    assert first.free == 0
    first.give_with(second, third)
    assert (first.free, second.free, third.free) == (1, 2, 2)


async def test_a_place_that_one_in_line_does_not_want_any_more_goes_to_the_next() -> None:
    places, told = Places(1), list[str]()
    assert places.take()

    class InLine:
        def __init__(self, name: str, *, wants: bool) -> None:
            self.name = name
            self.wants = wants

        def accept(self) -> bool:
            told.append(self.name)
            return self.wants

    assert not places.take_or_line_up(InLine("left", wants=False))
    assert not places.take_or_line_up(InLine("stayed", wants=True))
    places.give()
    assert told == ["left", "stayed"]
    assert places.free == 0


async def test_whoever_finds_a_free_place_takes_it_and_stands_in_no_line() -> None:
    places, told = Places(1), list[str]()

    class InLine:
        def accept(self) -> bool:
            told.append("told")
            return True

    assert places.take_or_line_up(InLine())
    assert places.free == 0
    places.give()
    assert (places.free, told) == (1, [])


async def test_somebody_in_line_is_told_of_once_and_nobody_with_a_place_is() -> None:
    places, told = Places(1), list[bool]()
    places.wanted = lambda: told.append(places.is_wanted)
    await places.wait()
    assert (told, places.is_wanted) == ([], False)
    waiting = asyncio.create_task(places.wait())
    await asyncio.sleep(0)
    assert told == [True]
    places.give()
    await waiting
    assert (told, places.is_wanted) == ([True], False)
