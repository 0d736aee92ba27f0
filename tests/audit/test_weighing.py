"""What a catalog costs both ways, and what its answers cost, is what a model would really be sent."""

import pytest
from tests.audit.test_audit_report import tools

from toolcrib.audit.weighing import answer_sizes, direct_tokens, open_searched, weigh
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.settings import ActivitySettings, Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.base import freeze_toolset

TOOLSETS = (
    freeze_toolset("mcp-github", tools("issue", 30), origin="mcp"),
    freeze_toolset("mcp-gitlab", tools("merge", 10), origin="mcp"),
)


@pytest.mark.requirement("X25")
def test_the_figures_are_those_of_a_session_with_tool_search_in_use() -> None:
    found = weigh(TOOLSETS, ["merge number", "issue number"], retriever=LexicalRetriever)
    session = open_searched(TOOLSETS, Settings(), retriever=LexicalRetriever).session()
    assert found.tools == 40 and found.direct == direct_tokens(TOOLSETS)
    assert found.visible == session.assemble().assembly.tokens < found.direct
    assert found.answers == (session.search("merge number").tokens, session.search("issue number").tokens)


@pytest.mark.requirement("X25")
def test_a_catalog_below_the_threshold_is_weighed_as_if_tool_search_were_in_use() -> None:
    found = weigh(TOOLSETS[1:], ["merge"], settings=Settings(tools=ToolsSettings(ToolSearchSettings(enabled="off"))))
    assert found.visible != found.direct


def test_queries_that_are_refused_are_left_out() -> None:
    crib = open_searched(TOOLSETS, Settings(), retriever=LexicalRetriever)
    assert len(answer_sizes(crib, ["merge", "", "issue"])) == 2


def test_weighing_writes_no_activity(tmp_path) -> None:
    file = tmp_path / "activity.jsonl"
    weigh(TOOLSETS, ["merge"], settings=Settings(activity=ActivitySettings(file=str(file))))
    assert not file.exists()
