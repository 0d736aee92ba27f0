"""What the feed may keep of searches, and the aliases that it leads to."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factories import crib, model_call

from toolcrib.activity import query_words
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.learning import Proposal, own_words, propose_aliases, write_yaml
from toolcrib.settings import ActivitySettings, Settings


def search(session: str, *words: str) -> JsonObject:
    return {"stage": "search", "session": session, "detail": {"queries": 1, "found": [], "words": list(words)}}


def call(session: str, tool: str, outcome: str = "ok") -> JsonObject:
    return {"stage": "done", "session": session, "tool": tool, "outcome": outcome}


@pytest.mark.requirement("X8")
def test_words_that_led_to_a_tool_in_several_sessions_are_proposed() -> None:
    events = [
        search("a", "ticket", "bug", "issues"),
        call("a", "create_issue"),
        search("b", "ticket"),
        search("b", "bug"),
        call("b", "create_issue"),
        search("c", "ticket", "holiday"),
        call("c", "create_issue"),
    ]
    (proposal,) = propose_aliases(events).proposals
    assert proposal.tool == "create_issue"
    assert proposal.words == ("ticket", "bug")
    assert proposal.sessions == 3 and proposal.counts == {"ticket": 3, "bug": 2}
    assert "    create_issue: [ticket, bug]" in write_yaml([proposal])


@pytest.mark.requirement("X8")
def test_failed_calls_known_words_and_words_of_the_name_propose_nothing() -> None:
    events = [
        event
        for session in "abc"
        for event in (search(session, "issue", "defect"), call(session, "github__createIssues", "failed"))
    ]
    assert not propose_aliases(events).proposals
    events += [
        event for session in "xy" for event in (search(session, "issue", "defect"), call(session, "close_issue"))
    ]
    assert not propose_aliases(events, known={"close_issue": ["defects"]}).proposals
    prefixed = [{**event, "tool": "hub__close_issue"} if "tool" in event else event for event in events]
    assert not propose_aliases(prefixed, known={"close_issue": ["defects"]}).proposals
    assert own_words("github__createIssues") == {"github", "create", "issue"}


@pytest.mark.requirement("X8")
def test_what_is_an_alias_already_under_either_name_and_in_any_case_is_not_proposed_again() -> None:
    events = [
        event
        for session in "ab"
        for event in (search(session, "ticket", "bug", "defect", "case"), call(session, "hub__close_issue"))
    ]
    known = {"close_issue": ["Ticket", "bug report"], "hub__close_issue": ["defect"]}
    (proposal,) = propose_aliases(events, known=known).proposals
    assert proposal.words == ("case",)


@pytest.mark.requirement("X8")
@given(
    st.lists(
        st.sampled_from(["off", "no", "y", "null", "True", "ticket", "größe", "灯", "1_0", "a: b", "#x"]), min_size=1
    )
)
def test_every_word_and_name_of_a_proposal_is_a_text_to_yaml(words: list[str]) -> None:
    proposal = Proposal(tool=words[0], words=tuple(words), sessions=2, counts={})
    read = yaml.safe_load(write_yaml([proposal]))
    assert read == {"tools": {"aliases": {words[0]: words}}}


def test_a_call_uses_up_the_searches_before_it_and_sessions_do_not_mix() -> None:
    events = [
        search("a", "ticket"),
        call("b", "other"),
        call("a", "one"),
        call("a", "two"),
        search("c", "ticket"),
        call("c", "one"),
    ]
    assert [item.tool for item in propose_aliases(events).proposals] == ["one"]


@given(st.lists(st.text(max_size=60), max_size=4))
@settings(deadline=None)
def test_only_plain_words_are_kept(queries: list[str]) -> None:
    for word in query_words(queries):
        assert word.isalpha() and word == word.lower() and 2 <= len(word) <= 24


def test_addresses_numbers_and_paths_are_left_out() -> None:
    kept = query_words(["Send mail to anna@example.com about invoice 4711, see /home/anna/x.pdf and https://h/y"])
    assert kept == ["about", "invoice", "mail", "see", "send"]


@pytest.mark.requirement("X8", "X15")
async def test_the_feed_keeps_words_only_if_it_is_told_to() -> None:
    from toolcrib.settings import ActivitySettings, Settings

    for queries, expected in ((False, None), (True, ["issue", "open"])):
        house = crib(settings=Settings(activity=ActivitySettings(queries=queries)))
        await house.session().execute([model_call("tool_search", {"query": "open an issue 99"})])
        (event,) = [event for event in house.activity.events if event.stage == "search"]
        assert isinstance(event.detail, dict) and event.detail.get("words") == expected


def test_the_setting_is_off_by_default(tmp_path: Path) -> None:
    from toolcrib.config import load_settings

    assert load_settings(None, environ={}).settings.activity.queries is False


@pytest.mark.requirement("X8")
def test_words_belong_to_the_tool_that_was_tried_first_even_if_it_did_not_run() -> None:
    events = [
        event
        for session in "ab"
        for event in (
            search(session, "figures"),
            call(session, "get_sum", "refused"),
            search(session, "picture"),
            call(session, "get_logo"),
        )
    ]
    assert {item.tool: item.words for item in propose_aliases(events).proposals} == {"get_logo": ("picture",)}
    events += [event for session in "ab" for event in (call(session, "get_sum", "refused"), call(session, "get_sum"))]
    assert {item.tool: item.words for item in propose_aliases(events).proposals} == {
        "get_logo": ("picture",),
        "get_sum": ("figures",),
    }


@pytest.mark.requirement("X8")
def test_sessions_of_two_processes_that_write_one_file_are_two(tmp_path: Path) -> None:
    kept = Settings(activity=ActivitySettings(file=str(tmp_path / "activity.jsonl")))
    assert Crib(settings=kept).session().id != Crib(settings=kept).session().id
    assert Crib().session().id == Crib().session().id
