"""Each verdict of the check-up, from values alone."""

from pathlib import Path
from typing import Any

import pytest
from tests.factories import tool

from toolcrib.clients.state import ClientState
from toolcrib.definitions import Skipped, ToolsetName
from toolcrib.doctor.checks import (
    CLIENT_PREFIX,
    ProfileView,
    ServerState,
    check_aliases,
    check_approvals,
    check_clients,
    check_config,
    check_gate,
    check_kernel,
    check_pins,
    check_reranker,
    check_retrieval,
    check_screening,
    check_servers,
    check_skipped,
)
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.gate import GateDecision
from toolcrib.intake.admission import HeldBack
from toolcrib.intake.findings import Finding
from toolcrib.intake.pins import Drift
from toolcrib.limits import CLIENT_NAME_MAX_CHARS, CLIENT_TOOLS_MAX, DOCTOR_ITEMS


def decision(**changes: Any) -> GateDecision:
    fields: dict[str, Any] = {
        "defer": True,
        "reason": "over_threshold",
        "deferrable": 300,
        "tokens": 90_000,
        "threshold": 20_000,
        "window": 200_000,
    }
    return GateDecision(**{**fields, **changes})


def view(**changes: Any) -> ProfileView:
    fields: dict[str, Any] = {
        "profile": "default",
        "decision": decision(),
        "visible": ("tool_search", "tool_describe", "tool_call"),
        "tokens": 1_200,
    }
    return ProfileView(**{**fields, **changes})


def finding(severity: Any) -> Finding:
    return Finding(rule="r", severity=severity, path="description", excerpt="e", explanation="It hides something.")


def test_a_missing_file_is_worth_a_note_and_a_next_step() -> None:
    [check] = check_config(None, [])
    assert check.state == "note"
    assert check.action and "--config" in check.action


def test_values_that_are_set_say_where_they_come_from_and_servers_are_counted() -> None:
    path = Path("toolcrib.yaml")
    changed = [
        ("pins", "enforce", "file:toolcrib.yaml"),
        ("screening", "off", "env:TOOLCRIB_SCREENING"),
        ("mcpServers.git.command", "g", "file:toolcrib.yaml"),
        ("mcpServers.git.args", "a", "file:toolcrib.yaml"),
    ]
    texts = [check.text for check in check_config(path, changed)]
    assert texts[1:3] == ["pins = enforce (from file)", "screening = off (from env:TOOLCRIB_SCREENING)"]
    assert texts[3].startswith("1 server with 2 keys")
    assert len(texts) == 4


def test_only_a_server_that_should_work_and_does_not_is_wrong() -> None:
    states = [
        ServerState(name="a", tools=3, seconds=1.25),
        ServerState(name="b", tools=0, error="the program was not found."),
        ServerState(name="c", tools=0, disabled=True),
        ServerState(name="d", tools=0),
    ]
    checks = list(check_servers(states))
    assert [check.state for check in checks] == ["ok", "wrong", "note", "note"]
    assert "b does not work: the program was not found." in checks[1].text
    assert checks[1].action and "mcpServers.b" in checks[1].action


def test_the_gate_says_what_it_decides_and_why() -> None:
    [check] = check_gate([view()])
    assert check.state == "ok"
    assert check.text == (
        "profile default: 300 tools are deferred, 1,200 tokens per turn (90,000 tokens of definitions reach the "
        "threshold of 20,000; a window of 200,000)."
    )


def test_an_unknown_window_names_the_key_that_would_tell() -> None:
    [check] = check_gate([view(profile="night", decision=decision(window=None))])
    assert check.action and "profiles.night.context" in check.action


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"visible": tuple(f"t{n}" for n in range(CLIENT_TOOLS_MAX + 1))}, f"at most {CLIENT_TOOLS_MAX}"),
        ({"visible": ("x" * (CLIENT_NAME_MAX_CHARS - len(CLIENT_PREFIX) + 1),)}, f"{CLIENT_NAME_MAX_CHARS} that model"),
        ({"missing": ("send",)}, "requires tools that nobody has: send"),
    ],
)
def test_what_clients_cannot_take_and_what_a_profile_lacks_is_wrong(changes: dict[str, Any], said: str) -> None:
    _, check = check_gate([view(**changes)])
    assert check.state == "wrong"
    assert said in check.text
    assert check.action


