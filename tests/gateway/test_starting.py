import logging

import pytest
from tests.fakes.memory_upstream import MemoryServer, tool

from toolcrib.crib import Crib
from toolcrib.errors import SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.gateway.starting import report_starts
from toolcrib.sources.link import Link, Listener
from toolcrib.sources.mcp_source import McpSource


async def absent(listener: Listener, era: Era | None) -> Link:
    raise SourceUnavailable("the program `x` was not found")


@pytest.mark.requirement("X17")
async def test_every_server_is_told_as_it_comes_with_its_tools_or_the_reason(caplog: pytest.LogCaptureFixture):
    sources = [MemoryServer([tool("a"), tool("b")]).source("one"), McpSource("two", absent)]
    with caplog.at_level(logging.INFO, "toolcrib.gateway"):
        async with Crib(*sources):
            await report_starts(sources)
    text = caplog.text
    assert "of 2: one, 2 tools" in text
    assert "of 2: two, not ready: the program `x` was not found" in text
    assert "1 of 2 servers ready with 2 tools" in text
