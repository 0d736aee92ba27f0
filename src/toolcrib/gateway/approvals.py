"""Approvals through the gateway: the person behind the client is asked where the client can ask (X22).

An old client is asked while the call waits. A modern one gets the question as the call's result, with a seal that
binds the answer to this principal, this tool, these arguments and a time; without a valid seal no answer counts. A
client that cannot ask gets a refusal with the command that agrees to this one call.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping

import orjson

from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ApprovalDenied, ApprovalRequired, CallError, ConfigError
from toolcrib.execution.approval import ApprovalRequest
from toolcrib.gateway.asking import show_arguments
from toolcrib.gateway.desk import ApprovalDesk, show_time
from toolcrib.gateway.relay import ClientExchange
from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.link import read_json

QUESTION = "toolcrib-approval"


class InputNeeded(CallError):
    """The call goes on when its caller has answered a question of ours."""

    code = "input_needed"

    def __init__(self, question: JsonObject, state: str) -> None:
        super().__init__("This call needs somebody's approval.")
        self.question = question
        self.state = state

    def result(self) -> JsonObject:
        """The result that asks a modern client."""
        request: JsonObject = {"method": "elicitation/create", "params": self.question}
        return {"resultType": "input_required", "inputRequests": {QUESTION: request}, "requestState": self.state}


class ClientApprover:
    """Asks whoever sits behind the client that called; a question stays open as long as one at the desk."""

    def __init__(self, *, desk: ApprovalDesk, clock: Callable[[], float] = time.time) -> None:
        self._desk = desk
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._used: dict[str, int] = {}
        """Seals that have been answered, until they expire: one answer counts once."""

    async def __call__(self, request: ApprovalRequest) -> bool:
        """Whether they agree. Raises `CallError`."""
        exchange = request.exchange
        if not isinstance(exchange, ClientExchange) or "form" not in exchange.elicits:
            return self._ask_at_the_desk(request)
        question = _question(request)
        if exchange.era == "legacy":
            try:
                return _agrees(read_json(await exchange.ask("elicitation/create", orjson.dumps(question))))
            except RpcError as error:
                raise ApprovalDenied("The approval could not be asked for.", detail=error.message) from None
        return self._read_answer(request, exchange, question)

    def _ask_at_the_desk(self, request: ApprovalRequest) -> bool:
        """Whether somebody has agreed at the command line. Raises `ApprovalRequired` with how to."""
        if self._desk.take(request.binding):
            return True
        name = request.call.tool.name
        why = f"rule {request.rule!r} of {request.where} asks; the client has no elicitation"
        try:
            number = self._desk.ask(request).id
        except ConfigError as error:
            raise ApprovalRequired(
                f"`{name}` needs approval, and this client cannot ask for it. The operator can allow it in the "
                f"configuration, under `{request.where}.rules`: `{name}: allow`.",
                detail=f"{why}; {error}",
            ) from None
        browser = f"or to allow it at {self._desk.console}; " if self._desk.console else ""
        raise ApprovalRequired(
            f"`{name}` needs approval, and this client cannot ask for it. Ask the user to run "
            f"`toolcrib approvals grant {number}` within {show_time(self._desk.ttl_s)}, where the gateway runs; "
            f"{browser}then make the same call again.",
            detail=why,
        )

    def _read_answer(self, request: ApprovalRequest, exchange: ClientExchange, question: JsonObject) -> bool:
        state = exchange.answers.get("requestState")
        responses = exchange.answers.get("inputResponses")
        answer = responses.get(QUESTION) if isinstance(responses, Mapping) else None
        if not isinstance(state, str) or not self._is_sealed(state, request.binding):
            raise InputNeeded(question, self._seal(request.binding))
        if not isinstance(answer, Mapping):
            raise InputNeeded(question, state)
        self._use_up(state)
        exchange.take_answers({})
        return _agrees(dict(answer))

    def _seal(self, binding: str) -> str:
        expires = int(self._clock() + self._desk.ttl_s)
        return f"toolcrib.{expires}.{self._mac(binding, expires)}"

    def _is_sealed(self, state: str, binding: str) -> bool:
        head, _, rest = state.partition(".")
        expires, _, mac = rest.partition(".")
        if (
            state in self._used
            or head != "toolcrib"
            or not expires.isdigit()
            or len(expires) > 12
            or int(expires) < self._clock()
        ):
            return False
        return hmac.compare_digest(mac, self._mac(binding, int(expires)))

    def _use_up(self, state: str) -> None:
        now = self._clock()
        self._used = {seal: expires for seal, expires in self._used.items() if expires >= now}
        self._used[state] = int(state.split(".")[1])

    def _mac(self, binding: str, expires: int) -> str:
        return hmac.new(self._key, f"{binding}.{expires}".encode(), hashlib.sha256).hexdigest()


def _question(request: ApprovalRequest) -> JsonObject:
    """The question, in the words of an elicitation."""
    call = request.call
    schema: JsonObject = {
        "type": "object",
        "properties": {"allow": {"type": "boolean", "title": "Allow this call once"}},
        "required": ["allow"],
    }
    message = f"Allow `{call.tool.name}` of {call.tool.toolset} with {show_arguments(request)}?"
    return {"mode": "form", "message": message, "requestedSchema": schema}


def _agrees(answer: JsonObject) -> bool:
    content: Json = answer.get("content")
    return answer.get("action") == "accept" and isinstance(content, Mapping) and content.get("allow") is True
