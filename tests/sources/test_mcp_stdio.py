import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fakes.memory_upstream import eventually

from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject, Result
from toolcrib.errors import SourceUnavailable
from toolcrib.gateway.run import use_fast_loop
from toolcrib.limits import REFRESH_EVERY_S
from toolcrib.settings import LimitSettings, ServerSettings, Settings
from toolcrib.sources.link import Waiter
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.mcp_stdio import Command, StdioLink
from toolcrib.sources.processes import Guard, marked_processes
from toolcrib.sources.servers import open_server
from toolcrib.sources.supervisor import Pace

pytestmark = pytest.mark.usefixtures("steady_loop")

BAD = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"


def bad(
    mode: str, name: str = "bad", guard: Guard | None = None, amount: float | None = None, **more: Any
) -> McpSource:
    args = [str(BAD), "--mode", mode, *(["--amount", str(amount)] if amount is not None else [])]
    entry = ServerSettings(command=sys.executable, args=tuple(args), **more)
    pace = Pace(clock=asyncio.get_running_loop().time, every_s=0)
    return open_server("bad", entry, guard=guard or Guard(), pace=pace)


async def call(source: McpSource, **limits: Any) -> tuple[Result, Crib]:
    crib = Crib(source, settings=Settings(limits=LimitSettings(**limits)))
    async with crib:
        await source.settled.wait()
        result = await crib.session().call("bad__echo", {"message": "hello"})
    return result, crib


@pytest.mark.requirement("X17")
@pytest.mark.parametrize("mode", ["ok", "dies_on_probe", "garbage_stdout", "dup_reply"])
async def test_a_tool_is_called_whatever_else_the_server_does(mode: str):
    result, _ = await call(bad(mode, amount=3 if mode == "dies_on_probe" else None))
    assert not result.is_error
    assert result.text == ("answer 1" if mode == "dup_reply" else "hello")


