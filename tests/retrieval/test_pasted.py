"""Data in a query is no part of what it says."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.documents import document

from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.pasted import needs_without_data, without_data

PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (f"what does this picture show? {PICTURE}", "what does this picture show?"),
        (f"{PICTURE} what does this show?", "what does this show?"),
        ("cancel job 27f145d2-5713-4a8d-af64-b269f95ade3b now", "cancel job   now"),
        ("who sent 0x675e20f06597d976c23cef8fd6ff8f9c56b75af7?", "who sent  ?"),
    ],
)
def test_data_is_left_out(query: str, said: str) -> None:
    assert without_data(query) == said


@pytest.mark.parametrize(
    "query",
    [
        "list_subscription_locations_by_resource_group_v2",
        "order 4711 for Mr Smith",
        "https://github.com/python/cpython/issues/12345",
        "get https://api.github.com/repos/acme/webshop/issues/comments/1234567",
        "delete calendar/events/2024-05-17/standup-meeting/0930",
        "open /home/anna/invoices/2024/unpaid/invoice-2024-0017",
        "please lambda__get_2015_03_31_functions_function_name_configuration",
        "run modelcontextprotocol_se_3d37a115__read_media_file_v2",
        "supercalifragilisticexpialidocious-and-beyond",
        "27f145d2-5713-4a8d-af64-b269f95ade3b",
        "27f145d2-5713-4a8d-af64-b269f95ade3b, 4711",
        "",
    ],
)
def test_what_may_be_meant_stays(query: str) -> None:
    assert without_data(query) == query


@pytest.mark.requirement("X1")
def test_a_picture_in_a_query_does_not_hide_what_is_asked() -> None:
    tools = (
        document("describe_image", "Says what an image shows"),
        document("create_invoice", "Writes a bill for a customer"),
        document("get_weather", "Weather forecast for a city"),
    )
    index = HybridRetriever().index(tools)
    found = index.search(f"{PICTURE} what can be seen in this picture?", limit=1)
    assert [hit.key for hit in found.hits] == ["describe_image"]
    assert found.confidence == index.search("what can be seen in this picture?", limit=1).confidence


@pytest.mark.requirement("X1")
def test_a_name_of_words_and_digits_is_found_among_other_words() -> None:
    name = "get_2015_03_31_functions_function_name_configuration"
    tools = (document(name, "Reads settings"), document("open_window", "Opens a window"))
    hits = HybridRetriever().index(tools).search(f"please run {name}", limit=1).hits
    assert [hit.key for hit in hits] == [name]


def test_a_number_alone_is_searched_for_though_politely() -> None:
    number = "27f145d2-5713-4a8d-af64-b269f95ade3b"
    found = HybridRetriever().index((document("open_window", "Opens a window"),)).search(f"please {number}", limit=1)
    assert found.read_as == number


@pytest.mark.parametrize(
    ("needs", "left"),
    [
        (("see the picture", PICTURE), ("see the picture",)),
        (("see the picture", f"{PICTURE} {PICTURE}", "dSvAu4ELNFyECA=="), ("see the picture",)),
        (("find a tool", "dSvAu4ELNFyECA=="), ("find a tool", "dSvAu4ELNFyECA==")),
        ((f"see {PICTURE}", "4711"), (f"see {PICTURE}", "4711")),
        ((PICTURE, "abc="), (PICTURE, "abc=")),
        ((), ()),
    ],
)
def test_lines_of_data_are_no_needs_unless_there_is_nothing_else(needs: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert needs_without_data(needs) == left


@given(st.text(max_size=200))
def test_any_query_keeps_what_it_says(query: str) -> None:
    said = without_data(query)
    assert said == query or any(character.isalpha() for character in said)
