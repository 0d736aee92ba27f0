"""What a server may lead us to, and what it may not."""

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from toolcrib.errors import SourceUnavailable
from toolcrib.sources.addresses import Neighbourhood, is_public, read_literal

HIDDEN = [
    "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
    "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fec0::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:53aa:64c:0:0:80ff:fffe",
    "2600::5efe:127.0.0.1", "2600::200:5efe:10.0.0.1",
]  # fmt: skip
SPELLINGS = {
    "0177.0.0.1": "127.0.0.1", "0x7f.0.0.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1",
    "017700000001": "127.0.0.1", "127.1": "127.0.0.1", "0xa9fea9fe": "169.254.169.254", "[::1]": "::1",
    "169.254.169.254.": "169.254.169.254", "fe80::1%eth0": "fe80::1",
}  # fmt: skip


@pytest.mark.parametrize("text", HIDDEN)
@pytest.mark.requirement("H1")
def test_addresses_that_are_not_public_however_they_are_wrapped(text: str):
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"])
@pytest.mark.requirement("H1")
def test_addresses_that_are_public(text: str):
    assert is_public(ip_address(text))


@pytest.mark.parametrize(("text", "meant"), SPELLINGS.items())
@pytest.mark.requirement("H1")
def test_spellings_that_a_resolver_would_understand(text: str, meant: str):
    assert str(read_literal(text)) == meant


@pytest.mark.parametrize("text", ["example.org", "", "cafe.example", "x.1.2.3.4", "1.2.3.4.5.6"])
def test_names_are_no_addresses(text: str):
    assert read_literal(text) is None


def near(server: str = "https://mcp.example/mcp", *, trust: bool = False, found: Sequence[str] = ()) -> Neighbourhood:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return Neighbourhood(server=server, trust=trust, resolve=resolve)


@pytest.mark.parametrize(
    "url",
    [
        "http://auth.example/token",
        "http://127.0.0.1:8080/admin",
        "https://127.0.0.1/token",
        "https://0x7f.1/token",
        "https://[::ffff:169.254.169.254]/latest/meta-data",
        "https://user:secret@auth.example/token",
        "file:///etc/passwd",
        "https://printer.local/token",
    ],
)
@pytest.mark.requirement("H1", "G7")
async def test_a_server_cannot_lead_us_into_our_own_network(url: str):
    with pytest.raises(SourceUnavailable):
        await near(found=["192.168.0.7"]).require(url)


@pytest.mark.requirement("H1")
async def test_one_private_address_among_public_ones_is_enough_to_refuse():
    with pytest.raises(SourceUnavailable, match="no public address"):
        await near(found=["1.1.1.1", "10.0.0.1"]).require("https://auth.example/token")


@pytest.mark.requirement("H1")
async def test_the_connection_goes_to_the_address_that_was_looked_at():
    assert await near(found=["1.1.1.1", "8.8.8.8"]).require("https://auth.example/token") == "1.1.1.1"


@pytest.mark.parametrize(
    ("server", "url", "trust"),
    [
        ("https://mcp.example/mcp", "https://mcp.example/token", False),
        ("https://10.0.0.5/mcp", "https://10.0.0.6/token", True),
        ("http://127.0.0.1:1/mcp", "http://localhost:2/token", False),
    ],
)
@pytest.mark.requirement("H1")
async def test_its_own_host_its_own_machine_and_what_the_operator_trusts_are_near(server: str, url: str, trust: bool):
    assert await near(server, trust=trust, found=["10.0.0.9"]).require(url) is None