def test_names_and_counts_at_the_limit_are_fine() -> None:
    names = tuple(f"{n:x>{CLIENT_NAME_MAX_CHARS - len(CLIENT_PREFIX)}}" for n in range(CLIENT_TOOLS_MAX))
    assert [check.state for check in check_gate([view(visible=names)])] == ["ok"]


def test_retrieval_is_what_is_applied_not_what_is_configured() -> None:
    assert check_retrieval(configured="hybrid", unavailable=None).state == "ok"
    check = check_retrieval(configured="hybrid", unavailable="the file is damaged.")
    assert check.state == "wrong"
    assert "lexical although hybrid is configured: the file is damaged." in check.text
    check = check_retrieval(
        configured="hybrid", unavailable=None, lacking="hits are not compared: the file is missing."
    )
    assert check.state == "wrong"
    assert "hybrid, with a part of the model missing: hits are not compared: the file is missing." in check.text
    assert check.action


def test_a_reranker_that_does_not_answer_is_wrong_and_one_that_does_names_its_host() -> None:
    assert "vectors.example" in check_reranker(host="vectors.example", failure=None, dimensions=768).text
    assert check_reranker(host="vectors.example", failure="out of time", dimensions=0).state == "wrong"


def test_pins_tell_off_from_unapproved_from_changed(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    assert [check.state for check in check_pins("off", lock=lock, drifts=())] == ["note"]
    assert [check.state for check in check_pins("warn", lock=lock, drifts=())] == ["note"]
    assert [check.state for check in check_pins("enforce", lock=lock, drifts=())] == ["wrong"]
    lock.write_text("")
    assert [check.state for check in check_pins("warn", lock=lock, drifts=())] == ["ok"]
    drifts = [
        Drift(kind="tool", toolset="mcp-a", name="t", state="changed", parts=("schema",)),
        Drift(kind="tool", toolset="mcp-a", name="u", state="removed"),
        Drift(kind="launch", toolset="mcp-a", name="a", state="changed"),
    ]
    checks = list(check_pins("warn", lock=lock, drifts=drifts))
    assert [check.state for check in checks] == ["wrong", "note", "wrong"]
    assert checks[0].text == "mcp-a/t: the definition is not as approved: it changed (schema)."
    assert "the launch" in checks[2].text


def test_what_is_held_back_is_named_with_its_reason_and_a_long_list_is_cut() -> None:
    held = [HeldBack(toolset=f"mcp-{n}", name="t", reason="hidden characters") for n in range(DOCTOR_ITEMS + 3)]
    checks = list(check_screening("hold", held_back=held, findings={"t": [finding("hard")]}))
    assert [check.state for check in checks] == ["wrong"] * DOCTOR_ITEMS + ["note"]
    assert checks[0].text == "mcp-0: t is held back: hidden characters."
    assert "3 more" in checks[-1].text


def test_tools_of_one_server_that_are_held_back_for_one_reason_take_one_line() -> None:
    held = [HeldBack(toolset="mcp-a", name=f"t{n}", reason="its launch changed") for n in range(5)]
    [check] = check_screening("hold", held_back=held, findings={})
    assert check.text == "mcp-a: t0, t1, t2 and 2 more are held back: its launch changed."


def test_a_hard_finding_that_is_served_is_wrong_unless_somebody_approved_it() -> None:
    found = {"t": [finding("hard"), finding("soft")]}
    assert [check.state for check in check_screening("warn", held_back=(), findings=found)] == ["wrong"]
    assert [check.state for check in check_screening("hold", held_back=(), findings=found)] == ["note"]
    [quiet] = check_screening("hold", held_back=(), findings={"t": [finding("soft")]})
    assert (quiet.state, "1 soft" in quiet.text) == ("ok", True)


def test_a_rule_that_no_tool_meets_is_worth_a_note_unless_it_is_for_the_core_tools_of_a_host() -> None:
    tools = [tool("delete_repo", toolset="mcp-github", prefix="github")]
    policies = [
        ApprovalPolicy(
            rules={"*": "ask", "delete_*": "ask", "terminal": "ask", "core/*_file": "deny", "delte_*": "deny"}
        ),
        ApprovalPolicy(rules={"delete_*": "allow", "browser_click": "deny"}, where="profiles.ci.approvals"),
    ]
    checks = list(check_approvals(policies, tools))
    assert [(check.state, check.text) for check in checks] == [
        ("note", "approvals.rules: no tool meets `delte_*`."),
        ("note", "profiles.ci.approvals.rules: no tool meets `delete_*`."),
    ]
    assert all("`server__tool`" in (check.action or "") for check in checks)


@pytest.mark.requirement("X8")
def test_aliases_that_belong_to_no_tool_and_no_toolset_are_told() -> None:
    tools = [tool("create_issue", toolset="mcp-github", prefix="github")]
    keys = ["create_issue", "github__create_issue", "mcp-github", "terminal", "creat_issue", "github"]
    checks = list(check_aliases(keys, tools))
    assert [(check.state, check.text) for check in checks] == [
        ("note", "tools.aliases: no tool and no toolset is called `creat_issue`."),
        ("note", "tools.aliases: no tool and no toolset is called `github`."),
    ]
    assert all("`mcp-server`" in (check.action or "") for check in checks)


def test_definitions_left_out_are_named() -> None:
    assert [check.state for check in check_skipped(())] == ["ok"]
    [check] = check_skipped([Skipped(toolset=ToolsetName("mcp-a"), name="t", reason="it has no schema")])
    assert (check.state, check.text) == ("wrong", "mcp-a/t is left out: it has no schema.")


def test_a_client_is_wrong_only_if_the_way_back_is_lost_or_its_file_unreadable() -> None:
    path = Path("/home/ada/.cursor/mcp.json")
    states = [
        ClientState(client="cursor", path=path, state=state, servers=2)
        for state in ("direct", "installed", "changed since", "backup lost", "unreadable")
    ]
    checks = list(check_clients(states))
    assert [check.state for check in checks] == ["note", "ok", "note", "wrong", "wrong"]
    assert checks[0].action == "toolcrib install cursor --dry-run"
    assert [check.state for check in check_clients(())] == ["note"]


def test_the_kernel_is_told_of_and_doing_without_is_no_fault() -> None:
    assert check_kernel(account="compiled kernel in use").text == "Compiled kernel in use."
    assert check_kernel(account="without the compiled kernel: it was not built").state == "ok"


@pytest.mark.parametrize(
    ("error", "step"),
    [
        ("the variable TOKEN is not set", "set TOKEN where the gateway or its client is started"),
        ("the program `uvx` was not found", "install it, or give its whole path as `mcpServers.one.command`"),
        ("it did not answer within 30 seconds", "`--wait 120`"),
        ("it exited with code 1", "start its command by hand"),
        (
            "it exited with code 1; its last words: ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
            "`uvx --with 'mcp<2'`",
        ),
        (
            "it exited with code 1; its last words: AttributeError: 'Server' object has no attribute 'list_tools'",
            "written for version 1 of the MCP SDK",
        ),
    ],
)
def test_the_next_step_for_a_server_goes_by_the_reason(error: str, step: str) -> None:
    (check,) = check_servers([ServerState(name="one", tools=0, error=error)])
    assert step in (check.action or "")


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (
            "it wants other credentials (HTTP 401)",
            "correct the token in `mcpServers.one.headers`, or set `oauth: true`",
        ),
        (
            "it did not answer within 30 seconds",
            "look whether it is up, correct `url` or `headers` of `mcpServers.one`",
        ),
        ("the variable TOKEN is not set", "set TOKEN where the gateway or its client is started"),
    ],
)
def test_nobody_is_told_to_start_a_server_that_has_an_address(error: str, step: str) -> None:
    (check,) = check_servers([ServerState(name="one", tools=0, error=error, is_web=True)])
    assert step in (check.action or "")
    assert "by hand" not in (check.action or "")
