"""Asking the person. Always in the array: a model that has to search for a way to ask does not ask."""

from collections.abc import Sequence
from typing import Protocol

from toolcrib.errors import ToolFailed
from toolcrib.limits import QUESTION_MAX_CHARS


class Asker(Protocol):
    """Puts a question to the person."""

    async def __call__(self, question: str, options: Sequence[str]) -> str:
        """The person's answer."""
        ...


class People:
    """The person on the other side, if there is one."""

    def __init__(self, asker: Asker | None) -> None:
        self._asker = asker

    async def clarify(self, question: str, options: list[str] | None = None) -> str:
        """Ask the user a question and wait for the answer.

        Args:
            question: What you need to know, in one or two sentences.
            options: Answers to choose from, if there are only a few.
        """
        if not question.strip() or len(question) > QUESTION_MAX_CHARS:
            raise ToolFailed(f"`question` must have 1 to {QUESTION_MAX_CHARS} characters.")
        if self._asker is None:
            raise ToolFailed("Nobody can be asked here: decide by what you know, or end with what is missing.")
        return await self._asker(question, [option[:200] for option in (options or [])[:10]])
