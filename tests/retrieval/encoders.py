"""A tiny encoder for tests: a text is the sum of the axes of the ideas that it names."""

import threading

import numpy as np

from toolcrib.retrieval.encoder import DIMENSIONS

IDEAS = (("umbrella", "rain", "weather"), ("invoice", "bill"), ("message", "chat", "word"), ("file", "document"))


class FakeEncoder:
    """Counts what it was asked; `gate`, if given, holds texts with `held` in them back until it is set."""

    def __init__(self, gate: threading.Event | None = None, held: str = "") -> None:
        self.texts: list[str] = []
        self._gate = gate
        self._held = held

    def embed(self, text: str) -> np.ndarray:
        if self._gate is not None and self._held in text:
            assert self._gate.wait(60)
        self.texts.append(text)
        vector = np.zeros(DIMENSIONS, dtype=np.float32)
        for axis, words in enumerate(IDEAS):
            vector[axis] = any(word in text.lower() for word in words)
        vector[-1] = 0.1
        return vector / np.linalg.norm(vector)
