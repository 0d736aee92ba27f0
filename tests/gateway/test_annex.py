"""What is served beside MCP, on an address of its own."""

import socket

import pytest
from tests.gateway.http_clients import client_of

from toolcrib.errors import ConfigError
from toolcrib.gateway.annex import AnnexApp, served_apart
from toolcrib.gateway.door import Door
from toolcrib.gateway.http_connections import HttpServer, Take
from toolcrib.gateway.http_wire import Head, Refused


class Closet:
    """An annex with nothing in it."""

    prefix = "/closet"
    url = ""
    closed = False

    def open(self, head: Head) -> Take:
        """Refuses everything."""
        raise Refused(404, "It is empty.")

    def welcome(self, url: str) -> None:
        """Does not want to be served."""
        self.url = url
        raise ConfigError("It is not to be opened.")

    def close(self) -> None:
        """Notes it."""
        self.closed = True


async def test_an_annex_that_cannot_be_welcomed_is_not_served():
    annex = Closet()
    with pytest.raises(ConfigError, match="not to be opened"):
        async with served_apart(annex, Door(tokens=None), "127.0.0.1:0"):
            raise AssertionError
    assert annex.closed
    port = int(annex.url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.requirement("K11")
async def test_an_annex_leaves_the_descriptors_to_clients_and_servers():
    app = AnnexApp(Closet(), Door(tokens=None))
    assert HttpServer(app, most=3).room == 3
    async with client_of(app) as client:
        client.send("GET", "/elsewhere")
        assert (await client.answer()).status == 404
