"""Questions of old servers, for clients that cannot be asked while they wait.

An old server asks in the middle of a call; a stateless client gets questions as the result of a call, and answers by
calling again. So the call to the server is parked: the client gets the question with a state, and when it comes back
with that state and the answer, the very same call goes on. The server sees one call, and every stage ran once. A state
counts for one principal, one request and one round; whoever does not come back has the call ended (G8), sooner if its
own further calls stand in line for the place.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import orjson

from toolcrib.definitions import Json, JsonObject, canonical_json
from toolcrib.gateway.calls import CALL
from toolcrib.gateway.relay import Client, ClientExchange
from toolcrib.limits import CONCURRENCY_PER_SESSION, PARKED_CALLS, PARKED_S, PARKED_SHARE
from toolcrib.sources.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError

ANSWERABLE = frozenset({CALL, "prompts/get", "resources/read"})
"""Requests that may be answered with a question."""
_STATE = "toolcrib-call."


@dataclass(kw_only=True, eq=False)
class _Question:
    method: str
    params: JsonObject
    answer: "asyncio.Future[bytes]"


@dataclass(kw_only=True, eq=False)
class ParkedCall:
    """One call that waits for its client, or runs."""

    exchange: ClientExchange
    binding: bytes
    principal: str
    takes_place: bool
    """Whether it takes a place as long as it runs: only tools do."""
    expires: float = 0.0
    task: "asyncio.Task[bytes] | None" = None
    questions: dict[str, _Question] = field(default_factory=dict[str, _Question])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def ask(self, method: str, params: bytes) -> bytes:
        """Waits for the client to come back with an answer. Raises `RpcError` once the call is over."""
        if self.task is not None and self.task.done():
            raise _over()
        question = _Question(
            method=method,
            params=cast("JsonObject", orjson.loads(params)),
            answer=asyncio.get_running_loop().create_future(),
        )
        key = f"question-{next(self.numbers)}"
        self.questions[key] = question
        self.news.set()
        try:
            return await question.answer
        finally:
            self.questions.pop(key, None)

    def take_answers(self, answers: JsonObject) -> None:
        """Hands the client's answers to those who asked."""
        given = answers.get("inputResponses")
        for key, answer in given.items() if isinstance(given, Mapping) else ():
            question = self.questions.get(key)
            if question is not None and not question.answer.done() and isinstance(answer, Mapping):
                question.answer.set_result(orjson.dumps(answer))

    def ended(self, task: "asyncio.Task[bytes]") -> None:
        """The call is over: nobody comes back with answers to what was asked during it."""
        if not task.cancelled():
            task.exception()  # one that is never asked for again must not be complained about
        for question in tuple(self.questions.values()):
            if not question.answer.done():
                question.answer.set_exception(_over())

    @property
    def holds_place(self) -> bool:
        """Whether it takes a place that others may want."""
        return self.takes_place and self.task is not None and not self.task.done()

    @property
    def waiting(self) -> dict[str, _Question]:
        """Questions without an answer."""
        return {key: question for key, question in self.questions.items() if not question.answer.done()}


class Parking:
    """The calls that wait for their clients."""

    def __init__(self, *, places: int = CONCURRENCY_PER_SESSION, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places = places
        self._share = int(places * PARKED_SHARE)
        """Calls of one principal that keep their places while its others stand in line."""
        self._calls: dict[str, ParkedCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    @staticmethod
    def concerns(client: Client, method: str, exchange: ClientExchange) -> bool:
        """Whether the client may get a question as an answer to this request, or answers one."""
        if client.era != "modern" or method not in ANSWERABLE:
            return False
        state = exchange.answers.get("requestState")
        return exchange.can_be_asked or (isinstance(state, str) and state.startswith(_STATE))

    async def run(
        self,
        client: Client,
        method: str,
        params: JsonObject,
        exchange: ClientExchange,
        begin: Callable[[], Coroutine[object, object, bytes]],
    ) -> bytes:
        """The result of the request, or a question. Raises what the work raises, and `RpcError` for a wrong state."""
        self._sweep()
        binding = _binding(client, method, params)
        state = exchange.answers.get("requestState")
        if isinstance(state, str) and state.startswith(_STATE):
            call = self._calls.get(state)
            if call is None or call.binding != binding:
                raise RpcError(
                    INVALID_PARAMS, "Nobody waits for this answer any more: send the request again without it."
                )
            del self._calls[state]
            call.exchange.go_on_as(exchange)
            call.take_answers(exchange.answers)
        else:
            call = ParkedCall(
                exchange=exchange, binding=binding, principal=client.principal.name, takes_place=method == CALL
            )
            exchange.desk = call
            call.task = asyncio.get_running_loop().create_task(begin())
            call.task.add_done_callback(call.ended)
        return await self._wait(call)

    async def _wait(self, call: ParkedCall) -> bytes:
        task = cast("asyncio.Task[bytes]", call.task)
        news = asyncio.get_running_loop().create_task(call.news.wait())
        try:
            # Answers that were just given let the server go on first.
            while not task.done() and not call.waiting:
                call.news.clear()
                if news.done():
                    news = asyncio.get_running_loop().create_task(call.news.wait())
                await asyncio.wait((task, news), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        finally:
            news.cancel()
        return task.result() if task.done() else self._park(call)

    def _park(self, call: ParkedCall) -> bytes:
        if len(self._calls) >= PARKED_CALLS:
            cast("asyncio.Task[bytes]", call.task).cancel()
            raise RpcError(INTERNAL_ERROR, "Too many questions wait for an answer; try again later.")
        placeless = self._parked(call.principal, with_place=False)
        if len(placeless) + (not call.holds_place) > self._places:
            self._end(placeless[0])
        state = _STATE + secrets.token_urlsafe(24)
        call.expires = self._clock() + PARKED_S
        self._calls[state] = call
        if call.exchange.client.session.places.is_wanted:
            self.make_room(call.principal)
        if state not in self._calls:
            raise RpcError(INTERNAL_ERROR, "Other calls stand in line for the place of this one; try again later.")
        requests: JsonObject = {
            key: {"method": question.method, "params": question.params} for key, question in call.waiting.items()
        }
        return orjson.dumps({"resultType": "input_required", "inputRequests": requests, "requestState": state})

    def make_room(self, principal: str) -> None:
        """Ends the call that somebody left waiting the longest, because a further one stands in line for a place."""
        parked = self._parked(principal, with_place=True)
        if len(parked) > self._share:
            self._end(parked[0])

    def _parked(self, principal: str, *, with_place: bool) -> list[str]:
        """The states of somebody's calls that hold a place, or hold none; the oldest first."""
        return [
            state
            for state, call in self._calls.items()
            if call.principal == principal and call.holds_place is with_place
        ]

    def _end(self, state: str) -> None:
        cast("asyncio.Task[bytes]", self._calls.pop(state).task).cancel()

    def _sweep(self) -> None:
        now = self._clock()
        for state in [state for state, call in self._calls.items() if call.expires < now]:
            self._end(state)


def _over() -> RpcError:
    return RpcError(INTERNAL_ERROR, "The call is over, and its client has not answered.")


def _binding(client: Client, method: str, params: JsonObject) -> bytes:
    asked: list[Json] = [client.principal.name, method, *(params.get(key) for key in ("name", "uri", "arguments"))]
    return canonical_json(asked)
