"""One world of names: a name means one tool, or gets a useful answer."""

import gc

import pytest
from tests.factories import Recorder, bridged, core, crib, definition, github, model_call, tool, toolset, weather

from toolcrib.catalog import Catalog, Mark


@pytest.mark.requirement("X6")
@pytest.mark.parametrize(
    "name",
    [
        "github__create_issue",
        "create_issue",
        "createIssue",
        "CREATE-ISSUE",
        "create issue",
        "github.create_issue",
        "github/create_issue",
        "mcp__github__create_issue",
        "mcp-github:create_issue",
        "GitHub_Create_Issue",
    ],
)
@pytest.mark.parametrize("way", [bridged, model_call])
async def test_a_granted_tool_runs_by_every_name_that_can_only_mean_it(name: str, way: object) -> None:
    source = github()
    session = crib(core(), source, weather()).session()
    (answer,) = await session.execute([way(name, {"owner": "o", "repo": "r", "title": "t"})])
    assert answer.result.text == "github__create_issue ran"
    assert answer.tool is not None
    assert source.calls[0].tool.name == "github__create_issue"


@pytest.mark.requirement("X6")
@pytest.mark.parametrize("name", ["creat_issue", "create_isue", "createissues", "github__create_issu"])
async def test_a_misspelled_name_is_answered_with_what_was_meant(name: str) -> None:
    (answer,) = await crib().session().execute([bridged(name)])
    assert answer.result.code == "tool_not_available"
    assert "Did you mean `github__create_issue`" in answer.result.text


@pytest.mark.requirement("X6")
async def test_an_ambiguous_short_name_runs_nothing_and_names_the_candidates() -> None:
    one, two = github(), weather()
    (answer,) = await crib(core(), one, two).session().execute([bridged("search", {"query": "x"})])
    assert answer.result.code == "tool_not_available"
    assert "`github__search` or `weather__search`" in answer.result.text
    assert not one.calls
    assert not two.calls


@pytest.mark.requirement("X6")
async def test_a_short_name_that_is_ambiguous_elsewhere_is_not_ambiguous_in_a_narrower_scope() -> None:
    two = weather()
    session = crib(core(), github(), two).session(enabled_toolsets=["mcp-weather"])
    (answer,) = await session.execute([bridged("search", {"query": "x"})])
    assert answer.result.text == "weather__search ran"


@pytest.mark.requirement("X6", "S6")
async def test_a_visible_name_is_never_taken_for_a_deferred_tools_short_name() -> None:
    bench = core()
    files = Recorder(
        "mcp-files", [definition("read_file", "Read a remote file.", path={"type": "string"})], prefix="files"
    )
    session = crib(bench, files).session()
    direct, through = await session.execute(
        [model_call("read_file", {"path": "p"}), bridged("Read-File", {"path": "p"})]
    )
    assert direct.result.text == "read_file ran"
    assert through.result.code == "call_directly"
    assert not files.calls
    (full,) = await session.execute([bridged("files__read_file", {"path": "p"})])
    assert full.result.text == "files__read_file ran"


@pytest.mark.parametrize("name", ["", " ", "\x00", "\ud800", "a" * 10_000, "💥", "../../etc/passwd", "%s%n", "{0}"])
async def test_any_name_gets_an_answer_of_bounded_size(name: str) -> None:
    answers = (
        await crib()
        .session()
        .execute([bridged(name), {"id": "1", "function": {"name": name or "x", "arguments": "{}"}}])
    )
    for answer in answers:
        assert answer.result.is_error
        assert len(answer.result.text) < 600


def catalog(*names: str) -> Catalog:
    return Catalog(toolsets=(toolset("mcp-a", *(tool(name) for name in names)),))


def test_a_mark_tells_catalogs_apart_by_what_is_in_them_even_when_they_are_gone() -> None:
    first, same, other = catalog("a", "b"), catalog("a", "b"), catalog("a", "c")
    mark = first.mark
    assert first.mark is mark
    assert mark == same.mark
    assert mark != other.mark
    assert mark != 7
    kept = catalog("a", "b").mark  # the catalog is gone by now
    assert kept == same.mark
    assert kept != other.mark
    assert kept != catalog().mark


def test_catalogs_that_went_in_a_cycle_are_not_taken_for_each_other() -> None:
    marks: list[Mark] = []
    for names in (("a", "b"), ("a", "c")):
        going = catalog(*names)
        vars(going)["itself"] = going
        marks.append(going.mark)
        del going
    gc.collect()
    assert marks[0] != marks[1]
    assert marks[0] != catalog("a", "c").mark
