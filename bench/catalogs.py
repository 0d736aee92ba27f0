"""Catalogs to measure with: a file of real definitions if one is given, made-up ones of real size otherwise."""

import json
import random
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


def definitions(count: int, path: Path | None = None) -> list[JsonObject]:
    """`count` OpenAI-style definitions with unique names; about 1,300 bytes each when made up."""
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
    return [_made_up(number, rng) for number in range(count)]


def openai(name: str, description: str, schema: JsonObject, number: int) -> JsonObject:
    return {
        "type": "function",
        "function": {"name": f"{name[:56]}_{number}", "description": description, "parameters": schema},
    }


def _made_up(number: int, rng: random.Random) -> JsonObject:
    verb, noun = rng.choice(VERBS), rng.choice(NOUNS)
    sentence = " ".join(rng.choices(NOUNS + VERBS, k=30))
    properties: JsonObject = {
        f"{rng.choice(NOUNS)}_{n}": {
            "type": rng.choice(["string", "integer", "boolean"]),
            "description": " ".join(rng.choices(NOUNS, k=8)),
            "default": None,
        }
        for n in range(rng.randint(2, 10))
    }
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:2],
        "additionalProperties": False,
    }
    return openai(f"{noun}_server__{verb}_{noun}", f"{verb.title()} a {noun}. {sentence}.", schema, number)
