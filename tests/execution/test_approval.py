"""Approval: bound to what runs, once, and not for ever."""

import asyncio
from typing import Any

import pytest
from msgspec import structs
from tests.factories import bridged, core, crib, github, tool

from toolcrib.definitions import Call, Traits
from toolcrib.errors import ApprovalDenied, ApprovalRequired
from toolcrib.execution.approval import ApprovalPolicy, Approvals, binding_of
from toolcrib.limits import APPROVALS_PENDING
from toolcrib.settings import ApprovalSettings, Settings, ToolSearchSettings, ToolsSettings

ASK = ApprovalPolicy(default="ask")


def call(
    name: str = "delete_repo", arguments: dict[str, Any] | None = None, principal: str = "me", **options: Any
) -> Call:
    return Call(id="c", tool=tool(name, **options), arguments=arguments or {}, route="bridge", principal=principal)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.requirement("X14")
def test_a_grant_is_bound_to_everything_that_decides_what_happens() -> None:
    base = call(arguments={"repo": "a"})
    bindings = {
        binding_of(each)
        for each in (
            base,
            call(arguments={"repo": "b"}),
            call(arguments={"repo": "a"}, principal="you"),
            call("delete_repo", {"repo": "a"}, description="Changed."),
            call("delete_repo", {"repo": "a"}, toolset="mcp-other"),
            call("delete_branch", {"repo": "a"}),
        )
    }
    assert len(bindings) == 6
    assert binding_of(structs.replace(base, id="other", route="direct")) == binding_of(base)
    assert binding_of(call(arguments={"x": 1, "y": 2})) == binding_of(call(arguments={"y": 2, "x": 1}))


@pytest.mark.requirement("X14")
async def test_a_grant_is_used_once_even_by_two_calls_at_the_same_time() -> None:
    approvals = Approvals(policy=ASK, clock=Clock())
    approvals.grant(binding_of(call()))
    results = await asyncio.gather(*(approvals.require(call()) for _ in range(100)), return_exceptions=True)
    assert sum(result is None for result in results) == 1
    assert all(isinstance(result, ApprovalRequired) for result in results if result is not None)


@pytest.mark.requirement("X14")
async def test_a_grant_expires() -> None:
    clock = Clock()
    approvals = Approvals(policy=ASK, clock=clock, ttl_s=600)
    approvals.grant(binding_of(call()))
    clock.now += 600
    with pytest.raises(ApprovalRequired):
        await approvals.require(call())


@pytest.mark.requirement("X14")
async def test_a_grant_for_other_arguments_is_no_grant() -> None:
    approvals = Approvals(policy=ASK, clock=Clock())
    approvals.grant(binding_of(call(arguments={"repo": "a"})))
    with pytest.raises(ApprovalRequired):
        await approvals.require(call(arguments={"repo": "b"}))
    await approvals.require(call(arguments={"repo": "a"}))


async def test_without_anybody_to_ask_the_call_is_refused_not_approved() -> None:
    with pytest.raises(ApprovalRequired, match="no approver"):
        await Approvals(policy=ASK, clock=Clock()).require(call())


@pytest.mark.requirement("X14")
@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_only_true_is_a_yes(answer: Any) -> None:
    async def approver(request: Any) -> Any:
        return answer

    with pytest.raises(ApprovalDenied):
        await Approvals(policy=ASK, clock=Clock(), approver=approver).require(call())


@pytest.mark.requirement("X14")
async def test_an_approver_that_crashes_refuses() -> None:
    async def approver(request: Any) -> bool:
        raise RuntimeError("terminal gone")

    with pytest.raises(ApprovalDenied):
        await Approvals(policy=ASK, clock=Clock(), approver=approver).require(call())


async def test_a_question_that_nobody_answers_runs_out() -> None:
    async def approver(request: Any) -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(ApprovalRequired, match="in time"):
        await Approvals(policy=ASK, clock=Clock(), approver=approver, ttl_s=0.01).require(call())


async def test_a_spray_of_questions_is_cut_off() -> None:
    release = asyncio.Event()

    async def approver(request: Any) -> bool:
        await release.wait()
        return True

    approvals = Approvals(policy=ASK, clock=Clock(), approver=approver)
    tasks = [asyncio.create_task(approvals.require(call(arguments={"n": n}))) for n in range(APPROVALS_PENDING + 3)]
    await asyncio.sleep(0)
    release.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(result, ApprovalRequired) for result in results) == 3
    await approvals.require(call())


