"""The arguments of a call as a person reads them before they agree: every name, and of long values both ends.

Whoever calls chooses the order and the length of what they send, so nothing may push anything else out of sight. What
was left out is told outside of the quotes, where no value can claim it.
"""

import json
from collections.abc import Iterator, Mapping

from toolcrib.definitions import Json
from toolcrib.errors import ApprovalDenied
from toolcrib.execution.approval import ApprovalRequest
from toolcrib.limits import ARGUMENTS_SHOWN_CHARS
from toolcrib.sources.json_rpc import visible

_BOUNDS = ((ARGUMENTS_SHOWN_CHARS, ARGUMENTS_SHOWN_CHARS), (1_000, 100), (200, 30), (40, 5))
"""Characters of one text and items of one list that are shown, from the widest on, until all of it fits."""


def show_arguments(request: ApprovalRequest) -> str:
    """The arguments of a call in one line, with everything that could mislead a reader made visible (B9).

    Raises `ApprovalDenied` if not even the names of all of them can be shown.
    """
    for chars, items in _BOUNDS:
        # Without indentation: blanks would take the place of what somebody has to read.
        shown = ""
        for part in _parts(request.call.arguments, chars, items):
            shown += visible(part)
            if len(shown) > ARGUMENTS_SHOWN_CHARS:
                break
        else:
            return shown
    raise ApprovalDenied(
        f"`{request.call.tool.name}` needs somebody's approval, and these arguments are too many to be shown to "
        "anybody. Send fewer at once."
    )


def _parts(value: Json, chars: int, items: int) -> Iterator[str]:
    """JSON, with the beginning and the end of long texts and the beginning of long lists."""
    if isinstance(value, str):
        yield _text(value, chars)
    elif isinstance(value, Mapping):
        yield "{"
        for number, (key, inner) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json.dumps(str(key), ensure_ascii=False)}: "
            yield from _parts(inner, chars, items)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for number, inner in enumerate(value[:items]):
            yield ", " if number else ""
            yield from _parts(inner, chars, items)
        yield "]" if len(value) <= items else f", … ({len(value)} items)]"
    else:
        yield json.dumps(value, ensure_ascii=False, default=str)


def _text(text: str, chars: int) -> str:
    if len(text) <= chars:
        return json.dumps(text, ensure_ascii=False)
    head, tail = text[: chars - chars // 4], text[-(chars // 4) :]
    return f"{json.dumps(head, ensure_ascii=False)} … {json.dumps(tail, ensure_ascii=False)} ({len(text)} characters)"
