"""`toolcrib config show`: the settings in force, and where each value came from."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from toolcrib.config import Loaded
    from toolcrib.definitions import Json, JsonObject

_SECRET_KEY = re.compile(r"(?:^|[._-])(?:token|secret|password|passwd|api_?key|key|authorization|credentials?)$", re.I)
_SECRET_SECTION = re.compile(r"(?:^|\.)(?:env|headers)\.")
_REFERENCE = re.compile(r"(?:(?:Bearer|Basic) )?\$\{[^}]*\}")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_VALUE = re.compile(r"(?<==)[^&#]+")
HIDDEN = "***"
_COLUMN = 48
"""Characters of a value that others are lined up with; a longer one sticks out."""


def build_app() -> typer.Typer:
    """The group of commands about configuration."""
    app = typer.Typer(help="Shows the configuration.", no_args_is_help=True, rich_markup_mode=None)
    app.callback()(_group)
    app.command("show", short_help="Every setting with its value in force.")(show)
    return app


def _group() -> None:
    """Shows the configuration."""


def show(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value came from.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prints every setting with its value in force; secrets as ***.

    Later wins: defaults, then the file, then the environment (TOOLCRIB_LIMITS__CALL_DEADLINE_S=30).

    Example: toolcrib config show --origin
    """
    from msgspec import to_builtins

    from toolcrib.cli.cribs import DEFAULT_CONFIG
    from toolcrib.config import load_settings

    path = config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)
    loaded = load_settings(path)
    values = dict(leaves(cast("JsonObject", to_builtins(loaded.settings))))
    rows = [(key, masked(key, value), origin_of(key, loaded.origins)) for key, value in values.items()]
    if json:
        print_json({key: {"value": value, "origin": source} if origin else value for key, value, source in rows})
        return
    console = open_console()
    shown = [(key, _spell(value), source) for key, value, source in rows]
    if console.is_terminal:
        _show(shown, console, origin=origin)
        return
    width = max((len(key) for key, _, _ in shown), default=0)
    room = max((len(value) for _, value, _ in shown if len(value) <= _COLUMN), default=0)
    for key, value, source in shown:
        line = f"{key:<{width}}  {value}" if not origin else f"{key:<{width}}  {value:<{room}}  {source}"
        console.print(line.rstrip(), markup=False, soft_wrap=True)


def _show(rows: "Sequence[tuple[str, str, str]]", console: "Console", *, origin: bool) -> None:
    """For a person: section by section, so that it fits a narrow terminal; defaults stand back."""
    from itertools import groupby

    from rich.text import Text

    from toolcrib.terminal import print_hanging

    # What somebody has named is told by what they wrote: docs/configuration.md has the rest.
    named = ("mcpServers.", "profiles.", "python.")
    told = [row for row in rows if not (row[2] == "default" and row[0].startswith(named))]
    width = max((len(key.rpartition(".")[2]) for key, _, _ in told), default=0)
    for section, members in groupby(told, key=lambda row: row[0].rpartition(".")[0]):
        if section:
            console.print(Text(section, style="bold"))
        for key, value, source in members:
            style = "" if source != "default" else "dim"
            whence = f"  ({source})" if origin and source != "default" else ""
            name = key.rpartition(".")[2]
            head = f"  {name:<{width}}  " if section else f"{name:<{width + 2}}  "
            print_hanging(console, Text(head, style=style), Text(f"{value}{whence}", style=style))
    if origin:
        console.print(Text("What has no origin here is a default.", style="dim"))


def changed_settings(loaded: "Loaded") -> list[tuple[str, str, str]]:
    """Key, value and origin of every setting that is not a default; secrets as ***."""
    from msgspec import to_builtins

    values = leaves(cast("JsonObject", to_builtins(loaded.settings)))
    rows = [(key, value, origin_of(key, loaded.origins)) for key, value in values]
    return [(key, _spell(masked(key, value)), origin) for key, value, origin in rows if origin != "default"]


def leaves(data: "Mapping[str, Json]", prefix: str = "") -> "Iterator[tuple[str, Json]]":
    """Dotted keys and values; an empty section is a value too, and a tuple of settings a list."""
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", cast("Json", list(value) if isinstance(value, tuple) else value)


def origin_of(key: str, origins: Mapping[str, str]) -> str:
    """Where a value came from: its own origin, or that of the shorthand that stands for its section."""
    while key:
        found = origins.get(key)
        if found:
            return found
        key = key.rpartition(".")[0]
    return "default"


def masked(key: str, value: "Json") -> "Json":
    """The value as a screen may show it. A reference to a variable is no secret."""
    if isinstance(value, list):
        from toolcrib.clients.secrets import argument_secrets, hide

        hidden = set(argument_secrets([item for item in value if isinstance(item, str)]))
        return [hide(item, hidden) if isinstance(item, str) else item for item in value]
    if not isinstance(value, str) or not value or _REFERENCE.fullmatch(value):
        return value
    if _SECRET_KEY.search(key) or _SECRET_SECTION.search(key):
        return HIDDEN
    address, mark, query = _USER_INFO.sub(f"{HIDDEN}@", value).partition("?")
    return f"{address}?{_QUERY_VALUE.sub(HIDDEN, query)}" if mark and "://" in value else f"{address}{mark}{query}"


def _spell(value: "Json") -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) if value else "[]"
    return "{}" if isinstance(value, Mapping) else str(value)
