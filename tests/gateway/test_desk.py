"""Calls that wait for somebody at the command line."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import toolcrib
from tests.factories import tool
from tests.fakes.memory_upstream import MemoryServer
from tests.gateway.clients import gateway_client

from toolcrib.definitions import Call
from toolcrib.errors import ApprovalDenied, ApprovalRequired, ConfigError
from toolcrib.execution.approval import ApprovalRequest, binding_of
from toolcrib.gateway.desk import ApprovalDesk, show_time
from toolcrib.gateway.run import open_gateway
from toolcrib.limits import APPROVAL_TTL_MAX_S, APPROVAL_TTL_S, APPROVALS_PENDING, ARGUMENTS_SHOWN_CHARS
from toolcrib.settings import ApprovalSettings, Settings

ASK = Settings(approvals=ApprovalSettings(rules={"*echo": "ask"}))


def asked(principal: str = "me", **arguments: Any) -> ApprovalRequest:
    call = Call(id="c", tool=tool("delete_repo"), arguments=arguments, route="bridge", principal=principal)
    return ApprovalRequest(call=call, binding=binding_of(call), rule="*")


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.requirement("X22")
def test_without_a_home_nothing_waits_and_whoever_would_leave_a_question_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    desk, request = ApprovalDesk(), asked()
    assert (desk.waiting(), desk.take(request.binding)) == ((), False)
    with pytest.raises(ConfigError, match="set HOME"):
        desk.ask(request)


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.requirement("X22", "B4")
async def test_a_client_that_cannot_ask_is_refused_with_the_command_that_lets_the_call_through_once(
    modern: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = MemoryServer()
    async with gateway_client(
        server.source("one"), modern=modern, settings=ASK, desk=tmp_path / "toolcrib" / "approvals"
    ) as client:
        await client.names()
        refused = (await client.call("one__echo", {"text": "a"}))["result"]
        command = refused["content"][0]["text"].split("`")[3]
        assert command.startswith("toolcrib approvals grant ")
        granted = await asyncio.to_thread(toolcrib, *command.split()[1:], "--yes")
        assert "one__echo of mcp-one" in granted.stdout
        other = (await client.call("one__echo", {"text": "b"}))["result"]
        answers = [(await client.call("one__echo", {"text": "a"}))["result"].get("isError", False) for _ in range(2)]
    assert refused["isError"] and other["isError"]
    assert answers == [False, True]
    assert server.count("tools/call") == 1


@pytest.mark.requirement("B4", "L6")
def test_of_many_that_take_one_agreement_one_gets_it(tmp_path: Path) -> None:
    desk, request = ApprovalDesk(tmp_path / "desk"), asked(repo="a")
    assert desk.grant(desk.ask(request))
    assert [ApprovalDesk(desk.directory).take(request.binding) for _ in range(5)] == [True, False, False, False, False]


@pytest.mark.requirement("B3")
def test_an_agreement_counts_for_one_principal_and_one_set_of_arguments(tmp_path: Path) -> None:
    desk = ApprovalDesk(tmp_path / "desk")
    desk.grant(desk.ask(asked(repo="a")))
    assert not desk.take(asked(repo="b").binding)
    assert not desk.take(asked("you", repo="a").binding)
    assert desk.take(asked(repo="a").binding)


@pytest.mark.parametrize("ttl_s", [APPROVAL_TTL_S, 30.0])
def test_an_agreement_and_a_question_end_with_their_time(ttl_s: float, tmp_path: Path) -> None:
    now = [1000.0]
    desk = ApprovalDesk(tmp_path / "desk", ttl_s=ttl_s, clock=lambda: now[0])
    desk.grant(desk.ask(asked(repo="a")))
    desk.ask(asked(repo="b"))
    now[0] += ttl_s - 1
    assert [item.binding for item in desk.waiting()] == [asked(repo="b").binding]
    now[0] += 2
    assert not desk.take(asked(repo="a").binding)
    assert not desk.waiting()
    assert not list(desk.directory.iterdir())


@pytest.mark.requirement("X22")
@pytest.mark.parametrize(("ttl_s", "said"), [(90, "90 seconds"), (600, "10 minutes"), (float("inf"), "8760 hours")])
async def test_the_gateway_asks_for_as_long_as_the_configuration_says_and_tells_so(
    ttl_s: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    crib, gateway = open_gateway(Settings(approvals=ApprovalSettings(ttl_s=ttl_s, default="ask")))
    with pytest.raises(ApprovalRequired) as refused:
        await crib.approvals.require(asked(repo="a").call)
    (waiting,) = gateway.desk.waiting()
    assert f"`toolcrib approvals grant {waiting.id}` within {said}, where" in refused.value.message
    assert waiting.expires - time.time() == pytest.approx(min(ttl_s, APPROVAL_TTL_MAX_S), abs=20)
    shown = await asyncio.to_thread(toolcrib, "approvals", "list")
    assert f"{waiting.id}  delete_repo" in shown.stdout
    assert f"{said.split()[-1]} left" in shown.stdout


def test_a_span_of_time_is_told_in_words_and_not_as_longer_than_it_is() -> None:
    told = {
        1.9: "1 second",
        45.5: "45 seconds",
        90: "90 seconds",
        150: "2 minutes",
        600: "10 minutes",
        9_000: "2 hours",
    }
    assert {seconds: show_time(seconds) for seconds in told} == told


def test_nobody_is_worn_down_by_a_spray_of_questions(tmp_path: Path) -> None:
    desk = ApprovalDesk(tmp_path / "desk")
    for number in range(APPROVALS_PENDING):
        desk.ask(asked(number=number))
    desk.ask(asked(number=0))
    with pytest.raises(ApprovalRequired, match="Too many approvals"):
        desk.ask(asked(number=APPROVALS_PENDING))
    assert desk.ask(asked("you")).principal == "you"


@pytest.mark.requirement("B9")
def test_arguments_are_shown_without_blanks_that_would_take_the_place_of_what_counts(tmp_path: Path) -> None:
    shown = ApprovalDesk(tmp_path / "desk").ask(asked(paths=["/a", "/b"], where={"ort": "Straße"})).arguments
    assert shown == '{"paths": ["/a", "/b"], "where": {"ort": "Straße"}}'


def test_what_could_mislead_a_reader_is_written_out_and_of_long_texts_both_ends_are_shown(tmp_path: Path) -> None:
    shown = ApprovalDesk(tmp_path / "desk").ask(asked(text="a\u202eb" + "x" * 9_000 + "END")).arguments
    assert "\u202e" not in shown
    assert shown.startswith('{"text": "a\\x202ebxxx')
    assert shown.endswith('xxxEND" (9006 characters)}')


@pytest.mark.requirement("B9")
def test_no_long_value_hides_the_arguments_behind_it(tmp_path: Path) -> None:
    many = {f"key{number}": "y" * 500 for number in range(100)}
    request = asked(text="x" * 100_000, rows=[["z"] * 900] * 900, **many, force=True, path="/etc/passwd")
    shown = ApprovalDesk(tmp_path / "desk").ask(request).arguments
    assert all(f'"{key}": ' in shown for key in many)
    assert shown.endswith('"force": true, "path": "/etc/passwd"}')
    assert "… (900 items)]" in shown
    assert len(shown) <= ARGUMENTS_SHOWN_CHARS


@pytest.mark.requirement("B9")
def test_what_can_not_be_shown_can_not_be_agreed_to(tmp_path: Path) -> None:
    desk = ApprovalDesk(tmp_path / "desk")
    with pytest.raises(ApprovalDenied, match="too many to be shown"):
        desk.ask(asked(**{f"a long name of an argument {number}": 1 for number in range(1_000)}))
    assert not desk.waiting()


def test_what_others_could_have_written_counts_for_nothing(tmp_path: Path) -> None:
    desk, request = ApprovalDesk(tmp_path / "desk"), asked()
    desk.grant(desk.ask(request))
    desk.directory.chmod(0o777)
    assert not desk.take(request.binding)
    with pytest.raises(ConfigError, match="chmod 700"):
        desk.waiting()


def test_broken_files_are_no_agreement(tmp_path: Path) -> None:
    desk, request = ApprovalDesk(tmp_path / "desk"), asked()
    path = desk.directory / f"{desk.ask(request).id}.granted"
    path.write_text("{", encoding="utf-8")
    assert not desk.take(request.binding)
    assert [item.id for item in desk.waiting()] == [path.stem]


@pytest.mark.requirement("B4", "X22")
def test_a_client_cannot_make_two_calls_that_share_an_id(tmp_path: Path):
    # Of 32 bits, some 80,000 tries are enough for a harmless call and another one that it stands for.
    assert len(ApprovalDesk(tmp_path / "desk").ask(asked(repo="a")).id) * 4 >= 128
