"""The shapes of the model APIs, and how to tell them apart."""

from collections.abc import Iterator, Mapping
from typing import cast

from toolcrib.definitions import DialectName, Json, JsonObject, ModelCall
from toolcrib.dialects import anthropic, gemini, mcp, openai_chat, openai_responses
from toolcrib.dialects.base import Dialect, kind_of
from toolcrib.errors import ConfigError, InvalidCall

DIALECTS: Mapping[DialectName, Dialect] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
}

_LEVELS = 16
"""Lists and answers within each other that are opened; what lies deeper is no definition."""


def require_dialect(name: str) -> Dialect:
    """The dialect of that name. Raises `ConfigError`."""
    dialect = DIALECTS.get(cast("DialectName", name))
    if dialect is None:
        raise ConfigError(f"There is no dialect `{name}`: use one of {', '.join(DIALECTS)}.")
    return dialect


def detect_tool_dialect(raw: Mapping[str, Json]) -> DialectName:
    """The dialect that a definition is written in, by the key that only this one has."""
    function = raw.get("function")
    if isinstance(function, (dict, Mapping)):
        return "openai_chat"
    if "input_schema" in raw:
        return "anthropic"
    if "parametersJsonSchema" in raw or "parameters_json_schema" in raw:
        return "gemini"
    if "parameters" in raw:
        return "openai_responses"
    return "mcp"


def expand_definitions(raw: Json, levels: int = _LEVELS) -> Iterator[Json]:
    """Single definitions out of what a file or an API holds: lists, `tools`, `functionDeclarations`, an answer."""
    if isinstance(raw, list | tuple) and levels:
        for item in raw:
            yield from expand_definitions(item, levels - 1)
        return
    if isinstance(raw, Mapping) and levels:
        if "jsonrpc" in raw and isinstance(raw.get("result"), Mapping):
            yield from expand_definitions(raw["result"], levels - 1)
            return
        for key in ("functionDeclarations", "function_declarations", "tools"):
            inner = raw.get(key)
            if isinstance(inner, list) and "name" not in raw:
                yield from inner
                return
    yield raw


def read_call(raw: object) -> ModelCall:
    """A model's call in any dialect, as JSON or as the object of an official SDK. Raises `InvalidCall`."""
    if isinstance(raw, ModelCall):
        return raw
    call = _call_object(raw)
    if call is None:
        raise InvalidCall(f"A tool call must be a JSON object, not {kind_of(raw)}.")
    return _call_dialect(call).read_call(call)


def salvage_call(raw: object) -> ModelCall:
    """What can be told of a call that cannot be read: an answer in its own dialect still finds it by its id."""
    call = _call_object(raw)
    if call is None:
        return ModelCall(id=_STAND_IN, name=_STAND_IN, arguments=None)
    inner = next((call[key] for key in ("function", "functionCall", "function_call") if key in call), None)
    parts = (call, inner) if isinstance(inner, Mapping) else (call,)
    told = {key: value for part in parts for key, value in part.items() if isinstance(value, str) and value}
    name = told.get("name", _STAND_IN)
    dialect = _call_dialect(call).NAME
    stand_in = name if dialect == gemini.NAME else _STAND_IN
    identifier = told.get("call_id" if dialect == openai_responses.NAME else "id", stand_in)
    return ModelCall(id=identifier, name=name, arguments=None, dialect=dialect, raw=call)


_STAND_IN = "call"
"""The id, or the name, of a call that has none."""


def _call_object(raw: object) -> JsonObject | None:
    """A call as JSON, or nothing if it is no object."""
    dump = getattr(raw, "model_dump", None)
    value: object = dump(mode="json", exclude_unset=True) if callable(dump) else raw
    if not isinstance(value, Mapping):
        return None
    call = dict(cast("Mapping[str, Json]", value))
    if callable(dump) and "name" in call and getattr(raw, "args", call) is None:
        call["args"] = {}  # Gemini's SDK has calls without arguments, which nothing else in them tells from others
    return call


def _call_dialect(raw: JsonObject) -> Dialect:
    if "function" in raw:
        return openai_chat
    if "functionCall" in raw or "function_call" in raw or ("args" in raw and "name" in raw):
        return gemini
    if raw.get("type") in {"function_call", "tool_search_call"} or "call_id" in raw:
        return openai_responses
    if raw.get("type") == "tool_use" or "input" in raw:
        return anthropic
    return mcp
