"""The clients whose configuration Toolcrib reads and rewrites, each in a module of its own."""

from collections.abc import Sequence

from toolcrib.clients import (
    claude_code,
    claude_desktop,
    codex,
    cursor,
    gemini,
    hermes,
    mcp_json,
    vscode,
    windsurf,
    zed,
)
from toolcrib.clients.base import Family
from toolcrib.errors import ConfigError
from toolcrib.intake.naming import nearest

FAMILIES: Sequence[Family] = (
    claude_code.FAMILY,
    claude_desktop.FAMILY,
    cursor.FAMILY,
    vscode.FAMILY,
    windsurf.FAMILY,
    codex.FAMILY,
    gemini.FAMILY,
    zed.FAMILY,
    hermes.FAMILY,
    mcp_json.FAMILY,
)
"""In the order in which they are looked for; the last one is what several clients share."""


def require_family(name: str) -> Family:
    """The family of a name. Raises `ConfigError` that names the nearest."""
    found = next((family for family in FAMILIES if family.name == name), None)
    if found is None:
        names = [family.name for family in FAMILIES]
        hint = nearest(name, names)
        raise ConfigError(
            f"`{name}` is no client: did you mean `{hint}`?"
            if hint
            else f"`{name}` is no client: use one of {', '.join(names)}."
        )
    return found
