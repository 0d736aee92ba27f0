"""What a gateway serves beside MCP, under a path of its own: on the gateway's address, or on one of its own.

The gateway knows nothing of it but the path. Whoever comes has passed the Host and the Origin already; everything else
is the annex's own business.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from toolcrib.gateway.door import Door
from toolcrib.gateway.http_connections import HttpServer, Take
from toolcrib.gateway.http_wire import Head, Refused
from toolcrib.gateway.listening import listen_on, url_of
from toolcrib.gateway.server import Gateway
from toolcrib.limits import ANNEX_CONNECTIONS


class Annex(Protocol):
    """Answers what comes to its path."""

    prefix: str
    """What all of its paths begin with."""

    def open(self, head: Head) -> Take:
        """What takes the body, if the request is let in. Raises `Refused`."""
        ...

    def welcome(self, url: str) -> None:
        """Is told where it is served now."""
        ...

    def close(self) -> None:
        """Ends what is still open."""
        ...


OpenAnnex = Callable[[Gateway, Door], Annex]
"""Makes the annex of a gateway, behind the same door."""


class AnnexApp:
    """An annex with nothing beside it."""

    def __init__(self, annex: Annex, door: Door) -> None:
        self._annex = annex
        self._door = door

    def open(self, head: Head) -> Take:
        """What takes the body, if the request is let in. Raises `Refused`."""
        self._door.require_host(head.headers)
        if head.path.startswith(self._annex.prefix):
            return self._annex.open(head)
        raise Refused(404, f"There is nothing here but {self._annex.prefix}.")


@asynccontextmanager
async def served_apart(annex: Annex, door: Door, address: str) -> AsyncGenerator[None]:
    """Serves an annex on an address of its own. Raises `ConfigError`."""
    listening = listen_on(address)
    server = HttpServer(AnnexApp(annex, door), most=ANNEX_CONNECTIONS)
    await server.listen(listening)
    try:
        annex.welcome(url_of(listening))
        yield
    finally:
        annex.close()
        await server.close()
