"""Signing in to MCP servers with OAuth, through the official SDK.

A person agrees in a browser, once; the tokens are kept in a file that only they can read, and refreshed by the SDK.
The address to open comes from the server: it is opened only if it is a web address, and never through a shell (G7).
One server's tokens are its own, and no client of the gateway ever sees them.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import webbrowser
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from toolcrib.errors import SourceUnavailable

logger = logging.getLogger("toolcrib.sources")

SIGN_IN_S = 300.0
"""Seconds that a person may take to sign in."""

_FIRST_PORT = 41_000
_PORTS = 8_000


def open_oauth(name: str, url: str, *, directory: Path | None = None) -> OAuthClientProvider:
    """The sign-in of one server, for its HTTP client."""
    flow = _BrowserFlow(name)
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata.model_validate(
            {
                "client_name": "toolcrib",
                "redirect_uris": [flow.redirect],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
            }
        ),
        storage=FileStorage(url, directory or default_directory()),
        redirect_handler=flow.ask,
        callback_handler=flow.wait,
    )


def default_directory() -> Path:
    """Where tokens of servers are kept."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "toolcrib" / "oauth"


def require_web_address(url: str) -> str:
    """The address, if a browser may be sent there. Raises `SourceUnavailable`."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "https" or (parts.scheme == "http" and local):
        return url
    raise SourceUnavailable(f"it wants a browser sent to a `{parts.scheme[:20]}:` address, which is refused")


class _Stored(msgspec.Struct, kw_only=True):
    """What the file of one server holds."""

    tokens: dict[str, object] | None = None
    client: dict[str, object] | None = None


class FileStorage:
    """Tokens of one server, in a file that only its owner can read."""

    def __init__(self, url: str, directory: Path) -> None:
        self._path = directory / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, if there are any."""
        stored = self._read().tokens
        return OAuthToken.model_validate(stored) if stored else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps the tokens."""
        stored = self._read()
        stored.tokens = cast("dict[str, object]", tokens.model_dump(mode="json", exclude_none=True))
        self._write(stored)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """How we are registered there, if we are."""
        stored = self._read().client
        return OAuthClientInformationFull.model_validate(stored) if stored else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keeps the registration."""
        stored = self._read()
        stored.client = cast("dict[str, object]", client_info.model_dump(mode="json", exclude_none=True))
        self._write(stored)

    def _read(self) -> _Stored:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Stored)
        except (FileNotFoundError, msgspec.DecodeError):
            return _Stored()

    def _write(self, stored: _Stored) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(stored))
        temporary.replace(self._path)


class _BrowserFlow:
    """Sends a person to the sign-in page and waits on loopback for the answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        # The same server gets the same port every time: some services compare the whole address.
        digest = hashlib.sha256(name.encode()).digest()
        self._port = _FIRST_PORT + int.from_bytes(digest[:4], "big") % _PORTS
        self.redirect = f"http://127.0.0.1:{self._port}/callback"

    async def ask(self, url: str) -> None:
        """Shows the address, and opens it where there is a browser."""
        address = require_web_address(url)
        logger.warning("%s: sign in at %s", self._name, address)
        await asyncio.to_thread(webbrowser.open, address)

    async def wait(self) -> AuthorizationCodeResult:
        """The answer of the service. Raises `SourceUnavailable`."""
        answer: asyncio.Future[dict[str, list[str]]] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = (await reader.readline())[:8_192].decode(errors="replace").split(" ")
            path = urlsplit(line[1]) if len(line) > 1 else urlsplit("")
            known = path.path == "/callback"
            text = b"You are signed in; this page can be closed." if known else b"There is nothing here."
            writer.write(
                b"HTTP/1.1 %d -\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (200 if known else 404, len(text), text)
            )
            await writer.drain()
            writer.close()
            if known and not answer.done():
                answer.set_result(parse_qs(path.query))

        server = await asyncio.start_server(take, "127.0.0.1", self._port)
        try:
            async with asyncio.timeout(SIGN_IN_S):
                fields = await answer
        except TimeoutError:
            raise SourceUnavailable(f"nobody signed in within {SIGN_IN_S:g} s") from None
        finally:
            server.close()
        code = fields.get("code", [""])[0]
        if not code:
            raise SourceUnavailable(f"the sign-in was refused: {fields.get('error', ['?'])[0][:100]}")
        return AuthorizationCodeResult(
            code=code, state=fields.get("state", [None])[0], iss=fields.get("iss", [None])[0]
        )
