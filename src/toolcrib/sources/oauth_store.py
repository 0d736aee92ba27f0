"""What is kept of a sign-in: tokens, their end, our registration and where they are renewed, for its owner's eyes only.

The end and the place are kept because the SDK forgets them with the process: without the end an old token counts as
good until the server refuses it, and without the place a renewal goes to the wrong door; either way a person would
have to sign in again after every restart.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import stat
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from toolcrib.errors import SourceUnavailable
from toolcrib.home import config_directory
from toolcrib.sources.patience import Patience

try:
    import fcntl
except ImportError:  # not on Windows: there a second gateway may have to sign in for itself
    fcntl = None

logger = logging.getLogger("toolcrib.sources")

_LOOK_EVERY_S = 0.1
Plain = dict[str, object]
_Model = TypeVar("_Model", bound=BaseModel)


class Stored(msgspec.Struct, kw_only=True):
    """What the file of one server holds."""

    tokens: Plain | None = None
    expires: float | None = None
    """When the access token ends, in seconds since the epoch."""
    client: Plain | None = None
    service: Plain | None = None
    """The metadata of the authorization server."""
    resource: Plain | None = None
    """The metadata of the protected server."""


def default_directory() -> Path:
    """Where tokens of servers are kept. Raises `ConfigError` for a user without a home."""
    return config_directory() / "oauth"


class FileStorage:
    """The sign-in at one server, in a file that only its owner can read."""

    def __init__(self, url: str, directory: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = directory / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
        self._clock = clock
        self._unkept: Stored | None = None
        """What could not be written."""

    # What the SDK asks of a storage

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, if there are any."""
        return _model(OAuthToken, self.read().tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps the tokens, and when they end."""
        stored = self.read()
        stored.tokens = _plain(tokens)
        stored.expires = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        self._write(stored)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """How we are registered there, if we are."""
        return _model(OAuthClientInformationFull, self.read().client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keeps the registration."""
        stored = self.read()
        stored.client = _plain(client_info)
        self._write(stored)

    # What the SDK forgets

    def places(self) -> tuple[OAuthMetadata | None, ProtectedResourceMetadata | None]:
        """What is known of the authorization server and of the protected one."""
        stored = self.read()
        return _model(OAuthMetadata, stored.service), _model(ProtectedResourceMetadata, stored.resource)

    def keep_places(self, service: OAuthMetadata | None, resource: ProtectedResourceMetadata | None) -> None:
        """Keeps what was found out."""
        stored = self.read()
        stored.service = _plain(service) if service else None
        stored.resource = _plain(resource) if resource else None
        self._write(stored)

    @asynccontextmanager
    async def alone(self, patience: Patience) -> AsyncGenerator[None]:
        """Keeps other gateways of this user from renewing or signing in at the same time."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError:
            yield
            return
        try:
            if not _is_locked(descriptor):
                with patience.person("another gateway signs in there"):
                    while not _is_locked(descriptor):  # noqa: ASYNC110 - another process has no event for us
                        await asyncio.sleep(_LOOK_EVERY_S)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> Stored:
        """What the file holds. Raises `SourceUnavailable` if others could have read or written it."""
        try:
            facts = self.path.stat()
            if os.name == "posix" and facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SourceUnavailable(f"others can read its tokens: run `chmod 600 {self.path}`, or delete the file")
            return msgspec.json.decode(self.path.read_bytes(), type=Stored)
        except OSError:
            return self._unkept or Stored()
        except msgspec.DecodeError:
            logger.warning("%s: holds no sign-in; it is made anew", self.path)
            return Stored()

    def _write(self, stored: Stored) -> None:
        try:
            self._replace(stored)
            self._unkept = None
        except OSError as error:
            # Whoever is signed in stays so until the end of this process (K10).
            logger.warning("%s: a sign-in cannot be kept: %s", self.path, error.strerror or error)
            self._unkept = stored

    def _replace(self, stored: Stored) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(stored))
        temporary.replace(self.path)


def _is_locked(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _plain(model: BaseModel) -> Plain:
    return cast("Plain", model.model_dump(mode="json", exclude_none=True))


def _model(kind: type[_Model], plain: Plain | None) -> _Model | None:
    try:
        return kind.model_validate(plain) if plain else None
    except ValidationError:
        logger.warning("a kept sign-in cannot be read; it is made anew")
        return None