class Input:
    """The input of a server, as far as a link needs one."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 0


async def test_calls_that_follow_answers_that_came_together_are_written_together():
    link = StdioLink("s", listener=lambda method, params: None, guard=Guard(), mark="m")
    link._stdin = stdin = cast("Any", Input())

    class Follower:
        def done(self) -> bool:
            return False

        def set_result(self, result: bytes, /) -> None:
            link.notify("followed")

        def set_exception(self, exception: Exception, /) -> None:
            raise exception

    for _ in range(3):
        link.begin("a", {}, Waiter(future=Follower(), exchange=None, headers={}))
    assert len(stdin.written) == 3
    stdin.written.clear()
    link.pipe_data_received(1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"result":{}}\n')
    assert [data.count(b"followed") for data in stdin.written] == [2]
    link.pipe_data_received(1, b'{"jsonrpc":"2.0","id":3,"result":{}}\n')
    assert [data.count(b"followed") for data in stdin.written] == [2, 1]


async def test_a_question_under_a_large_id_costs_nobody_the_answer_that_came_with_it():
    link = StdioLink("s", listener=lambda method, params: None, guard=Guard(), mark="m")
    link._stdin = stdin = cast("Any", Input())
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    link.begin("a", {}, Waiter(future=answer, exchange=None, headers={}))
    stdin.written.clear()
    asked = b'{"jsonrpc":"2.0","id":%d,"method":"roots/list"}\n' % (10**30)
    link.pipe_data_received(1, asked + b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert answer.done()
    assert [b'"id":%d,' % (10**30) in data for data in stdin.written] == [True]


@pytest.mark.requirement("K1")
async def test_an_answer_counts_that_came_with_a_question_of_a_server_that_does_not_listen():
    link = StdioLink("s", listener=lambda method, params: None, guard=Guard(), mark="m")
    link._stdin = stdin = cast("Any", Input())
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    link.begin("a", {}, Waiter(future=answer, exchange=None, headers={}))
    stdin.closing = True
    asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"roots/list"}\n'
    link.pipe_data_received(1, asked + b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert answer.done()


@pytest.mark.requirement("K16")
async def test_an_announcement_that_breaks_whoever_hears_it_costs_nobody_the_answer_that_came_with_it():
    def fail(method: str, params: bytes) -> None:
        raise ValueError(method)

    link = StdioLink("s", listener=fail, guard=Guard(), mark="m")
    link._stdin = cast("Any", Input())
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    link.begin("a", {}, Waiter(future=answer, exchange=None, headers={}))
    link.pipe_data_received(1, b'{"jsonrpc":"2.0","method":"x"}\n{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert answer.done()


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": use_fast_loop() or asyncio.new_event_loop}


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("loop", LOOPS)
def test_calls_of_one_write_to_a_server_that_closed_its_input_are_told_so_on_every_loop(
    monkeypatch: pytest.MonkeyPatch, loop: str
):
    monkeypatch.setattr("toolcrib.sources.mcp_stdio.EXIT_CODE_S", 0.5)
    monkeypatch.setattr("toolcrib.sources.mcp_stdio.TERMINATE_S", 0.01)
    failures: list[Exception] = []

    async def run() -> None:
        command = Command(argv=(sys.executable, str(BAD), "--mode", "deaf"), env={})
        link = await StdioLink.start("s", command, listener=lambda method, params: None, guard=Guard())

        class Caller:
            """Whose answer makes room for the next call, which is written together with others."""

            def __init__(self, *, follows: bool) -> None:
                self.follows = follows
                self.told = False

            def done(self) -> bool:
                return self.told

            def set_result(self, result: bytes, /) -> None:
                self.told = True
                if self.follows:
                    begin(Caller(follows=False))

            def set_exception(self, exception: Exception, /) -> None:
                self.told = True
                failures.append(exception)

        def begin(caller: Caller) -> None:
            params: JsonObject = {"name": "echo", "arguments": {"message": "hello"}}
            try:
                link.begin("tools/call", params, Waiter(future=caller, exchange=None, headers={}))
            except SourceUnavailable as error:
                failures.append(error)

        for _ in range(2):
            begin(Caller(follows=True))
        async with asyncio.timeout(30):
            await link.closed.wait()
        await link.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(run())
    # Those that followed an answer; or those before them, if the link was given up before it came.
    assert [str(failure) for failure in failures] == ["it closed its input"] * 2


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks for descriptors in /proc")
def test_a_server_inherits_its_three_pipes_and_no_other_descriptor(loop: str):
    ours, theirs = os.pipe()
    os.set_inheritable(ours, True)
    heard: list[str] = []

    async def run() -> None:
        script = "import os, sys; print(sorted(map(int, os.listdir('/proc/self/fd'))), file=sys.stderr)"
        command = Command(argv=(sys.executable, "-c", script), env={})
        link = await StdioLink.start("s", command, listener=lambda method, params: None, guard=Guard())
        async with asyncio.timeout(30):
            await link.closed.wait()
        await link.close()
        heard.extend(link.noise.tail)

    try:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(run())
    finally:
        os.close(ours)
        os.close(theirs)
    # The fourth is that of the list itself.
    assert heard == ["[0, 1, 2, 3]"]


@pytest.mark.requirement("H6", "E1")
async def test_garbage_is_counted_and_dropped():
    source = bad("garbage_stdout")
    async with Crib(source):
        await source.settled.wait()
        assert source.garbage >= 1_000


@pytest.mark.requirement("H7")
async def test_a_flood_on_standard_error_is_drained():
    result, _ = await call(bad("stderr_flood"))
    assert "hello" in result.text


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("mode", ["exit_on_init", "exit_on_list"])
async def test_a_server_that_ends_at_start_is_unavailable_with_the_reason(mode: str):
    source = bad(mode)
    async with Crib(source):
        await source.settled.wait()
        assert "exited with code 3" in str(source.snapshot()[0].unavailable)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("patience_s", "then", "reason"),
    [(60, "time.sleep(0.3); os._exit(3)", "exited with code 3"), (0.01, "sys.stdin.read()", "closed its output")],
)
async def test_without_its_output_the_exit_code_is_the_reason_if_it_comes_in_time(
    monkeypatch: pytest.MonkeyPatch, patience_s: float, then: str, reason: str
):
    monkeypatch.setattr("toolcrib.sources.mcp_stdio.EXIT_CODE_S", patience_s)
    script = f"import os, sys, time; sys.stdin.readline(); os.close(1); {then}"
    entry = ServerSettings(command=sys.executable, args=("-c", script), era="legacy")
    source = open_server("x", entry, guard=Guard(), pace=Pace(clock=asyncio.get_running_loop().time))
    async with Crib(source):
        await source.settled.wait()
        assert reason in str(source.snapshot()[0].unavailable)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("calls", [2, 3, 6])
async def test_a_server_that_closes_its_input_fails_the_calls_that_cannot_reach_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch, calls: int
):
    monkeypatch.setattr("toolcrib.sources.mcp_stdio.EXIT_CODE_S", 0.5)
    monkeypatch.setattr("toolcrib.sources.mcp_stdio.TERMINATE_S", 0.01)
    source = bad("deaf")
    crib = Crib(source, settings=Settings(limits=LimitSettings(concurrency_per_toolset=2)))
    async with crib:
        await source.settled.wait()
        session = crib.session()
        results = await asyncio.gather(*(session.call("bad__echo", {"message": "hello"}) for _ in range(calls)))
        told = "it closed its input"
        assert all(result.text == "hello" or told in result.text for result in results[:2])
        assert all(told in result.text for result in results[2:])
        await eventually(lambda: "it closed its input" in str(source.snapshot()[0].unavailable))


@pytest.mark.requirement("K1")
async def test_a_server_that_ends_in_a_call_fails_that_call_with_the_reason_and_keeps_its_tools():
    source = bad("exit_on_call")
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        result = await crib.session().call("bad__echo", {"message": "hello"})
        assert result.is_error
        assert "exited with code 3" in result.text
        await asyncio.sleep(0)
        session = crib.session()
        assert session.catalog.size > 0
        await eventually(lambda: source.snapshot()[0].unavailable)
        assert "exited with code 3" in str(session.describe("bad__echo"))


@pytest.mark.requirement("H6", "E3")
async def test_a_line_without_end_ends_the_server_and_not_the_process():
    result, _ = await call(bad("endless_line"))
    assert result.is_error
    assert "line of more than" in result.text


@pytest.mark.requirement("I8")
async def test_an_answer_under_a_wrong_id_is_no_answer():
    result, _ = await call(bad("wrong_id"), call_deadline_s=0.3)
    assert result.code == "deadline_exceeded"


@pytest.mark.requirement("I8", "K3")
async def test_a_late_answer_reaches_nobody_and_the_next_call_gets_its_own():
    source = bad("late_reply")
    crib = Crib(source, settings=Settings(limits=LimitSettings(call_deadline_s=0.3)))
    async with crib:
        await source.settled.wait()
        session = crib.session()
        first = await session.call("bad__echo", {"message": "one"})
        second = await session.call("bad__echo", {"message": "two"})
        assert (first.code, second.code) == ("deadline_exceeded", "deadline_exceeded")
        assert "one" not in second.text


@pytest.mark.requirement("I1")
async def test_a_huge_result_is_refused_by_its_size():
    result, _ = await call(bad("huge_result"))
    assert result.is_error


@pytest.mark.requirement("E9")
@pytest.mark.parametrize("mode", ["cursor_loop"])
async def test_pages_in_a_circle_end_and_are_reported(mode: str):
    source = bad(mode)
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        assert any("circle" in item.reason for item in crib.skipped)


@pytest.mark.requirement("K7")
async def test_a_storm_of_changes_is_a_few_refreshes():
    source = bad("list_changed_storm")
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        began = time.monotonic()
        for _ in range(20):
            assert not (await crib.session().call("bad__echo", {"message": "x"})).is_error
        assert source.refreshes <= 3 + (time.monotonic() - began) / REFRESH_EVERY_S


@pytest.mark.requirement("H3")
async def test_a_server_sees_the_allow_list_and_what_is_declared(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CANARY_SECRET", "do-not-leak")
    monkeypatch.setenv("WANTED", "given")
    source = bad("echo_env", env={"DECLARED": "${WANTED}", "PLAIN": "x"})
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        names = [tool.name for tool in crib.session().catalog if "env" in tool.name]
        text = (await crib.session().call(names[0])).text
    assert "do-not-leak" not in text
    assert "CANARY_SECRET" not in text
    assert "given" in text


@pytest.mark.requirement("J6")
async def test_a_missing_variable_makes_one_server_unavailable_and_says_which():
    source = bad("ok", env={"TOKEN": "${NOT_SET_ANYWHERE}"})
    async with Crib(source):
        await source.settled.wait()
        assert "NOT_SET_ANYWHERE" in str(source.snapshot()[0].unavailable)


@pytest.mark.requirement("H4", "H5")
@pytest.mark.parametrize("mode", ["fork_child", "ignore_sigterm", "hang_call"])
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
async def test_closing_leaves_no_process_behind(mode: str):
    guard = Guard()
    source = bad(mode, guard=guard)
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        if mode == "fork_child":
            await crib.session().call("bad__echo", {"message": "x"})
        # Who has only just begun has no variables to be known by yet.
        await eventually(lambda: len(descendants(guard)) == (2 if mode == "fork_child" else 1))
    # Who was killed needs the processor once more to be gone.
    await eventually(lambda: not descendants(guard))


def descendants(guard: Guard) -> list[int]:
    """Processes that carry a mark of this guard."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"TOOLCRIB_PROCESS={guard.mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if not _is_zombie(pid)]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_no_process_carries_a_mark_that_nobody_gave():
    assert not list(marked_processes("nobody"))
    assert os.getpid() not in list(marked_processes(""))


