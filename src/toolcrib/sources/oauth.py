"""Signing in to MCP servers with OAuth, through the official SDK.

The SDK finds the authorization server, registers, proves (PKCE) and renews. Around it stands what a gateway needs: a
request with a good token does not wait for another request; a token that the server refuses is renewed before a person
is asked; two gateways that share a file do not use up each other's renewal; and no address is followed that the server
may not name. One server's tokens are its own, and no client of the gateway ever sees them.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientMetadata

from toolcrib.errors import SourceUnavailable
from toolcrib.limits import SIGN_IN_BODY_MAX_BYTES, SIGN_IN_TRIES_MAX
from toolcrib.sources.addresses import Neighbourhood
from toolcrib.sources.oauth_browser import BrowserFlow
from toolcrib.sources.oauth_store import FileStorage, default_directory
from toolcrib.sources.patience import Patience

_WANTS_MORE = "insufficient_scope"
_PAST = 1.0
"""A time that is over, and not nothing: the SDK takes 0 for "never ends"."""


class SignIn(httpx2.Auth):
    """The sign-in of one server: the same for all connections to it."""

    def __init__(
        self, url: str, *, flow: BrowserFlow, storage: FileStorage, neighbourhood: Neighbourhood, patience: Patience
    ) -> None:
        self._url = url
        self._patience = patience
        self._storage = storage
        self._neighbourhood = neighbourhood
        self._stamp: tuple[int, int] | None = None
        # The SDK logs every refusal with a traceback; what went wrong is said once, by whoever looks after the server.
        logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)
        self._provider = OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata.model_validate(
                {
                    "client_name": "toolcrib",
                    "redirect_uris": [flow.redirect],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "response_types": ["code"],
                }
            ),
            storage=storage,
            redirect_handler=flow.ask,
            callback_handler=flow.wait,
        )

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the request with a token; renews it or has somebody sign in where the server wants that.

        A token that somebody else renewed meanwhile can have ended, too, before it is sent: then it is looked at again.
        Raises `SourceUnavailable` where there is no sign-in: then no request can go well.
        """
        await self._load()
        refused, wants_more = "", False
        for _ in range(SIGN_IN_TRIES_MAX):
            renewed = False
            if self._good_token() in (None, refused):
                # One gateway at a time: a renewal that two begin with the same token is refused to the second.
                async with self._storage.alone(self._patience):
                    await self._load()
                    if renewed := self._good_token() in (None, refused):
                        renewal, last = self._renewal(request, refused, wants_more=wants_more), None
                        async with aclosing(renewal):
                            outgoing = await anext(renewal, None)
                            while outgoing is not None:
                                last = outgoing
                                outgoing = await _send(renewal, (yield outgoing))
                        if last is request:
                            return
                        self._keep()
            token = self._good_token() or ""
            response = yield _with_token(request, token)
            wants_more = response.status_code == 403 and _WANTS_MORE in response.headers.get("www-authenticate", "")
            if renewed or (response.status_code != 401 and not wants_more):
                return
            refused = token
            await self._load()

    async def _renewal(
        self, request: httpx2.Request, refused: str, *, wants_more: bool
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """What the SDK sends for a better token; with the request itself last if it could not be had before."""
        context = self._provider.context
        # None are left after a renewal that failed; the SDK then takes those of the file, which were refused.
        if not wants_more and (context.current_tokens is None or (refused and context.can_refresh_token())):
            context.token_expiry_time = _PAST
        flow = self._provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while outgoing is not request or wants_more or self._good_token() in (None, refused):
                response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except OAuthFlowError as error:
            raise SourceUnavailable(f"its sign-in failed: {_one_line(error)}") from None
        finally:
            await flow.aclose()

    # What an HTTP client calls for every request and response

    async def look_at_request(self, request: httpx2.Request) -> None:
        """Refuses an address that the server may not name, and holds the connection to what was looked at (H1)."""
        if request.url == httpx2.URL(self._url):
            return
        address = await self._neighbourhood.require(str(request.url))
        if address is not None:
            request.extensions = {**request.extensions, "sni_hostname": request.url.host}
            request.url = request.url.copy_with(host=address)

    async def look_at_response(self, response: httpx2.Response) -> None:
        """Bounds what the SDK reads whole."""
        if response.request.url == httpx2.URL(self._url) and response.status_code != 401:
            return
        if response.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise SourceUnavailable("its sign-in sent a compressed response, which was not asked for")
        response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))

    def _good_token(self) -> str | None:
        context = self._provider.context
        tokens = context.current_tokens
        return tokens.access_token if tokens is not None and context.is_token_valid() else None

    def _keep(self) -> None:
        context = self._provider.context
        self._storage.keep_places(context.oauth_metadata, context.protected_resource_metadata)
        self._stamp = self._stat()

    async def _load(self) -> None:
        """Takes what the file holds, at the first request and whenever another gateway has renewed it."""
        stamp = self._stat()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        context = self._provider.context
        stored = self._storage.read()
        context.current_tokens = await self._storage.get_tokens()
        context.client_info = await self._storage.get_client_info()
        context.token_expiry_time = stored.expires
        service, resource = self._storage.places()
        context.oauth_metadata = service or context.oauth_metadata
        context.protected_resource_metadata = resource or context.protected_resource_metadata

    def _stat(self) -> tuple[int, int] | None:
        try:
            facts = self._storage.path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_ino


class _Bounded(httpx2.AsyncByteStream):
    """A body with an end."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > SIGN_IN_BODY_MAX_BYTES:
                raise SourceUnavailable(f"its sign-in sent more than {SIGN_IN_BODY_MAX_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _send(
    flow: AsyncGenerator[httpx2.Request, httpx2.Response], response: httpx2.Response
) -> httpx2.Request | None:
    """The next request of a flow, or None at its end."""
    try:
        return await flow.asend(response)
    except StopAsyncIteration:
        return None


def _with_token(request: httpx2.Request, token: str) -> httpx2.Request:
    request.headers["authorization"] = f"Bearer {token}"
    return request


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def open_oauth(
    name: str,
    url: str,
    patience: Patience,
    *,
    trust: bool = False,
) -> SignIn:
    """The sign-in of one server, for its HTTP clients."""
    return SignIn(
        url,
        flow=BrowserFlow(name, patience),
        storage=FileStorage(url, default_directory()),
        neighbourhood=Neighbourhood(server=url, trust=trust),
        patience=patience,
    )
