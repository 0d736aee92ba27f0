"""Anthropic's SDK as the client.

The cache mark goes on the request as a whole: a mark on a deferred tool is refused, and a mark that moves from
message to message would change what was sent before.
"""

from collections.abc import Sequence
from typing import Any, cast

import anthropic
import httpx2
from anthropic import AsyncAnthropic

from toolcrib.agent.models import Reply, TakeText, Usage, notice_text, told_window, unreachable
from toolcrib.definitions import DialectName, Json, JsonObject
from toolcrib.errors import ModelError, ModelRefused
from toolcrib.settings import AgentSettings


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
        try:
            async with self._client.messages.stream(**request) as stream:
                async for text in stream.text_stream:
                    take(text)
                message = await stream.get_final_message()
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            # The SDK lets a broken connection and unreadable arguments through as they are.
            raise _model_error(error) from error
        blocks = [cast("JsonObject", block.model_dump(mode="json", exclude_unset=True)) for block in message.content]
        blocks = [_sendable(block) for block in blocks]
        usage = message.usage
        cached = usage.cache_read_input_tokens or 0
        return Reply(
            text="".join(block.text for block in message.content if block.type == "text"),
            items=({"role": "assistant", "content": cast("Json", blocks)},) if blocks else (),
            calls=tuple(block for block in blocks if block["type"] == "tool_use"),
            usage=Usage(
                input_tokens=usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
                output_tokens=usage.output_tokens,
                cached_tokens=cached,
            ),
            cut=message.stop_reason == "max_tokens",
        )


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
