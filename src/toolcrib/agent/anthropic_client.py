"""Anthropic's SDK as the client.

The cache mark goes on the request as a whole: a mark on a deferred tool is refused, and a mark that moves from
message to message would change what was sent before.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anthropic
import httpx2
from anthropic import AsyncAnthropic

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

_ENDINGS: Mapping[str, Ending] = {
    "max_tokens": "cut",
    "model_context_window_exceeded": "cut",
    "refusal": "declined",
    "pause_turn": "paused",
}
"""Reasons to stop that are no end of a whole reply."""


class AnthropicModel:
    """Messages."""

    dialect: DialectName = "anthropic"

    def __init__(self, settings: AgentSettings, *, key: str) -> None:
        self.name = str(settings.model)
        self._settings = settings
        self._client = AsyncAnthropic(api_key=key, base_url=settings.endpoint, timeout=settings.timeout_s)
        self.endpoint = str(self._client.base_url)

    async def window(self) -> int | None:
        """What the endpoint says of the model."""
        try:
            return told_window(await self._client.models.retrieve(self.name))
        except anthropic.AnthropicError:
            return None

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def say(self, text: str) -> JsonObject:
        """A message of the user."""
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def answer(self, messages: Sequence[JsonObject], notice: str | None) -> list[JsonObject]:
        """All results in one message, as the API demands; the notice as its last block."""
        blocks: list[JsonObject] = list(messages)
        if notice:
            blocks.append({"type": "text", "text": notice_text(notice)})
        return [{"role": "user", "content": cast("Json", blocks)}]

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        """Asks once, as a stream."""
        request: dict[str, Any] = {
            "model": self.name,
            "max_tokens": self._settings.max_output_tokens,
            "system": system,
            "messages": list(items),
            "cache_control": {"type": "ephemeral"},
        }
        if tools:
            request["tools"] = list(tools)
        pieces = Pieces(take)
        message: Any = None
        written: dict[int, str] = {}
        try:
            async with self._client.messages.stream(**request) as stream:
                async for event in stream:
                    if event.type == "message_start":
                        message = stream.current_message_snapshot
                    elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                        pieces(event.delta.text)
                    elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                        written[event.index] = written.get(event.index, "") + event.delta.partial_json
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            # The SDK lets a broken connection and unreadable arguments through as they are.
            raise _model_error(error) from error
        pieces.end()
        if message is None or message.stop_reason is None:
            raise broken_off(self.name)
        return _reply(message, written)


def _reply(message: Any, written: Mapping[int, str]) -> Reply:  # noqa: ANN401 - the SDK's own type
    """The reply in a message; `written` is what the model wrote as arguments, by the place of the block."""
    raw = [cast("JsonObject", block.model_dump(mode="json", exclude_unset=True)) for block in message.content]
    blocks = [whole_json(_sendable(block)) for block in raw]
    # The API takes no text of blanks back.
    kept = [block for block in blocks if block["type"] != "text" or str(block["text"]).strip()]
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    return Reply(
        text=whole("".join(block.text for block in message.content if block.type == "text")),
        items=({"role": "assistant", "content": cast("Json", kept)},) if kept else (),
        calls=tuple(
            _as_written(block, written.get(place, ""))
            for place, block in enumerate(blocks)
            if block["type"] == "tool_use"
        ),
        usage=Usage(
            input_tokens=usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
            output_tokens=usage.output_tokens,
            cached_tokens=cached,
        ),
        ending=_ENDINGS.get(message.stop_reason, "whole"),
    )


def _as_written(call: JsonObject, arguments: str) -> JsonObject:
    """The call, with arguments that are no whole JSON as the model wrote them: the SDK makes an object of any half."""
    try:
        json.loads(arguments or "{}")
    except ValueError:
        return {**call, "input": whole(arguments)}
    return call


def _sendable(block: JsonObject) -> JsonObject:
    """The block without the empty field that the SDK adds to texts."""
    return {key: value for key, value in block.items() if key != "citations" or value is not None}


def _model_error(error: Exception) -> ModelError:
    if isinstance(error, anthropic.APIStatusError):
        body: Any = error.body
        inner: Any = body.get("error") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        told = inner.get("message") if isinstance(inner, dict) else error.message  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        text = f"The endpoint answered {error.status_code}: {' '.join(str(told).split())[:500]}"  # pyright: ignore[reportUnknownArgumentType]
        return ModelRefused(text) if error.status_code in {400, 404, 422} else ModelError(text)
    return ModelError(unreachable(error))
