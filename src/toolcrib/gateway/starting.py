"""Start-up, told as it goes: which servers are there, which are not and why, and how long it took."""

import asyncio
import logging
import time
from collections.abc import Sequence

from toolcrib.sources.mcp_source import McpSource

logger = logging.getLogger("toolcrib.gateway")


async def report_starts(servers: Sequence[McpSource]) -> None:
    """Logs one line for every server, as soon as its first start has gone well or not, and one for all."""
    began = time.monotonic()
    waits = [asyncio.ensure_future(_settled(server)) for server in servers]
    tools = ready = 0
    try:
        for number, wait in enumerate(asyncio.as_completed(waits), start=1):
            server = await wait
            (toolset,) = server.snapshot()
            tools += len(toolset.tools)
            ready += toolset.unavailable is None
            how = f"{len(toolset.tools)} tools" if toolset.unavailable is None else f"not ready: {toolset.unavailable}"
            logger.info("%d of %d: %s, %s (%.1f s)", number, len(servers), server.server, how, time.monotonic() - began)
    finally:
        for wait in waits:
            wait.cancel()
    if servers:
        logger.info(
            "%d of %d servers ready with %d tools after %.1f s", ready, len(servers), tools, time.monotonic() - began
        )


async def _settled(server: McpSource) -> McpSource:
    await server.settled.wait()
    return server
