"""OpenAI's SDK as the client: chat completions for everything compatible, Responses for OpenAI itself.

Weak endpoints leave things out: a call without an identifier gets one, because an answer must name its call; a call
without a name is kept and answered with what to send.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import httpx2
import openai
from openai import AsyncOpenAI

from toolcrib.agent.models import (
    Ending,
    Reply,
    TakeText,
    Usage,
    broken_off,
    notice_text,
    told_window,
    unreachable,
)
from toolcrib.agent.pieces import Pieces, whole, whole_json
from toolcrib.definitions import DialectName, Json, JsonObject
from toolcrib.errors import ModelError, ModelRefused
from toolcrib.settings import AgentSettings

_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses by which endpoints say that they do not take such a request."""

_ENDINGS: Mapping[str, Ending] = {
    "length": "cut",
    "max_output_tokens": "cut",
    "content_filter": "declined",
}
"""Reasons to stop that are no end of a whole reply, in both wire formats."""


class _Client:
    """What both wire formats of OpenAI share."""

    def __init__(self, settings: AgentSettings, *, key: str, options: JsonObject | None = None) -> None:
        self.name = str(settings.model)
        self.options = options or {}
        """More fields for every request, such as `temperature`."""
        self._client = AsyncOpenAI(api_key=key, base_url=settings.endpoint, timeout=settings.timeout_s)
        self.endpoint = str(self._client.base_url)

    async def window(self) -> int | None:
        """What the endpoint's list of models says."""
        try:
            async for entry in self._client.models.list():
                if entry.id == self.name:
                    return told_window(entry)
        except openai.OpenAIError:
            return None
        return None

    def say(self, text: str) -> JsonObject:
        """A message of the user."""
        return {"role": "user", "content": text}

    def answer(self, messages: Sequence[JsonObject], notice: str | None) -> list[JsonObject]:
        """What tools answered; the notice as a message behind it, which every chat template takes."""
        return [*messages, self.say(notice_text(notice))] if notice else list(messages)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


class ChatModel(_Client):
    """Chat completions."""

    dialect: DialectName = "openai_chat"

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        """Asks once, as a stream."""
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "system", "content": system}, *items],
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.options,
        }
        if tools:
            request["tools"] = list(tools)
        gathered = _Gathered(len(items), self.name)
        pieces = Pieces(take)
        create: Any = self._client.chat.completions.create
        try:
            async with await create(**request) as stream:
                async for chunk in stream:
                    gathered.take(chunk, pieces)
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise _model_error(error) from error
        pieces.end()
        return gathered.reply()


