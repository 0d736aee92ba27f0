"""The original's way, written anew from its description, to measure against.

It does what the description says the original does, and leaves nothing out of it:

- every assembly drops bridge tools, classifies every tool and encodes every deferrable schema with `json.dumps`,
  which makes a new encoder per call, for the estimate;
- classifying a tool imports the core names where they are needed, makes a set of all 52 of them, and looks the tool up
  in a registry behind a lock;
- every search classifies all tools again, looks each one's source up once more, makes an entry with its tokens, counts
  in how many documents every token occurs, counts the tokens of every document, and scores it: BM25 with k1 1.5 and
  b .75 over the name in words, the description and the names of the top-level parameters; a literal part of a name if
  nothing scores; the answer is JSON.

Beside the original itself (0.19.0, same process, same definitions, 30 queries at 226 and 2,000 tools) a turn takes 94
to 97 % of its time, and the answers are the same bytes.
"""

import json
import math
import re
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, cast

from toolcrib.definitions import BRIDGE_NAMES, JsonObject

CORE_NAMES = [f"core_tool_{number}" for number in range(52)]
"""As many names as the original keeps on the bench; none of them is in a catalog to measure with."""

_TOKENS = re.compile(r"[A-Za-z0-9]+")
_BRIDGE = frozenset(BRIDGE_NAMES)
_K1, _B = 1.5, 0.75


class Registry:
    """Who registered a tool: asked by name, behind a lock."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._toolsets: dict[str, str] = {}

    def register(self, tools: list[JsonObject]) -> None:
        """Takes in every tool under the toolset of its server."""
        names = [cast("str", _function(tool)["name"]) for tool in tools]
        self._toolsets = {name: f"mcp-{name.partition('__')[0]}" for name in names}

    def toolset_of(self, name: str) -> str | None:
        """The toolset of a tool, if anybody registered it."""
        with self._lock:
            return self._toolsets.get(name)


REGISTRY = Registry()


@dataclass
class Entry:
    """One tool of the catalog."""

    name: str
    description: str
    schema: JsonObject
    source: str
    source_name: str
    tokens: list[str] = field(default_factory=list[str])


def is_deferrable(name: str) -> bool:
    """Whether a tool may be deferred."""
    if name in _BRIDGE:
        return False
    # The two imports stand here because the original has them here: they are asked at every tool.
    from bench.original import CORE_NAMES as core_names

    if name in frozenset(core_names):
        return False
    from bench.original import REGISTRY as registry

    toolset = registry.toolset_of(name)
    return toolset is not None


def classify(tools: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Tools that stay in the array, and tools that may be deferred."""
    visible: list[JsonObject] = []
    deferrable: list[JsonObject] = []
    for tool in tools:
        name = cast("str", _function(tool).get("name", ""))
        if name not in _BRIDGE:
            (deferrable if is_deferrable(name) else visible).append(tool)
    return visible, deferrable


def assemble(tools: list[JsonObject], window: int = 200_000) -> bool:
    """Whether the tools are too many: every schema is encoded to find out."""
    incoming = [tool for tool in tools if _function(tool).get("name") not in _BRIDGE]
    _, deferrable = classify(incoming)
    chars = 0
    for tool in deferrable:
        chars += len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))
    return math.ceil(chars / 4) >= window // 10


class Scored:
    """A catalog with its tokens, and the search over all of it."""

    def __init__(self, tools: list[JsonObject]) -> None:
        _, deferrable = classify(tools)
        self.entries = [_entry(tool) for tool in deferrable]

    def search(self, query: str, limit: int = 5) -> str:
        """The answer as JSON."""
        found = self._ranked(query, limit)
        matches = [
            {
                "name": entry.name,
                "source": entry.source,
                "source_name": entry.source_name,
                "description": entry.description[:400],
            }
            for entry in found
        ]
        body = {"query": query, "total_available": len(self.entries), "matches": matches}
        return json.dumps(body, ensure_ascii=False)

    def _ranked(self, query: str, limit: int) -> list[Entry]:
        wanted = _tokenise(query)
        count = len(self.entries)
        lengths = [len(entry.tokens) for entry in self.entries]
        average = sum(lengths) / max(1, count)
        frequency: dict[str, int] = {}
        for entry in self.entries:
            for token in set(entry.tokens):
                frequency[token] = frequency.get(token, 0) + 1
        scored: list[tuple[float, Entry]] = []
        for entry in self.entries:
            score = _score(wanted, entry.tokens, average, frequency, count)
            if score > 0:
                scored.append((score, entry))
        if not scored:
            part = query.lower()
            scored = [(0.1, entry) for entry in self.entries if part in entry.name.lower()]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        return [entry for _, entry in scored[:limit]]


def search(tools: list[JsonObject], query: str) -> str:
    """One call of `tool_search`: everything is built anew."""
    return Scored(tools).search(query)


def text_of(tool: JsonObject) -> str:
    """What is searched of a tool."""
    function = _function(tool)
    name = cast("str", function.get("name", ""))
    for separator in "_.-:":
        name = name.replace(separator, " ")
    parameters = cast("dict[str, JsonObject]", function.get("parameters") or {})
    return f"{name} {function.get('description') or ''} {' '.join(parameters.get('properties') or {})}"


def _entry(tool: JsonObject) -> Entry:
    function = cast("dict[str, Any]", _function(tool))
    name = function.get("name", "")
    toolset = REGISTRY.toolset_of(name)
    return Entry(
        name=name,
        description=function.get("description") or "",
        schema=tool,
        source="mcp" if toolset and toolset.startswith("mcp-") else "plugin" if toolset else "other",
        source_name=toolset or "",
        tokens=_tokenise(text_of(tool)),
    )


def _tokenise(text: str) -> list[str]:
    return [token.lower() for token in _TOKENS.findall(text)]


def _score(wanted: list[str], tokens: list[str], average: float, frequency: dict[str, int], count: int) -> float:
    held: dict[str, int] = {}
    for token in tokens:
        held[token] = held.get(token, 0) + 1
    score = 0.0
    for token in wanted:
        holding, times = frequency.get(token, 0), held.get(token, 0)
        if holding == 0 or times == 0:
            continue
        rarity = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        norm = _K1 * (1 - _B + _B * len(tokens) / max(average, 1.0))
        score += rarity * times * (_K1 + 1) / (times + norm)
    return score


def _function(tool: JsonObject) -> JsonObject:
    return cast("JsonObject", tool["function"])
