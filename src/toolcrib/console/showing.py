"""What may be shown on a page: everything that could mislead a reader written out (I3), and no secret (J1).

Every byte that the console answers goes through `encode`, so that no view can forget it.
"""

from collections.abc import Iterable, Mapping
from typing import cast

import orjson
from msgspec import to_builtins

from toolcrib.activity import Event, shape_of
from toolcrib.clients.secrets import argument_secrets, hide
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import SourceUnavailable
from toolcrib.intake.findings import make_visible
from toolcrib.settings import ServerSettings, Settings
from toolcrib.sources.servers import resolve

_SECRET_MIN_CHARS = 4
"""Shorter values are no secrets, and would hide half of a sentence."""


def encode(value: object) -> bytes:
    """A value as JSON that is safe to show."""
    return orjson.dumps(_shown(to_builtins(value, str_keys=True)))


def _shown(value: object) -> object:
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {make_visible(key): _shown(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in cast("list[object]", value)]
    return value


class Shades:
    """Hides what the configuration gives to servers in texts that servers wrote."""

    def __init__(self, settings: Settings) -> None:
        self._secrets = {name: frozenset(_secrets_of(entry)) for name, entry in settings.mcpServers.items()}
        self._all = frozenset[str]().union(*self._secrets.values())
        self._shapes = settings.activity.arguments == "shapes"

    def text(self, text: str, server: str | None = None) -> str:
        """What a server said, without what only it should know; of any server if it is not said of which."""
        return hide(text, self._all if server is None else self._secrets.get(server, ()))

    def event(self, event: Event) -> JsonObject:
        """An event of the feed; the arguments are shapes whatever the file of the feed holds."""
        shown = event.as_json()
        arguments: Json = shown.get("arguments")
        if arguments is not None:
            shown["arguments"] = arguments if self._shapes else shape_of(arguments)
        if event.reason is not None:
            shown["reason"] = self.text(event.reason)
        return shown


def _secrets_of(entry: ServerSettings) -> Iterable[str]:
    found = [*argument_secrets((*entry.args, entry.url or ""))]
    for value in (*entry.env.values(), *entry.headers.values(), entry.url or ""):
        try:
            whole = resolve(value)
        except SourceUnavailable:
            continue
        if value != entry.url or whole != value:
            found += [whole, whole.partition(" ")[2]]
    return (text for text in found if len(text) >= _SECRET_MIN_CHARS)
