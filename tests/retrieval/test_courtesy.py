"""Courtesies around a query do not change what it asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.limits import QUERY_MAX_CHARS, QUERY_READ_CHARS
from toolcrib.retrieval.courtesy import plainly


@pytest.mark.requirement("X2")
@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("Hello, can you help me check my balance?", "check my balance?"),
        ("Good morning! Could you kindly assist me with translating this text? Thank you.", "translating this text"),
        ("I'd like you to book a flight, please.", "book a flight"),
        ("I\u2019d like to book a flight", "book a flight"),
        ("how do I create an issue", "create an issue"),
        ("we are planning to rent a van", "rent a van"),
        ("hi can you list files", "list files"),
        ("Hello!\nCan you\tlist  files", "list  files"),
        ("PLEASE LIST MY FILES", "LIST MY FILES"),
        ("Well, show the weather, thanks!", "show the weather"),
        ("list my files please. Thank you!", "list my files"),
        ("could you please help me translate, thank you", "translate"),
    ],
)
def test_courtesies_in_front_and_at_the_end_are_left_out(query: str, plain: str):
    assert plainly(query) == plain


@pytest.mark.parametrize(
    "query",
    [
        "list files",
        "hi there",
        "hi-res image download",
        "hey-api generate client",
        "hello world template create",
        "hi there is a bug in main",
        "good morning message to mom",
        "dear john letter template",
        "well log data query",
        "so sánh hai tệp",
        "let me know when the build fails",
        "let's encrypt certificate",
        "I'm going to Paris next week",
        "would you rather questions game",
        "help us out now",
        "can_you_help",
        "how many users are there",
        "send a message saying thank you",
        "translate to Japanese: thank you",
        "how do you say please",
        "what does please mean in Spanish",
        "please",
        "你好，请查一下天气",
        "",
    ],
)
def test_what_may_be_meant_stays(query: str):
    assert plainly(query) == query


PARTS = (
    "hi",
    "hello,",
    "please",
    "can you",
    "help me",
    "so,",
    "thanks",
    "thank you",
    ",",
    ".",
    "-",
    ":",
    "'",
    "?",
    "weather",
    "\n",
    "x",
)


@given(st.lists(st.sampled_from(PARTS), max_size=12))
def test_what_is_left_is_a_stretch_of_the_query_that_holds_a_word_or_the_query(parts: list[str]):
    query = " ".join(parts)
    plain = plainly(query)
    assert plain in query
    assert plain == query or any(letter.isalnum() for letter in plain)


@pytest.mark.parametrize("repeated", ["please ", "how do i ", "could you help me ", "so, ", ", thanks"])
def test_of_many_courtesies_a_bounded_number_is_left_out_on_either_side(repeated: str):
    many = repeated * 100
    left = plainly(f"{many}weather{many}").count(repeated.strip(" ,"))
    assert 200 - 2 * 8 <= left < 200


@pytest.mark.parametrize("repeated", [" ", "\n", "hi\n", ", ", "hi ", "thank ", "please,"])
def test_a_long_query_that_only_looks_like_courtesies_ends(repeated: str):
    looked = repeated * (QUERY_MAX_CHARS * 20 // len(repeated))
    assert plainly(looked) in looked


def test_blanks_without_end_behind_a_greeting_are_not_walked_through():
    endless = f"hi{' ' * QUERY_READ_CHARS}can you list files"
    assert plainly(endless) == endless
    assert plainly(f"hi{' ' * 100}can you list files") == "list files"
