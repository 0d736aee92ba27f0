"""Nearness in meaning: other words, other languages, and any string at all."""

import subprocess
import sys
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import limits
from toolcrib.errors import ModelUnavailable, ToolcribError
from toolcrib.retrieval import semantic
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.sentences import Sentence, SentenceReader
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, unit


def document(
    leaf: str, description: str, toolset: str = "kit", *parameters: str, aliases: tuple[str, ...] = ()
) -> PlainDocument:
    digest = sha256(
        repr((leaf, description, toolset, parameters, aliases)).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return PlainDocument(
        key=f"{toolset}__{leaf}", digest=digest, leaf=leaf, toolset=toolset, description=description,
        parameters=parameters, nested="", aliases=aliases,
    )  # fmt: skip


TOOLS = (
    document("get_forecast", "Weather forecast for a place for the next days.", "sky", "city", "days"),
    document("send_email", "Send an email to one or more people.", "post", "to", "subject", "body"),
    document("delete_file", "Delete a file from disk.", "files", "path"),
    document("read_file", "Read the content of a file.", "files", "path"),
    document("translate_text", "Translate a text into another language.", "words", "text", "target_language"),
    document("get_stock_price", "Current price of a share on the stock market.", "market", "symbol"),
    document("create_event", "Create an event in the calendar and invite people.", "diary", "title", "start", "end"),
    document(
        "get_route",
        "Directions from one place to another by car, bike or on foot.",
        "maps",
        "origin",
        "destination",
    ),
    document("play_song", "Play a song or an album.", "music", "title"),
    document("merge_pdf", "Merge several PDF documents into one.", "office", "documents"),
)


@pytest.fixture(scope="module")
def model() -> StaticModel:
    return StaticModel.load()


def best(model: StaticModel, query: str) -> str:
    return TOOLS[int(np.argmax(model.index(TOOLS).scores(query)))].leaf


def test_importing_the_module_reads_no_model() -> None:
    code = (
        "import numpy, toolcrib.retrieval.semantic as s; "
        "numpy.load = None; import toolcrib.retrieval.vocabulary; print(s.StaticModel.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "StaticModel"


@pytest.mark.parametrize(
    ("query", "leaf"),
    [
        ("will it rain tomorrow", "get_forecast"),
        ("write to my colleague", "send_email"),
        ("erase a document from the drive", "delete_file"),
        ("how do I drive to the airport", "get_route"),
        ("schedule a meeting", "create_event"),
        ("put on some music", "play_song"),
        ("equity quote", "get_stock_price"),
    ],
)
def test_a_need_in_other_words_finds_the_tool(model: StaticModel, query: str, leaf: str) -> None:
    assert best(model, query) == leaf


@pytest.mark.parametrize(
    ("query", "leaf"),
    [
        ("enviar un correo electrónico", "send_email"),
        ("¿lloverá mañana? pronóstico", "get_forecast"),
        ("eine Datei löschen", "delete_file"),
        ("Übersetze diesen Satz", "translate_text"),
        ("lire le contenu d'un fichier", "read_file"),
        ("cours de l'action en bourse", "get_stock_price"),
        ("juntar vários documentos pdf", "merge_pdf"),
        ("come arrivare, indicazioni stradali", "get_route"),
        ("какая завтра погода", "get_forecast"),
        ("отправь письмо", "send_email"),
        ("明天的天气怎么样", "get_forecast"),
        ("把这段文字翻译成英文", "translate_text"),
        ("ファイルを削除して", "delete_file"),
        ("会議の予定を作成", "create_event"),
        ("음악 틀어줘", "play_song"),
        ("gửi thư điện tử", "send_email"),
        ("कल का मौसम कैसा रहेगा", "get_forecast"),
    ],
)
def test_a_need_in_another_language_finds_the_english_tool(model: StaticModel, query: str, leaf: str) -> None:
    assert best(model, query) == leaf


def test_a_foreign_word_is_found_without_its_accents_and_in_capitals(model: StaticModel) -> None:
    assert best(model, "TRADUCCION") == best(model, "traducción") == "translate_text"


def test_english_words_for_a_foreign_text_can_be_looked_up(model: StaticModel) -> None:
    assert {"delete", "file"} <= set(model.vocabulary.english("Datei löschen"))
    assert model.vocabulary.english("delete the file") == ()
    assert model.vocabulary.english("please delete the old Datei in my folder") == ()


def test_identifiers_come_apart(model: StaticModel) -> None:
    plain = model.embed_query("get stock price")
    for spelling in ("getStockPrice", "get_stock_price", "GET-STOCK-PRICE", "get.stock.price"):
        assert model.embed_query(spelling) @ plain == pytest.approx(1.0, abs=1e-5)


def test_a_misspelt_or_unknown_word_still_gives_a_vector(model: StaticModel) -> None:
    assert np.linalg.norm(model.embed_query("recieveble xqzzt")) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("text", ["", " \n\t", "!?…", "\ud800", "\x00", "🦊", "_" * 100])
def test_a_text_without_meaning_is_the_zero_vector_and_scores_zero(model: StaticModel, text: str) -> None:
    assert not model.embed_query(text).any()
    scores = model.index(TOOLS).scores(text)
    assert scores.shape == (len(TOOLS),)
    assert not scores.any()


@pytest.mark.parametrize("text", ["a" * 1_000_000, "漢" * 1_000_000, "word " * 200_000, "\ud800é" * 300_000])
def test_a_megabyte_is_read_up_to_its_bound(model: StaticModel, text: str) -> None:
    assert np.isfinite(model.embed_query(text)).all()
    assert len(model.vocabulary.english(text)) < 1_000
    assert np.isfinite(unit(model.embed_documents([document("huge", text)]))).all()
    assert all(len(word) <= limits.SEMANTIC_WORD_MAX_CHARS for word in model.vocabulary._seen)


@given(text=st.text(st.characters(exclude_categories=())))
@settings(max_examples=200, deadline=None)
def test_any_string_gives_a_finite_vector_of_length_one_or_zero(text: str) -> None:
    model = _shared()
    length = float(np.linalg.norm(model.embed_query(text)))
    assert length == pytest.approx(1.0, abs=1e-4) or length == 0.0


def test_scores_stand_in_the_order_of_the_documents_and_within_bounds(model: StaticModel) -> None:
    forward = model.index(TOOLS).scores("delete a file")
    backward = model.index(TOOLS[::-1]).scores("delete a file")
    assert np.allclose(forward, backward[::-1], atol=1e-6)
    assert float(np.abs(forward).max()) <= 1.0 + 1e-5


def test_two_models_give_the_same_bytes(model: StaticModel) -> None:
    other = StaticModel.load()
    assert other.embed_documents(TOOLS).tobytes() == model.embed_documents(TOOLS).tobytes()
    assert other.embed_query("find flights").tobytes() == model.embed_query("find flights").tobytes()


def test_an_index_of_nothing_answers_with_no_scores(model: StaticModel) -> None:
    index = model.index(())
    assert len(index) == 0
    assert index.scores("anything").shape == (0,)


def test_a_document_is_embedded_once_by_its_content(model: StaticModel) -> None:
    fresh = StaticModel.load()
    fresh.embed_documents(TOOLS)
    kept = dict(fresh._cache)
    fresh.embed_documents((*TOOLS, document("new", "Something else.")))
    assert len(fresh._cache) == len(TOOLS) + 1
    assert all(fresh._cache[digest] is vector for digest, vector in kept.items())


def test_the_kept_vectors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "SEMANTIC_CACHED_DOCUMENTS", 4)
    fresh = StaticModel.load()
    whole = fresh.embed_documents(TOOLS)
    assert len(fresh._cache) <= 4
    assert np.array_equal(whole, fresh.embed_documents(TOOLS))


def test_a_word_of_the_operator_moves_a_tool_nearer(model: StaticModel) -> None:
    plain, named = (
        document("run", "Runs the job."),
        document("run", "Runs the job.", aliases=("payroll salary",)),
    )
    scores = model.index((plain, named)).scores("pay the salaries")
    assert scores[1] > scores[0]


def test_a_large_index_ranks_the_nearest_as_an_exact_one_does(
    model: StaticModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs, things = (
        ("create", "delete", "list", "update"),
        ("invoice", "branch", "photo", "playlist", "ticket"),
    )
    many = [document(f"{v}_{t}_{n}", f"{v} one {t}, variant {n}") for v in verbs for t in things for n in range(10)]
    exact = model.index(many).scores("remove a picture")
    monkeypatch.setattr(semantic, "SEMANTIC_EXACT_DOCUMENTS", 50)
    monkeypatch.setattr(semantic, "SEMANTIC_REFINED_DOCUMENTS", 40)
    large = model.index(many).scores("remove a picture")
    nearest = np.argsort(-exact, kind="stable")[:10]
    assert np.allclose(large[nearest], exact[nearest], atol=2e-2)
    assert set(np.argsort(-large, kind="stable")[:10].tolist()) & set(nearest.tolist())


@pytest.mark.requirement("K14")
def test_a_missing_model_is_an_error_that_can_be_caught(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be read") as caught:
        StaticModel.load(tmp_path)
    assert isinstance(caught.value, ToolcribError)


@pytest.mark.requirement("K14")
@pytest.mark.parametrize("place", [0, 100, 4_000_000, -30])
def test_a_damaged_model_is_never_used(tmp_path: Path, place: int) -> None:
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    data = bytearray((folder / "table.npz").read_bytes())
    for at in range(20):
        data[place + at] ^= 0xFF
    (folder / "table.npz").write_bytes(data)
    with pytest.raises(ModelUnavailable):
        StaticModel.load(folder)


@pytest.mark.requirement("K14")
def test_a_bridge_that_is_missing_or_of_another_table_is_told_at_once(tmp_path: Path) -> None:
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    words = np.frombuffer(b"wort", dtype=np.uint8)
    rows, weights = np.array([[60_000, 0, 0]], np.uint16), np.array([[255, 0, 0]], np.uint8)
    np.savez(folder / "bridge.npz", words=words, rows=rows, weights=weights)
    with pytest.raises(ModelUnavailable, match="does not belong"):
        StaticModel.load(folder)
    (folder / "bridge.npz").unlink()
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        StaticModel.load(folder)


@pytest.mark.requirement("X1")
def test_a_few_tools_are_read_when_their_index_is_made(model: StaticModel) -> None:
    index = model.index(TOOLS)
    assert index.unread == 0
    assert not np.array_equal(index.codes, model.embed_documents(TOOLS))


@pytest.mark.requirement("X1")
def test_tools_that_are_not_read_yet_are_ranked_by_their_words(held: threading.Event) -> None:
    model = StaticModel.load()
    by_words = replace(model, readings=None).index(TOOLS).scores("delete a file")
    index = model.index(TOOLS)
    assert np.array_equal(index.scores("delete a file"), by_words)
    assert index.unread == len(TOOLS)
    held.set()
    assert model.readings is not None
    model.readings.wait(60)
    assert index.unread == 0
    assert not np.array_equal(index.scores("delete a file"), by_words)


@pytest.mark.requirement("X1")
def test_a_tool_is_read_alike_at_once_in_the_background_and_beside_others(
    model: StaticModel, held: threading.Event
) -> None:
    held.set()
    later = StaticModel.load()
    assert later.readings is not None
    index = later.index(TOOLS)
    later.readings.wait(60)
    for row, tool in enumerate(TOOLS):
        assert np.array_equal(model.index([tool]).codes[0], index.codes[row])


@pytest.mark.requirement("X1")
def test_a_tool_in_another_language_is_left_to_its_words(model: StaticModel) -> None:
    foreign = document("查询天气", "查询某个城市今天的天气预报和空气质量")
    assert np.allclose(unit(model.index([foreign]).codes), unit(model.embed_documents([foreign])), atol=0.01)


@pytest.mark.requirement("X1")
def test_a_query_in_another_language_meets_the_words_of_tools(model: StaticModel) -> None:
    assert not model.reads("eine Datei löschen")
    by_words = replace(model, readings=None).index(TOOLS)
    query = "eine Datei löschen"
    assert np.array_equal(model.index(TOOLS).scores(query), by_words.scores(query))


@pytest.mark.requirement("X1")
def test_what_was_read_is_kept_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = StaticModel.load(kept=tmp_path)
    codes = first.index(TOOLS).codes
    assert first.readings is not None
    first.readings.close()
    monkeypatch.setattr(SentenceReader, "read", None)
    assert np.array_equal(StaticModel.load(kept=tmp_path).index(TOOLS).codes, codes)


@pytest.mark.requirement("K14")
def test_a_reader_that_fails_costs_the_sentences_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: SentenceReader, text: str, **limit: int) -> Sentence:
        raise FloatingPointError

    model = StaticModel.load()
    monkeypatch.setattr(SentenceReader, "read", fail)
    index = model.index(TOOLS)
    assert index.unread == len(TOOLS)
    assert np.array_equal(index.codes, model.embed_documents(TOOLS))
    assert "the sentence reader failed (FloatingPointError)" in caplog.text


def test_the_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in MODEL_DIRECTORY.iterdir()) <= 56 * 1024 * 1024


_models: list[StaticModel] = []


def _shared() -> StaticModel:
    # Hypothesis refuses module fixtures; one model is enough for all examples.
    if not _models:
        _models.append(StaticModel.load())
    return _models[0]


@pytest.mark.requirement("K14")
def test_each_part_that_is_missing_is_logged_and_the_first_is_what_doctor_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    for part in ("languages.npz", "comparer.npz", "joint.npz"):
        (folder / part).unlink()
    model = StaticModel.load(folder)
    costs = ["other languages", "not compared", "not read together"]
    assert [cost in record.getMessage() for cost, record in zip(costs, caplog.records, strict=True)] == [True] * 3
    assert costs[0] in (model.lacking or "")
