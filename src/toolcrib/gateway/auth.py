"""Bearer tokens: made by the command line, shown once, kept as hashes, and compared in constant time.

The file is read again whenever it changed, so that a revoked token is refused from the next request on. Whoever sends
wrong tokens is told to wait. A token never comes from a query string, and never travels to a server.
"""

import hashlib
import hmac
import os
import secrets
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from toolcrib.errors import ConfigError
from toolcrib.home import config_directory
from toolcrib.limits import AUTH_ADDRESSES, AUTH_FAILURES_PER_MINUTE

Role = Literal["client", "console"]
"""What a token opens: the gateway's endpoint, or the console."""

_DAY_S = 86_400
_PREFIX = "tcr_"


class TokenEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One token, without its secret."""

    name: str
    profile: str
    """What a client may do with it; a token of the console has no use for one."""
    hash: str
    """SHA-256 of the token. It has 256 random bits, so a slow hash would protect nothing."""
    created: int
    expires: int | None = None
    """Seconds since the epoch."""
    role: Role = "client"

    @property
    def shown_expiry(self) -> str:
        """When it expires, for people."""
        if self.expires is None:
            return "never expires"
        try:
            return f"expires {datetime.fromtimestamp(self.expires, tz=UTC):%Y-%m-%d}"
        except (OverflowError, ValueError, OSError):
            return "expires after the year 9999"


def default_path() -> Path:
    """The usual file of tokens. Raises `ConfigError` for a user without a home."""
    return config_directory() / "tokens.json"


class TokenFile:
    """The tokens of one gateway."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path or default_path()
        self._clock = clock
        self._read: tuple[tuple[int, int, int], Sequence[TokenEntry]] | None = None

    def read(self) -> Sequence[TokenEntry]:
        """All tokens. Raises `ConfigError` if others could have read or written the file."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror or error}.") from None
        key = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if self._read is not None and self._read[0] == key:
            return self._read[1]
        if os.name == "posix" and facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{self.path}: others can read this file: run `chmod 600` on it.")
        try:
            entries = msgspec.json.decode(self.path.read_bytes(), type=list[TokenEntry])
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{self.path}: holds no tokens: {error}.") from None
        self._read = (key, entries)
        return entries

    def create(self, name: str, *, profile: str, days: int | None, role: Role = "client") -> tuple[str, TokenEntry]:
        """A new token and its entry. Raises `ConfigError` if the name is taken."""
        entries = self.read()
        if not name.strip() or not name.isprintable():
            raise ConfigError("A token needs a name: whose is it?")
        if any(entry.name == name for entry in entries):
            raise ConfigError(f"There is a token `{name}` already: revoke it first, or use another name.")
        secret = _PREFIX + secrets.token_urlsafe(32)
        now = int(self._clock())
        entry = TokenEntry(
            name=name,
            profile=profile,
            hash=hash_token(secret),
            created=now,
            expires=None if days is None else now + days * _DAY_S,
            role=role,
        )
        self._write([*entries, entry])
        return secret, entry

    def revoke(self, name: str) -> bool:
        """Removes a token. Whether there was one."""
        entries = self.read()
        kept = [entry for entry in entries if entry.name != name]
        if len(kept) == len(entries):
            return False
        self._write(kept)
        return True

    def find(self, secret: str) -> TokenEntry | None:
        """The entry of a token, if it is valid now. Takes the same time for every wrong one."""
        return self.current(hash_token(secret))

    def current(self, wanted: str) -> TokenEntry | None:
        """The entry with this hash, if it is valid now."""
        found: TokenEntry | None = None
        for entry in self.read():
            if hmac.compare_digest(entry.hash, wanted):
                found = entry
        if found is None or (found.expires is not None and found.expires <= self._clock()):
            return None
        return found

    def valid(self, role: Role = "client") -> frozenset[tuple[str, str]]:
        """Name and profile of every token that is valid now. Raises `ConfigError` as `read` does."""
        now = self._clock()
        return frozenset(
            (entry.name, entry.profile)
            for entry in self.read()
            if entry.role == role and (entry.expires is None or entry.expires > now)
        )

    def _write(self, entries: Sequence[TokenEntry]) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(list(entries))))
            temporary.replace(self.path)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}.") from None
        self._read = None


def hash_token(secret: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Failures:
    """Counts wrong tokens by address (G9)."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def is_blocked(self, address: str) -> bool:
        """Whether the address sent too many wrong tokens within a minute."""
        times = self._times.get(address)
        if times is None:
            return False
        while times and times[0] <= self._clock() - 60:
            times.popleft()
        return len(times) >= AUTH_FAILURES_PER_MINUTE

    def note(self, address: str) -> None:
        """Takes one failure."""
        times = self._times.setdefault(address, deque(maxlen=AUTH_FAILURES_PER_MINUTE))
        times.append(self._clock())
        self._times.move_to_end(address)
        if len(self._times) > AUTH_ADDRESSES:
            self._times.popitem(last=False)