@pytest.mark.requirement("K1")
async def test_a_guard_that_is_slow_to_end_does_not_keep_the_end_of_a_server_from_being_told():
    class Slow:
        stdin = None

        def wait(self, timeout: float) -> int:
            raise subprocess.TimeoutExpired("sh", timeout)

    guard = Guard()
    source = bad("exit_on_call", guard=guard)
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        real, guard._process = guard._process, Slow()
        result = await crib.session().call("bad__echo", {"message": "hello"})
        assert "exited with code 3" in result.text
    assert real is not None
    real.communicate(b"x\n")


async def test_a_program_that_does_not_exist_is_a_reason():
    entry = ServerSettings(command="no-such-program-here")
    source = open_server("x", entry, guard=Guard(), pace=Pace(clock=asyncio.get_running_loop().time))
    async with Crib(source):
        await source.settled.wait()
        assert "was not found" in str(source.snapshot()[0].unavailable)


@pytest.mark.requirement("K1", "X17")
async def test_the_last_words_of_a_server_count_without_a_line_end():
    link = StdioLink("s", listener=lambda method, params: None, guard=Guard(), mark="m")
    link.pipe_data_received(2, b"starting\nfatal: no lic")
    link.pipe_data_received(2, b"ense")
    link.process_exited()
    assert link.reason.endswith("; its last words: fatal: no license")


