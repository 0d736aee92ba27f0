"""Words, the table and the sentence encoder together: what is found, and what is said of what was applied."""

import threading
from collections.abc import Callable

import pytest
from tests.retrieval.documents import document
from tests.retrieval.encoders import FakeEncoder

from toolcrib.errors import ModelUnavailable
from toolcrib.retrieval import encoded
from toolcrib.retrieval.encoded import EncodedRetriever
from toolcrib.retrieval.encoder import Encoder
from toolcrib.retrieval.encoder_fill import VectorFill
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.semantic import StaticModel

TOOLS = (
    document("delete_file", "Remove a file from the disk", toolset="files"),
    document("send_message", "Send a message to a channel", toolset="chat"),
    document("create_invoice", "Create an invoice for a customer", toolset="billing"),
    document("outlook", "What the rain will do", toolset="sky"),
)
QUERY = "shall I pack my umbrella"
MODEL = StaticModel.load()


def retriever(load: Callable[[], Encoder] = FakeEncoder) -> EncodedRetriever:
    return EncodedRetriever(VectorFill(load=load), load=lambda: MODEL)


def filled(load: Callable[[], Encoder] = FakeEncoder) -> EncodedRetriever:
    made = retriever(load)
    made.index(TOOLS)
    made.fill.wait(60)
    return made


@pytest.mark.requirement("X1")
def test_the_encoder_finds_what_neither_words_nor_the_table_relate():
    ranking = filled().index(TOOLS).search(QUERY, limit=2)
    assert ranking.hits[0].key == "outlook"
    assert ranking.mode == "hybrid+onnx"


@pytest.mark.requirement("X1", "K14")
def test_until_its_vectors_are_there_the_table_answers_and_the_ranking_says_so():
    gate = threading.Event()

    def load() -> Encoder:
        assert gate.wait(60)
        return FakeEncoder()

    made = retriever(load)
    index = made.index(TOOLS)
    plain = HybridRetriever(load=lambda: MODEL, weights=encoded.ENCODER_WEIGHTS).index(TOOLS)
    early = index.search("send a message", limit=4)
    assert early.mode == "hybrid (encoder not ready)"
    assert early.hits == plain.search("send a message", limit=4).hits
    gate.set()
    made.fill.wait(60)
    assert index.search("send a message", limit=4).mode == "hybrid+onnx"


def test_a_tool_that_came_later_is_counted_as_missing_until_it_is_encoded():
    gate = threading.Event()
    made = filled(lambda: FakeEncoder(gate, held="Something new"))
    index = made.index((*TOOLS, document("new_tool", "Something new")))
    assert index.search(QUERY, limit=2).mode == "hybrid+onnx (4 of 5 tools)"
    gate.set()
    made.fill.wait(60)
    assert index.search(QUERY, limit=2).mode == "hybrid+onnx"


@pytest.mark.requirement("K14")
def test_an_encoder_that_cannot_be_read_leaves_the_table_and_says_so(caplog: pytest.LogCaptureFixture):
    def load() -> Encoder:
        raise ModelUnavailable("the weights are damaged")

    made = filled(load)
    ranking = made.index(TOOLS).search("send a message", limit=2)
    assert ranking.hits[0].key == "send_message"
    assert ranking.mode == "hybrid (encoder not ready)"
    assert made.fill.state.failure == "the weights are damaged"


def test_a_query_in_another_language_is_left_to_the_table():
    encoder = FakeEncoder()
    made = filled(lambda: encoder)
    before = len(encoder.texts)
    ranking = made.index(TOOLS).search("enviar un mensaje a un canal", limit=2)
    assert ranking.hits[0].key == "send_message"
    assert ranking.mode == "hybrid"
    assert len(encoder.texts) == before


@pytest.mark.requirement("X1")
def test_a_name_still_wins_over_both_models():
    index = filled().index(TOOLS)
    for tool in TOOLS:
        assert index.search(tool.key, limit=1).hits[0].key == tool.key


def test_explain_shows_the_encoders_part_and_the_parts_add_up():
    hit = filled().index(TOOLS).search(QUERY, limit=1, explain=True).hits[0]
    assert hit.evidence["encoder"] > 0.3
    assert sum(hit.evidence.values()) == pytest.approx(hit.score, abs=0.001)


def test_a_query_is_encoded_once_and_its_clauses_are_not():
    encoder = FakeEncoder()
    index = filled(lambda: encoder).index(TOOLS)
    before = len(encoder.texts)
    index.search("send the weather to the team, then bill the customer for it", limit=3, explain=True)
    assert len(encoder.texts) == before + 1


def test_of_a_large_index_the_encoder_judges_what_the_table_finds_near(monkeypatch: pytest.MonkeyPatch):
    small = filled().index(TOOLS).search(QUERY, limit=1).hits
    monkeypatch.setattr(encoded, "SEMANTIC_EXACT_DOCUMENTS", 3)
    monkeypatch.setattr(encoded, "SEMANTIC_REFINED_DOCUMENTS", 4)
    ranking = filled().index(TOOLS).search(QUERY, limit=1)
    assert ranking.hits[0].key == small[0].key
    assert ranking.hits[0].score == pytest.approx(small[0].score, abs=1e-4)


def test_the_same_vectors_give_the_same_ranking_in_any_order_of_arrival():
    one = filled().index(TOOLS).search(QUERY, limit=4)
    other = retriever()
    other.index(TOOLS[2:])
    other.fill.wait(60)
    other.index(TOOLS)
    other.fill.wait(60)
    assert other.index(TOOLS).search(QUERY, limit=4) == one
