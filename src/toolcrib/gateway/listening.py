"""Where the gateway listens: addresses that only this machine reaches, unless somebody says otherwise."""

import ipaddress
import logging
import socket
from contextlib import suppress

from toolcrib.errors import ConfigError
from toolcrib.limits import CONNECTIONS_MAX

logger = logging.getLogger("toolcrib.gateway")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises `ConfigError`."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"`{text}` is no address: give HOST:PORT, such as 127.0.0.1:8765.")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def require_reach(host: str, *, public: bool) -> None:
    """Refuses an address that other machines can reach, unless that is meant (F5). Raises `ConfigError`."""
    if is_loopback(host):
        return
    if not public:
        raise ConfigError(f"{host} can be reached from other machines: say --public if that is meant.")
    logger.warning("serving other machines without TLS: put a reverse proxy with a certificate in front")


def listen_on(address: str) -> socket.socket:
    """A socket that takes clients. Raises `ConfigError`."""
    host, port = parse_address(address)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(f"{address} cannot be listened on: {error.strerror}; use another port.") from None


def url_of(listening: socket.socket) -> str:
    """The address of a listening socket, for a person to open."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def connections_room() -> int:
    """How many connections there may be: the last descriptors belong to servers, files and whoever is refused (K11)."""
    try:
        import resource
    except ImportError:  # not on Windows
        return CONNECTIONS_MAX
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft < 0 else min(CONNECTIONS_MAX, max(16, soft * 3 // 4 - 32))
