"""Lines of one turn of the event loop go out in one write, in their order."""

import asyncio

from toolcrib.gateway.outlet import Outlet


async def test_a_line_that_is_alone_is_written_at_once() -> None:
    written: list[bytes] = []
    outlet = Outlet(written.append)
    outlet.put(b"one\n", alone=True)
    assert written == [b"one\n"]


async def test_lines_of_one_turn_are_written_together_when_it_ends() -> None:
    written: list[bytes] = []
    outlet = Outlet(written.append)
    outlet.put(b"one\n", alone=False)
    outlet.put(b"two\n", alone=False)
    assert written == []
    await asyncio.sleep(0)
    assert written == [b"one\ntwo\n"]
    outlet.put(b"three\n", alone=False)
    await asyncio.sleep(0)
    assert written == [b"one\ntwo\n", b"three\n"]


async def test_a_line_that_is_alone_does_not_overtake_those_that_wait() -> None:
    written: list[bytes] = []
    outlet = Outlet(written.append)
    outlet.put(b"one\n", alone=False)
    outlet.put(b"two\n", alone=True)
    await asyncio.sleep(0)
    assert written == [b"one\ntwo\n"]


async def test_flushing_writes_what_waits_once() -> None:
    written: list[bytes] = []
    outlet = Outlet(written.append)
    outlet.put(b"one\n", alone=False)
    outlet.flush()
    outlet.flush()
    await asyncio.sleep(0)
    assert written == [b"one\n"]