class _Closing:
    """A process whose input is closed already, and its own guard."""

    def watch(self, group: int) -> None: ...

    def forget(self, group: int) -> None: ...

    def get_pid(self) -> int:
        return 0

    def get_returncode(self) -> int:
        return 1

    def get_pipe_transport(self, fd: int) -> Any:
        return self

    def is_closing(self) -> bool:
        return True


@pytest.mark.requirement("X17")
async def test_a_server_that_ends_before_it_is_asked_is_heard_out():
    closing = cast("Any", _Closing())
    link = StdioLink("s", listener=lambda method, params: None, guard=closing, mark="m")
    link.connection_made(closing)
    link.send(b"{}\n")  # lost, and no reason yet
    link.pipe_data_received(2, b"fatal: no license")
    link.process_exited()
    with pytest.raises(SourceUnavailable, match="exited with code 1; its last words: fatal: no license"):
        link.send(b"{}\n")


@pytest.mark.requirement("X17")
async def test_the_last_words_of_a_server_do_not_tell_its_secrets(caplog: pytest.LogCaptureFixture):
    script = "import os, sys; sys.exit('invalid key ' + os.environ['API_KEY'] + ' or ' + sys.argv[2])"
    entry = ServerSettings(
        command=sys.executable, args=("-c", script, "--token", "tok-5678"), env={"API_KEY": "sk-12345678"}
    )
    source = open_server("shy", entry, guard=Guard(), pace=Pace(clock=asyncio.get_running_loop().time, every_s=0))
    with caplog.at_level("DEBUG", "toolcrib"):
        async with Crib(source):
            await source.settled.wait()
            told = str(source.health)
    assert "its last words: invalid key *** or ***" in told
    assert "12345678" not in told + caplog.text
    assert "5678" not in told + caplog.text
