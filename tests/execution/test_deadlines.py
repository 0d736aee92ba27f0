"""Deadlines: late work ends with a timeout, work in time costs nothing, and other cancellations stay what they are."""

import asyncio
from typing import Any

import pytest
from tests.fakes.memory_upstream import eventually

from toolcrib.execution.deadlines import Deadlines


async def test_work_that_takes_too_long_ends_with_a_timeout() -> None:
    with pytest.raises(TimeoutError), Deadlines().within(0.01):
        await asyncio.Event().wait()
    assert asyncio.current_task() is not None
    await asyncio.sleep(0)


async def test_one_timer_ends_each_at_its_own_time() -> None:
    deadlines, ended = Deadlines(), list[int]()

    async def work(number: int) -> None:
        try:
            with deadlines.within(0.02):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(number)

    first = asyncio.create_task(work(1))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(work(2))
    await asyncio.gather(first, second)
    assert ended == [1, 2]


async def test_work_in_time_is_left_alone_afterwards() -> None:
    deadlines = Deadlines()
    with deadlines.within(0.01):
        pass
    await asyncio.sleep(0.03)
    with pytest.raises(TimeoutError), deadlines.within(0.01):
        await asyncio.Event().wait()


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def work() -> None:
        with Deadlines().within(5):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_same_deadlines_serve_one_event_loop_after_another() -> None:
    deadlines = Deadlines()

    async def late() -> bool:
        try:
            with deadlines.within(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return True
        return False

    assert asyncio.run(late()) and asyncio.run(late())


class Bounded:
    """What has a deadline and is no task."""

    due = 0.0

    def __init__(self, ended: list[str], name: str) -> None:
        self.ended = ended
        self.name = name
        self.takes_along: Bounded | None = None
        self.entries: dict[Any, None] = {}

    def expire(self) -> None:
        self.ended.append(self.name)
        if self.takes_along is not None:
            self.takes_along.entries.pop(self.takes_along, None)


async def test_what_is_no_task_is_told_that_it_is_late_unless_another_took_it_along() -> None:
    deadlines, ended = Deadlines(), list[str]()
    first, second, third = (Bounded(ended, name) for name in ("first", "second", "third"))
    first.takes_along = second
    for bounded in (first, second, third):
        bounded.entries = deadlines.enter(bounded, 0.01, asyncio.get_running_loop())
    await eventually(lambda: len(ended) == 2)
    assert ended == ["first", "third"]


async def test_what_begins_while_others_end_has_its_own_deadline() -> None:
    deadlines, ended = Deadlines(), list[str]()
    loop = asyncio.get_running_loop()

    class Again(Bounded):
        def expire(self) -> None:
            super().expire()
            deadlines.enter(Bounded(ended, "after"), 0.01, loop)

    deadlines.enter(Again(ended, "before"), 0.01, loop)
    await eventually(lambda: ended == ["before", "after"])


async def test_one_that_cannot_be_ended_does_not_keep_the_others_from_it() -> None:
    deadlines, ended = Deadlines(), list[str]()
    loop = asyncio.get_running_loop()

    class Stubborn(Bounded):
        def expire(self) -> None:
            raise RuntimeError("not now")

    for bounded in (Stubborn(ended, "first"), Bounded(ended, "second")):
        deadlines.enter(bounded, 0.01, loop)
    await eventually(lambda: ended == ["second"])
    deadlines.enter(Bounded(ended, "later"), 0.01, loop)
    await eventually(lambda: ended == ["second", "later"])


async def test_one_that_begins_anew_while_others_end_keeps_nobody_waiting() -> None:
    deadlines, ended = Deadlines(), list[str]()
    loop = asyncio.get_running_loop()
    second = Bounded(ended, "second")

    class Lets(Bounded):
        def expire(self) -> None:
            super().expire()
            second.entries.pop(second)
            second.entries = deadlines.enter(second, 0.05, loop)

    second.entries = {second: None}
    first, third = Lets(ended, "first"), Bounded(ended, "third")
    deadlines.enter(first, 0.05, loop)
    second.entries = deadlines.enter(second, 0.05, loop)
    deadlines.enter(third, 0.05, loop)
    await eventually(lambda: len(ended) >= 2)
    assert ended == ["first", "third"]
