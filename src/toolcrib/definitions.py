"""The values that flow through Toolcrib: tools, toolsets, calls and results.

All of them are immutable. A tool keeps the JSON that its source gave, byte for byte in meaning, so that nothing a
source said is lost on the way to a model that can use it; what others need (name, description, schema, size) is read
from it once. Its fingerprint covers everything that a model or a person relied on, and nothing else.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NewType, TypeAlias, cast

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import force_setattr

from toolcrib.kernel import kernel
from toolcrib.limits import SCHEMA_MAX_DEPTH

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

ToolName = NewType("ToolName", str)
"""The name under which a session knows a tool: unique, safe for every model API."""
ToolsetName = NewType("ToolsetName", str)
Fingerprint = NewType("Fingerprint", str)
"""Hexadecimal BLAKE2b-128 of a canonical form: may decide approval, because nobody can craft a second one."""

BRIDGE_NAMES = ("tool_search", "tool_describe", "tool_call")
"""The three names that no source may use (S1), in the order in which they are shown (S2)."""

Origin = Literal["mcp", "plugin", "host"]
"""Where a tool comes from. `host` is what nobody classified: it stays visible (S9)."""

_SEED = "mark"

DialectName = Literal["openai_chat", "openai_responses", "anthropic", "gemini", "mcp"]
Route = Literal["direct", "bridge", "caller"]
"""How a call came in: by its own name, through `tool_call`, or from code that holds the session."""


def canonical_json(value: object) -> bytes:
    """Compact JSON with sorted keys: equal for equal values, whatever order they were written in."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def fitted(encoded: bytes) -> bytes:
    """The same bytes in memory of their own size, to be kept: an encoder's buffer is up to four times larger."""
    return bytes(memoryview(encoded))


def fingerprint_of(*parts: bytes) -> Fingerprint:
    """The fingerprint of a sequence of byte strings; their borders count."""
    return _digest(b"".join([piece for part in parts for piece in (len(part).to_bytes(8, "big"), part)]))


def _digest(bordered: bytes) -> Fingerprint:
    return Fingerprint(hashlib.blake2b(bordered, digest_size=16).hexdigest())


def json_chars(encoded: bytes) -> int:
    """Characters (not bytes) of encoded JSON: what the token estimate counts."""
    return len(encoded) if encoded.isascii() else len(encoded.decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is known of a tool's behaviour. `None` means that nobody said."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    parallel: bool = False
    """The tool may run beside others of one turn."""
    deadline_s: float | None = None
    """Seconds that the tool may take, if it needs longer than others: one that asks a person or runs an agent."""

    @property
    def changes_something(self) -> bool:
        """Whether to take a checkpoint first: only a tool that says it is read-only is spared."""
        return self.read_only is not True


class Tool(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One tool, as its source defined it.

    There may be 100,000: no dataclass, because making one takes ten times as long, and none of the collector's.
    """

    name: ToolName
    toolset: ToolsetName
    origin: Origin
    leaf: str
    """The name that the source itself uses."""
    description: str
    schema: bytes
    """JSON Schema of the arguments, compact JSON."""
    raw: bytes
    """The whole definition as given, compact JSON, in the shape of `dialect`."""
    dialect: DialectName
    traits: Traits
    aliases: tuple[str, ...]
    chars: int
    """Characters of the definition as an OpenAI chat function: what the token estimate counts (S13)."""
    seal: Fingerprint | None = None
    """The fingerprint, once somebody has asked for it."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Of the names, what is known of the behaviour, and the whole definition, however its keys are ordered."""
        seal = self.seal
        if seal is None:
            seal = _seal_of(self)
            # Found out, not changed: it follows from the rest. Most tools are never asked for theirs.
            force_setattr(self, "seal", seal)
        return seal

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Tool) and self.fingerprint == other.fingerprint

    def __ne__(self, other: object) -> bool:
        return not self == other  # a structure has an answer of its own: whether it is another object

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, toolset={self.toolset!r})"

    @property
    def parameters(self) -> JsonObject:
        """The JSON Schema of the arguments; a fresh copy, yours to change."""
        return cast("JsonObject", orjson.loads(self.schema))

    @property
    def definition(self) -> JsonObject:
        """The definition as its source gave it; a fresh copy."""
        return cast("JsonObject", orjson.loads(self.raw))