@pytest.mark.parametrize(
    ("rules", "name", "verdict"),
    [
        ({"*": "allow", "delete_*": "ask"}, "delete_repo", "ask"),
        ({"*": "deny", "read_*": "allow"}, "read_file", "allow"),
        ({"mcp-t/*": "deny"}, "read_file", "deny"),
        ({"*_repo": "ask", "delete_*": "deny"}, "delete_repo", "deny"),
        ({"tool_call": "allow", "tool_*": "allow"}, "delete_repo", "ask"),
        ({}, "anything", "ask"),
    ],
)
def test_rules_match_the_real_tool_and_the_strictest_wins(rules: dict[str, Any], name: str, verdict: str) -> None:
    assert ApprovalPolicy(default="ask", rules=rules).decide(call(name))[0] == verdict


@pytest.mark.parametrize(
    ("default", "rules", "verdict", "rule"),
    [
        ("allow", {"delete_*": "ask"}, "ask", "delete_*"),
        ("allow", {"*": "allow", "delete_repo": "deny"}, "deny", "delete_repo"),
        ("allow", {"github__*": "allow", "delete_*": "ask"}, "ask", "delete_*"),
        ("ask", {"*": "ask", "delete_*": "ask"}, "ask", "delete_*"),
        ("ask", {"delete_*": "allow"}, "ask", "default"),
        ("allow", {"*": "deny", "delete_*": "allow"}, "deny", "*"),
        ("ask", {"*": "deny", "github__*": "allow", "delete_*": "allow"}, "allow", "github__*"),
        ("deny", {"delete_*": "ask"}, "deny", "default"),
        ("allow", {"*": "deny", "delete_*": "ask"}, "deny", "*"),
    ],
)
def test_the_name_that_a_server_gave_its_tool_can_make_a_verdict_stricter_never_laxer(
    default: Any, rules: dict[str, Any], verdict: str, rule: str
) -> None:
    asked = call("delete_repo", toolset="mcp-github", prefix="github")
    assert asked.tool.name == "github__delete_repo"
    assert ApprovalPolicy(default=default, rules=rules).decide(asked) == (verdict, rule)


def test_rules_that_meet_no_tool_are_found_and_an_allow_does_not_meet_a_short_name() -> None:
    tools = [tool("delete_repo", toolset="mcp-github", prefix="github"), tool("read_file")]
    meeting: dict[str, Any] = {"*": "ask", "delete_*": "deny", "mcp-github/*": "ask", "read_file": "allow"}
    idle: dict[str, Any] = {"delete_rep": "deny", "delete_repo": "allow", "mcp-gitlab/*": "ask"}
    assert [*ApprovalPolicy(rules={**meeting, **idle}).idle_rules(tools)] == [*idle]


def test_what_a_source_says_of_its_tool_makes_a_verdict_stricter_never_laxer() -> None:
    destroying = structs.replace(
        call(), tool=structs.replace(tool("x"), traits=Traits(destructive=True, read_only=True))
    )
    harmless = structs.replace(call(), tool=structs.replace(tool("x"), traits=Traits(read_only=True)))
    assert ApprovalPolicy(default="allow", destructive="ask").decide(destroying)[0] == "ask"
    assert ApprovalPolicy(default="deny", destructive="allow").decide(destroying)[0] == "deny"
    assert ApprovalPolicy(default="ask").decide(harmless)[0] == "ask"


@pytest.mark.requirement("X14")
async def test_a_childs_call_is_not_covered_by_its_parents_grant() -> None:
    settings = Settings(
        tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")),
        approvals=ApprovalSettings(default="ask"),
    )
    source = github()
    shared = crib(core(), source, settings=settings)
    parent = shared.session()
    child = parent.narrow()
    arguments = {"owner": "o", "repo": "r"}
    bound = Call(
        id="", tool=parent.catalog.resolve("delete_repo").tool, arguments=arguments, route="direct", principal="local"
    )
    shared.approvals.grant(binding_of(bound))
    (refused,) = await child.execute([bridged("delete_repo", arguments)])
    (granted,) = await parent.execute([bridged("delete_repo", arguments)])
    (again,) = await parent.execute([bridged("delete_repo", arguments)])
    assert [refused.result.code, granted.result.code, again.result.code] == [
        "approval_required",
        None,
        "approval_required",
    ]
    assert len(source.calls) == 1


@pytest.mark.requirement("X14", "X19")
async def test_a_child_keeps_the_rules_of_its_parent() -> None:
    shared = crib(core(), github())
    policy = ApprovalPolicy(rules={"*delete_*": "deny"}, where="profiles.p.approvals")
    parent = shared.open_session(scope=shared.session().scope, window=None, required=(), principal="me", policy=policy)
    result = await parent.narrow().call("delete_repo", {"owner": "o", "repo": "r"})
    assert result.code == "approval_denied"
