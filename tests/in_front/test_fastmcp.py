"""FastMCP's client in front of the gateway. Runs where FastMCP is installed: it is no part of the development set-up."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.in_front.gateways import command, over_http

fastmcp: Any = pytest.importorskip("fastmcp", reason="FastMCP is not installed: `pip install fastmcp` to run this")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def use(target: Any) -> None:
    async with fastmcp.Client(target) as client:
        names = [tool.name for tool in await client.list_tools()]
        called = await client.call_tool("tool_call", {"name": "one__echo", "arguments": {"message": "hello"}})
    assert names == ["tool_search", "tool_describe", "tool_call"]
    assert called.content[0].text == "hello"


@pytest.mark.requirement("X16")
async def test_it_lists_and_calls_over_http(tmp_path: Path):
    with over_http(tmp_path) as url:
        await use(url)


@pytest.mark.requirement("X16")
async def test_it_lists_and_calls_over_pipes(tmp_path: Path):
    _, *args = command(tmp_path)
    await use({"mcpServers": {"toolcrib": {"command": sys.executable, "args": args}}})
