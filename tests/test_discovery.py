"""Search and describe: an answer that ends in a call, or an honest no."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import NUMBER, TEXT, Recorder, core, crib, definition, github, model_call, settings, weather

from toolcrib.errors import CallDirectly, ToolNotAvailable
from toolcrib.intake.freezing import freeze_tool
from toolcrib.limits import NEAREST_NAMES
from toolcrib.retrieval.signature import build_signature


async def ask(session: Any, name: str, arguments: Any) -> dict[str, Any]:
    (answer,) = await session.execute([model_call(name, arguments)])
    return json.loads(answer.result.text)


@pytest.mark.requirement("S3", "X3")
async def test_a_hit_carries_name_source_description_and_a_typed_signature() -> None:
    body = await ask(crib().session(), "tool_search", {"query": "create an issue"})
    assert body["query"] == "create an issue"
    assert body["total_available"] == 6
    assert body["matches"][0] == {
        "name": "github__create_issue",
        "source": "mcp-github",
        "description": "Create a new issue in a repository",
        "signature": "create_issue(owner: str, repo: str, title: str, body?: str)",
        "complete": True,
    }


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("limit", "most"), [(None, 3), (1, 1), (0, 1), (-7, 1), (4, 4), (1000, 6)])
async def test_the_limit_is_clamped(limit: int | None, most: int) -> None:
    many = Recorder("mcp-a", [definition(f"open_door_{n}", "Open the door.") for n in range(20)], prefix="a")
    session = crib(core(), many, settings=settings(enabled="on", search_default_limit=3, max_search_limit=6)).session()
    body = await ask(session, "tool_search", {"query": "open door", "limit": limit})
    assert len(body["matches"]) == most
    assert body["total_available"] == 20


@pytest.mark.requirement("S4")
async def test_describe_gives_the_full_schema_and_every_other_name_a_clear_answer() -> None:
    session = crib().session(enabled_toolsets=["mcp-github"])
    body = await ask(session, "tool_describe", {"name": "create_issue"})
    assert body["name"] == "github__create_issue"
    assert body["parameters"]["required"] == ["owner", "repo", "title"]
    assert body["description"] == "Create a new issue in a repository."
    with pytest.raises(CallDirectly, match="call `read_file` directly"):
        session.describe("read_file")
    for name in ("weather__forecast", "nothing_like_it"):
        with pytest.raises(ToolNotAvailable, match="not available in this session"):
            session.describe(name)


@pytest.mark.requirement("X4")
async def test_several_names_are_described_in_one_answer_with_a_word_for_each() -> None:
    body = await ask(crib().session(), "tool_describe", {"name": ["create_issue", "read_file", "nonsense"]})
    assert [item["name"] for item in body["tools"]] == ["github__create_issue", "read_file", "nonsense"]
    assert [item.get("code") for item in body["tools"]] == [None, "call_directly", "tool_not_available"]


async def test_names_that_nobody_can_write_or_read_are_repeated_as_far_as_answers_can() -> None:
    names = ["a\ud800", "b" * 100_000, "create_issue"]
    raw = {"type": "tool_use", "id": "1", "name": "tool_describe", "input": {"name": names}}
    (answer,) = await crib().session().execute([raw])
    assert [item["name"] for item in json.loads(answer.result.text)["tools"]] == [
        "a?",
        "b" * 80 + "…",
        "github__create_issue",
    ]


@pytest.mark.requirement("X4")
async def test_several_needs_are_answered_at_once_without_repeating_a_tool() -> None:
    body = await ask(crib().session(), "tool_search", {"query": ["create issue", "weather forecast", "new issue"]})
    names = [match["name"] for match in body["matches"]]
    assert len(names) == len(set(names))
    by_name = {match["name"]: match["for"] for match in body["matches"]}
    assert {0, 2} <= set(by_name["github__create_issue"])
    assert 1 in by_name["weather__forecast"]


@pytest.mark.requirement("X3")
async def test_a_tool_whose_signature_is_not_enough_comes_with_its_schema_while_it_fits() -> None:
    nested = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": TEXT}}}}},
    }
    source = Recorder("mcp-x", [definition("send_parcel", "Send a parcel.", parcel=nested)], prefix="x")
    body = await ask(crib(core(), source).session(), "tool_search", {"query": "send parcel"})
    assert body["matches"][0]["parameters"]["properties"]["parcel"] == nested
    assert body["matches"][0]["complete"] is True
    huge = {
        **nested,
        "properties": {
            f"field_{n}": {"type": "object", "properties": {"x": TEXT}, "description": "word " * 30} for n in range(80)
        },
    }
    source = Recorder("mcp-x", [definition("send_parcel", "Send a parcel.", parcel=huge)], prefix="x")
    body = await ask(crib(core(), source).session(), "tool_search", {"query": "send parcel"})
    assert "parameters" not in body["matches"][0]
    assert body["matches"][0]["complete"] is False


@pytest.mark.requirement("X3")
@profile(max_examples=30, deadline=None)
@given(st.integers(200, 3000), st.integers(1, 20), st.integers(1, 60))
def test_an_answer_stays_within_its_budget(budget: int, tools: int, parameters: int) -> None:
    source = Recorder(
        "mcp-x",
        [
            definition(
                f"open_{n}",
                "Open it. " * 30,
                **{f"parameter_{p}_": {"type": "object", "description": "d" * 50} for p in range(parameters)},
            )
            for n in range(tools)
        ],
        prefix="x",
    )
    session = crib(core(), source, settings=settings(enabled="on", search_result_max_tokens=budget)).session()
    answer = session.search("open", limit=20)
    first = len(json.dumps(answer.body["matches"][0])) // 4
    assert answer.tokens <= max(budget, first + 60) + 10


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("needs", [1, 8])
@pytest.mark.parametrize("budget", [200, 400])
def test_what_an_answer_repeats_of_the_query_takes_a_share_of_a_small_budget(needs: int, budget: int) -> None:
    asked = [f"open {'the old wooden ' * 40} door {number}" for number in range(needs)]
    source = Recorder("mcp-x", [definition("open_door", "Open it.")], prefix="x")
    session = crib(core(), source, settings=settings(enabled="on", search_result_max_tokens=budget)).session()
    body = session.search(asked).body
    assert body["matches"]
    shown = body["query"] if isinstance(body["query"], list) else [body["query"]]
    assert sum(len(str(query)) for query in shown) <= budget + needs
    assert all(asked[place].startswith(str(query)[:20]) for place, query in enumerate(shown))


@pytest.mark.requirement("X3", "X7")
def test_a_tool_that_the_budget_had_no_room_for_is_not_called_shown_before() -> None:
    many = {f"parameter_{n}": TEXT for n in range(20)}
    source = Recorder("mcp-x", [definition(f"open_{n}", "Open it.", **many) for n in range(4)], prefix="x")
    session = crib(core(), source, settings=settings(enabled="on", search_result_max_tokens=400)).session()
    first = session.search("open", limit=4)
    assert first.body["more"]
    assert [match["name"] for match in first.body["matches"]] == list(first.names)
    assert len(first.scores) == len(first.names)
    second = session.search("open", limit=4)
    brief = {match["name"] for match in second.body["matches"] if "shown_before" in match}
    assert brief == set(first.names)
    assert len(second.body["matches"]) > len(brief)


@pytest.mark.requirement("X3", "S3")
def test_data_pasted_into_a_query_is_not_repeated_and_takes_no_room_from_the_hits() -> None:
    source = Recorder("mcp-x", [definition(f"open_{n}", "Open it.") for n in range(5)], prefix="x")
    session = crib(core(), source, settings=settings(enabled="on")).session()
    plain = session.search("open", limit=5)
    session.begin_turn()
    pasted = session.search(f"open {'iVBORw0KGgo1234567' * 2_000}", limit=5)
    assert pasted.body["matches"] == plain.body["matches"] and "more" not in pasted.body
    shown = pasted.body["query"]
    assert isinstance(shown, str) and shown.startswith("open iVBORw0KGgo") and len(shown) < 500
    assert pasted.tokens < plain.tokens + 300


@pytest.mark.requirement("X3")
async def test_the_same_tool_on_several_servers_is_shown_once_with_the_names_of_the_others() -> None:
    sources = [
        Recorder(f"mcp-{name}", [definition("open_door", "Open the door.", key=TEXT)], prefix=name) for name in "abc"
    ]
    other = Recorder("mcp-d", [definition("open_door", "Open the door.", code=NUMBER)], prefix="d")
    answer = crib(core(), *sources, other).session().search("open door")
    assert [(match["name"], match.get("same_as")) for match in answer.body["matches"]] == [
        ("a__open_door", ["b__open_door", "c__open_door"]),
        ("d__open_door", None),
    ]
    assert set(answer.names) == {"a__open_door", "b__open_door", "c__open_door", "d__open_door"}


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("words", [["Who is signed in at a.", "Who is signed in at b."], [" ", " "]])
async def test_tools_of_one_name_and_schema_that_say_different_things_or_nothing_are_not_the_same(
    words: list[str],
) -> None:
    sources = [
        Recorder(f"mcp-{name}", [definition("whoami", text)], prefix=name)
        for name, text in zip("ab", words, strict=True)
    ]
    answer = crib(core(), *sources).session().search("whoami")
    assert {match["name"]: match.get("same_as") for match in answer.body["matches"]} == {
        "a__whoami": None,
        "b__whoami": None,
    }


@pytest.mark.requirement("S3", "X3")
@pytest.mark.parametrize("needs", [["open door"], ["open door", "the door"]])
async def test_the_same_tool_on_several_servers_takes_one_place_of_the_limit(needs: list[str]) -> None:
    same = [
        Recorder(f"mcp-{name}", [definition("open_door", "Open the door.", key=TEXT)], prefix=name) for name in "abcdef"
    ]
    other = Recorder("mcp-z", [definition(f"paint_{n}", "Paint a door.") for n in range(3)], prefix="z")
    answer = crib(core(), *same, other).session().search(needs, limit=2)
    assert [match["name"] for match in answer.body["matches"]] == ["a__open_door", "z__paint_0"]


@pytest.mark.requirement("X4")
async def test_a_tool_that_stands_for_another_servers_answers_the_needs_that_found_that_one() -> None:
    a, b = (Recorder(f"mcp-{name}", [definition("open_door", "Open it.")], prefix=name) for name in "ab")
    (match,) = crib(core(), a, b).session().search(["a open door", "b open door"], limit=1).body["matches"]
    assert (match["name"], match["same_as"], match["for"]) == ("a__open_door", ["b__open_door"], [0, 1])


async def test_an_unavailable_source_is_said_so_in_search_and_describe() -> None:
    source = github()
    source.define([definition("create_issue", "Create a new issue.")], unavailable="exited with code 1")
    session = crib(core(), source).session()
    assert (await ask(session, "tool_search", {"query": "create issue"}))["matches"][0][
        "unavailable"
    ] == "exited with code 1"
    assert session.describe("create_issue")["unavailable"] == "exited with code 1"


@pytest.mark.requirement("S19")
async def test_counts_hints_and_texts_know_the_sessions_slice_only() -> None:
    session = crib().session(enabled_toolsets=["mcp-weather"])
    texts = [session.assemble().encoded.decode()]
    for name, arguments in (
        ("tool_search", {"query": "create github issue in repository"}),
        ("tool_search", {"query": "zzzz"}),
        ("tool_describe", {"name": "create_isue"}),
        ("tool_call", {"name": "github__create_isue", "arguments": {}}),
        ("create_issue", {}),
    ):
        (answer,) = await session.execute([model_call(name, arguments)])
        texts.append(answer.result.text)
        if name == "tool_search":
            assert json.loads(answer.result.text)["total_available"] == 2
    for text in texts:
        for hidden in ("list_issues", "delete_repo", "mcp-github", "create_issue`"):
            assert hidden not in text.replace("`create_issue` is not available", "")


ANY_TEXT = (
    st.text(max_size=300)
    | st.text(st.characters(), max_size=50)
    | st.sampled_from(["\x00", "\ud800", "a" * 5_000, "💥" * 200, "ｇｉｔｈｕｂ", "…"])
)


@pytest.mark.requirement("S19", "S23")
@profile(max_examples=100, deadline=None)
@given(ANY_TEXT)
def test_any_string_can_be_searched_and_stays_in_scope(query: str) -> None:
    session = crib().session(enabled_toolsets=["mcp-weather"])
    ranking = session._crib.discovery.rank(session.catalog, query, limit=20)
    assert {hit.key for hit in ranking.hits} <= {"weather__forecast", "weather__search"}


@pytest.mark.requirement("S23")
async def test_a_word_that_every_name_has_still_finds_tools() -> None:
    source = Recorder("mcp-gh", [definition(f"github_{word}", "x") for word in ("issues", "pulls", "stars")], prefix="")
    body = await ask(crib(core(), source).session(), "tool_search", {"query": "github"})
    assert len(body["matches"]) == 3


@pytest.mark.parametrize(
    ("schema", "text", "exact"),
    [
        ({}, "t()", True),
        ({"type": "object", "properties": {"a": TEXT, "n": NUMBER}, "required": ["n"]}, "t(n: int, a?: str)", True),
        ({"properties": {"s": {"enum": ["open", "closed"]}}}, 't(s?: "open"|"closed")', True),
        ({"properties": {"x": {"type": ["string", "null"]}}}, "t(x?: str|null)", True),
        ({"properties": {"x": {"anyOf": [TEXT, {"type": "null"}]}}}, "t(x?: str|null)", True),
        ({"properties": {"x": {"type": "array", "items": TEXT}}}, "t(x?: list[str])", True),
        (
            {"properties": {"p": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}}},
            "t(p?: {a: str})",
            True,
        ),
        ({"properties": {"n": {"type": "integer", "minimum": 1}}}, "t(n?: int)", False),
        ({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": TEXT}}, "t(x?: any)", False),
        ({"properties": {"s": {"enum": list(range(30))}}}, "t(s?: 0|1|2|3|4|5|6|7|…)", False),
        ({"properties": {}, "required": ["ghost"]}, "t(ghost: any)", False),
    ],
)
@pytest.mark.requirement("X3")
def test_a_signature_says_types_and_whether_it_says_everything(schema: dict[str, Any], text: str, exact: bool) -> None:
    signature = build_signature(freeze_tool({"name": "t", "inputSchema": schema}, toolset="t", origin="mcp"))
    assert (signature.text, signature.exact) == (text, exact)


@pytest.mark.requirement("X3")
@given(st.integers(1, 200), st.integers(0, 200))
def test_required_parameters_are_never_left_out_of_a_signature(required: int, optional: int) -> None:
    properties = {f"required_parameter_{n}": TEXT for n in range(required)} | {
        f"optional_{n}_": TEXT for n in range(optional)
    }
    signature = build_signature(freeze_tool(definition("t", **properties), toolset="t", origin="mcp"))
    for number in range(required):
        assert f"required_parameter_{number}: str" in signature.text
    if optional and not signature.exact:
        assert "more optional" in signature.text


@pytest.mark.requirement("X2")
async def test_hits_that_perhaps_do_not_fit_come_with_a_word_of_doubt_and_clear_ones_without() -> None:
    shared = crib(settings=settings(enabled="on", retrieval="hybrid"))
    body = await ask(shared.session(), "tool_search", {"query": "close an issue"})
    assert body["matches"]
    assert body["hint"].startswith("Perhaps none of these does it")
    assert "hint" not in await ask(shared.session(), "tool_search", {"query": "create an issue"})


@pytest.mark.requirement("X2", "X4")
async def test_of_several_needs_the_doubtful_ones_are_named() -> None:
    session = crib(settings=settings(enabled="on", retrieval="hybrid")).session()
    body = await ask(session, "tool_search", {"query": ["create an issue", "close an issue"]})
    assert body["doubtful_for"] == ["close an issue"]
    assert "hint" not in body
    assert session.search("create an issue").doubtful is False


@pytest.mark.requirement("X2")
async def test_an_empty_answer_names_the_nearest_and_says_when_one_of_them_is_worth_a_look() -> None:
    session = crib(settings=settings(enabled="on", retrieval="hybrid")).session()
    body = await ask(session, "tool_search", {"query": "tune my grand piano before the concert"})
    assert body["abstained"]
    assert 0 < len(body["nearest"]) <= NEAREST_NAMES
    assert body["hint"].endswith("Only if the name of one of the nearest says that it does, tool_describe it.")
    by_words = await ask(crib().session(), "tool_search", {"query": "zeppelin"})
    assert "nearest" not in by_words
    assert "tool_describe" not in by_words["hint"]


@pytest.mark.requirement("X7")
async def test_a_new_tool_after_a_search_in_vain_is_not_called_seen_before() -> None:
    session = crib().session()
    assert (await ask(session, "tool_search", {"query": "zeppelin"}))["abstained"]
    body = await ask(session, "tool_search", {"query": "create an issue"})
    assert body["matches"][0]["name"] == "github__create_issue"
    assert "hint" not in body


async def test_a_search_reports_what_it_found_in_the_feed_but_not_the_words() -> None:
    shared = crib()
    await ask(shared.session(), "tool_search", {"query": "create issue about my salary"})
    event = shared.activity.events[-1]
    assert event.stage == "search"
    assert event.tokens is not None
    assert event.tokens > 0
    assert "github__create_issue" in str(event.detail)
    assert "salary" not in json.dumps(event.as_json())


def test_weather_and_github_share_a_short_name() -> None:
    session = crib(core(), github(), weather()).session()
    with pytest.raises(ToolNotAvailable, match="Did you mean `github__search` or `weather__search`"):
        session.describe("search")


@pytest.mark.requirement("S19")
async def test_a_change_that_no_search_can_see_is_shown_by_the_next_one() -> None:
    def opened(**more: Any) -> dict[str, Any]:
        return definition("open_door", "Open the door.", how={"type": "string", "pattern": "^[a-z]+$", **more})

    doors = Recorder("mcp-a", [opened(maxLength=4), definition("close_door", "Close the door.")], prefix="a")
    session = crib(doors, settings=settings(enabled="on")).session()
    for longest in (4, 5, 6):
        doors.define([opened(maxLength=longest), definition("close_door", "Close the door.")])
        body = await ask(session, "tool_search", {"query": "open door"})
        shown = next(match for match in body["matches"] if match["name"] == "a__open_door")
        assert shown["parameters"]["properties"]["how"]["maxLength"] == longest


async def test_a_tool_that_is_too_large_to_describe_beside_others_costs_none_of_them() -> None:
    huge = definition("huge", kind={"enum": [f"value-{n}" for n in range(12_000)]})
    session = crib(Recorder("mcp-t", [huge, definition("tiny")])).session()
    for names in (["huge", "tiny"], ["tiny", "huge"]):
        (answer,) = await session.execute([model_call("tool_describe", {"name": names})])
        told = {item["name"]: item for item in json.loads(answer.result.text)["tools"]}
        assert "describe this one alone" in told["huge"]["error"]
        assert "parameters" in told["tiny"]
