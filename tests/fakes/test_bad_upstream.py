"""The bad upstream is bad in the way that its mode says, and in no other."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.bad_upstream import HTTP_ONLY, MODES

SCRIPT = Path(__file__).with_name("bad_upstream.py")
INIT = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "echo", "arguments": {"message": "hello"}},
}


class Peer:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None and process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, *messages: dict[str, Any]) -> None:
        self.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.stdin.flush()

    def read(self) -> Any:
        return json.loads(self.stdout.readline())

    def ask(self, message: dict[str, Any]) -> Any:
        self.send(message)
        return self.read()


@contextlib.contextmanager
def started(*arguments: str, env: dict[str, str] | None = None) -> Generator[Peer]:
    command = [sys.executable, "-S", str(SCRIPT), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def names(answer: Any) -> list[str]:
    return [tool["name"] for tool in answer["result"]["tools"]]


def text(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]


def test_without_a_fault_it_initialises_lists_and_calls():
    with started("--mode", "ok") as peer:
        assert peer.ask(INIT)["result"]["protocolVersion"] == "2025-11-25"
        assert names(peer.ask(LIST)) == ["echo"]
        assert text(peer.ask(CALL)) == "hello"


def test_a_deaf_one_answers_what_it_has_heard_and_hears_no_more():
    with started("--mode", "deaf") as peer:
        peer.send(CALL, {**CALL, "id": 3})
        assert [text(peer.read()), text(peer.read())] == ["hello", "hello"]
        with pytest.raises(BrokenPipeError):
            os.write(peer.stdin.fileno(), b"x")
        assert peer.process.poll() is None


@pytest.mark.parametrize(("mode", "message"), [("exit_on_init", INIT), ("exit_on_list", LIST), ("exit_on_call", CALL)])
def test_an_exit_mode_ends_at_its_phase_with_the_code_asked_for(mode: str, message: dict[str, Any]):
    with started("--mode", mode, "--amount", "7") as peer:
        peer.send(message)
        assert peer.stdout.read() == b""
        assert peer.process.wait() == 7


def test_dies_on_probe_serves_the_old_way_and_ends_at_an_unknown_method():
    with started("--mode", "dies_on_probe") as peer:
        assert "result" in peer.ask(INIT)
        peer.send({"jsonrpc": "2.0", "id": 9, "method": "server/discover"})
        assert peer.stdout.read() == b""
        assert peer.process.wait() == 3


@pytest.mark.parametrize(("mode", "message"), [("hang_init", INIT), ("hang_list", LIST), ("hang_call", CALL)])
def test_a_hanging_mode_takes_the_message_and_stays_silent(mode: str, message: dict[str, Any]):
    with started("--mode", mode) as peer:
        assert peer.ask({"jsonrpc": "2.0", "id": 8, "method": "ping"})["id"] == 8
        peer.send(message, {"jsonrpc": "2.0", "id": 9, "method": "ping"})
        os.set_blocking(peer.stdout.fileno(), False)
        with pytest.raises(subprocess.TimeoutExpired):
            peer.process.wait(0.3)
        assert not peer.stdout.read()


def test_garbage_comes_before_every_answer():
    with started("--mode", "garbage_stdout", "--amount", "10") as peer:
        peer.send(INIT)
        lines = [peer.stdout.readline() for _ in range(11)]
        assert lines[3] == b"\xff\xfe\x00 no text\n"
        assert json.loads(lines[10])["id"] == 0


def test_an_endless_line_has_the_size_asked_for():
    with started("--mode", "endless_line", "--amount", "200000") as peer:
        peer.send(CALL)
        assert len(peer.stdout.readline()) == 200_001
        assert text(peer.read()) == "hello"


def test_a_stderr_flood_does_not_spoil_the_answer():
    with started("--mode", "stderr_flood", "--amount", "1e6") as peer:
        assert text(peer.ask(CALL)) == "hello"


def test_replies_come_under_a_wrong_id_or_twice():
    with started("--mode", "wrong_id") as peer:
        assert peer.ask(CALL)["id"] == "an id that nobody used"
    with started("--mode", "dup_reply") as peer:
        peer.send(CALL)
        assert [text(peer.read()), text(peer.read())] == ["answer 1", "answer 2"]


def test_a_late_reply_comes_after_the_cancellation():
    with started("--mode", "late_reply") as peer:
        peer.send(CALL)
        assert peer.ask({"jsonrpc": "2.0", "id": 9, "method": "ping"})["id"] == 9
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        assert peer.read()["id"] == 2


def test_a_huge_result_has_the_size_asked_for():
    with started("--mode", "huge_result", "--amount", "300000") as peer:
        assert len(text(peer.ask(CALL))) == 300_000


def test_schemas_can_be_huge_or_explosive():
    with started("--mode", "huge_schema", "--amount", "5000") as peer:
        assert len(peer.ask(LIST)["result"]["tools"][1]["inputSchema"]["properties"]) == 5_000
    with started("--mode", "ref_bomb") as peer:
        assert names(peer.ask(LIST)) == ["echo", "bomb", "self", "outside_0", "outside_1"]


def test_pages_never_end():
    with started("--mode", "cursor_loop") as peer:
        assert peer.ask(LIST)["result"]["nextCursor"] == peer.ask(LIST)["result"]["nextCursor"] == "again"
    with started("--mode", "endless_pages") as peer:
        second = peer.ask({**LIST, "params": {"cursor": "1"}})
        assert (names(second), second["result"]["nextCursor"]) == (["page_2"], "2")


def test_tools_mutate_with_every_listing_and_come_back():
    with started("--mode", "mutate_tools", "--amount", "2") as peer:
        said = [peer.ask(LIST)["result"]["tools"][0]["description"] for _ in range(3)]
        assert said[0] != said[1] and said[0] == said[2]
        peer.send(CALL)
        assert [peer.read().get("id"), peer.read().get("method")] == [2, "notifications/tools/list_changed"]


def test_a_storm_follows_the_first_listing_only():
    with started("--mode", "list_changed_storm", "--amount", "50") as peer:
        peer.ask(LIST)
        assert {peer.read()["method"] for _ in range(50)} == {"notifications/tools/list_changed"}
        assert peer.ask(LIST)["id"] == peer.ask(CALL)["id"] - 1


@pytest.mark.parametrize("mode", ["reserved_names", "unicode_names", "lie_annotations"])
def test_names_and_annotations_lie(mode: str):
    with started("--mode", mode) as peer:
        assert len(names(peer.ask(LIST))) > 1


def test_a_child_is_left_in_the_same_process_group():
    with started("--mode", "fork_child") as peer:
        child = int(text(peer.ask(CALL)))
        try:
            assert os.getpgid(child) == os.getpgid(peer.process.pid)
        finally:
            os.kill(child, signal.SIGKILL)


def test_sigterm_and_the_end_of_input_are_ignored():
    with started("--mode", "ignore_sigterm") as peer:
        peer.ask(INIT)
        peer.process.terminate()
        assert peer.ask(LIST)["id"] == 1
        peer.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            peer.process.wait(0.3)


def test_the_environment_is_told():
    with started("--mode", "echo_env", env={"CANARY": "yellow"}) as peer:
        answer = peer.ask({**CALL, "params": {"name": "echo_env"}})
        assert json.loads(text(answer))["CANARY"] == "yellow"


def post(url: str, message: dict[str, Any]) -> Any:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any, **more: Any) -> None:
            return None

    request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
    return urllib.request.build_opener(Stay, urllib.request.ProxyHandler({})).open(request)


def test_http_serves_bombs_and_redirects():
    with started("--mode", "gzip_bomb", "--amount", "1e6", "--http", "127.0.0.1:0") as peer:
        url = peer.stdout.readline().decode().strip()
        assert json.load(post(url, INIT))["id"] == 0
        with post(url, CALL) as answer:
            packed = answer.read()
            assert answer.headers["Content-Encoding"] == "gzip"
        assert len(packed) < 20_000 and len(zlib.decompress(packed, 31)) > 1_000_000
    with started("--mode", "redirect_to", "--target", "http://10.0.0.1/", "--http", "127.0.0.1:0") as peer:
        url = peer.stdout.readline().decode().strip()
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(url, INIT)
        caught.value.close()
        assert (caught.value.code, caught.value.headers["Location"]) == (307, "http://10.0.0.1/")


@pytest.mark.parametrize("mode", sorted(HTTP_ONLY))
def test_a_fault_of_http_refuses_stdio(mode: str):
    with started("--mode", mode) as peer:
        assert peer.process.wait() == 2


@pytest.mark.parametrize("mode", sorted(set(MODES) - {"exit_on_init", "hang_init", "garbage_stdout"} - HTTP_ONLY))
def test_every_other_mode_initialises_as_if_nothing_were_wrong(mode: str):
    with started("--mode", mode) as peer:
        assert peer.ask(INIT)["id"] == 0
