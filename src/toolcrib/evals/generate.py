"""Makes queries from a catalog when its owner has none. They are synthetic and say so.

Each query knows one right tool: the one whose words it was made of. So such queries show whether tools can be told
apart by their own words (near-duplicates, missing descriptions), not how people ask. Figures from them flatter
lexical search, and are not to be compared with figures from real queries.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from toolcrib.evals.corpus import Query
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.salience import salience_table
from toolcrib.retrieval.text import family, terms

_DESCRIPTION_WORDS = 8
_PARAMETER_WORDS = 3


def synthetic_queries(documents: Sequence[Document]) -> list[Query]:
    """Up to four queries per tool: by name, description, parameters and aliases; in the order of the keys."""
    dull = salience_table()
    made: list[Query] = []
    taken: dict[str, int] = {}
    for document in sorted(documents, key=lambda each: each.key):
        for kind, text in _texts(document, dull.keys()):
            if text:
                taken[text] = taken.get(text, 0) + 1
                query = Query(
                    id=f"synthetic:{kind}:{document.key}",
                    text=text,
                    relevant=frozenset((document.key,)),
                    category=f"synthetic:{kind}",
                )
                made.append(query)
    # Two tools that give the same words cannot be told apart by them; such a query has no right answer.
    return [query for query in made if taken[query.text] == 1]


def _texts(document: Document, dull: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    yield "name", " ".join(terms(document.leaf))
    first = document.description.split(". ", 1)[0]
    yield "description", " ".join(_telling(first, dull)[:_DESCRIPTION_WORDS])
    described = _telling(document.description, dull)[:_PARAMETER_WORDS]
    named = [word for name in document.inside().parameters[:_PARAMETER_WORDS] for word in terms(name)]
    yield "parameters", " ".join([*described, *named]) if named else ""
    yield "alias", document.aliases[0] if document.aliases else ""


def _telling(text: str, dull: AbstractSet[str]) -> list[str]:
    return [term for term in terms(text) if family(term) not in dull]
