"""The running account: what the tools of a conversation cost, and what they would have cost all attached.

Counted are tokens of tools alone, by the usual estimate, once for every request that carries them: the array, and
what discovery put into the conversation (searches, descriptions, the wrapping of bridged calls). Against it stand the
same requests with every definition in the array, without those requests that only searched, because nobody would
have made them. Results of tools are the same on both sides and are left out.
"""

from collections.abc import Sequence

import orjson

from toolcrib.assembly import Turn
from toolcrib.bridge import BRIDGE_NAMES, BRIDGE_TOOLSET
from toolcrib.definitions import Json, JsonObject, json_chars
from toolcrib.session import Answer
from toolcrib.tokens import estimate_tokens


class Account:
    """Counts one conversation."""

    def __init__(self) -> None:
        self.requests = 0
        self.searches = 0
        self.describes = 0
        self.calls = 0
        self.tokens = 0
        """Tool-related tokens sent so far."""
        self.attached_tokens = 0
        """What they would have been with everything attached."""
        self._carried = 0
        self._direct = 0

    @property
    def saved_pct(self) -> float:
        """The share saved."""
        return 100 * (1 - self.tokens / self.attached_tokens) if self.attached_tokens else 0.0

    def note_request(self, turn: Turn, tools: Sequence[JsonObject]) -> None:
        """Takes one request with this array."""
        self.requests += 1
        current = turn.current
        visible = sum(
            tool.chars
            for tool in current.tools
            if tool.toolset != BRIDGE_TOOLSET and current.catalog.get(tool.name) is None
        )
        self._direct = estimate_tokens(visible + current.catalog.chars)
        self.attached_tokens += self._direct
        if turn.activated:
            loaded = sum(chars_of(tool) for tool in tools if not tool.get("defer_loading"))
            self.tokens += estimate_tokens(loaded + self._carried)
        else:
            self.tokens += estimate_tokens(sum(tool.chars for tool in turn.assembly.tools) + self._carried)

    def note_answers(self, answers: Sequence[Answer], revealed_chars: int = 0) -> None:
        """Takes the answers to one reply."""
        discovery = 0
        for answer in answers:
            if answer.tool is not None:
                self.calls += 1
                if answer.call.name in BRIDGE_NAMES:
                    self._carried += chars_of({"name": answer.tool.name, "arguments": None})
                continue
            if answer.call.name == BRIDGE_NAMES[0]:
                self.searches += 1
            elif answer.call.name == BRIDGE_NAMES[1]:
                self.describes += 1
            else:
                continue
            discovery += 1
            self._carried += _text_chars(answer.call.arguments) + len(answer.result.text)
        self._carried += revealed_chars
        if answers and discovery == len(answers):
            self.attached_tokens -= self._direct

    def as_json(self) -> JsonObject:
        """The figures, for a record."""
        return {
            "requests": self.requests,
            "searches": self.searches,
            "describes": self.describes,
            "calls": self.calls,
            "tool_tokens": self.tokens,
            "attached_tool_tokens": self.attached_tokens,
            "saved_pct": round(self.saved_pct, 1),
        }

    def __str__(self) -> str:
        return (
            f"tools so far: {self.tokens:,} tokens in {self.requests} requests; "
            f"all attached: {self.attached_tokens:,} ({self.saved_pct:.0f} % saved)"
        )


def chars_of(value: Json) -> int:
    """Characters of a value as JSON."""
    return json_chars(orjson.dumps(value))


def _text_chars(arguments: Json) -> int:
    """Characters of arguments as the model wrote them."""
    return len(arguments) if isinstance(arguments, str) else chars_of(arguments)
