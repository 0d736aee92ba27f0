"""Courtesies around a query do not change what it asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.limits import QUERY_MAX_CHARS
from toolcrib.retrieval.courtesy import plainly


@pytest.mark.requirement("X2")
@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("Hello, can you help me check my balance?", "check my balance?"),
        ("Good morning! Could you kindly assist me with translating this text? Thank you.", "translating this text?"),
        ("I'd like you to book a flight, please.", "book a flight"),
        ("how do I create an issue", "create an issue"),
        ("we are planning to rent a van", "rent a van"),
        ("PLEASE LIST MY FILES", "LIST MY FILES"),
        ("show the weather, thanks!", "show the weather"),
    ],
)
def test_courtesies_in_front_and_at_the_end_are_left_out(query: str, plain: str):
    assert plainly(query) == plain


@pytest.mark.parametrize(
    "query",
    [
        "list files",
        "Please help",
        "hi there",
        "history of the repository",
        "highlight a line",
        "can_you_help",
        "wellness plan of this week",
        "how many users are there",
        "send a thank you note",
        "what does please mean in Spanish",
        "你好，请查一下天气",
        "",
    ],
)
def test_what_is_no_courtesy_or_would_leave_a_single_word_stays(query: str):
    assert plainly(query) == query


@given(
    st.lists(
        st.sampled_from(["hi", "please", "can you", "help me", "thanks", ",", "?", "weather", "\n", "x"]), max_size=12
    )
)
def test_what_is_left_is_a_stretch_of_the_query_of_two_words_or_the_query(parts: list[str]):
    query = " ".join(parts)
    plain = plainly(query)
    assert plain in query
    assert plain == query or len(plain.split()) > 1


def test_a_query_of_nothing_but_courtesies_takes_no_longer_for_each():
    looked = "please " * (QUERY_MAX_CHARS // 7)
    assert len(plainly(looked)) < len(looked)
    assert plainly(" " * QUERY_MAX_CHARS) == " " * QUERY_MAX_CHARS
