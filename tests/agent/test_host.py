"""A conversation with MCP servers: they are waited for, their tools are deferred, and they may come late."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.memory_upstream import MemoryServer, tool
from tests.fakes.scripted_model import Say, ScriptedModel, Step, search, through_bridge

from toolcrib.agent.host import CORE_RULES, agent_settings, open_host
from toolcrib.agent.loop import Quiet
from toolcrib.crib import Crib
from toolcrib.execution.dispatch import Era
from toolcrib.settings import AgentSettings, ApprovalSettings, Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.link import Link, Listener


def settings_for(endpoint: ScriptedModel, workdir: Path) -> Settings:
    return Settings(
        tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on")),
        agent=AgentSettings(model="scripted", endpoint=endpoint.openai_url, workdir=str(workdir), context=32_000),
    )


@pytest.mark.requirement("X28", "S10", "S22")
async def test_tools_of_a_server_are_there_from_the_first_request_and_may_be_required(tmp_path: Path) -> None:
    server = MemoryServer([tool("echo")])
    script: list[Step] = [search("echo"), through_bridge("memory__echo"), Say("It answered.")]
    with ScriptedModel(script) as endpoint:
        async with open_host(
            settings_for(endpoint, tmp_path), [server.source()], required_tools=["memory__echo"]
        ) as host:
            report = await host.agent.run("Echo.")
            assert report.text == "It answered."
            assert not any(answer.result.is_error for answer in report.answers)
        assert server.count("tools/call") == 1
        assert "memory__echo" not in endpoint.requests[0].names, "deferred"


@pytest.mark.requirement("X10", "X28")
async def test_a_server_that_comes_late_is_told_at_the_end_of_the_conversation(tmp_path: Path) -> None:
    server, late = MemoryServer([tool("echo")]), MemoryServer([tool("lookup")])
    with ScriptedModel([Say("Hello."), Say("I see it.")]) as endpoint:
        view = Quiet()
        async with open_host(settings_for(endpoint, tmp_path), [server.source()], view=view) as host:
            await host.agent.run("Hi.")
            source = late.source("late")
            host.crib.add(source)
            await source.start()
            assert await host.crib.settle(wait_s=60) == ()
            await host.agent.run("And now?")
        first, second = endpoint.requests
        assert first.bytes_of("tools") == second.bytes_of("tools")
        assert any("late__lookup" in note for note in view.notes)


async def test_a_server_that_never_comes_up_is_named_and_not_waited_for_for_ever() -> None:
    class Stuck(MemoryServer):
        async def connect(self, listener: Listener, era: Era | None) -> Link:
            await asyncio.Event().wait()
            raise AssertionError

    source = Stuck().source("stuck")
    async with Crib(source) as crib:
        assert await crib.settle(wait_s=0.01) == (source.name,)


def test_core_tools_that_can_do_anything_are_asked_about_unless_a_rule_names_them() -> None:
    assert agent_settings(Settings()).approvals.rules == CORE_RULES
    own = Settings(approvals=ApprovalSettings(rules={"terminal": "deny", "x": "allow"}))
    assert agent_settings(own).approvals.rules == {"terminal": "deny", "execute_code": "ask", "x": "allow"}
