"""The official SDK's own client in front of the gateway, in both eras, over pipes and over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client, StdioServerParameters
from tests.in_front.gateways import command, over_http

Mode = Literal["legacy", "2026-07-28", "auto"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@asynccontextmanager
async def client(directory: Path, mode: Mode, over: str) -> AsyncGenerator[Client]:
    if over == "http":
        with over_http(directory) as url:
            async with Client(url, mode=mode) as found:
                yield found
        return
    program, *args = command(directory)
    async with Client(StdioServerParameters(command=program, args=args), mode=mode) as found:
        yield found


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.requirement("X16", "X17")
async def test_it_lists_searches_describes_and_calls(tmp_path: Path, mode: Mode, over: str):
    async with client(tmp_path, mode, over) as official:
        names = [tool.name for tool in (await official.list_tools()).tools]
        found = (await official.call_tool("tool_search", {"query": "echo a message"})).structured_content
        described = (await official.call_tool("tool_describe", {"name": "one__echo"})).structured_content
        called = await official.call_tool("tool_call", {"name": "one__echo", "arguments": {"message": "hello"}})
    assert names == ["tool_search", "tool_describe", "tool_call"]
    assert found is not None
    assert found["matches"][0]["name"] == "one__echo"
    assert described is not None
    assert "message" in str(described)
    assert called.content[0].model_dump()["text"] == "hello"
