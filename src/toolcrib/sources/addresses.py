"""Which addresses may be followed that somebody else named.

The operator writes down where a server is; that is used as it is. What the server then names (where to sign in, where
to get a token) could point into our own network: such an address must be https and public, unless it is the server's
own host, or the server itself is on this machine and so is the address, or its entry is trusted. A name is resolved
once, all of its addresses are looked at, and the connection goes to one of those: a second answer of the resolver
changes nothing (H1).
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolcrib.errors import SourceUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
"""For translators of one's own: never public."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def read_literal(host: str) -> Address | None:
    """The address that a host spells, in any way that a resolver would accept: `0x7f.1` and `017700000001` too."""
    text = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    if not text or not all(char in "0123456789abcdefxABCDEFX." for char in text) or not text[0].isdigit():
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except (OSError, ValueError):
        return None


def is_public(address: Address) -> bool:
    """Whether the address, and every address that hides in it, belongs to the public internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_site_local and address not in _NAT64_LOCAL


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to: mapped, 6to4, Teredo, NAT64 or ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    last = ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if address in _NAT64 or (number >> 32) & 0xFFFF_FFFF in _ISATAP or number >> 32 == 0:
        return last
    return None


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses of a name. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(item[4][0]) for item in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """What a server at one address may lead us to."""

    server: str
    """The server's address, as the operator wrote it."""
    trust: bool = False
    resolve: Resolve = resolve_host

    async def require(self, url: str) -> str | None:
        """The one address to connect to, or nothing if any will do. Raises `SourceUnavailable`."""
        parts, own = urlsplit(url), urlsplit(self.server)
        host = (parts.hostname or "").rstrip(".")
        if parts.username or parts.password:
            raise SourceUnavailable("it names an address with a password in it, which is refused")
        local = host in LOOPBACK and own.hostname in LOOPBACK
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise SourceUnavailable(f"it names a `{parts.scheme[:20]}:` address of `{host[:100]}`, which is refused")
        if local or self.trust or host == own.hostname:
            return None
        literal = read_literal(host)
        if literal is not None:
            _require_public(host, [literal])
            return None
        try:
            found = await self.resolve(host, parts.port or 443)
        except OSError:
            raise SourceUnavailable(f"it names `{host[:100]}`, which cannot be found") from None
        _require_public(host, [ipaddress.ip_address(item.partition("%")[0]) for item in found])
        return found[0]


def _require_public(host: str, addresses: Sequence[Address]) -> None:
    if not addresses or not all(is_public(address) for address in addresses):
        raise SourceUnavailable(
            f"it names `{host[:100]}`, which is no public address: set `trust: true` if that is meant"
        )
