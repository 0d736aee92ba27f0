"""The figures that docs/agent.md prints, on a few of the tasks."""

import re
from pathlib import Path

import pytest
from bench.conversations import MUST_SAVE_PCT, MUST_TWO_STEPS_PCT, TOOLS, TURNS, catalog, measure, plan_task
from bench.picture import draw_lines

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.requirement("X28")
async def test_a_conversation_saves_nine_tenths_and_reaches_cold_tools_in_two_steps() -> None:
    outcome = await measure("science", tasks=3)
    assert outcome.saved_pct >= MUST_SAVE_PCT
    assert outcome.two_steps_pct >= MUST_TWO_STEPS_PCT
    assert all(played.ran == 10 for played in (*outcome.bridge, *outcome.attached)), "every call really ran"


def test_a_task_needs_five_tools_twice_in_twenty_turns() -> None:
    turns = plan_task(7, "plain")
    needs = [need for need in turns if need]
    assert len(turns) == TURNS
    assert len(needs) == 10
    assert len({need.tool for need in needs}) == 5
    assert plan_task(7, "plain") == turns


def test_the_catalog_has_exactly_so_many_tools() -> None:
    for kind in ("science", "plain"):
        assert sum(len(toolset.snapshot()[0].tools) for toolset in catalog(kind)) == TOOLS


def test_the_page_holds_the_table_and_the_picture() -> None:
    page = (DOCS / "agent.md").read_text(encoding="utf-8")
    saved = re.search(r"science: \*\*([\d.]+) % fewer tool-related tokens", page)
    steps = re.search(r"science: .*?\*\*([\d.]+) %\*\* of (\d+) cold", page)
    assert saved and float(saved[1]) >= MUST_SAVE_PCT
    assert steps and float(steps[1]) >= MUST_TWO_STEPS_PCT
    assert int(steps[2]) >= 500, "a hundred conversations of five tools"
    assert (DOCS / "images" / "conversations.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_picture_names_its_lines() -> None:
    picture = draw_lines({"a & b": [1.0, 2.0], "c": [2.0, 4.0]}, title="t", across="x")
    assert "a &amp; b" in picture
    assert picture.count("<polyline") == 2
