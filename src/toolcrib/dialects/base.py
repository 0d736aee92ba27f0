"""What every dialect can do, and the value that reading a definition gives.

A dialect is a module: it turns the JSON of one model API into our values and back. Reading and writing in the same
dialect is lossless, because the values keep the JSON that they came from.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, cast

import orjson

from toolcrib.definitions import DialectName, Json, JsonObject, ModelCall, Result, Tool
from toolcrib.errors import DefinitionError, InvalidCall

EMPTY_SCHEMA: JsonObject = {"type": "object", "properties": {}}
"""What a tool without parameters takes."""


class ToolParts(NamedTuple):
    """What a definition says, whatever dialect it is written in: to be read, not to be changed."""

    name: str
    description: str
    schema: Mapping[str, Json]
    annotations: Mapping[str, Json]


class Dialect(Protocol):
    """The functions that a dialect module offers."""

    NAME: DialectName

    def read_tool(self, raw: JsonObject) -> ToolParts:
        """What the definition says. Raises `DefinitionError`."""
        ...

    def write_tool(self, tool: Tool) -> JsonObject:
        """The definition under its exposed name."""
        ...

    def read_call(self, raw: JsonObject) -> ModelCall:
        """The call that the model made. Raises `InvalidCall`."""
        ...

    def write_call(self, call: ModelCall) -> JsonObject:
        """The call in this shape."""
        ...

    def read_result(self, raw: JsonObject) -> Result:
        """The result that some API gave."""
        ...

    def write_result(self, call: ModelCall, result: Result) -> JsonObject:
        """The result as the answer to `call`."""
        ...


def parts_of(raw: Mapping[str, Json], *, schema_key: str, annotations: Json = None) -> ToolParts:
    """Name, description and schema from one level of JSON."""
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise DefinitionError("the definition has no `name`: give it a non-empty string")
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        raise DefinitionError(f"`description` of `{name}` must be a string, not {kind_of(description)}")
    schema = raw.get(schema_key)
    if not (schema is None or isinstance(schema, (dict, Mapping))):
        raise DefinitionError(f"`{schema_key}` of `{name}` must be a JSON Schema object, not {kind_of(schema)}")
    return ToolParts(
        name=name,
        description=description or "",
        schema=EMPTY_SCHEMA if schema is None else schema,
        annotations=annotations if isinstance(annotations, Mapping) else {},
    )


def kind_of(value: object) -> str:
    """The JSON name of a value's type, for error texts."""
    names = {
        "NoneType": "null",
        "bool": "boolean",
        "int": "integer",
        "float": "number",
        "str": "string",
        "list": "array",
    }
    return "object" if isinstance(value, Mapping) else names.get(type(value).__name__, type(value).__name__)


def require_text(raw: Mapping[str, Json], key: str) -> str:
    """A non-empty string of a call. Raises `InvalidCall`."""
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidCall(f"A tool call needs `{key}`: a non-empty string, not {kind_of(value)}.")
    return value


_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "params")


def arguments_of(raw: Mapping[str, Json], key: str) -> Json:
    """The arguments of a call. Raises `InvalidCall` where they stand under another key: no call runs without them."""
    if key not in raw:
        for other in _ARGUMENT_KEYS:
            if raw.get(other):
                raise InvalidCall(f"A tool call has its arguments in `{key}`, not in `{other}`.")
    return raw.get(key)


def compact(value: Json) -> str:
    """Compact JSON text; what cannot be encoded is written in a form that can."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(str(value).encode(errors="replace").decode()).decode()


def plain_text(result: Result) -> str:
    """The result as text, for an API that takes nothing else. What cannot be shown is named, not dropped."""
    texts: list[str] = []
    for block in result.content:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            texts.append(text)
        else:
            texts.append(_named(block))
    if not texts and result.structured is not None:
        return compact(result.structured)
    return "\n".join(texts)


def _named(block: JsonObject) -> str:
    kind = str(block.get("type", "unknown"))
    if kind == "resource_link":
        return f"[resource {block.get('uri', '')}]"
    inner = as_object(block.get("resource"))
    text = inner.get("text")
    if isinstance(text, str):
        return text
    data = block.get("data", inner.get("blob"))
    # Counted, not decoded: what others wrote need not be faultless base64.
    size = f"{len(data.rstrip('=')) * 3 // 4} bytes" if isinstance(data, str) else ""
    said = " ".join(
        str(part) for part in (kind, inner.get("uri"), block.get("mimeType", inner.get("mimeType"))) if part
    )
    return f"[{', '.join(part for part in (said, size) if part)}: this model API takes text only]"


def text_blocks(content: Json) -> tuple[JsonObject, ...]:
    """Content blocks from a string or a list of parts with `text`."""
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list | tuple):
        return ()
    blocks: list[JsonObject] = []
    for part in content:
        if isinstance(part, Mapping):
            text = part.get("text")
            blocks.append({"type": "text", "text": text} if isinstance(text, str) else dict(part))
    return tuple(blocks)


def as_object(value: Json) -> JsonObject:
    """A copy of a JSON object."""
    return dict(cast("Mapping[str, Json]", value)) if isinstance(value, Mapping) else {}
