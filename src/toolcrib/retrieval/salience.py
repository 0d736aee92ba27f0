"""How telling a word is in a query, apart from how rare it is in a catalog.

A small catalog cannot know that "please" or "the" tell nothing: they may be rare in it. So grammatical words
count next to nothing, and further words count by evidence: how much more often the right tool's text holds
the word than any tool's text does, over 27,551 pairs of a request and its tool (`python -m bench.salience`
prints that part). Nothing is ever removed: a query of such words alone still finds.

Invariant: every word counts more than 0 and at most 1.
"""

from collections.abc import Mapping
from types import MappingProxyType

GRAMMATICAL = 0.03
"""What a word counts that only holds a sentence together."""
_GRAMMAR = (
    "a about after all also am an and any are as at be been befor being between but by can could d did "
    "do doe done dur each for from had has have he here how i if in into is it its just ll m may me "
    "might mine more most must my no nor not of on onto or other our over pleas re s shall she should "
    "so some such t than that the their them then ther thes they this thos through to too under us ve "
    "very was we were what when wher which who whom whos why will with without would yes you your "
)
# Keys are word families; percent of the full count.
_LEARNED = {
    30: (
        "api app assist assistanc bas classify company different finally give given help identify "
        "know like look need process provid recommend set specifically suggest use user want "
    ),
    40: "build find",
    50: "specific",
    60: "get includ make order",
    80: "determin one stor using",
    90: "content detail",
}


def salience_table() -> Mapping[str, float]:
    """The words (as families) that count less than in full; all others count 1."""
    table = {word: percent / 100 for percent, words in _LEARNED.items() for word in words.split()}
    return MappingProxyType(table | dict.fromkeys(_GRAMMAR.split(), GRAMMATICAL))
