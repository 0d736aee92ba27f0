"""The listing: names first, within a budget, byte for byte the same."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import tool, toolset

from toolcrib.catalog import Catalog
from toolcrib.listing import ListingRenderer, first_sentence


def catalog(*sizes: int, words: str = "Does something useful. And more.") -> Catalog:
    groups = []
    for number, size in enumerate(sizes):
        name = f"s{number:03}"
        tools = [tool(f"{name}__tool_{n:03}", words, toolset=f"mcp-{name}") for n in range(size)]
        groups.append(toolset(f"mcp-{name}", *tools, prefix=name))
    return Catalog(toolsets=tuple(groups))


def render(of: Catalog, mode: str = "auto", max_chars: int = 16_000):
    return ListingRenderer().render(of, mode=mode, max_chars=max_chars)


@pytest.mark.requirement("X9")
def test_a_small_catalog_shows_names_with_a_line_each() -> None:
    listing = render(catalog(2, 1))
    assert listing.text == (
        "\ns000__:\n tool_000 - Does something useful\n tool_001 - Does something useful"
        "\ns001__:\n tool_000 - Does something useful"
    )
    assert listing.names_listed == 3


@pytest.mark.requirement("X9")
def test_a_larger_catalog_shows_every_name_without_lines() -> None:
    listing = render(catalog(*[40] * 12))
    assert listing.names_listed == 480
    assert " - " not in listing.text
    assert listing.text.count("\n") == 12


@pytest.mark.requirement("X9")
def test_one_huge_toolset_is_reduced_to_a_count_and_costs_the_others_nothing() -> None:
    listing = render(catalog(5, 3000, 5), max_chars=2_000)
    assert "s001__: 3000 tools" in listing.text
    assert "s000__: tool_000" in listing.text
    assert "s002__: tool_000" in listing.text
    assert listing.names_listed == 10


@pytest.mark.requirement("X9")
def test_so_many_toolsets_that_their_counts_do_not_fit_are_named_and_the_rest_counted() -> None:
    listing = render(catalog(*[2] * 300), max_chars=800)
    assert listing.text.endswith("more toolsets")
    assert listing.names_listed == 0
    assert listing.chars <= 800


@pytest.mark.requirement("X9")
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(200, 6_000), st.sampled_from(["auto", "on"]))
def test_the_budget_is_never_exceeded_and_the_count_of_names_is_true(sizes: list[int], budget: int, mode: str) -> None:
    of = catalog(*sizes)
    listing = render(of, mode, budget)
    assert listing.chars <= budget
    assert listing.chars == len(orjson.dumps(listing.text).decode()) - 2
    shown = sum(
        len(group.tools)
        for group in of.toolsets
        if f"{group.prefix}__: tool_" in listing.text or f"{group.prefix}__:\n" in listing.text
    )
    assert listing.names_listed == shown


@pytest.mark.requirement("X9", "X11")
def test_the_same_catalog_gives_the_same_bytes_and_unchanged_toolsets_are_not_rendered_again() -> None:
    renderer = ListingRenderer()
    first = catalog(3, 3)
    one = renderer.render(first, mode="on", max_chars=4_000)
    again = Catalog(toolsets=(first.toolsets[0], *catalog(3, 3).toolsets[1:]))
    assert (
        renderer.render(again, mode="on", max_chars=4_000)
        == one
        == ListingRenderer().render(first, mode="on", max_chars=4_000)
    )


@pytest.mark.requirement("X9")
def test_off_shows_nothing() -> None:
    assert render(catalog(3), "off").text == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Use e.g. api.github.com v1.2 for this. Then more.", "Use e.g. api.github.com v1.2 for this"),
        ("First line\nsecond line", "First line"),
        ("  Spaces   inside\tkept as one. ", "Spaces inside kept as one"),
        ("", ""),
        ("word " * 40, "word word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_a_line_is_the_first_sentence_cut_at_a_word(text: str, line: str) -> None:
    assert first_sentence(text, 60) == line


def test_an_unavailable_toolset_is_marked() -> None:
    from dataclasses import replace

    down = Catalog(toolsets=(replace(catalog(2).toolsets[0], unavailable="exited with code 1"),))
    assert "(unavailable)" in render(down).text
