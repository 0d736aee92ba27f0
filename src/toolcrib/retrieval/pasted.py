"""What a query says, without the data that was pasted into it.

"What does this picture show? iVBORw0KGgo…" asks about a picture; the picture itself is no word. Search would take it
apart into hundreds of pieces, and a sentence is read by its first few dozen: a picture or two job numbers leave no room
for what is asked. A long run of letters and digits is data. One that is made of words is not, however many digits
stand between them: a path, an address, the name of a tool.

Invariant: what is left holds a letter; or it is the query itself.
"""

import re
from collections.abc import Collection
from typing import Final

from toolcrib.limits import QUERY_READ_CHARS

_RUNS: Final = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_LONG: Final = 70
_DIGITS: Final = 6
"""Digits that data has at least."""
_DIGITS_IF_LONG: Final = 1
"""The same of a long run: no name is as long as a line of a picture."""
_PARTS: Final = re.compile(r"[A-Za-z0-9]+")
_WORD: Final = 3
"""Letters that a word has at least."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_LAST_LINE: Final = re.compile(r"[A-Za-z0-9+/]+={1,2}")
"""How a picture ends."""


def without_data(query: str) -> str:
    """The query without data, each piece of which leaves a blank."""
    said = _said(query)
    return said if _LETTER.search(said) else query


def needs_without_data(needs: Collection[str]) -> tuple[str, ...]:
    """The needs that are not lines of data; all, if nothing else is left."""
    data = frozenset(need for need in needs if _is_data(need))
    left = tuple(need for need in needs if need not in data and not (data and _LAST_LINE.fullmatch(need)))
    return left or tuple(needs)


def _is_data(text: str) -> bool:
    said = _said(text)
    return said != text and not _LETTER.search(said)


def _said(text: str) -> str:
    said = _RUNS.sub(_left, text[:QUERY_READ_CHARS]) + text[QUERY_READ_CHARS:]
    return text if said == text else said.strip()


def _left(run: re.Match[str]) -> str:
    if sum(map(str.isdigit, run[0])) < (_DIGITS if len(run[0]) < _LONG else _DIGITS_IF_LONG):
        return run[0]
    words = [part for part in _PARTS.findall(run[0]) if part.isalpha() and len(part) >= _WORD]
    letters = sum(map(str.isalpha, run[0]))
    return run[0] if letters and 2 * sum(map(len, words)) >= letters else " "
