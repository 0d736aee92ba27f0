"""Native reveal: how a model API that can load tools by itself wants to be told of them (X12).

Two APIs can. Anthropic takes every definition with `defer_loading` and puts those that a search refers to into the
conversation; the search itself is an ordinary tool of ours that answers with `tool_reference` blocks. OpenAI
Responses has the item type `tool_search`; run by the client, its output carries the definitions, one namespace per
toolset. What each of them is known to refuse is kept out here, so that it cannot be sent.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, cast
from urllib.parse import urlsplit

from toolcrib.definitions import DialectName, Json, JsonObject, ModelCall, Tool
from toolcrib.dialects import anthropic, openai_responses

RevealSetting = Literal["auto", "bridge", "native"]

NATIVE: tuple[tuple[DialectName, str, str], ...] = (
    ("anthropic", r"(^|\.)anthropic\.com$", r"claude-(opus|sonnet|haiku)-(4-[5-9]|[5-9])"),
    ("openai_responses", r"(^|\.)openai\.com$", r"gpt-(5\.[4-9]|[6-9])"),
)
"""Wire format, host and model of what is known to reveal by itself. Compatible endpoints of other vendors answer
400 to deferred tools, and a proxy in between may, so `auto` trusts the vendor's own host only."""

_SEARCH_TEXT = (
    "Load tools that are not in this list, by what you need done; several needs: one per line. "
    "What is found can be called directly from then on. Search before you say that something cannot be done; "
    "only an empty answer means no such tool."
)
_LISTING_TEXT = " A name below can be loaded by searching for it. Prefix + name:"
_SEARCH_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}
_NOT_DEFERRED = ("cache_control", "input_examples")
"""Fields that Anthropic refuses beside `defer_loading`."""


def can_reveal(dialect: DialectName) -> bool:
    """Whether the wire format has a way at all."""
    return any(dialect == known for known, _, _ in NATIVE)


def is_native(dialect: DialectName, *, endpoint: str, model: str) -> bool:
    """Whether `auto` means native: the vendor's own host, and a model that is known to do it."""
    host = urlsplit(endpoint).hostname or ""
    return any(
        dialect == known and re.search(hosts, host) is not None and re.search(models, model) is not None
        for known, hosts, models in NATIVE
    )


def search_text(listing: str) -> str:
    """What the search tool says of itself."""
    return _SEARCH_TEXT + (_LISTING_TEXT + listing if listing else "")


def anthropic_tools(visible: Sequence[Tool], deferred: Iterable[Tool], *, listing: str = "") -> list[JsonObject]:
    """The array for Anthropic: visible tools and the search first, because only they are part of the prompt."""
    search: JsonObject = {
        "name": "tool_search",
        "description": search_text(listing),
        "input_schema": _SEARCH_PARAMETERS,
    }
    shown = [anthropic.write_tool(tool) for tool in visible]
    hidden = [
        {**{key: value for key, value in anthropic.write_tool(tool).items() if key not in _NOT_DEFERRED},
         "defer_loading": True}
        for tool in deferred
    ]  # fmt: skip
    return [*shown, search, *hidden]


def anthropic_answer(call: ModelCall, tools: Sequence[Tool]) -> JsonObject:
    """The answer to a search: references, which the API replaces by definitions."""
    content: list[Json] = [{"type": "tool_reference", "tool_name": tool.name} for tool in tools]
    return {"type": "tool_result", "tool_use_id": call.id, "content": content}


def responses_tools(visible: Sequence[Tool], *, listing: str = "") -> list[JsonObject]:
    """The array for OpenAI Responses: nothing deferred is in it, so it never changes."""
    search: JsonObject = {
        "type": "tool_search",
        "execution": "client",
        "description": search_text(listing),
        "parameters": _SEARCH_PARAMETERS,
    }
    return [*(function_tool(tool) for tool in visible), search]


def responses_answer(call: ModelCall, tools: Sequence[Tool]) -> JsonObject:
    """The answer to a search: the definitions, in one namespace per toolset."""
    groups: dict[str, list[Tool]] = {}
    for tool in tools:
        groups.setdefault(tool.toolset, []).append(tool)
    namespaces: list[Json] = [
        {
            "type": "namespace",
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", toolset)[:64],
            "description": f"Tools of {toolset}.",
            "tools": cast("Json", [{**function_tool(tool), "defer_loading": True} for tool in members]),
        }
        for toolset, members in groups.items()
    ]
    return {
        "type": "tool_search_output",
        "call_id": call.id,
        "execution": "client",
        "status": "completed",
        "tools": namespaces,
    }


def function_tool(tool: Tool) -> JsonObject:
    """A function of OpenAI Responses, never strict unless its own definition says so."""
    return {"strict": False, **openai_responses.write_tool(tool)}