def _seal_of(tool: Tool) -> Fingerprint:
    traits = tool.traits
    said = [traits.read_only, traits.destructive, traits.idempotent, traits.open_world, traits.parallel]
    head = orjson.dumps([tool.name, tool.toolset, tool.aliases, said])
    bordered = kernel.canonical(head, tool.raw, SCHEMA_MAX_DEPTH) if kernel is not None else None
    return fingerprint_of(head, canonical_json(tool.definition)) if bordered is None else _digest(bordered)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A definition that could not be used, and why."""

    toolset: ToolsetName
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Toolset:
    """An immutable snapshot of one named group of tools, compared by identity: unchanged means the same object."""

    name: ToolsetName
    origin: Origin
    tools: tuple[Tool, ...]
    """In the order in which the source lists them."""
    prefix: str = ""
    """What every exposed name of this toolset starts with, or nothing."""
    skipped: tuple[Skipped, ...] = ()
    unavailable: str | None = None
    """Why the tools cannot be called now, if they cannot; the list is then the last good one."""

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """Tools by exposed name."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def chars(self) -> int:
        """Characters of all definitions together."""
        return sum([tool.chars for tool in self.tools])

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Digest of the name and of every tool."""
        return fingerprint_of(self.name.encode(), *(tool.fingerprint.encode() for tool in self.tools))

    @cached_property
    def mark(self) -> int:
        """What tells it from another toolset of this process; takes 0.2 µs a tool, fingerprints 3.9."""
        tools = self.tools
        raws = [tool.raw for tool in tools]
        said = kernel.digest(raws, hash(_SEED)) if kernel is not None else hash(tuple(raws))
        names, aliases = tuple([tool.name for tool in tools]), tuple([tool.aliases for tool in tools])
        traits = [tool.traits for tool in tools]
        # Nearly always nobody said anything, and all of them are one object.
        alike = traits[:1] if traits[:1] * len(traits) == traits else traits
        return hash((self.name, said, names, aliases, tuple(alike)))


class ModelCall(Struct, frozen=True, kw_only=True):
    """A call as the model wrote it, in whatever dialect. Kept as it is for the transcript (S7)."""

    id: str
    name: str
    arguments: Json
    """An object, a JSON string of one, or null: `bridge.unwrap` is the only place that reads it."""
    dialect: DialectName | None = None
    raw: Json = None
    """The call as the model API gave it, in the shape of `dialect`."""


class Call(Struct, frozen=True, kw_only=True):
    """One call of one real tool. What is checked is what is dispatched."""

    id: str
    tool: Tool
    arguments: JsonObject
    route: Route
    principal: str
    """Who calls: grants and concurrency are counted by it."""
    notes: tuple[str, ...] = ()
    """What was repaired on the way in; told to the model with the result."""


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answered, in the content blocks of MCP; unknown blocks and fields are kept."""

    content: tuple[JsonObject, ...] = ()
    structured: Json = None
    is_error: bool = False
    meta: JsonObject = msgspec.field(default_factory=dict[str, "Json"])
    code: str | None = None
    """The code of the error, if Toolcrib refused or failed the call."""
    notes: tuple[str, ...] = ()
    """What was repaired in the arguments of the call; the last block of the content says it, too."""
    dialect: DialectName | None = None
    raw: Json = None
    """The result as some API gave it, in the shape of `dialect`."""
    encoded: bytes | None = None
    """The whole result as MCP JSON, where it came as bytes and nobody had to look inside yet: `content` and
    the rest are empty then, and `dialects.mcp.open_result` fills them."""

    @property
    def text(self) -> str:
        """All text of the content, or the structured value as JSON if there is no text."""
        texts = [
            block["text"]
            for block in self.content
            if block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        if texts:
            return "\n".join(cast("list[str]", texts))
        return "" if self.structured is None else orjson.dumps(self.structured).decode()


def text_result(text: str, *, is_error: bool = False, structured: Json = None, code: str | None = None) -> Result:
    """A result of one text block."""
    return Result(content=({"type": "text", "text": text},), is_error=is_error, structured=structured, code=code)
