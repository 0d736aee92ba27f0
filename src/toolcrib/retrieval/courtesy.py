"""What a query asks for, without the courtesies around it.

"Hello, can you help me check my balance?" asks for what "check my balance" asks for. A sentence is read as a whole, so
six words of politeness would count for more than the three that matter; and how polite a query is says nothing about
whether a tool fits. Only what can hardly be meant is left out: a greeting that a comma or another courtesy follows,
never the "hi" of "hi-res"; thanks behind a full stop or a comma, never those that somebody wants to say. English only.

Invariant: what is left is a stretch of the query that holds a word; or it is the query itself.
"""

import re
from typing import Final

_HELP = r"(?:help|assist)\s+(?:me|us)\s+(?!out\b)(?:(?:to|with|in|by)\s+)?"
_ASKING = (
    r"(?:please|kindly)[\s,]+",
    rf"(?:can|could|would|will)\s+you\s+(?!rather\b)(?:(?:please|kindly|possibly|also)\s+)?(?:{_HELP})?",
    rf"(?:can|could)\s+(?:i|we)\s+(?:(?:please|also)\s+)?(?:{_HELP})?",
    r"(?:(?:i|we)(?:['’]d|\s+would)\s+like|(?:i|we)\s+(?:want|need|wish|have))\s+(?:you\s+)?to\s+",
    r"(?:i['’]m|i\s+am|we['’]re|we\s+are)\s+(?:looking|trying|planning)\s+to\s+",
    r"(?:is\s+it\s+possible\s+to|how\s+(?:can|do|could|should)\s+(?:i|we))\s+",
    _HELP,
)
_ASKS = "|".join(_ASKING)
_GREETINGS = (
    rf"(?:hello|hi|hey|greetings|good\s+(?:morning|afternoon|evening|day))(?:\s+there)?(?:[,.!:;]+\s+|\s*\n\s*|\s+(?={_ASKS}))",
    r"(?:dear\s+\w+|so|well|ok|okay)[,!:]+\s+",
)
_BEFORE: Final = re.compile(rf"\s*(?:{'|'.join((*_GREETINGS, *_ASKING))})", re.IGNORECASE)
_AFTER: Final = re.compile(
    r"(?:(?:\s*[,.!?]+\s*|\s*\n\s*)(?:thanks|thank\s+you)|(?<![:\"'”’])(?<!\bsay)(?<!saying)[\s,]+please)\Z",
    re.IGNORECASE,
)
_MOST = 8
"""Courtesies in front of one query, and at its end."""
_LONGEST = 32
"""Characters at the end in which one stands."""
_LONGEST_IN_FRONT = 256
"""Characters in which one stands in front, its blanks included."""
_STOPS = " \t\r\n.!"


def plainly(query: str) -> str:
    """The query without courtesies in front and at its end."""
    start, end = 0, len(query)
    for _ in range(_MOST):
        found = _BEFORE.match(query, start, start + _LONGEST_IN_FRONT)
        if found is None:
            break
        start = found.end()
    for _ in range(_MOST):
        last = len(query[start:end].rstrip(_STOPS)) + start
        found = _AFTER.search(query, max(start, last - _LONGEST), last)
        if found is None:
            break
        end = found.start()
    plain = query[start:end]
    return plain if re.search(r"\w", plain) else query
