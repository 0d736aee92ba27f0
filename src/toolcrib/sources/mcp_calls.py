"""Calls to an MCP server: one request each, and what the server answers is handed on as the bytes that it sent.

A call is waited for, or sent with a slot for its answer. Where an old client has to be asked what a modern server wants
to know, it is asked here, and the request goes out again with its answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

import orjson
from msgspec import Struct
from msgspec.structs import replace

from toolcrib.definitions import Call, Json, JsonObject, Result, Tool
from toolcrib.errors import SourceRefused, ToolFailed
from toolcrib.execution.dispatch import CallContext, CallSlot, Exchange, Sender
from toolcrib.limits import INPUT_ROUNDS
from toolcrib.sources.handshake import Peer, modern_headers
from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.link import NO_HEADERS, Link, SentCall, call_head, read_head, read_json
from toolcrib.sources.mcp_headers import has_mirrors, param_headers
from toolcrib.sources.supervisor import Lane


class Prepared(Struct, frozen=True):
    """What calls of one tool have in common."""

    head: bytes
    """All but the id and the arguments."""
    mirrors: bool
    """Whether arguments travel in headers too."""


class Request(Struct, frozen=True):
    """What a caller wants of the server, before it is dressed for the era in which the server speaks."""

    method: str
    params: JsonObject
    exchange: Exchange | None
    name: str | None = None
    """The tool, prompt or resource that it is about: a modern server reads it in a header."""
    headers: Mapping[str, str] = NO_HEADERS
    """Headers that mirror arguments."""


class McpCalls(Sender):
    """The part of an MCP server that is called."""

    def __init__(self, server: str, *, timeout_s: float | None, clock: Callable[[], float]) -> None:
        self.server = server
        self.requests = 0
        """Calls sent to the server."""
        self._timeout_s = timeout_s
        self._clock = clock
        self._used_at = clock()
        self._wanted = asyncio.Event()
        """Set by every request: one that was stopped on purpose is started again."""

    def _lane_for(self, exchange: Exchange | None) -> Lane:
        """The lane that a caller's request takes."""
        raise NotImplementedError

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs a tool: one request. Raises `SourceUnavailable`, `SourceRefused`, `ToolFailed`."""
        raw = await self._relay(_request_of(call, context.exchange))
        head = read_head(raw)
        if head.resultType == "input_required" and context.exchange is None:
            raise ToolFailed(f"`{call.tool.name}` asks for input, which nobody can give here.")
        return Result(dialect="mcp", encoded=raw, is_error=head.isError)

    def prepare(self, tool: Tool) -> Prepared:
        """What calls of a tool have in common."""
        return Prepared(call_head(tool.leaf), has_mirrors(tool.schema))

    def send(self, prepared: Prepared, encoded: bytes | None, exchange: Exchange, slot: CallSlot) -> SentCall | None:
        """Sends a call; nothing if the server has to be started first, or callers wait. Raises `SourceUnavailable`."""
        lane = self._lane_for(exchange)
        link, peer = lane.link, lane.peer
        if link is None or peer is None or not link.is_open or link.turns.needed or self._timeout_s is not None:
            return None
        self._used_at = self._clock()
        if encoded is not None and exchange.is_bare and not prepared.mirrors and peer.era == "legacy":
            self.requests += 1
            sent = SentCall(future=slot, exchange=exchange, headers=NO_HEADERS, link=link, peer=peer)
            link.begin_call(prepared.head, encoded, sent)
            return sent
        request = _request_of(slot.call, exchange)
        params, headers = self._dressed(peer, request)
        sent = SentCall(future=slot, exchange=exchange, headers=headers or NO_HEADERS, link=link, peer=peer)
        sent.identifier = link.begin(request.method, params, sent)
        return sent

    def receive(self, sent: SentCall, answer: bytes) -> bool | Coroutine[Any, Any, Result]:
        """Whether the call failed, or the way on where its caller has to be asked for input first."""
        self._used_at = self._clock()
        if sent.failed is not None:
            return sent.failed
        head = read_head(answer)
        if head.resultType == "input_required":
            exchange = sent.exchange
            if exchange is not None and exchange.era != sent.peer.era:
                return self._ask_and_call(sent, exchange, answer)
        return head.isError

    async def _ask_and_call(self, sent: SentCall, exchange: Exchange, answer: bytes) -> Result:
        try:
            raw = await self._rounds(sent.link, sent.peer, _request_of(sent.call, exchange), answer)
        except RpcError as error:
            raise self.explain(error) from None
        finally:
            self._used_at = self._clock()
        return Result(dialect="mcp", encoded=raw, is_error=read_head(raw).isError)

    def explain(self, error: Exception) -> Exception:
        """An error answer as what a source raises."""
        return SourceRefused(error.code, error.message, error.data) if isinstance(error, RpcError) else error

    async def relay(
        self, method: str, params: JsonObject, exchange: Exchange | None, *, name: str | None = None
    ) -> bytes:
        """The server's result of any request, as its bytes. Raises `SourceUnavailable`, `SourceRefused`."""
        return await self._relay(Request(method, params, exchange, name))

    async def _relay(self, request: Request) -> bytes:
        self._used_at = self._clock()
        self._wanted.set()
        lane = self._lane_for(request.exchange)
        link, peer = lane.current or await lane.require()
        timeout = self._timeout_s
        try:
            if timeout is None:
                raw = await self._send(link, peer, request)
                return await self._rounds(link, peer, request, raw) if _may_ask(raw, peer, request) else raw
            async with asyncio.timeout(timeout):
                return await self._rounds(link, peer, request)
        except RpcError as error:
            raise self.explain(error) from None
        except TimeoutError:
            raise ToolFailed(f"The server `{self.server}` did not answer within {timeout:g} s.") from None
        finally:
            self._used_at = self._clock()

    async def _rounds(self, link: Link, peer: Peer, request: Request, raw: bytes | None = None) -> bytes:
        """Sends the request, and again with its caller's answers where the caller cannot do that itself.

        `raw` is the answer to the first round, if that one was sent already.
        """
        for _ in range(INPUT_ROUNDS):
            if raw is None:
                raw = await self._send(link, peer, request)
            exchange = request.exchange
            if exchange is None or not _may_ask(raw, peer, request) or read_head(raw).resultType != "input_required":
                return raw
            request = replace(request, params=await _answer_input(request.params, raw, exchange))
            raw = None
        raise ToolFailed(f"The server `{self.server}` asked for input more than {INPUT_ROUNDS} times.")

    def _send(self, link: Link, peer: Peer, request: Request) -> Awaitable[bytes]:
        params, headers = self._dressed(peer, request)
        return link.request(request.method, params, exchange=request.exchange, headers=headers)

    def _dressed(self, peer: Peer, request: Request) -> tuple[JsonObject, dict[str, str] | None]:
        """Parameters and headers as this server expects them."""
        self.requests += 1
        params, exchange = request.params, request.exchange
        answers = exchange.answers if exchange is not None and peer.era == exchange.era else None
        sent = {**params, **answers} if answers else params
        modern = peer.era == "modern"
        headers = {**modern_headers(request.method, request.name), **request.headers} if modern else None
        return peer.dress(sent, exchange), headers


