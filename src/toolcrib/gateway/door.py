"""Who may come in over HTTP: the Host and the Origin first, on every path, then the token.

One door for everything that a gateway serves, so that wrong tokens count together, whatever they were tried on.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from toolcrib.errors import ConfigError
from toolcrib.gateway.auth import Failures, Role, TokenEntry, TokenFile
from toolcrib.gateway.http_wire import Head, Refused

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Door:
    """What everybody has to pass."""

    def __init__(self, *, tokens: TokenFile | None, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self.tokens = tokens
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._failures = Failures()

    def require_host(self, headers: Mapping[str, str]) -> None:
        """Loopback and configured names only: a page that renamed itself to our address is refused (F1)."""
        if host_of(headers.get("host", "")) not in self._hosts:
            raise Refused(421, "This host name is not served here: add it to `gateway.hosts`.")
        origin = headers.get("origin")
        if origin is None:
            return
        if not _is_local(origin.lower()) and origin.lower().rstrip("/") not in self._origins:
            raise Refused(403, "Pages of this origin may not talk to the gateway: add it to `gateway.origins`.")

    def require_token(self, head: Head, role: Role) -> TokenEntry:
        """The token that came with a request, if it is for this. Raises `Refused`."""
        if self._failures.is_blocked(head.address):
            raise _blocked()
        given = head.headers.get("authorization")
        scheme, _, secret = (given or "").partition(" ")
        entry = None
        if self.tokens is not None and scheme.lower() == "bearer" and secret:
            try:
                entry = self.tokens.find(secret.strip())
            except ConfigError:  # why is logged by whoever looks after what is open
                raise Refused(503, "The gateway cannot read its tokens now.", [(b"retry-after", b"5")]) from None
        # A token for something else is a wrong one (J12).
        if entry is None or entry.role != role:
            if given is not None:
                self.note_failure(head.address)
            raise Refused(401, "A valid token is needed.", [(b"www-authenticate", b'Bearer realm="toolcrib"')])
        return entry

    def find_token(self, secret: str, role: Role) -> TokenEntry | None:
        """The entry of a token, if it is valid now and for this."""
        entry = self.tokens.find(secret) if self.tokens is not None else None
        return entry if entry is not None and entry.role == role else None

    def require_patience(self, address: str) -> None:
        """Refuses whoever sent too many wrong tokens. Raises `Refused`."""
        if self._failures.is_blocked(address):
            raise _blocked()

    def note_failure(self, address: str) -> None:
        """Takes a wrong token."""
        self._failures.note(address)


def _is_local(origin: str) -> bool:
    """Whether a page is of this machine."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and host_of(parts.netloc) in _LOOPBACK and not parts.path


def _blocked() -> Refused:
    return Refused(429, "Too many wrong tokens; wait a minute.", [(b"retry-after", b"60")])


def require_small_body(head: Head, most: int) -> None:
    """Before anybody is known, nobody's long body is kept. Raises `Refused`."""
    if "transfer-encoding" in head.headers:
        raise Refused(411, "Say how long the body is: the header Content-Length is missing.")
    if int(head.headers.get("content-length") or 0) > most:
        raise Refused(413, f"A body has at most {most} bytes here.")


@lru_cache(maxsize=64)
def host_of(value: str) -> str:
    """The host of a `Host` header without its port; nothing for what is no plain name or address."""
    if any(char in value for char in "/?#@\\ ,") or not value.isascii():
        return ""
    if value.startswith("["):
        name, _, rest = value[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    else:
        name, colon, port = value.partition(":")
    return name.lower() if colon in ("", ":") and (not port or port.isdigit()) else ""
