"""What a person is shown before they agree: the real tool, its toolset, and every argument, with nothing hidden.

A terminal obeys control characters, and some characters show as nothing or turn the text around. All of them are
written as escapes, so that what is read is what runs.
"""

import json
import unicodedata

from toolcrib.definitions import Json
from toolcrib.execution.approval import ApprovalRequest

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories that a terminal does not show, or obeys."""

_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u00ad\u034f\u17b4\u17b5")
"""Letters and marks that look like nothing."""


def visible(text: str) -> str:
    """Text in which every character that a terminal would hide or obey is an escape."""
    return "".join(_shown(char) for char in text)


def show_arguments(arguments: Json) -> str:
    """Arguments as indented JSON, whole, with nothing hidden."""
    lines = json.dumps(arguments, ensure_ascii=False, indent=2).split("\n")
    return "\n".join(visible(line) for line in lines)


def show_request(request: ApprovalRequest) -> str:
    """The question, in words."""
    call = request.call
    origin = "" if call.route == "direct" else f", called by {_ROUTES[call.route]}"
    notes = [f"  repaired: {visible(note)}" for note in call.notes]
    lines = [
        f"{visible(call.tool.name)}  (toolset {visible(call.tool.toolset)}{origin}, for {visible(call.principal)})",
        *(f"  {line}" for line in show_arguments(call.arguments).split("\n")),
        *notes,
    ]
    return "\n".join(lines)


_ROUTES = {"bridge": "the model through tool_call", "caller": "code"}


def _shown(char: str) -> str:
    if char == " " or (unicodedata.category(char) not in _HIDDEN and char not in _BLANK and not _is_space(char)):
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{{{ord(char):04x}}}"


def _is_space(char: str) -> bool:
    return unicodedata.category(char) == "Zs"
