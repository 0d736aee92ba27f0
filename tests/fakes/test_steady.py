import asyncio
import time

from tests.fakes.steady import LAG_MAX_S, measured_lag


async def test_a_callback_that_works_for_long_is_found_and_one_that_sleeps_is_not():
    def work() -> None:
        until = time.thread_time() + 1.5 * LAG_MAX_S
        while time.thread_time() < until:
            pass

    with measured_lag() as lag:
        asyncio.get_running_loop().call_soon(time.sleep, 2 * LAG_MAX_S)
        await asyncio.sleep(0)
        assert lag.longest < LAG_MAX_S
        asyncio.get_running_loop().call_soon(work)
        await asyncio.sleep(0)
    assert lag.longest >= LAG_MAX_S
    assert "work" in lag.what
