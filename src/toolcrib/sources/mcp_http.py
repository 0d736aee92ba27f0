"""An MCP server over HTTP: streamable HTTP in both eras, and the older pair of event stream and endpoint.

Nothing is followed that the operator did not write down: no redirect, no other scheme, and plain HTTP on loopback only
unless the entry is trusted. Bodies and events are bounded, and never compressed, so that none can grow on arrival. What
one client sent never becomes part of a header except where the protocol says so.
"""

import asyncio
import logging
import ssl
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx2
from msgspec import UnsetType

from toolcrib.definitions import JsonObject
from toolcrib.errors import SourceError, SourceProtocolError, SourceUnavailable
from toolcrib.limits import CONNECT_S, RESTART_MAX_S, RESTART_MIN_S, UPSTREAM_BODY_MAX_BYTES
from toolcrib.settings import ServerSettings
from toolcrib.sources.handshake import shake_hands
from toolcrib.sources.json_rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Identifier,
    RpcError,
    one_line,
    read_envelope,
    read_error,
)
from toolcrib.sources.link import Link, Listener, Waiter
from toolcrib.sources.sse import EventReader
from toolcrib.sources.withheld import NOTHING, Withheld, withhold

if TYPE_CHECKING:
    from toolcrib.sources.oauth import SignIn

logger = logging.getLogger("toolcrib.sources")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_RECONNECTS = 5
"""Times that a stream which broke before its answer is taken up again."""
_CHANGES = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=16)
_TIMEOUT = httpx2.Timeout(None, connect=CONNECT_S, pool=CONNECT_S)


def require_url(name: str, url: str, *, trust: bool) -> str:
    """The address, if it may be used. Raises `SourceUnavailable`."""
    try:
        parts = urlsplit(url)
        _ = parts.port, httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        raise SourceUnavailable("the address cannot be read: a part of it is not written as addresses are") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        lack = "names no host" if parts.scheme in ("http", "https") else "does not begin with https://"
        raise SourceUnavailable(f"the address {lack}")
    if parts.username or parts.password:
        raise SourceUnavailable("the address holds a password: put it into `headers`")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not trust:
        raise SourceUnavailable("plain http is used on this machine only: use https, or set `trust: true`")
    return url


async def open_link(
    name: str,
    entry: ServerSettings,
    url: str,
    headers: Mapping[str, str],
    listener: Listener,
    *,
    sign_in: "SignIn | None" = None,
) -> Link:
    """A link to the server. Raises `SourceUnavailable`."""
    address = require_url(name, url, trust=entry.trust)
    connection = httpx2.AsyncClient(
        verify=await _certificates(),
        headers={**headers, "accept-encoding": "identity"},
        follow_redirects=False,
        timeout=_TIMEOUT,
        limits=_LIMITS,
        auth=sign_in,
        event_hooks={"request": [sign_in.look_at_request], "response": [sign_in.look_at_response]} if sign_in else None,
    )
    withheld = withhold(named=headers, url=url)
    if entry.type == "sse":
        link = SseLink(name, address, connection, listener=listener, withheld=withheld)
        await link.open()
        return link
    return HttpLink(name, address, connection, listener=listener, withheld=withheld)


_kept: dict[str, ssl.SSLContext] = {}


async def _certificates() -> ssl.SSLContext:
    """Whom to trust: read once for all servers, and off the loop, because it takes longer than others should wait."""
    if "all" not in _kept:
        _kept["all"] = await asyncio.to_thread(httpx2.create_ssl_context)
    return _kept["all"]


class _SessionEnded(Exception):
    """The server knows nothing of this session any more, and has not looked at what was asked."""

    def __init__(self, session: str) -> None:
        super().__init__("it ended the session")
        self.session = session


