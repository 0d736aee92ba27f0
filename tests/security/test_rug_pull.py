"""A real server that changes its tool in mid-session is held back as soon as it says so."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.factories import settings as factory_settings

from toolcrib.crib import Crib
from toolcrib.intake.pins import Lock, approve, compare, write_lock
from toolcrib.settings import ServerSettings, Settings
from toolcrib.sources.servers import open_servers

BAD_UPSTREAM = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"


@pytest.mark.requirement("X21", "C5", "C8")
async def test_a_server_that_mutates_its_tool_loses_it_until_it_is_approved_again(tmp_path: Path) -> None:
    entry = ServerSettings(command=sys.executable, args=(str(BAD_UPSTREAM), "--mode", "mutate_tools"))
    base = factory_settings(enabled="on")
    settings = Settings(tools=base.tools, pins="enforce", mcpServers={"bad": entry})
    lock = tmp_path / "toolcrib.lock"
    async with Crib(*open_servers(settings), settings=settings, lock=lock) as crib:
        (source,) = crib.sources
        changed = asyncio.Event()
        source.watch(changed.set)
        await source.settled.wait()
        session = crib.session()
        assert session.catalog.size == 0  # nothing is approved yet
        write_lock(lock, approve(crib.offers, Lock(), compare(crib.offers, Lock())))
        crib.refresh()
        assert session.catalog.size == 1
        changed.clear()
        assert (await session.call("bad__echo", {"message": "hello"})).text == "hello"
        await changed.wait()  # the server announced another list, and it was fetched
        assert session.catalog.size == 0
        assert "Version" not in str(session.search("echo a message").body)
        assert (await session.call("bad__echo", {"message": "hello"})).code == "tool_not_available"
        (held,) = crib.held_back
        assert held.reason == "the definition is not as approved: it changed (description)"