class _Gathered:
    """A reply of chat completions, put together from its pieces."""

    def __init__(self, place: int, name: str = "the model") -> None:
        self._place = place
        self._name = name
        self._text: list[str] = []
        self._calls: dict[tuple[int, int], dict[str, str]] = {}
        """By the number that the endpoint gave, and how many it has given that number to before."""
        self._latest: dict[int, int] = {}
        self._usage = Usage()
        self._finish: str | None = None
        self._declined = False

    def take(self, chunk: Any, take: TakeText) -> None:  # noqa: ANN401 - the SDK's own type
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            self._usage = Usage(
                input_tokens=chunk.usage.prompt_tokens,
                output_tokens=chunk.usage.completion_tokens,
                cached_tokens=(details.cached_tokens or 0) if details else 0,
            )
        for choice in chunk.choices[:1]:
            self._finish = choice.finish_reason or self._finish
            refusal: str | None = getattr(choice.delta, "refusal", None)
            self._declined = self._declined or bool(refusal)
            for text in filter(None, (choice.delta.content, refusal)):
                self._text.append(text)
                take(text)
            for part in choice.delta.tool_calls or ():
                index = part.index if part.index is not None else len(self._calls)
                call = self._call(index, part.id or "")
                call["id"] = part.id or call["id"]
                if part.function is not None:
                    # llama.cpp's Python server sends the whole name again with every piece.
                    if part.function.name and part.function.name != call["name"]:
                        call["name"] += part.function.name
                    call["arguments"] += part.function.arguments or ""

    def _call(self, index: int, identifier: str) -> dict[str, str]:
        """The call that a piece belongs to: some endpoints number every call 0 but give each an identifier."""
        turn = self._latest.setdefault(index, 0)
        known = self._calls.get((index, turn))
        if known is not None and identifier and known["id"] and identifier != known["id"]:
            numbered = {nth: call["id"] for (number, nth), call in self._calls.items() if number == index}
            same = (nth for nth, given in numbered.items() if given == identifier)
            turn = self._latest[index] = next(same, len(numbered))
        return self._calls.setdefault((index, turn), {"id": "", "name": "", "arguments": ""})

    def reply(self) -> Reply:
        if self._finish is None:
            raise broken_off(self._name)
        text = whole("".join(self._text))
        calls: list[JsonObject] = [
            {
                "id": call["id"] or f"call_{self._place}_{index}",
                "type": "function",
                "function": {"name": call["name"] or "unnamed", "arguments": call["arguments"]},
            }
            for index, (_, call) in enumerate(sorted(self._calls.items()))
        ]
        calls = [whole_json(call) for call in calls]
        # Never null and never left out: OpenAI takes both, templates of llama.cpp take neither.
        message: JsonObject = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = cast("Json", calls)
        ending = "declined" if self._declined else _ENDINGS.get(self._finish, "whole")
        return Reply(text=text, items=(message,), calls=tuple(calls), usage=self._usage, ending=ending)


class ResponsesModel(_Client):
    """Responses, without state at the endpoint: the conversation is ours."""

    dialect: DialectName = "openai_responses"

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        """Asks once, as a stream."""
        request: dict[str, Any] = {
            "model": self.name,
            "instructions": system,
            "input": list(items),
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            **self.options,
        }
        if tools:
            request["tools"] = list(tools)
        response: Any = None
        pieces = Pieces(take)
        create: Any = self._client.responses.create
        try:
            async with await create(**request) as stream:
                async for event in stream:
                    if event.type in {"response.output_text.delta", "response.refusal.delta"}:
                        pieces(event.delta)
                    elif event.type in {"response.completed", "response.incomplete", "response.failed"}:
                        response = event.response
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise _model_error(error) from error
        pieces.end()
        if response is None or response.status == "failed":
            reason = response.error.message if response is not None and response.error else "the stream ended early"
            raise ModelError(f"{self.name} gave no reply: {reason}.")
        return _responses_reply(response)


def _responses_reply(response: Any) -> Reply:  # noqa: ANN401 - the SDK's own type
    items = [
        whole_json(cast("JsonObject", item.model_dump(mode="json", exclude_unset=True))) for item in response.output
    ]
    usage = response.usage
    said = [part for item in response.output if item.type == "message" for part in item.content]
    refusal = "".join(part.refusal for part in said if part.type == "refusal")
    ending: Ending = "whole"
    if response.status == "incomplete":
        ending = _ENDINGS.get(str(response.incomplete_details and response.incomplete_details.reason), "cut")
    return Reply(
        text=whole(response.output_text + refusal),
        items=tuple(items),
        calls=tuple(item for item in items if item["type"] in {"function_call", "tool_search_call"}),
        usage=Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.input_tokens_details.cached_tokens,
        )
        if usage
        else Usage(),
        ending="declined" if refusal else ending,
    )


def _model_error(error: Exception) -> ModelError:
    """Our error for one of the SDK's."""
    if isinstance(error, openai.APIStatusError):
        text = f"The endpoint answered {error.status_code}: {_told(error)}"
        return ModelRefused(text) if error.status_code in _REFUSALS else ModelError(text)
    return ModelError(unreachable(error))


def _told(error: openai.APIStatusError) -> str:
    body: Any = error.body
    text = body.get("message") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return " ".join(str(text or error.message).split())[:500]  # pyright: ignore[reportUnknownArgumentType]
