"""What tools are called here besides their names: a query that is such a word, and nothing else, names them.

People of a house ask for a thing by their own word for it. Beside words and meaning an alias of two words would drown
among what the query could mean elsewhere.
"""

from collections.abc import Mapping, Sequence

from toolcrib.retrieval.base import Document
from toolcrib.retrieval.text import normal_name


class Aliases:
    """The aliases of some documents; looked through when a query first asks."""

    __slots__ = ("_documents", "_rows")

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._rows: Mapping[str, Sequence[int]] | None = None

    def rows(self, wanted: str) -> Sequence[int]:
        """The places of the documents with this alias, given as `normal_name` writes it."""
        if self._rows is None:
            found: dict[str, list[int]] = {}
            for place, document in enumerate(self._documents):
                for alias in document.aliases:
                    found.setdefault(normal_name(alias), []).append(place)
            self._rows = found
        return self._rows.get(wanted, ())
