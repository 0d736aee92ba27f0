"""The person at the terminal: reads lines, approvals and answers, one question at a time."""

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from toolcrib.agent.prompts import show_request, visible
from toolcrib.cli.keyboard import NotText, discard_typed, edit_line, read_line
from toolcrib.execution.approval import ApprovalRequest

Read = Callable[[str], str]
_Line = str | Exception


class Person:
    """Somebody who can be asked. Questions never overlap.

    No line is lost: one that came too late for its question goes to whoever asks for a line next. Only an answer must
    have been typed after its question.
    """

    def __init__(
        self,
        read: Read = read_line,
        write: Callable[[str], object] | None = None,
        *,
        edit: Read = edit_line,
        discard: Callable[[], object] = discard_typed,
    ) -> None:
        self._read = read
        self._edit = edit
        self._write = write or _write_error
        self._discard = discard
        self._turn = asyncio.Lock()
        self._reading = False
        """A thread waits for a line. It cannot be called back, so there is never a second one."""
        self._asker: asyncio.Future[_Line] | None = None
        self._held: _Line | None = None
        """A line that came when nobody asked."""
        self._questions = 0
        """How many were asked so far."""
        self._question = 0
        """Which of them waits for a line; 0 for a conversation, which takes any."""

    async def line(self, prompt: str) -> str:
        """One line of a conversation. Raises `EOFError` at the end of input, `NotText` for what cannot be read."""
        self._question = 0
        return await self._next(self._edit, prompt)

    async def _answer(self, question: str, prompt: str) -> str:
        """The line after a question. Raises `EOFError`, `NotText`."""
        self._write(question)
        self._discard()
        self._held = None
        self._questions += 1
        self._question = self._questions
        return await self._next(self._read, prompt)

    async def _next(self, read: Read, prompt: str) -> str:
        line = self._held
        self._held = None
        if line is None:
            self._asker = asyncio.get_running_loop().create_future()
            if self._reading:
                self._write(prompt)
            else:
                self._start(read, prompt)
            line = await self._asker
        if isinstance(line, Exception):
            raise line
        return line

    def _start(self, read: Read, prompt: str) -> None:
        loop = asyncio.get_running_loop()
        self._reading = True

        def wait() -> None:
            try:
                line: _Line = read(prompt)
            except NotText as error:
                line = error
            except (EOFError, OSError, ValueError):
                line = EOFError()
            asked = self._questions
            with suppress(RuntimeError):  # the program ended meanwhile
                loop.call_soon_threadsafe(self._hand_over, line, asked)

        # A thread of its own: reading cannot be cancelled, and must not keep the program from ending.
        threading.Thread(target=wait, daemon=True).start()

    def _hand_over(self, line: "_Line", asked: int) -> None:
        """Gives the line to whoever waits for one; `asked` is how many questions there were when it had been read."""
        self._reading = False
        if self._asker is None or self._asker.done():
            self._held = line
        elif asked < self._question:
            self._start(self._read, "")  # it was typed for an earlier question; the prompt of this one stands there
        else:
            self._asker.set_result(line)

    async def approve(self, request: ApprovalRequest) -> bool:
        """Whether they agree to exactly this call. Anything but a yes is a no."""
        async with self._turn:
            question = f"\nApprove this call? (rule {request.rule!r})\n{show_request(request)}\n"
            try:
                answer = await self._answer(question, "[y/N] ")
            except (EOFError, NotText):
                return False
        return answer.strip().lower() in {"y", "yes"}

    async def clarify(self, question: str, options: Sequence[str]) -> str:
        """Their answer to the model's question; a number chooses an option."""
        async with self._turn:
            shown = "\n".join(f"  {number}. {visible(option)}" for number, option in enumerate(options, 1))
            text = "\n".join(visible(line) for line in question.split("\n"))
            asked = f"\nThe model asks: {text}\n{shown}\n" if shown else f"\nThe model asks: {text}\n"
            try:
                answer = (await self._answer(asked, "> ")).strip()
            except EOFError:
                return "[the user left without an answer]"
            except NotText:
                return "[the user's answer could not be read]"
        if answer.isdigit() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        return answer or "[the user gave no answer]"


def _write_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