def _request_of(call: Call, exchange: Exchange | None) -> Request:
    """The request of a call."""
    tool, arguments = call.tool, call.arguments
    params: JsonObject = {"name": tool.leaf, "arguments": arguments}
    return Request("tools/call", params, exchange, tool.leaf, param_headers(tool.schema, arguments))


def _may_ask(raw: bytes, peer: Peer, request: Request) -> bool:
    """Whether a result may be a question that the caller, of another era, cannot answer by asking again."""
    exchange = request.exchange
    return exchange is not None and exchange.era != peer.era and b'"input_required"' in raw


async def _answer_input(params: JsonObject, raw: bytes, exchange: Exchange) -> JsonObject:
    """The parameters of the next try, after an old client was asked what a modern server wants to know."""
    answer = read_json(raw)
    requests = answer.get("inputRequests")
    responses: dict[str, Json] = {}
    asked_for: Mapping[str, Json] = requests if isinstance(requests, Mapping) else {}
    for key, request in asked_for.items():
        question = cast("JsonObject", request)
        method = str(question.get("method"))
        asked = cast("JsonObject", question.get("params") or {})
        responses[key] = read_json(await exchange.ask(method, orjson.dumps(asked)))
    again: JsonObject = {**params, "inputResponses": responses}
    state = answer.get("requestState")
    return {**again, "requestState": state} if state is not None else again
