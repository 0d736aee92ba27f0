"""Rows of a text during training: as the package reads it, without the bridge."""

from collections.abc import Mapping

import numpy as np

from toolcrib.retrieval.vocabulary import Bridge, Vocabulary

_DESCRIPTION_ROWS = 160


class Tokens:
    """Texts to row numbers."""

    def __init__(self, tokens: list[str]) -> None:
        empty = Bridge.of([], np.zeros((0, 3), np.uint16), np.zeros((0, 3), np.uint8))
        self._vocabulary = Vocabulary.of(tokens, lambda: empty)

    def rows(self, text: str, at_most: int = 1_000_000) -> list[int]:
        """The rows of a text."""
        return [row for row, _ in self._vocabulary.rows(text, at_most=at_most)]


def fields(tool: Mapping[str, object], tokens: Tokens) -> tuple[list[int], list[int], list[int], list[int]]:
    """The rows of name, server, description and parameter names."""
    parameters = tool["params"]
    assert isinstance(parameters, list)
    return (
        tokens.rows(str(tool["name"])),
        tokens.rows(str(tool.get("server") or "")),
        tokens.rows(str(tool["description"])[:1500], _DESCRIPTION_ROWS),
        tokens.rows(" ".join(parameters[:20])),
    )
