"""Terms: identifiers, scripts, word families."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.text import family, in_words, normal_name, query_terms, terms


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_issue", ["create", "issue"]),
        ("createIssue", ["create", "issue", "createissue"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("s3.getObject", ["s3", "get", "object", "getobject"]),
        ("GitHub", ["git", "hub", "github"]),
        ("base64", ["base", "64", "base64"]),
        ("Größe", ["grosse"]),
        ("Łódź", ["lodz"]),
        ("Ændring", ["aendring"]),
        ("ØRE", ["ore"]),
        ("tạo ảnh", ["tao", "anh"]),
        ("đường", ["duong"]),
        ("搜索词", ["搜索", "索词", "搜", "索", "词"]),
        ("用AI画图", ["用", "ai", "画图", "画", "图"]),
    ],
)
def test_texts_come_apart_into_terms(text: str, expected: list[str]):
    assert terms(text) == expected


@pytest.mark.requirement("X6")
@pytest.mark.parametrize("name", ["øre_liste", "łódź", "ændring", "œuvre", "þing", "straße", "đường"])
def test_a_name_is_the_same_in_small_and_in_capital_letters(name: str):
    capitals = name.replace("ß", "ẞ").upper()
    assert normal_name(capitals) == normal_name(name) == normal_name(name.capitalize())
    assert normal_name(name).isascii()
    assert terms(capitals)[-1] == terms(name)[-1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("create_issue", "create issue"),
        ("createIssue", "create Issue"),
        ("HTTPServer.get", "HTTP Server get"),
        ("", ""),
    ],
)
def test_a_name_is_read_as_words(name: str, words: str):
    assert in_words(name) == words


@pytest.mark.parametrize(
    "forms",
    [
        ("schedule", "schedules", "scheduled", "scheduling"),
        ("query", "queries"),
        ("list", "lists", "listed", "listing"),
        ("run", "running"),
        ("box", "boxes"),
        ("create", "creating", "created"),
    ],
)
def test_the_forms_of_a_word_are_one_family(forms: tuple[str, ...]):
    assert len({family(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("status", "stat"), ("string", "str"), ("process", "proces"), ("speed", "spe")]
)
def test_words_that_only_look_alike_stay_apart(one: str, other: str):
    assert family(one) != family(other)


def test_names_are_compared_without_case_and_separators():
    assert normal_name("get_Accounts") == normal_name("GetAccounts") == normal_name("GET accounts")


@pytest.mark.requirement("D7")
@given(st.text(alphabet=st.characters(), max_size=400))
def test_any_string_gives_bounded_lower_case_terms(text: str):
    found = query_terms(text)
    assert all(term and len(term) <= 256 and not any(c.isspace() for c in term) for term in found)
    assert found == query_terms(text)
