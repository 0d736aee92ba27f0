import asyncio
import io
import queue
import threading

import pytest
from tests.agent.talk import issues
from tests.factories import tool

from toolcrib.agent.prompts import show_arguments, visible
from toolcrib.cli.keyboard import NotText, read_line
from toolcrib.cli.person import Person
from toolcrib.crib import Crib
from toolcrib.definitions import Call
from toolcrib.execution.approval import ApprovalRequest, binding_of
from toolcrib.settings import ApprovalSettings, Settings


@pytest.mark.requirement("X28")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 漢字", "plain ünïcode 漢字"),
        ("a\x1b[2Kb", "a\\x1b[2Kb"),
        ("a\rb", "a\\x0db"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\u200bb", "a\\u{200b}b"),
        ("a\u3164b", "a\\u{3164}b"),
        ("a\u00a0b", "a\\xa0b"),
        ("a\U000e0041b", "a\\u{e0041}b"),
        ("a\ud800b", "a\\u{d800}b"),
    ],
)
def test_what_a_terminal_hides_or_obeys_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.requirement("X28")
def test_arguments_are_shown_whole() -> None:
    command = "echo start\n" + "true\n" * 500 + "rm -rf /\x1b[1A\x1b[2K"
    shown = show_arguments({"command": command, "workdir": "."})
    assert "rm -rf /" in shown
    assert "\x1b" not in shown
    assert '"workdir": "."' in shown


@pytest.mark.requirement("X28", "X14")
async def test_a_person_sees_the_real_tool_behind_the_bridge_and_only_yes_is_yes() -> None:
    for answer, ran in (("y", True), ("YES", True), ("", False), ("n", False), ("yep", False), (None, False)):
        written: list[str] = []

        def read(prompt: str, answer: str | None = answer) -> str:
            if answer is None:
                raise EOFError
            return answer

        person = Person(read=read, write=written.append)
        rules = ApprovalSettings(rules={"tracker/*": "ask"})
        async with Crib(issues(), settings=Settings(approvals=rules), approver=person.approve) as crib:
            call = {"id": "1", "name": "tool_call", "arguments": {"name": "create_issue", "arguments": {"title": "Le\x1bak"}}}  # fmt: skip
            (done,) = await crib.session().execute([call])
            assert done.result.is_error is not ran
        (text,) = written
        assert "tracker__create_issue  (toolset tracker, called by the model through tool_call" in text
        assert '"title": "Le\\u001bak"' in text


@pytest.mark.requirement("X28")
async def test_two_questions_never_overlap() -> None:
    order: list[str] = []

    def read(prompt: str) -> str:
        order.append("read")
        return "1"

    person = Person(read=read, write=lambda text: order.append("ask"))
    answers = await asyncio.gather(person.clarify("a?", ["red", "blue"]), person.clarify("b?", []))
    assert answers == ["red", "1"]
    assert order == ["ask", "read", "ask", "read"]


class Keyboard:
    """Lines that a test hands out when it wants to."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.prompts: queue.Queue[str] = queue.Queue()

    def read(self, prompt: str) -> str:
        self.reader = threading.current_thread()
        self.prompts.put(prompt)
        return self.lines.get()

    def read_at_once(self, line: str) -> None:
        """Has the line read before anything else happens in the loop."""
        self.lines.put(line)
        self.reader.join()


@pytest.mark.requirement("X28")
async def test_a_line_typed_after_an_abandoned_question_goes_to_whoever_asks_next() -> None:
    keyboard = Keyboard()
    person = Person(read=keyboard.read, edit=keyboard.read, write=lambda text: None)
    abandoned = asyncio.create_task(person.clarify("a?", []))
    assert await asyncio.to_thread(keyboard.prompts.get) == "> "
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    asking = asyncio.create_task(person.line("you> "))
    await asyncio.sleep(0)
    keyboard.lines.put("hello")
    assert await asking == "hello"
    assert keyboard.prompts.empty(), "one reader served both"


@pytest.mark.requirement("X28", "X14")
async def test_a_line_read_for_an_abandoned_question_is_no_answer_to_the_next_one() -> None:
    keyboard = Keyboard()
    person = Person(
        read=keyboard.read,
        write=lambda text: keyboard.read_at_once("y") if "second" in text else None,
        discard=lambda: None,
    )
    abandoned = asyncio.create_task(person.clarify("first?", []))
    assert await asyncio.to_thread(keyboard.prompts.get) == "> "
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    asking = asyncio.create_task(person.clarify("second?", []))
    await asyncio.sleep(0)
    keyboard.lines.put("n")
    assert await asking == "n"
    assert keyboard.prompts.get_nowait() == "", "its prompt stood there already"


@pytest.mark.requirement("X28", "X14")
async def test_what_was_typed_before_a_question_is_no_answer_to_it() -> None:
    typed = ["y"]
    person = Person(read=lambda prompt: typed.pop(0) if typed else "n", write=lambda text: None, discard=typed.clear)
    call = Call(id="c", tool=tool("delete_repo"), arguments={}, route="bridge", principal="me")
    assert not await person.approve(ApprovalRequest(call=call, binding=binding_of(call), rule="*"))


@pytest.mark.parametrize(("given", "told"), [(b"caf\xe9\n", NotText), (b"", EOFError)])
def test_a_piped_line_that_is_no_text_is_told_apart_from_the_end(
    given: bytes, told: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given + b"next\n" * bool(given)), encoding="utf-8"))
    with pytest.raises(told):
        read_line("")
    if given:
        assert read_line("") == "next"
