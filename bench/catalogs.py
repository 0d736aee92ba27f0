"""Catalogs to measure with: a file of real definitions if one is given, made-up ones of real size otherwise."""

import json
import random
from functools import lru_cache
from pathlib import Path

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


@lru_cache(1)
def definitions(count: int, path: Path | None = None) -> list[JsonObject]:
    """`count` OpenAI-style definitions with unique names; about 1,000 bytes each when made up."""
    if path is not None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:count]
        return [
            openai(
                f"{row.get('server', 'x')}__{row['name']}"[:64],
                row.get("description") or "",
                row.get("inputSchema") or {},
                n,
            )
            for n, row in enumerate(rows)
        ]
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
    words = _Words(random.Random(7))
    return [f"{rng.choice(VERBS)} {rng.choice(NOUNS)} {words.draw(rng.randint(1, 3))}" for _ in range(count)]
