"""What a signal cancels, and when it is too late for that."""

import asyncio
import signal

import pytest

from toolcrib.cli.signals import Cancelling


@pytest.mark.requirement("X28")
async def test_a_signal_that_the_loop_hears_of_after_the_end_cancels_nothing() -> None:
    with Cancelling(signal.SIGINT) as ending:
        asyncio.get_running_loop().call_soon(ending.end, signal.SIGINT)
    await asyncio.sleep(0)
    assert ending.number is None


@pytest.mark.requirement("X28")
async def test_a_signal_cancels_what_runs_within() -> None:
    with Cancelling(signal.SIGTERM) as ending, pytest.raises(asyncio.CancelledError):
        asyncio.get_running_loop().call_soon(ending.end, signal.SIGTERM)
        await asyncio.get_running_loop().create_future()
    assert ending.number is signal.SIGTERM
    task = asyncio.current_task()
    assert task is not None and task.uncancel() == 0
