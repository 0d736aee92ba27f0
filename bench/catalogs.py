"""Catalogs to measure with: a file of real definitions if one is given, made-up ones of real size otherwise."""

import json
import random
import re
from functools import lru_cache
from pathlib import Path
from typing import cast

from toolcrib.definitions import JsonObject

VERBS = ("create list get update delete search send read write move copy archive restore export import share").split()  # noqa: SIM905 - reads better than sixteen quoted words
NOUNS = [
    "issue",
    "repository",
    "file",
    "folder",
    "message",
    "channel",
    "calendar",
    "event",
    "invoice",
    "customer",
    "order",
    "product",
    "table",
    "row",
    "column",
    "dashboard",
    "metric",
    "alert",
    "deployment",
    "container",
    "image",
    "volume",
    "network",
    "record",
    "zone",
    "certificate",
    "user",
    "group",
    "role",
    "policy",
]

TOOLS_PER_SERVER = 40
_VOCABULARY = 40_000
"""Words of a real catalog of 20,000 tools."""


_given: list[JsonObject] = []
"""Definitions of the file that was named on the command line, if one was."""


def use(path: Path) -> None:
    """Measures with the tools of a file (JSON lines: `server`, `name`, `description`, `inputSchema`) from here on."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    _given[:] = [
        openai(
            f"{row.get('server', 'x').replace('__', '-')}__{row['name']}",
            row.get("description") or "",
            row.get("inputSchema") or {},
            number,
        )
        for number, row in enumerate(rows)
    ]
    # The file stands server by server: any part of it should have many of them. Written and read again, so that
    # neighbours in the list are neighbours in memory.
    random.Random(7).shuffle(_given)
    _given[:] = json.loads(json.dumps(_given))
    definitions.cache_clear()


@lru_cache(1)
def definitions(count: int) -> list[JsonObject]:
    """`count` OpenAI-style definitions with unique names; about 1,000 bytes each when made up."""
    if _given:
        if count > len(_given):
            raise SystemExit(f"The file holds {len(_given)} tools, not {count}: give smaller --sizes.")
        return _given[:count]
    rng = random.Random(7)
    words = _Words(rng)
    # Written and read once: a host's definitions lie in memory as a JSON parser leaves them.
    return json.loads(json.dumps([_made_up(number, rng, words) for number in range(count)]))


def openai(name: str, description: str, schema: JsonObject, number: int) -> JsonObject:
    return {
        "type": "function",
        "function": {"name": f"{name[:56]}_{number}", "description": description, "parameters": schema},
    }


def _made_up(number: int, rng: random.Random, words: "_Words") -> JsonObject:
    verb, noun = rng.choice(VERBS), rng.choice(NOUNS)
    properties: JsonObject = {
        f"{words.draw(1)}_{rng.choice(NOUNS)}": {
            "type": rng.choice(["string", "integer", "boolean"]),
            "description": f"The {rng.choice(NOUNS)} {words.draw(rng.randint(4, 14))}.",
            "default": None,
        }
        for _ in range(rng.randint(1, 10))
    }
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:2],
        "additionalProperties": False,
    }
    server = number // TOOLS_PER_SERVER
    description = f"{verb.title()} a {noun} {words.draw(rng.randint(8, 40))}."
    label = f"{NOUNS[server % len(NOUNS)]}{server}"
    return openai(f"{label}__{verb}_{noun}_{words.draw(1)}", description, schema, number)


class _Words:
    """Made-up words with the frequencies of a language: few are common, most are rare (Zipf)."""

    def __init__(self, rng: random.Random) -> None:
        syllables = [first + vowel for first in "bcdfghklmnprstvz" for vowel in "aeiou"]
        self._words = ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(_VOCABULARY)]
        self._rng = rng

    def draw(self, count: int) -> str:
        # The logarithm of a Zipf rank is even; squared, so that new words are as rare as in real catalogs.
        return " ".join(self._words[int(_VOCABULARY ** (self._rng.random() ** 2)) - 1] for _ in range(count))


def queries(count: int) -> list[str]:
    """Searches as models write them: a verb, an object, and one or two words of the matter."""
    rng = random.Random(11)
    if _given:
        return [_words_of(rng.choice(_given), rng) for _ in range(count)]
    words = _Words(random.Random(7))
    return [f"{rng.choice(VERBS)} {rng.choice(NOUNS)} {words.draw(rng.randint(1, 3))}" for _ in range(count)]


def _words_of(tool: JsonObject, rng: random.Random) -> str:
    """Two words of a tool's name and up to three of what it says."""
    function = cast("dict[str, str]", tool["function"])
    name = re.findall(r"[a-z]{2,}", function["name"].rpartition("__")[2].lower())
    said = re.findall(r"[a-z]{3,}", function["description"][:200].lower())
    picked = sorted(rng.sample(range(len(said)), min(len(said), rng.randint(1, 3))))
    return " ".join([*name[:2], *(said[place] for place in picked)]) or "list"
