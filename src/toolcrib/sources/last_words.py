"""Of what a program wrote before it ended, the part that says why.

The last line is often the least telling one: Node ends with its version, npm with the path of a log, a stack with its
outermost frame. So a named error counts, with what follows it, and lines that say nothing are passed over.
"""

import re
from collections.abc import Sequence

WORDS_MAX_CHARS = 300
"""Enough for a sentence; more would bury it."""

_ERROR = re.compile(r"[\w.$]*(?:Error|Exception)\b(?: \[\w+\])?:? ?\S")
"""The line of an error, as Python and Node write it: not indented, with its name first."""
_COLOUR = re.compile(r"\\x1b\[[\d;]*m")
"""Colours, as a log shows them."""
_FRAME = re.compile(r"\s+at .*|  File \".*")
_IDLE = re.compile(
    r"[\W_]*|Node\.js v[\d.]+"
    r"|npm (?:error|ERR!|notice|warn)(?: \d+)?(?:\s*| A complete log of this run.*| Note that .*| tarball, folder, .*)"
)


def last_words(lines: Sequence[str]) -> str:
    """The reason, on one line, from the last lines of a program; empty if it said nothing."""
    plain = [_COLOUR.sub("", line) for line in lines]
    telling = [line for line in plain if not _IDLE.fullmatch(line)]
    for number in range(len(telling) - 1, -1, -1):
        if _ERROR.match(telling[number]):
            said = _up_to_frames(telling[number:])
            # An error that a lot was said after is an old story.
            if len(said) <= WORDS_MAX_CHARS:
                return said
            break
    return telling[-1].strip()[:WORDS_MAX_CHARS] if telling else ""


def _up_to_frames(lines: Sequence[str]) -> str:
    """What an error says; if its stack follows, only what stands before it."""
    said: list[str] = []
    for line in lines:
        if _FRAME.match(line):
            break
        said.append(" ".join(line.split()))
    return " ".join(said)
