"""Lexical ranking: names, words, other scripts, and any string at all."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.base import Document
from toolcrib.retrieval.lexical import LexicalIndex, LexicalRetriever


def document(key: str, description: str = "", *, toolset: str = "", parameters: tuple[str, ...] = ()) -> Document:
    content = repr((key, description, toolset, parameters))
    return Document(
        key=key,
        digest=hashlib.blake2b(content.encode("utf-8", "surrogatepass")).hexdigest(),
        leaf=key,
        toolset=toolset,
        description=description,
        parameters=parameters,
        nested="",
    )


def index(*documents: Document) -> LexicalIndex:
    return LexicalRetriever().index(documents)


def keys(found: LexicalIndex, query: str, limit: int = 5) -> list[str]:
    return [hit.key for hit in found.search(query, limit=limit).hits]


CLOUDFLARE = index(
    document("get_accounts", "Account Details", toolset="cloudflare"),
    document("get_zones", "Zone list", toolset="cloudflare"),
    document("list_account_members", "List all members of an account with their roles", toolset="cloudflare"),
    document("list_account_roles", "List the roles that members of an account may have", toolset="cloudflare"),
    document("create_dns_record", "Create a DNS record in a zone", toolset="cloudflare"),
    document("spreadsheet_open", "Open a table", toolset="office"),
    document("create_event", "Schedule a meeting", toolset="calendar"),
)


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    "query", ["get_accounts", "getAccounts", "get accounts", "GET-ACCOUNTS", "cloudflare get_accounts"]
)
def test_a_name_in_any_spelling_puts_its_tool_first(query: str):
    assert keys(CLOUDFLARE, query)[0] == "get_accounts"


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("cloudflare list accounts", "get_accounts"),
        ("accounts", "get_accounts"),
        ("zones", "get_zones"),
        ("scheduling", "create_event"),
    ],
)
def test_short_names_and_word_forms_are_found(query: str, wanted: str):
    assert wanted in keys(CLOUDFLARE, query)


def test_a_word_does_not_match_inside_another_word():
    assert "spreadsheet_open" not in keys(CLOUDFLARE, "read")


@pytest.mark.requirement("S23", "D8")
def test_a_word_that_every_name_has_still_finds():
    found = index(*(document(f"github_{verb}") for verb in ("create", "list", "close")))
    assert len(keys(found, "github")) == 3


@pytest.mark.requirement("S23")
def test_a_part_of_a_name_finds_when_no_word_matches():
    assert keys(index(document("createissue"), document("other")), "createi") == ["createissue"]


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("description", "query"),
    [("Tạo ảnh từ văn bản", "tao anh"), ("Tao anh", "tạo ảnh"), ("使用必应搜索关键词", "搜索")],
)
def test_other_scripts_and_missing_diacritics_are_found(description: str, query: str):
    assert keys(index(document("a", description), document("b", "something else")), query) == ["a"]


@pytest.mark.requirement("D7")
@given(query=st.text(alphabet=st.characters(), max_size=700), limit=st.integers(-2, 200))
def test_any_string_gives_a_ranking_within_the_documents(query: str, limit: int):
    hits = CLOUDFLARE.search(query, limit=limit).hits
    assert len(hits) <= max(limit, 0)
    assert {hit.key for hit in hits} <= set(keys(CLOUDFLARE, "get list account zone create open", 10))
