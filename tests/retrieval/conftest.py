"""A reader that takes its time."""

import threading
from collections.abc import Generator

import pytest

from toolcrib.retrieval import semantic
from toolcrib.retrieval.sentences import Sentence, SentenceReader


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Generator[threading.Event]:
    """A reader that reads tools in the background, and only once it may; queries it reads at once."""
    may, read = threading.Event(), SentenceReader.read

    def patient(self: SentenceReader, text: str, **limit: int) -> Sentence:
        assert "at_most" not in limit or may.wait(60)
        return read(self, text, **limit)

    monkeypatch.setattr(semantic, "READER_AT_ONCE", 0)
    monkeypatch.setattr(SentenceReader, "read", patient)
    yield may
    may.set()
