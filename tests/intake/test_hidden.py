"""Hidden characters are found wherever they stand, and left alone where a script needs them."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import definition

from toolcrib.intake.findings import make_visible, strings_of
from toolcrib.intake.freezing import freeze_tool
from toolcrib.intake.hidden import find_hidden
from toolcrib.intake.screening import screen_tool

HIDDEN = st.characters(categories=["Cf", "Co", "Cn"])
PLAIN = st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40)


@pytest.mark.requirement("X21", "C1")
@profile(deadline=None)
@given(before=PLAIN, hidden=HIDDEN, after=PLAIN)
def test_any_format_private_or_unassigned_character_in_plain_text_is_found(
    before: str, hidden: str, after: str
) -> None:
    (finding, *_) = find_hidden("description", before + hidden + after)
    assert f"U+{ord(hidden):04X}" in finding.explanation
    assert finding.excerpt.isprintable()


PLACES = [
    lambda text: {**definition("add"), "description": text},
    lambda text: {**definition("add"), "title": text},
    lambda text: {**definition("add"), "annotations": {"title": text}},
    lambda text: {**definition("add"), "outputSchema": {"type": "object", "description": text}},
    lambda text: {**definition("add"), "_meta": {"note": [text]}},
    lambda text: definition("add", a={"type": "string", "default": text}),
    lambda text: definition("add", a={"type": "string", "enum": ["x", text]}),
    lambda text: definition("add", a={"type": "string", "title": text}),
    lambda text: definition("add", a={"type": "object", "properties": {text: {"type": "string"}}}),
    lambda text: definition("add", a={"type": "array", "items": {"$comment": text}}),
]


@pytest.mark.requirement("C1", "C3")
@profile(deadline=None)
@given(place=st.sampled_from(PLACES), hidden=HIDDEN)
def test_it_is_found_in_every_field_of_a_definition(place: object, hidden: str) -> None:
    tool = freeze_tool(place(f"some te{hidden}xt"), toolset="t", origin="mcp")
    assert any(finding.rule.startswith("hidden.") for finding in screen_tool(tool))


@profile(deadline=None)
@given(text=st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_plain_text_holds_nothing_hidden(text: str) -> None:
    assert not list(find_hidden("description", text))


@profile(deadline=None)
@given(text=st.text())
def test_any_text_can_be_judged_and_shown(text: str) -> None:
    for finding in find_hidden("description", text):
        assert finding.excerpt.isprintable()
    assert make_visible(text).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "👩‍💻 and 👨‍👩‍👧‍👦, ❤️, 1️⃣, ©️, ℹ️",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष",
        "שלום \u200f(API)\u200e",
        "葛\U000e0100",
        "\ttab, line\r\n and all",
        "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
    ],
)
def test_what_a_script_or_an_emoji_needs_is_left_alone(text: str) -> None:
    assert not list(find_hidden("description", text))


@pytest.mark.parametrize(
    ("text", "rule", "severity"),
    [
        ("a\U000e0041b", "hidden.tag", "hard"),
        ("a\u202eb", "hidden.bidi", "hard"),
        ("a\u200eb", "hidden.bidi", "hard"),
        ("a\u200bb", "hidden.zero_width", "hard"),
        ("a\ufe01\ufe02b", "hidden.variation_selector", "hard"),
        ("a\ue000b", "hidden.private_use", "hard"),
        ("a\x1b[31mb", "hidden.control", "hard"),
        ("a\u3164b", "hidden.filler", "hard"),
        ("a\ufdd0b", "hidden.unassigned", "hard"),
        ("\ufeffa", "hidden.zero_width", "soft"),
        ("a\u00adb", "hidden.zero_width", "soft"),
        ("a\x03b", "hidden.control", "soft"),
        ("a\u2028b", "hidden.separator", "soft"),
        ("\U000e0067\U000e0062 without its flag", "hidden.tag", "hard"),
    ],
)
def test_each_kind_has_its_rule_and_weight(text: str, rule: str, severity: str) -> None:
    (finding,) = find_hidden("description", text)
    assert (finding.rule, finding.severity) == (rule, severity)


def test_strings_of_a_definition_include_keys_and_come_with_their_place() -> None:
    found = dict(strings_of({"a": [{"b\u200b": "text"}], "c": 1}))
    assert found["a[0].b\u200b"] == "text"
    assert found["a[0].b‹U+200B› (key)"] == "b\u200b"


def test_the_unicode_database_is_the_one_of_this_python() -> None:
    assert unicodedata.category(chr(sys.maxunicode)) == "Cn"