class HttpLink(Link):
    """Streamable HTTP: one POST per message, one session or none.

    What goes wrong with one request is told to whoever made it; the link ends where nobody's requests can go well.
    """

    def __init__(
        self, name: str, url: str, client: httpx2.AsyncClient, *, listener: Listener, withheld: Withheld = NOTHING
    ) -> None:
        super().__init__(name, listener=listener, withheld=withheld)
        self._url = url
        self._client = client
        self._session: str | None = None
        self._version: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[Waiter, asyncio.Task[None]] = {}
        self._listening = False
        self._hearing: asyncio.Task[None] | None = None
        self._reopening = asyncio.Lock()
        self._let_in = False
        """Whether it has answered a request: then its credentials are good, and a refusal is about what was asked."""

    def send(self, data: bytes, waiter: Waiter | None = None) -> None:
        """Posts one message."""
        task = asyncio.get_running_loop().create_task(self._post(data.rstrip(), waiter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if waiter is not None:
            self._posts[waiter] = task
            task.add_done_callback(lambda _: self._posts.pop(waiter, None))

    def agree(self, version: str) -> None:
        """Names the revision in every further request."""
        self._version = version

    def abandon(self, identifier: Identifier, waiter: Waiter) -> None:
        """Closing the stream tells a modern server; an old one is told in words besides."""
        if not waiter.headers:
            super().abandon(identifier, waiter)
        task = self._posts.get(waiter)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Ends the session and every stream."""
        self.fail(self.reason or "it was stopped")
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            with suppress(httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(2):
                    await self._client.delete(self._url, headers=self._headers())
        await self._client.aclose()

    def _headers(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return {**headers, **(extra or {})}

    async def _post(self, data: bytes, waiter: Waiter | None) -> None:
        try:
            try:
                await self._send(data, waiter)
            except _SessionEnded as ended:
                await self._reopen(ended.session)
                await self._send(data, waiter)
        except httpx2.HTTPError as error:
            if waiter is not None and waiter.listens:
                self._unheard(error)
            else:
                self._lost(error)
        except (_SessionEnded, SourceUnavailable) as error:
            self.fail(str(error))
        except SourceProtocolError as error:
            self._disappoint(waiter, RpcError(INTERNAL_ERROR, f"The answer of the server is not taken: {error}."))
        except RpcError as error:
            self._disappoint(waiter, error)
        except Exception:
            # Whatever it was, nobody is left waiting for it.
            self.log_failure("a request failed")
        self._disappoint(waiter, RpcError(INTERNAL_ERROR, "The server ended the stream without an answer."))

    def _disappoint(self, waiter: Waiter | None, error: RpcError) -> None:
        if waiter is not None and not waiter.future.done():
            waiter.future.set_exception(error)

    async def _send(self, data: bytes, waiter: Waiter | None) -> None:
        headers = self._headers(waiter.headers if waiter else None)
        async with self._client.stream("POST", self._url, content=data, headers=headers) as response:
            if waiter is None:
                await self._read_acknowledgement(response)
            else:
                await self._read_answer(response, waiter)

    async def _reopen(self, ended: str) -> None:
        """Opens a session in place of one that has ended, once for all who ask. Raises `SourceProtocolError`."""
        async with self._reopening:
            if self._session != ended:
                return
            if self._version is None:
                # It speaks without a handshake: it gives another session by itself.
                self._session = None
                return
            fresh = HttpLink(self.name, self._url, self._client, listener=self._listener, withheld=self.withheld)
            fresh._listening = True  # the stream of its own messages is this link's
            try:
                await shake_hands(fresh, era="legacy")
                await asyncio.gather(*fresh._tasks)
            except SourceError as error:
                self.fail(f"it ended the session, and opens no other: {error}")
                raise SourceProtocolError(self.reason) from None
            finally:
                for task in tuple(fresh._tasks):
                    task.cancel()
            self._session, self._version = fresh._session, fresh._version
        logger.info("%s: it ended the session; another one is open", self.name)
        self._hear()
        self._tell_missed()
        self.renewed()

    async def _read_acknowledgement(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            with suppress(_SessionEnded):  # what it was about has ended with the session
                self._refused(response, b"")

    async def _read_answer(self, response: httpx2.Response, waiter: Waiter) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if response.status_code >= 300:
            self._refused(response, await self._read_body(response) if kind == "application/json" else b"")
        if kind == "text/event-stream":
            await self._read_events(response, waiter)
            return
        body = await self._read_body(response)
        self._enter(response)
        if not self.receive(one_line(body), waiter):
            raise SourceProtocolError("it answered with something that is no JSON-RPC")

    def _enter(self, response: httpx2.Response) -> None:
        """Takes note of what an answer says besides: that we are let in, and under which name."""
        self._let_in = True
        session = response.headers.get("mcp-session-id")
        if session is not None and self._session is None:
            self._session = session

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Sends a notification; after the handshake an old server is also listened to."""
        super().notify(method, params)
        if method == "notifications/initialized" and not self._listening:
            self._listening = True
            self._hear()

    def _hear(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
        task = self._hearing = asyncio.get_running_loop().create_task(self._listen())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tell_missed(self) -> None:
        """What it said while nobody listened is not said again."""
        for method in _CHANGES:
            self._listener(method, b"{}")

    async def _listen(self) -> None:
        """Keeps the stream of an old server's own messages open, where it has one; one that broke is opened again."""
        pause_s, was_open, broke = RESTART_MIN_S, False, False
        while not self.closed.is_set():
            began = self._loop.time()
            try:
                headers = self._headers({"accept": "text/event-stream"})
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    if response.status_code == 200:
                        if broke:
                            self._tell_missed()
                        was_open, broke = True, False
                        await self._pump(response, None)
                    elif was_open and response.status_code >= 500:
                        broke = True
                    else:
                        return
            except SourceError:
                return
            except httpx2.HTTPError as error:
                broke = True
                self._unheard(error)
            if not broke or self._loop.time() - began > pause_s:
                pause_s = RESTART_MIN_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_MAX_S)

    def _unheard(self, error: httpx2.HTTPError) -> None:
        """A stream of the server's own messages broke, which is no matter of the calls under way."""
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and not self.is_busy:
            self._lost(error)

    async def _read_events(self, response: httpx2.Response, waiter: Waiter) -> None:
        self._enter(response)
        last, retry_ms = await self._pump(response, waiter)
        for _ in range(_RECONNECTS):
            if waiter.future.done() or last is None or self.closed.is_set():
                return
            await asyncio.sleep((retry_ms if retry_ms is not None else 1_000) / 1_000)
            headers = self._headers({"accept": "text/event-stream", "last-event-id": last})
            async with self._client.stream("GET", self._url, headers=headers) as again:
                if again.status_code != 200:
                    return
                found, retry_ms = await self._pump(again, waiter)
                last = found or last

    async def _pump(self, response: httpx2.Response, waiter: Waiter | None) -> tuple[str | None, int | None]:
        """Takes every event of a stream; the last id and how long to wait before coming back."""
        require_plain(response)
        reader = EventReader(UPSTREAM_BODY_MAX_BYTES)
        last: str | None = None
        async for chunk in response.aiter_raw():
            for event in reader.feed(chunk):
                last = event.id or last
                if event.name == "message" and event.data:
                    self.receive(one_line(event.data), waiter)
            if waiter is not None and waiter.future.done():
                break
        return last, reader.retry_ms

    async def _read_body(self, response: httpx2.Response) -> bytes:
        require_plain(response)
        parts: list[bytes] = []
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > UPSTREAM_BODY_MAX_BYTES:
                raise SourceProtocolError(f"it sent a response of more than {UPSTREAM_BODY_MAX_BYTES} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def _refused(self, response: httpx2.Response, body: bytes) -> None:
        """What a bad status means: the end of the session, a matter of rights, or an error of this one request."""
        status, error = response.status_code, _error_in(body)
        if status == 401 or (status == 403 and not self._let_in):
            self.fail(f"it wants other credentials (HTTP {status})")
            raise SourceProtocolError(self.reason)
        session = response.request.headers.get("mcp-session-id")
        if status == 404 and session is not None and (error is None or error.code != METHOD_NOT_FOUND):
            raise _SessionEnded(session)
        if 300 <= status < 400:
            self.fail(f"it redirects (HTTP {status}), which is not followed")
            raise SourceProtocolError(self.reason)
        raise error or RpcError(INTERNAL_ERROR, f"The server answered with HTTP {status}.")

    def _lost(self, error: httpx2.HTTPError) -> None:
        self.fail(f"it cannot be reached: {type(error).__name__}: {self.withheld.cut(str(error), 200)}")


def _error_in(body: bytes) -> RpcError | None:
    """The error that a body holds, if it holds one."""
    if not body:
        return None
    try:
        error = read_envelope(body).error
    except RpcError:
        return None
    return None if isinstance(error, UnsetType) else read_error(error)


def require_plain(response: httpx2.Response) -> None:
    """Raises `SourceProtocolError` for a compressed body, which nobody asked for (E4)."""
    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
        raise SourceProtocolError("it sent a compressed response, which was not asked for")


class SseLink(Link):
    """The transport of 2024: one event stream down, an endpoint for messages up."""

    def __init__(
        self, name: str, url: str, client: httpx2.AsyncClient, *, listener: Listener, withheld: Withheld = NOTHING
    ) -> None:
        super().__init__(name, listener=listener, withheld=withheld)
        self._url = url
        self._client = client
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Waits for the endpoint. Raises `SourceUnavailable`."""
        self._run(self._listen())
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._endpoint
        except TimeoutError:
            await self.close()
            raise SourceUnavailable("it named no endpoint") from None
        except SourceUnavailable:
            await self.close()
            raise

    def send(self, data: bytes, waiter: Waiter | None = None) -> None:
        """Posts one message to the endpoint."""
        self._run(self._post(data.rstrip(), waiter))

    async def close(self) -> None:
        """Ends the stream."""
        self.fail(self.reason or "it was stopped")
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _post(self, data: bytes, waiter: Waiter | None) -> None:
        try:
            response = await self._client.post(
                await self._endpoint, content=data, headers={"content-type": "application/json"}
            )
            status = response.status_code
            if status < 400 or status in (401, 404) or waiter is None:
                if status >= 300:
                    self.fail(f"it refused a message (HTTP {status})")
            elif not waiter.future.done():
                waiter.future.set_exception(RpcError(INTERNAL_ERROR, f"The server answered with HTTP {status}."))
        except httpx2.HTTPError as error:
            self._end(f"it cannot be reached: {type(error).__name__}")

    async def _listen(self) -> None:
        try:
            headers = {"accept": "text/event-stream"}
            async with self._client.stream("GET", self._url, headers=headers) as response:
                if response.status_code != 200:
                    self._end(f"it answered with HTTP {response.status_code}")
                    return
                require_plain(response)
                reader = EventReader(UPSTREAM_BODY_MAX_BYTES)
                async for chunk in response.aiter_raw():
                    for event in reader.feed(chunk):
                        self._take(event.name, event.data)
            self._end("it closed the stream")
        except httpx2.HTTPError as error:
            self._end(f"it cannot be reached: {type(error).__name__}: {self.withheld.cut(str(error), 200)}")
        except SourceProtocolError as error:
            self._end(str(error))

    def _take(self, name: str, data: bytes) -> None:
        if name == "endpoint" and not self._endpoint.done():
            target = urljoin(self._url, data.decode(errors="replace").strip())
            here, there = urlsplit(self._url), urlsplit(target)
            if (here.scheme, here.netloc) != (there.scheme, there.netloc):
                self._end("it named an endpoint at another address")
            else:
                self._endpoint.set_result(target)
        elif name == "message":
            self.receive(one_line(data))

    def _end(self, reason: str) -> None:
        self.fail(reason)
        if not self._endpoint.done():
            self._endpoint.set_exception(SourceUnavailable(self.reason))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
