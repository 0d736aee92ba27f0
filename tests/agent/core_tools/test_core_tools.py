"""The core tools do real work, and stay within their bounds."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.talk import issues, talk, weather
from tests.fakes.scripted_model import Say, call, search, through_bridge

from toolcrib.agent.core_tools import Seat, Seats, Workspace, core_tools
from toolcrib.agent.core_tools.processes import child_environment, run_child
from toolcrib.crib import Crib
from toolcrib.definitions import Result
from toolcrib.errors import ConfigError, ToolFailed
from toolcrib.limits import AGENT_DEPTH, CODE_CALLS, FILE_MAX_BYTES, OUTPUT_MAX_CHARS
from toolcrib.session import Session
from toolcrib.settings import ApprovalSettings, Settings


@asynccontextmanager
async def seated(root: Path, *sources: Any, **rules: Any) -> AsyncGenerator[Session]:
    """A session with the core tools over a directory."""
    seats = Seats()
    settings = Settings(approvals=ApprovalSettings(rules=rules))
    async with Crib(core_tools(Workspace(root), seats), *sources, settings=settings) as crib:
        session = crib.session()
        with seats.take(Seat(session=session)):
            yield session


async def ask(session: Session, name: str, **arguments: Any) -> Result:
    return await session.call(name, arguments)


@pytest.mark.requirement("X28")
async def test_a_file_is_written_read_patched_and_found(tmp_path: Path) -> None:
    async with seated(tmp_path) as session:
        await ask(session, "write_file", path="src/a.py", content="one = 1\ntwo = 2\n")
        read = await ask(session, "read_file", path="src/a.py", offset=2)
        assert read.text.split() == ["2", "two", "=", "2"]
        assert not (await ask(session, "patch", path="src/a.py", old="two = 2", new="two = 3")).is_error
        found = await ask(session, "search_files", text="TWO", glob="*.py")
        assert found.structured == {"hits": ["src/a.py:2: two = 3"], "files": 1, "complete": True}
        listed = await ask(session, "search_files", glob="*.py")
        assert listed.structured and listed.structured["hits"] == ["src/a.py"]


@pytest.mark.requirement("X28")
async def test_a_patch_must_be_unambiguous(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x x", encoding="utf-8")
    async with seated(tmp_path) as session:
        assert "2 times" in (await ask(session, "patch", path="a", old="x", new="y")).text
        assert "does not occur" in (await ask(session, "patch", path="a", old="z", new="y")).text
        assert not (await ask(session, "patch", path="a", old="x", new="y", every=True)).is_error
        assert (tmp_path / "a").read_text(encoding="utf-8") == "y y"


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "link", "link/../../outside", "dir-link/x", "a\x00b"])
async def test_no_path_leads_out_of_the_working_directory(path: str, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside").write_text("secret", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "dir-link").symlink_to(tmp_path)
    async with seated(root, terminal="allow") as session:
        for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("patch", {"old": "s", "new": "x"})):
            result = await ask(session, tool, path=path, **more)
            assert result.is_error
            assert "secret" not in result.text
        assert (await ask(session, "search_files", text="secret", path=path)).is_error
        assert (await ask(session, "terminal", command="pwd", workdir=path)).is_error
    assert (tmp_path / "outside").read_text(encoding="utf-8") == "secret"


@pytest.mark.requirement("X28")
def test_a_link_that_appears_between_the_check_and_the_opening_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    (root / "dir").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("secret", encoding="utf-8")
    workspace = Workspace(root)
    inside = workspace.inside

    def swapped(path: str) -> Path:
        real = inside(path)
        (root / "dir").rmdir()
        (root / "dir").symlink_to(outside)
        return real

    workspace.inside = swapped
    with pytest.raises(ToolFailed, match="cannot be read"):
        workspace.read("dir/file")


@pytest.mark.requirement("X28")
async def test_devices_pipes_and_huge_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(FILE_MAX_BYTES + 1)
    async with seated(tmp_path) as session:
        assert "no regular file" in (await ask(session, "read_file", path="pipe")).text
        assert "bytes" in (await ask(session, "read_file", path="huge")).text
        assert "directory" in (await ask(session, "write_file", path=".", content="x")).text


@pytest.mark.requirement("X28")
async def test_a_search_of_files_does_not_follow_links_out(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside").write_text("secret", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "outside")
    async with seated(root) as session:
        found = await ask(session, "search_files", text="secret")
        assert found.structured and found.structured["hits"] == []


@pytest.mark.requirement("X28")
async def test_a_command_runs_in_the_directory_and_tells_its_status(tmp_path: Path) -> None:
    async with seated(tmp_path, terminal="allow") as session:
        result = await ask(session, "terminal", command="echo out; echo err >&2; exit 3")
        assert result.text == "out\nerr\n[exit status 3]"
        assert (await ask(session, "terminal", command="pwd")).text.startswith(str(Workspace(tmp_path).root))


@pytest.mark.requirement("X28")
async def test_a_command_that_takes_too_long_is_ended_with_all_its_children(tmp_path: Path) -> None:
    async with seated(tmp_path, terminal="allow") as session:
        # The output is read to its end, so the answer comes only when no child holds the pipe any more.
        result = await ask(session, "terminal", command="sleep 60 & echo started; sleep 60", timeout_s=2)
        assert "ended after 2 s" in result.text
        assert "started" in result.text


@pytest.mark.requirement("X28")
async def test_a_child_left_in_the_background_ends_with_its_command(tmp_path: Path) -> None:
    async with seated(tmp_path, terminal="allow") as session:
        assert (await ask(session, "terminal", command="sleep 60 & echo done")).text == "done\n[exit status 0]"


@pytest.mark.requirement("X28")
async def test_the_output_of_a_command_is_bounded_and_keeps_both_ends(tmp_path: Path) -> None:
    script = "print('first'); print('x' * 1_000_000); print('last')"
    done = await run_child([sys.executable, "-c", script], cwd=tmp_path, deadline_s=60)
    assert len(done.output) < OUTPUT_MAX_CHARS + 100
    assert done.output.startswith("first")
    assert done.output.endswith("last\n")
    assert "bytes left out" in done.output


def test_a_child_does_not_inherit_secrets() -> None:
    environ = {"PATH": "/bin", "OPENAI_API_KEY": "k", "GITHUB_TOKEN": "t", "DB_PASSWORD": "p", "HOME": "/home/x"}
    assert child_environment(environ) == {"PATH": "/bin", "HOME": "/home/x"}


@pytest.mark.requirement("X28", "X14")
async def test_a_command_that_nobody_approved_does_not_run(tmp_path: Path) -> None:
    async with seated(tmp_path, terminal="ask") as session:
        result = await ask(session, "terminal", command="touch ran")
        assert result.code == "approval_required"
        assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("X28")
async def test_a_todo_list_belongs_to_its_conversation_and_memory_outlives_it(tmp_path: Path) -> None:
    async with seated(tmp_path) as session:
        await ask(session, "todo", items=["a", "b"])
        listed = await ask(session, "todo", done=[1])
        assert listed.structured == {
            "todo": [{"item": "a", "done": True}, {"item": "b", "done": False}],
            "open": 1,
        }
        assert (await ask(session, "todo", done=[3])).is_error
        await ask(session, "memory", action="add", text="The user likes\n tea.")
    async with seated(tmp_path) as session:
        assert (await ask(session, "todo")).structured == {"todo": [], "open": 0}
        assert (await ask(session, "memory")).text == "The user likes tea."
        await ask(session, "memory", action="remove", text="tea")
        assert (await ask(session, "memory")).text == "[nothing remembered]"


@pytest.mark.requirement("S7", "X28")
async def test_code_calls_tools_through_the_same_session(tmp_path: Path) -> None:
    code = 'r = call("tracker__create_issue", title="from code")\nprint(r["title"], call("forecast", city="Bern"))'
    async with seated(tmp_path, issues(), weather(), execute_code="allow") as session:
        result = await ask(session, "execute_code", code=code)
        assert result.text == "from code Bern: sun for 1 days\n"


@pytest.mark.requirement("S7", "S19", "S20")
async def test_code_reaches_no_tool_outside_the_scope_and_no_tool_that_needs_an_approval(tmp_path: Path) -> None:
    code = """
