"""The part of a sign-in that a person does: a page in the browser, and the answer on loopback.

We listen before the page is opened, because a browser that is signed in already answers at once. Only the answer to
the question that was asked counts: whoever else calls at the door is sent away, and the waiting goes on. The address
of the page comes from the server: it is opened only if it is a web address, and never through a shell (G7).
"""

import asyncio
import hashlib
import hmac
import logging
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult

from toolcrib.errors import SourceUnavailable
from toolcrib.limits import SIGN_IN_AGAIN_S, SIGN_IN_S
from toolcrib.sources.patience import Patience

logger = logging.getLogger("toolcrib.sources")

_FIRST_PORT = 41_000
_PORTS = 8_000
_READ_S = 5.0
_LINE_MAX_BYTES = 16 * 1024

Fields = dict[str, list[str]]


def require_web_address(url: str) -> str:
    """The address, if a browser may be sent there. Raises `SourceUnavailable`."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    plain = url.isascii() and url.isprintable() and " " not in url
    if plain and (parts.scheme == "https" or (parts.scheme == "http" and local)):
        return url
    raise SourceUnavailable(f"it wants a browser sent to a `{parts.scheme[:20]}:` address, which is refused")


class BrowserFlow:
    """Sends a person to the sign-in page and waits on loopback for the answer."""

    def __init__(
        self,
        name: str,
        patience: Patience,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._patience = patience
        self._clock = clock
        # The same server gets the same port every time: some services compare the whole address.
        digest = hashlib.sha256(name.encode()).digest()
        self._port = _FIRST_PORT + int.from_bytes(digest[:4], "big") % _PORTS
        self._again_at = 0.0
        self._failure = "nobody signed in"
        self._page = ""
        self._state = ""
        self._answer: asyncio.Future[Fields] | None = None
        self._server: asyncio.Server | None = None

    @property
    def redirect(self) -> str:
        """Where the service sends the browser back to."""
        return f"http://127.0.0.1:{self._port}/callback"

    async def ask(self, url: str) -> None:
        """Shows the address, and opens it where there is a browser. Raises `SourceUnavailable`."""
        if not self._patience.is_starting:
            raise SourceUnavailable("its sign-in has ended; somebody has to sign in again")
        if self._clock() < self._again_at:
            raise SourceUnavailable(f"{self._failure}; it is asked for again later, and after a restart")
        self._page = require_web_address(url)
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        # Until it has gone well, it has gone badly: no second page pops up after a refusal.
        self._again_at = self._clock() + SIGN_IN_AGAIN_S
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._take, "127.0.0.1", self._port, limit=_LINE_MAX_BYTES)
        except OSError:
            raise SourceUnavailable(f"port {self._port}, where its sign-in comes back to, is taken") from None
        logger.warning("%s: sign in at %s", self._name, self._page)
        with suppress(webbrowser.Error):
            await asyncio.to_thread(webbrowser.open, self._page)

    async def wait(self) -> AuthorizationCodeResult:
        """The answer of the service. Raises `SourceUnavailable`."""
        if self._answer is None or self._server is None:
            raise AssertionError("nobody was asked")
        try:
            with self._patience.person(f"it waits for somebody to sign in at {self._page}"):
                async with asyncio.timeout(SIGN_IN_S):
                    fields = await self._answer
        except TimeoutError:
            self._failure = f"nobody signed in within {SIGN_IN_S:g} s"
            raise SourceUnavailable(self._failure) from None
        finally:
            self._server.close()
        code = fields.get("code", [""])[0]
        if not code:
            self._failure = f"the sign-in was refused: {fields.get('error', ['?'])[0][:100]}"
            raise SourceUnavailable(self._failure)
        self._again_at = 0.0
        return AuthorizationCodeResult(code=code, state=self._state, iss=fields.get("iss", [None])[0])

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one browser."""
        try:
            async with asyncio.timeout(_READ_S):
                line = (await reader.readline()).decode(errors="replace").split(" ")
            target = urlsplit(line[1]) if len(line) > 1 else urlsplit("")
            fields = parse_qs(target.query)
            given = fields.get("state", [""])[0]
            if target.path != "/callback":
                status, text = 404, b"There is nothing here."
            elif not hmac.compare_digest(given.encode(), self._state.encode()):
                status, text = 400, b"This is not the sign-in that was asked for."
            else:
                status, text = 200, b"Thank you; this page can be closed."
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(fields)
            writer.write(
                b"HTTP/1.1 %d -\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (status, len(text), text)
            )
            await writer.drain()
        except (OSError, ValueError, TimeoutError):
            return
        finally:
            writer.close()
