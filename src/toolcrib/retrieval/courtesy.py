"""What a query asks for, without the courtesies around it.

"Hello, can you help me check my balance?" asks for what "check my balance" asks for. A sentence is read as a whole, so
six words of politeness would count for more than the three that matter; and how polite a query is says nothing about
whether a tool fits. English only: a query in another language meets tools by its words, of which these are none.

Invariant: what is left is a stretch of the query, of two words or more; or it is the query itself.
"""

import re
from typing import Final

_GREETINGS = r"(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day)|dear \w+)(?: there)?[ ,.!:;-]+"
_SMALL_WORDS = r"(?:please|kindly|so|well|ok|okay)[ ,]+"
_HELP = r"(?:help|assist) (?:me|us)(?: (?:to|with|in|by))? +"
_QUESTIONS = rf"(?:can|could|would|will) (?:you|we|i)(?: (?:please|kindly|possibly|also))? +(?:{_HELP})?"
_WISHES = r"(?:(?:i|we)(?:'d| would) like|(?:i|we) (?:want|need|wish|have))(?: you)? to +"
_PLANS = r"(?:i'm|i am|we're|we are) (?:looking|trying|going|planning) to +"
_WAYS = r"(?:is it possible to|how (?:can|do|could|should) (?:i|we)|let me|let's) +"
_BEFORE: Final = re.compile(
    rf" *(?:{'|'.join((_GREETINGS, _SMALL_WORDS, _QUESTIONS, _WISHES, _PLANS, _WAYS, _HELP))})", re.IGNORECASE
)
_AFTER: Final = re.compile(r"[ ,]+(?:please|thanks|thank you)[ .!?]*", re.IGNORECASE)
_MOST = 8
"""Courtesies in front of one query."""
_ENDS_WITHIN = 16
"""Characters at the end in which one may stand."""


def plainly(query: str) -> str:
    """The query without courtesies in front and at its end."""
    start = 0
    for _ in range(_MOST):
        found = _BEFORE.match(query, start)
        if found is None:
            break
        start = found.end()
    last = _AFTER.search(query, max(start, len(query) - _ENDS_WITHIN))
    end = last.start() if last is not None and last.end() == len(query) else len(query)
    plain = query[start:end]
    return plain if len(plain.split(maxsplit=2)) > 1 else query
