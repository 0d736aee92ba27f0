"""`toolcrib learn`: aliases that the feed of activity suggests; applied by nobody but the operator."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import print_json

if TYPE_CHECKING:
    from toolcrib.definitions import JsonObject


def learn(
    activity: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the feed; without it, `activity.file` as set.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    min_sessions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Sessions in which a word must have led to a tool.")
    ] = 2,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Proposes aliases from searches that ended in a call, as YAML to take over by hand; changes nothing.

    The feed keeps no queries unless the setting `activity.queries` is true. Then it keeps their words: without order,
    numbers, addresses and everything that is no plain word. Exit code 1 if there is nothing to propose.

    Example: toolcrib learn --activity activity.jsonl
    """
    from toolcrib.cli.cribs import DEFAULT_CONFIG
    from toolcrib.config import load_settings
    from toolcrib.errors import ConfigError
    from toolcrib.learning import propose_aliases, write_yaml

    path = config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)
    settings = load_settings(path).settings
    file = activity or (Path(settings.activity.file) if settings.activity.file else None)
    if file is None:
        raise ConfigError("There is no feed: give --activity FILE, or set `activity.file` in the configuration.")
    lesson = propose_aliases(read_events(file), min_sessions=min_sessions, known=settings.tools.aliases)
    if json:
        print_json(
            {
                "searches": lesson.searches,
                "with_words": lesson.with_words,
                "pairs": lesson.pairs,
                "proposals": [
                    {
                        "tool": item.tool,
                        "words": list(item.words),
                        "sessions": item.sessions,
                        "counts": dict(item.counts),
                    }
                    for item in lesson.proposals
                ],
            }
        )
    elif lesson.proposals:
        sys.stdout.write(write_yaml(lesson.proposals))
    elif lesson.searches and not lesson.with_words:
        sys.stderr.write(
            f"{file}: has no words of its searches ({lesson.searches}): set `activity.queries: true` to keep them.\n"
        )
    else:
        sys.stderr.write(f"{file}: has no word that led to one tool in {min_sessions} sessions.\n")
    if not lesson.proposals:
        raise typer.Exit(1)


def read_events(path: Path) -> "Iterator[JsonObject]":
    """The events of a feed, its older part first. Raises `ConfigError` that names the line."""
    import orjson

    from toolcrib.errors import ConfigError

    older = path.with_name(path.name + ".1")
    for part in (older, path) if older.exists() else (path,):
        try:
            lines = part.read_bytes().splitlines()
        except OSError as error:
            raise ConfigError(f"{part}: cannot be read: {error.strerror or error}.") from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                if number == len(lines):
                    break  # the last line may be on its way
                raise ConfigError(f"{part}:{number}: is no event of a feed.") from None
            if not isinstance(event, dict):
                raise ConfigError(f"{part}:{number}: is no event of a feed.")
            yield event
