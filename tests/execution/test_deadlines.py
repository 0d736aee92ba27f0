"""Deadlines: late work ends with a timeout, work in time costs nothing, and other cancellations stay what they are."""

import asyncio

import pytest

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
