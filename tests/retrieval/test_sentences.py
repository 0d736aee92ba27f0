"""Queries read as sentences: needs that share no word with their tool, any string at all, and files that do not fit."""

import json
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.sentences import SentenceReader
from toolcrib.retrieval.vectors import MODEL_DIRECTORY


@cache
def shipped() -> StaticModel:
    return StaticModel.load()


@pytest.fixture
def model() -> StaticModel:
    return shipped()


@pytest.fixture
def reader(model: StaticModel) -> SentenceReader:
    assert model.reader is not None
    return model.reader


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("need", "told", "other"),
    [
        ("do I need an umbrella tomorrow", "get weather forecast", "get exchange rate"),
        ("I can't find my way to the station", "get directions and routes", "compress image"),
        ("how much is a euro in yen right now", "convert currency", "play music"),
        ("let the team know I will be late", "send a message to a channel", "list files of a folder"),
    ],
)
def test_a_need_in_everyday_words_points_at_the_ability_that_meets_it(
    model: StaticModel, need: str, told: str, other: str
) -> None:
    there = model.point(need)
    assert there @ model.embed_query(told) > there @ model.embed_query(other) + 0.1


def test_the_order_of_words_counts(reader: SentenceReader) -> None:
    one, other = reader.read("send a file to a person").vector, reader.read("a person to send a file").vector
    assert one.tobytes() != other.tobytes()


@given(text=st.text(max_size=200))
def test_any_string_gives_a_vector_of_length_one(text: str) -> None:
    reader = shipped().reader
    assert reader is not None
    assert np.linalg.norm(reader.read(text).vector) == pytest.approx(1.0, abs=1e-4)


def test_the_vector_of_a_query_depends_on_the_query_alone(reader: SentenceReader) -> None:
    alone = reader.read("book a table for two").vector
    reader.read("something else entirely " * 20)
    assert reader.read("book a table for two").vector.tobytes() == alone.tobytes()


def test_what_lies_beyond_the_last_piece_is_not_read(reader: SentenceReader) -> None:
    long = "rename " * (READER_MAX_PIECES + 5)
    assert reader.read(long).vector.tobytes() == reader.read(long + "and delete everything").vector.tobytes()


def test_a_long_query_is_multiplied_in_groups_with_the_same_result(reader: SentenceReader) -> None:
    states = np.random.default_rng(1).standard_normal((50, 384)).astype(np.float32)
    layer = reader.layers[0].looks
    assert np.allclose(layer(states)[:20], layer(states[:20]), atol=1e-5)
    assert np.allclose(layer(states)[40:], layer(states[40:]), atol=1e-4)


def test_a_query_in_another_language_is_left_to_the_words(model: StaticModel) -> None:
    query = "¿qué tiempo hará mañana?"
    assert model.point(query).tobytes() == model.embed_query(query).tobytes()


@pytest.mark.parametrize(
    "query", ["illuminate the hallway", "set thermostat target temperature", "presigned url for it"]
)
def test_one_word_that_only_another_language_has_does_not_make_a_query_foreign(model: StaticModel, query: str) -> None:
    assert model.reads(query)


@pytest.mark.parametrize("query", ["Starte den Container neu", "Passwort erzeugen", "baixar o anexo do e-mail", "天气"])
def test_two_such_words_or_half_of_them_do(model: StaticModel, query: str) -> None:
    assert not model.reads(query)


@pytest.mark.parametrize("query", ["cerrar issue 12", "supprimer playlist rock"])
def test_of_a_short_query_with_one_foreign_word_the_words_still_say_what_it_means(
    model: StaticModel, query: str
) -> None:
    assert model.reads(query)
    assert model.point(query) @ model.embed_query(query) > 0.5


def test_the_more_words_are_unknown_the_less_the_sentence_counts(model: StaticModel) -> None:
    """A misspelt word has pieces that mean something else."""
    known = "create pull request"
    misspelt = "craete pul requets"
    assert model.vocabulary.known_share(known) == 1.0
    assert model.vocabulary.known_share(misspelt) < 0.5
    moved = [1.0 - float(model.point(query) @ model.embed_query(query)) for query in (known, misspelt)]
    assert moved[1] < moved[0]


def test_a_query_of_which_most_words_are_unknown_is_left_to_the_words(model: StaticModel) -> None:
    query = "vorqua blintep zorn find"
    assert model.vocabulary.known_share(query) < 0.5
    assert model.point(query).tobytes() == model.embed_query(query).tobytes()


def test_a_query_of_which_no_word_means_anything_points_nowhere(model: StaticModel) -> None:
    assert not model.point("…").any()


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.__delitem__(name)


def _of_another_table(arrays: dict[str, Any]) -> None:
    meta = json.loads(bytes(arrays["meta"])) | {"table": "another"}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)


def _too_narrow(arrays: dict[str, Any]) -> None:
    arrays["0.looks.codes"] = arrays["0.looks.codes"][:100]


@pytest.mark.parametrize("change", [_without("meta"), _without("2.widens.codes"), _of_another_table, _too_narrow])
def test_a_file_that_does_not_fit_is_refused(
    change: Callable[[dict[str, Any]], None], model: StaticModel, tmp_path: Path
) -> None:
    copytree(MODEL_DIRECTORY, tmp_path / "model")
    with np.load(MODEL_DIRECTORY / "reader.npz") as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    change(arrays)
    np.savez(tmp_path / "model" / "reader.npz", **arrays)
    with pytest.raises(ModelUnavailable):
        SentenceReader.load(model.mark, tmp_path / "model")


def test_without_the_file_queries_are_read_word_by_word_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copytree(MODEL_DIRECTORY, tmp_path / "model")
    (tmp_path / "model" / "reader.npz").unlink()
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        model = StaticModel.load(tmp_path / "model")
    assert "word by word" in caplog.text
    assert model.point("find flights").tobytes() == model.embed_query("find flights").tobytes()
