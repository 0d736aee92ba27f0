"""Text as it comes from an endpoint, made whole.

An endpoint that cuts its stream by halves of characters sends an emoji as two lone surrogates. Neither can be shown,
sent back or written to a file, so pairs are joined and what stays alone is replaced.
"""

from collections.abc import Callable

from toolcrib.definitions import Json, JsonObject


class Pieces:
    """Hands pieces of text on, and keeps back a half until the other one comes."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._half = ""

    def __call__(self, piece: str) -> None:
        """Takes the next piece."""
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if text := whole(text.removesuffix(self._half)):
            self._take(text)

    def end(self) -> None:
        """Hands on what is left."""
        if self._half:
            self._take(whole(self._half))
            self._half = ""


def whole(text: str) -> str:
    """The text with halves joined, and those without another replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_json(value: JsonObject) -> JsonObject:
    """An object in which all texts are whole."""
    return {whole(key): _whole(item) for key, item in value.items()}


def _whole(value: Json) -> Json:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return whole_json(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
