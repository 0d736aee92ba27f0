"""Names: reserved ones cannot be had, all others are safe and stay apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.definitions import BRIDGE_NAMES
from toolcrib.errors import DefinitionError
from toolcrib.intake.naming import exposed_name, fold, is_reserved, nearest, safe_prefix, skeleton

LOOK_ALIKES = [
    "tооl_search",
    "tool_sеarch",
    "ｔｏｏｌ＿ｃａｌｌ",
    "tool​_call",
    "t00l_search",
    "too1_cal1",
    "tool_desсribe",
    "tooⅼ_caⅼⅼ",
    "tοol_call",
]
SPELLINGS = [
    "Tool_Search",
    "TOOL-CALL",
    "tool.describe",
    "toolSearch",
    "ToolCall",
    "tool search",
    "__tool_call__",
    "tool__search",
]


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("name", [*BRIDGE_NAMES, *SPELLINGS, *LOOK_ALIKES])
def test_no_source_can_register_a_bridge_name_in_any_spelling(name: str) -> None:
    assert is_reserved(name)
    with pytest.raises(DefinitionError, match=r"reserved|invisible"):
        exposed_name("", name)


@pytest.mark.requirement("S1")
def test_a_prefix_that_completes_a_bridge_name_is_refused_too() -> None:
    with pytest.raises(DefinitionError, match="reserved"):
        exposed_name("tool", "search")


@pytest.mark.requirement("S1")
@given(st.sampled_from(BRIDGE_NAMES), st.data())
def test_case_and_separators_never_hide_a_bridge_name(name: str, data: st.DataObject) -> None:
    parts = [
        data.draw(st.sampled_from([char.upper(), char.lower(), char + "_", char + "-", char + "."]))
        for char in name.replace("_", "")
    ]
    assert is_reserved("".join(parts))


@pytest.mark.parametrize(
    "name", ["search", "tool_search_all", "call", "describe", "toolbox", "get_tool", "tools_call_log"]
)
def test_ordinary_names_are_not_reserved(name: str) -> None:
    assert not is_reserved(name)
    assert exposed_name("srv", name) == f"srv__{name}"


PREFIXES = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True).map(safe_prefix)
LEAVES = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=100)


@given(PREFIXES, LEAVES)
def test_every_exposed_name_is_one_that_every_model_api_takes(prefix: str, leaf: str) -> None:
    try:
        name = exposed_name(prefix, leaf)
    except DefinitionError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


@given(st.lists(st.tuples(PREFIXES, LEAVES), min_size=2, max_size=30, unique=True))
def test_different_tools_never_share_an_exposed_name(pairs: list[tuple[str, str]]) -> None:
    names: dict[str, tuple[str, str]] = {}
    for prefix, leaf in pairs:
        try:
            name = exposed_name(prefix, leaf)
        except DefinitionError:
            continue
        assert names.setdefault(name, (prefix, leaf)) == (prefix, leaf)


@given(PREFIXES, st.from_regex(r"[A-Za-z0-9_-]{1,30}", fullmatch=True))
def test_the_first_double_underscore_parts_prefix_and_leaf(prefix: str, leaf: str) -> None:
    try:
        name = exposed_name(prefix, leaf)
    except DefinitionError:
        return
    assert name.split("__", 1)[0] == prefix


def test_a_long_name_is_shortened_the_same_way_every_time() -> None:
    name = exposed_name("server", "a" * 100)
    assert len(name) == 64
    assert name == exposed_name("server", "a" * 100) != exposed_name("server", "a" * 101)


@pytest.mark.parametrize("leaf", ["", "a" * 129, "read_file\n", "a​b", "a\x00", "a\u202eb", "\ud800"])
def test_empty_overlong_and_invisible_names_are_refused_with_a_reason(leaf: str) -> None:
    with pytest.raises(DefinitionError):
        exposed_name("", leaf)


def test_folding_forgets_case_and_separators_only() -> None:
    assert fold("Create-Issue") == fold("createIssue") == fold("create.issue") == "createissue"
    assert fold("create_issue") != fold("create_issues")
    assert skeleton("create_issue") != skeleton("created_issue")


def test_the_nearest_known_name_is_offered() -> None:
    assert nearest("mcp-gihub", ["mcp-github", "mcp-gitlab"]) == "mcp-github"
    assert nearest("zebra", ["mcp-github"]) is None
