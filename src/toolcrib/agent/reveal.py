"""How deferred tools reach the model in one conversation: through the bridge, or through the model API itself.

Whichever way, a search goes through the session and a call goes through the session: scope, checks, hooks, approvals
and the feed cannot tell the difference (X12). A native conversation can be turned into a bridge conversation at any
point, because an endpoint may refuse what its documentation promises.
"""

from collections.abc import Sequence
from typing import Protocol, cast

from toolcrib.agent.models import Model
from toolcrib.assembly import Turn
from toolcrib.bridge import BRIDGE_TOOLSET, TOOL_SEARCH
from toolcrib.definitions import Json, JsonObject, Tool
from toolcrib.dialects.base import compact
from toolcrib.dialects.reveal import (
    RevealSetting,
    anthropic_answer,
    anthropic_tools,
    can_reveal,
    is_native,
    responses_answer,
    responses_tools,
)
from toolcrib.errors import ConfigError
from toolcrib.session import Answer, Session


class Reveal(Protocol):
    """One way for deferred tools to reach the model."""

    native: bool

    def tools(self, turn: Turn) -> list[JsonObject]:
        """The array to send."""
        ...

    def messages(self, answer: Answer) -> list[JsonObject]:
        """What one call got, in the model API's own shape."""
        ...

    def for_bridge(self, items: Sequence[JsonObject]) -> list[JsonObject]:
        """The conversation so far, as it would be had it gone through the bridge."""
        ...


def choose_reveal(setting: RevealSetting, model: Model, session: Session) -> Reveal:
    """The way for a conversation. Raises `ConfigError` for `native` where the wire format has none."""
    if setting == "native" and not can_reveal(model.dialect):
        raise ConfigError(f"`reveal: native` needs `api: anthropic` or `api: openai_responses`, not `{model.dialect}`.")
    wanted = setting == "native" or (
        setting == "auto" and is_native(model.dialect, endpoint=model.endpoint, model=model.name)
    )
    if not wanted:
        return BridgeReveal()
    return AnthropicReveal(session) if model.dialect == "anthropic" else ResponsesReveal(session)


class BridgeReveal:
    """The three tools of the bridge: works with every model."""

    native = False

    def tools(self, turn: Turn) -> list[JsonObject]:
        """The assembled array."""
        return turn.tools

    def messages(self, answer: Answer) -> list[JsonObject]:
        """The answer as the dialect writes it."""
        return [answer.message]

    def for_bridge(self, items: Sequence[JsonObject]) -> list[JsonObject]:
        """Nothing to do."""
        return list(items)


class AnthropicReveal:
    """`defer_loading`, and a search of ours that answers with references."""

    native = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._revealed: dict[str, Tool] = {}
        self._plain: dict[str, JsonObject] = {}

    def tools(self, turn: Turn) -> list[JsonObject]:
        """The array in force, with all deferred tools behind it.

        A tool that went away stays declared once it was referred to: a reference without a definition is refused by
        the API, and a call of it is refused by the session.
        """
        if not turn.activated:
            return turn.tools
        deferred = {**self._revealed, **{tool.name: tool for tool in turn.current.catalog}}
        ordered = [deferred[name] for name in sorted(deferred)]
        return anthropic_tools(visible_of(turn), ordered, listing=turn.assembly.listing.text)

    def messages(self, answer: Answer) -> list[JsonObject]:
        """A search that found something answers with references; all else as ever."""
        tools = found_tools(answer, self._session)
        if not tools:
            return [answer.message]
        self._revealed.update((tool.name, tool) for tool in tools)
        self._plain[answer.call.id] = answer.message
        return [anthropic_answer(answer.call, tools)]

    def for_bridge(self, items: Sequence[JsonObject]) -> list[JsonObject]:
        """References become the answers that the bridge would have given."""
        return [self._restored(item) for item in items]

    def _restored(self, item: JsonObject) -> JsonObject:
        content = item.get("content")
        if not isinstance(content, list):
            return item
        blocks = cast("list[JsonObject]", content)
        return {**item, "content": [self._plain.get(str(block.get("tool_use_id")), block) for block in blocks]}


class ResponsesReveal:
    """The item types `tool_search_call` and `tool_search_output`, with one namespace per toolset."""

    native = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plain: dict[str, JsonObject] = {}

    def tools(self, turn: Turn) -> list[JsonObject]:
        """The array in force; definitions travel in the conversation."""
        if not turn.activated:
            return turn.tools
        return responses_tools(visible_of(turn), listing=turn.assembly.listing.text)

    def messages(self, answer: Answer) -> list[JsonObject]:
        """Definitions for a search. The output has no room for words, so they follow it."""
        if not _is_native_search(answer):
            return [answer.message]
        tools = found_tools(answer, self._session)
        self._plain[answer.call.id] = answer.message
        output = responses_answer(answer.call, tools)
        return [output] if tools else [output, {"role": "developer", "content": answer.result.text}]

    def for_bridge(self, items: Sequence[JsonObject]) -> list[JsonObject]:
        """Searches become calls of `tool_search`; calls lose their namespace."""
        return [self._restored(item) for item in items]

    def _restored(self, item: JsonObject) -> JsonObject:
        match item.get("type"):
            case "tool_search_call":
                arguments = compact(item.get("arguments"))
                call_id = item.get("call_id")
                return {"type": "function_call", "call_id": call_id, "name": TOOL_SEARCH, "arguments": arguments}
            case "tool_search_output":
                return self._plain[str(item.get("call_id"))]
            case "function_call":
                return {key: value for key, value in item.items() if key != "namespace"}
            case _:
                return item


def visible_of(turn: Turn) -> list[Tool]:
    """The tools of the array in force that are no bridge."""
    return [tool for tool in turn.assembly.tools if tool.toolset != BRIDGE_TOOLSET]


def found_names(answer: Answer) -> list[str]:
    """The tools that a search found, if the answer is one."""
    body: Json = answer.result.structured
    matches = body.get("matches") if isinstance(body, dict) else None
    if answer.tool is not None or not isinstance(matches, list):
        return []
    return [str(match["name"]) for match in cast("list[JsonObject]", matches)]


def found_tools(answer: Answer, session: Session) -> list[Tool]:
    """The same, as tools that the session has."""
    catalog = session.catalog
    return [tool for name in found_names(answer) if (tool := catalog.get(name)) is not None]


def _is_native_search(answer: Answer) -> bool:
    raw = answer.call.raw
    return isinstance(raw, dict) and raw.get("type") == "tool_search_call"
