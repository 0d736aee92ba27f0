"""The original's way, written anew from its description, to measure against.

At every assembly each tool is classified and each deferrable schema is encoded with `json.dumps` for the estimate. At
every search the catalog and its statistics are built anew and every document is scored: BM25 with k1 1.5 and b .75
over the name in words, the description and the names of the top-level parameters; a literal part of a name if nothing
scores. It is kinder than the description in one point: the set of core names is made once and not per tool.
"""

import json
import math
import re
from collections import Counter
from typing import cast

from toolcrib.core import DEFAULT_CORE
from toolcrib.definitions import JsonObject

_TOKENS = re.compile(r"[a-z0-9]+")
_CORE = frozenset(DEFAULT_CORE)
_K1, _B = 1.5, 0.75


def deferrable(tools: list[JsonObject]) -> list[JsonObject]:
    """Tools that are not core, one by one."""
    return [tool for tool in tools if _function(tool)["name"] not in _CORE]


def assemble(tools: list[JsonObject], window: int = 200_000) -> bool:
    """Whether the tools are too many: every schema is encoded to find out."""
    chars = 0
    for tool in deferrable(tools):
        chars += len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))
    return -(-chars // 4) >= window // 10


class Scored:
    """A catalog with its tokens, and the search over all of it."""

    def __init__(self, tools: list[JsonObject]) -> None:
        self.tools = deferrable(tools)
        self.tokens = [_TOKENS.findall(text_of(tool).lower()) for tool in self.tools]

    def search(self, query: str, limit: int = 5) -> str:
        """The answer as JSON."""
        wanted = _TOKENS.findall(query.lower())
        count = len(self.tokens)
        average = sum(map(len, self.tokens)) / max(1, count)
        frequency = Counter(token for tokens in self.tokens for token in set(tokens))
        scores: list[tuple[float, int]] = []
        for row, tokens in enumerate(self.tokens):
            held = Counter(tokens)
            score = 0.0
            for token in wanted:
                if token in held:
                    rarity = math.log(1 + (count - frequency[token] + 0.5) / (frequency[token] + 0.5))
                    norm = _K1 * (1 - _B + _B * len(tokens) / average)
                    score += rarity * held[token] * (_K1 + 1) / (held[token] + norm)
            if score > 0:
                scores.append((-score, row))
        rows = [row for _, row in sorted(scores)[:limit]]
        if not rows:
            part = query.lower()
            rows = [row for row, tool in enumerate(self.tools) if part in str(_function(tool)["name"]).lower()][:limit]
        matches = [
            {
                "name": _function(self.tools[row])["name"],
                "description": str(_function(self.tools[row])["description"])[:400],
            }
            for row in rows
        ]
        return json.dumps({"query": query, "total_available": count, "matches": matches})


def search(tools: list[JsonObject], query: str) -> str:
    """One call of `tool_search`: everything is built anew."""
    return Scored(tools).search(query)


def text_of(tool: JsonObject) -> str:
    """What is searched of a tool."""
    function = _function(tool)
    name = re.sub(r"[_.:-]", " ", str(function["name"]))
    parameters = cast("dict[str, JsonObject]", function.get("parameters") or {})
    return f"{name} {function.get('description') or ''} {' '.join(parameters.get('properties') or {})}"


def _function(tool: JsonObject) -> JsonObject:
    return cast("JsonObject", tool["function"])
