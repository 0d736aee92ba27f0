"""The person at the terminal: reads lines, approvals and answers, one question at a time."""

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence

from toolcrib.agent.prompts import show_request, visible
from toolcrib.execution.approval import ApprovalRequest

Read = Callable[[str], str]


class Person:
    """Somebody who can be asked. Questions never overlap."""

    def __init__(self, read: Read = input, write: Callable[[str], object] = sys.stderr.write) -> None:
        self._read = read
        self._write = write
        self._turn = asyncio.Lock()

    async def line(self, prompt: str) -> str:
        """One line. Raises `EOFError` at the end of input."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()

        def finish(value: str | None) -> None:
            if not future.done():
                if value is None:
                    future.set_exception(EOFError())
                else:
                    future.set_result(value)

        def wait() -> None:
            try:
                value: str | None = self._read(prompt)
            except (EOFError, OSError, ValueError):
                value = None
            loop.call_soon_threadsafe(finish, value)

        # A thread of its own: reading cannot be cancelled, and must not keep the program from ending.
        threading.Thread(target=wait, daemon=True).start()
        return await future

    async def approve(self, request: ApprovalRequest) -> bool:
        """Whether they agree to exactly this call. Anything but a yes is a no."""
        async with self._turn:
            self._write(f"\nApprove this call? (rule {request.rule!r})\n{show_request(request)}\n")
            try:
                answer = await self.line("[y/N] ")
            except EOFError:
                return False
        return answer.strip().lower() in {"y", "yes"}

    async def clarify(self, question: str, options: Sequence[str]) -> str:
        """Their answer to the model's question; a number chooses an option."""
        async with self._turn:
            shown = "\n".join(f"  {number}. {visible(option)}" for number, option in enumerate(options, 1))
            text = "\n".join(visible(line) for line in question.split("\n"))
            self._write(f"\nThe model asks: {text}\n{shown}\n" if shown else f"\nThe model asks: {text}\n")
            try:
                answer = (await self.line("> ")).strip()
            except EOFError:
                return "[the user left without an answer]"
        if answer.isdigit() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        return answer or "[the user gave no answer]"
