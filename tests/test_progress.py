"""The progress guard: discovery is free, going round in circles is not."""

import json
from typing import Any

import pytest
from tests.factories import Recorder, bridged, core, crib, definition, model_call

from toolcrib.limits import SEARCHES_STALE, SEARCHES_UNUSED
from toolcrib.progress import ProgressGuard


async def search(session: Any, query: str) -> dict[str, Any]:
    (answer,) = await session.execute([model_call("tool_search", {"query": query})])
    return json.loads(answer.result.text)


def seventeen() -> Recorder:
    words = [
        "mail",
        "calendar",
        "note",
        "task",
        "file",
        "photo",
        "song",
        "movie",
        "map",
        "train",
        "plane",
        "hotel",
        "bank",
        "shop",
        "game",
        "news",
        "lamp",
    ]
    return Recorder("mcp-home", [definition(f"open_{word}", f"Open the {word}.") for word in words], prefix="home")


@pytest.mark.requirement("X7")
async def test_1523_searches_over_17_tools_end_in_a_refusal_that_names_the_next_legal_step() -> None:
    session = crib(core(), seventeen()).session()
    answers = [await search(session, f"open {'the ' * (n % 3)}mail") for n in range(1523)]
    refused = [answer for answer in answers if answer.get("code") == "search_refused"]
    assert len(refused) == 1523 - SEARCHES_STALE - 1
    assert "tool_call or tool_describe" in refused[0]["error"]
    assert "home__open_mail" in refused[0]["found"]
    sizes = [len(json.dumps(answer)) for answer in answers]
    assert sum(sizes[1:]) / len(sizes[1:]) < sizes[0]


@pytest.mark.requirement("X7")
async def test_the_second_identical_search_is_shorter_and_says_call_it() -> None:
    session = crib(core(), seventeen()).session()
    first, second = await search(session, "open mail"), await search(session, "open mail")
    assert second["matches"][0] == {"name": "home__open_mail", "shown_before": True}
    assert 'tool_call with {"name": "home__open_mail"' in second["hint"]
    assert len(json.dumps(second)) < len(json.dumps(first))


@pytest.mark.requirement("X7")
async def test_a_rephrasing_hunt_for_an_ability_that_is_not_there_ends() -> None:
    session = crib(core(), seventeen()).session()
    verbs = ["run", "execute", "launch", "start", "invoke", "perform"]
    things = ["shell command", "python code", "bash script", "terminal program"]
    answers = [await search(session, f"{verb} {thing}") for verb in verbs for thing in things for _ in range(9)]
    refused = sum(answer.get("code") == "search_refused" for answer in answers)
    assert len(answers) == 216
    assert refused >= 216 - SEARCHES_UNUSED - SEARCHES_STALE


@pytest.mark.requirement("X7")
async def test_a_legitimate_discovery_of_nine_different_tools_is_never_punished() -> None:
    session = crib(core(), seventeen()).session()
    words = ["mail", "calendar", "note", "task", "file", "photo", "song", "movie", "map"]
    for word in words:
        answer = await search(session, f"open the {word}")
        assert "code" not in answer
        assert "hint" not in answer
        assert answer["matches"][0]["signature"] == f"open_{word}()"


@pytest.mark.requirement("X7")
async def test_needs_that_are_phrased_alike_and_lead_to_different_tools_are_never_refused() -> None:
    verbs = ["create", "close", "reopen", "lock", "label", "assign", "move", "pin", "transfer"]
    source = Recorder("mcp-hub", [definition(f"{verb}_issue", f"{verb} an issue.") for verb in verbs], prefix="hub")
    session = crib(core(), source).session()
    for verb in verbs:
        answer = await search(session, f"{verb} an issue in the acme website repository")
        assert answer["matches"][0]["name"] == f"hub__{verb}_issue"
    again = [await search(session, "pin an issue in the acme website repository") for _ in range(10)]
    assert again[-1]["code"] == "search_refused"


@pytest.mark.requirement("X7")
async def test_using_what_was_found_starts_the_count_again() -> None:
    session = crib(core(), seventeen()).session()
    for _ in range(20):
        for _ in range(3):
            assert "code" not in await search(session, "open mail")
        (answer,) = await session.execute([bridged("home__open_mail")])
        assert not answer.result.is_error


@pytest.mark.requirement("X7")
async def test_describing_the_same_tool_again_and_again_is_no_progress() -> None:
    session = crib(core(), seventeen()).session()
    answers: list[dict[str, Any]] = []
    for _ in range(30):
        await session.execute([model_call("tool_describe", {"name": "home__open_mail"})])
        answers.append(await search(session, "open mail"))
    assert answers[-1]["code"] == "search_refused"


@pytest.mark.requirement("X7")
async def test_a_new_user_turn_or_a_new_catalog_opens_the_search_again() -> None:
    source = seventeen()
    session = crib(core(), source).session()
    assert [await search(session, "open mail") for _ in range(20)][-1]["code"] == "search_refused"
    session.begin_turn()
    assert "code" not in await search(session, "open mail")
    assert [await search(session, "open mail") for _ in range(20)][-1]["code"] == "search_refused"
    source.define([definition("open_mail"), definition("open_door")])
    assert "code" not in await search(session, "open mail")


@pytest.mark.requirement("X7")
def test_the_guard_depends_on_the_sequence_alone() -> None:
    def verdicts() -> list[str]:
        guard = ProgressGuard()
        seen: list[str] = []
        for query, shown in [
            ("a b", ["x"]),
            ("a b", ["x"]),
            ("b a", ["x"]),
            ("c d", ["y"]),
            ("e", []),
            ("e", []),
            ("f", []),
            ("g", []),
            ("h", []),
        ]:
            verdict = guard.before_search([query], "catalog")
            seen.append(verdict.stance)
            if verdict.stance != "refuse":
                guard.after_search([query], shown)
        return seen

    assert verdicts() == verdicts() == ["full", "short", "short", "short", "short", "firm", "firm", "firm", "refuse"]


@pytest.mark.requirement("X7")
def test_of_a_need_no_more_is_remembered_than_is_searched_for_and_what_is_pasted_does_not_count() -> None:
    guard, picture = ProgressGuard(), "iVBORw0KGgo1234567" * 2_000
    for number, query in enumerate((f"{picture} read the text", f"{picture} count the people", f"{picture} paint")):
        assert guard.before_search([query], "catalog").stance == "full"
        guard.after_search([query], [f"tool_{number}"])
    assert sum(map(len, guard._needs)) < 200


@pytest.mark.requirement("X7")
async def test_repeating_a_call_that_cannot_work_is_answered_shorter_and_firmer() -> None:
    session = crib().session()
    texts = []
    for _ in range(4):
        (answer,) = await session.execute([bridged("github__create_issue", {"owner": "o"})])
        texts.append(answer.result.text)
    assert "parameters" in texts[0]
    assert "failed 2 times" in texts[1]
    assert "parameters" in texts[1]
    assert "failed 3 times" in texts[2]
    assert "parameters" not in texts[2]
