"""Real HTTP servers on loopback for tests: bound first, so that an application may know its own address."""

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serve(build: Callable[[str], Any]) -> AsyncGenerator[str]:
    """Serves the application that `build` makes of its own address; gives the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = uvicorn.Config(build(base), log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        yield base
    finally:
        server.should_exit = True
        await task
        listening.close()
        await _forget_litter()


async def _forget_litter() -> None:
    """Servers on the SDK leave streams open when they are stopped: whoever tests next must not be blamed for it."""
    for _ in range(10):
        await asyncio.sleep(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