for name, arguments in (("weather__forecast", {"city": "Bern"}), ("tracker__delete_issue", {"number": 1}),
                        ("execute_code", {"code": "1"}), ("tracker__create_issue", {"titel": "x"})):
    try:
        print(call(name, **arguments))
    except ToolError as error:
        print(name, error)
"""
    seats = Seats()
    rules: dict[str, Any] = {"tracker__delete_issue": "ask"}
    settings = Settings(approvals=ApprovalSettings(rules=rules))
    async with Crib(core_tools(Workspace(tmp_path), seats), issues(), weather(), settings=settings) as crib:
        session = crib.session(enabled_toolsets=["tracker"])
        with seats.take(Seat(session=session)):
            lines = (await ask(session, "execute_code", code=code)).text.splitlines()
        assert "not available in this session" in lines[0]
        assert "needs somebody's approval" in lines[1]
        assert "cannot be called from code" in lines[2]
        assert "invalid_arguments" in lines[3]
        events = [event for event in crib.activity.events if event.stage == "done" and event.tool != "execute_code"]
        assert {event.route for event in events} == {"caller"}
        assert not any(event.stage == "dispatch" for event in crib.activity.events if event.route == "caller" and event.tool != "execute_code")  # fmt: skip


@pytest.mark.requirement("X28")
async def test_code_is_bounded_in_calls_memory_and_output(tmp_path: Path) -> None:
    async with seated(tmp_path, weather()) as session:
        many = f'for n in range({CODE_CALLS + 1}): call("weather__forecast", city=str(n))'
        assert f"At most {CODE_CALLS} calls" in (await ask(session, "execute_code", code=many)).text
        big = await ask(session, "execute_code", code="x = bytearray(4 * 1024 ** 3)")
        assert "MemoryError" in big.text
        assert big.is_error
        failing = await ask(session, "execute_code", code="raise ValueError('no')")
        assert "ValueError: no" in failing.text


@pytest.mark.requirement("X28")
async def test_code_that_spins_is_ended_by_the_limit_on_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.agent.core_tools.code.CODE_CPU_S", 1)
    async with seated(tmp_path) as session:
        assert (await ask(session, "execute_code", code="while True: pass")).is_error


@pytest.mark.requirement("S21")
async def test_a_seat_is_never_shared_and_a_session_without_one_is_refused(tmp_path: Path) -> None:
    seats = Seats()
    async with Crib(core_tools(Workspace(tmp_path), seats)) as crib:
        one, two = crib.session(), crib.session()
        result = await ask(one, "execute_code", code="print(1)")
        assert "inside an agent's conversation only" in result.text
        with (
            seats.take(Seat(session=one)),
            pytest.raises(ConfigError, match="conversation already"),
            seats.take(Seat(session=two)),
        ):
            pass


@pytest.mark.requirement("S19", "S20", "X28")
async def test_a_sub_agent_has_a_narrower_crib_and_is_refused_outside_of_it(tmp_path: Path) -> None:
    script = [
        call("delegate_task", {"task": "Open an issue and tell the weather.", "toolsets": ["tracker", "payroll"]}),
        search("weather"),
        through_bridge("weather__forecast", city="Bern"),
        through_bridge("tracker__create_issue", title="Leak"),
        Say("The issue is open; I have no weather tool."),
        Say("Half of it is done."),
    ]
    async with talk(script, tmp_path) as it:
        report = await it.agent.run("Delegate it.")
        assert report.text == "Half of it is done."
        assert it.ran() == ["tracker__create_issue", "delegate_task"], "the sub-agent's call ends first"
        child = it.endpoint.requests[4]
        assert json.loads(child.results[0])["total_available"] == 3
        assert "weather__forecast" not in json.dumps(child.tools)
        assert "not available in this session" in child.results[1]
        answer = json.loads(it.endpoint.requests[-1].results[-1])
        assert answer["toolsets"] == ["tracker"]
        assert answer["calls"][1]["code"] == "tool_not_available"
        assert {event.principal for event in it.crib.activity.events} == {"local", "local/1"}


@pytest.mark.requirement("X28")
async def test_sub_agents_delegate_only_so_deep(tmp_path: Path) -> None:
    down = call("delegate_task", {"task": "Go on."})
    script = [*[down] * (AGENT_DEPTH + 1), *[Say("Enough.")] * (AGENT_DEPTH + 1)]
    async with talk(script, tmp_path) as it:
        report = await it.agent.run("Delegate.")
        assert report.outcome == "completed"
        assert it.endpoint.finished
        assert any("cannot delegate further" in result for result in it.endpoint.requests[AGENT_DEPTH + 1].results)


@pytest.mark.requirement("S8")
async def test_core_tools_stay_in_the_array_whatever_is_configured(tmp_path: Path) -> None:
    seats = Seats()
    async with Crib(core_tools(Workspace(tmp_path), seats), issues(), core=()) as crib:
        session = crib.session(enabled_toolsets=["tracker"], read_only=True)
        assert {"clarify", "terminal", "execute_code"} <= {tool.name for tool in session.assemble().assembly.tools}
