"""Every fault of the bad upstream, beside a good server: the good one answers, and the loop stays free."""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import pytest
from tests.fakes.bad_upstream import HTTP_ONLY, MODES
from tests.sources.test_mcp_stdio import BAD

from toolcrib.crib import Crib
from toolcrib.settings import ServerSettings
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.processes import Guard
from toolcrib.sources.servers import open_server
from toolcrib.sources.supervisor import Pace

pytestmark = [pytest.mark.usefixtures("steady_loop"), pytest.mark.timeout(180)]
FAULTS = sorted(set(MODES) - set(HTTP_ONLY) - {"ok"})


def program(name: str, mode: str, **more: Any) -> McpSource:
    entry = ServerSettings(command=sys.executable, args=(str(BAD), "--mode", mode), **more)
    return open_server(name, entry, guard=Guard(), pace=Pace(clock=asyncio.get_running_loop().time, every_s=0))


@pytest.mark.parametrize("mode", FAULTS)
@pytest.mark.requirement("K3", "K16", "E5", "E13", "H6", "H7")
async def test_a_good_server_answers_beside_a_bad_one_and_no_callback_keeps_the_loop(mode: str):
    # The bound is the bad one's alone: however busy the machine is, the good one answers.
    good, bad = program("good", "ok"), program("bad", mode, timeout=2)
    crib = Crib(good, bad)
    async with crib:
        await good.settled.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await bad.settled.wait()
        faulty = asyncio.create_task(crib.session().call("bad__echo", {"message": "x"}))
        answers = [await crib.session().call("good__echo", {"message": str(number)}) for number in range(20)]
        await faulty
        answers.append(await crib.session().call("good__echo", {"message": "20"}))
    assert [answer.text for answer in answers] == [str(number) for number in range(21)]
