"""A search as a model would do it, with the reasons: what each field and each stage gave to each hit (X26).

The command line and the console show the same value.
"""

from msgspec import Struct

from toolcrib.catalog import Catalog
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.discovery import SearchAnswer
from toolcrib.retrieval.base import Ranking
from toolcrib.session import Session


class Explained(Struct, frozen=True, kw_only=True):
    """An answer of `tool_search`, and why it is as it is."""

    query: str
    answer: SearchAnswer
    matches: tuple[JsonObject, ...]
    """The hits, best first: what the model reads of each, its score, and its evidence if that was asked for."""
    confidence: float
    """0 to 1: how likely the first hit is what was meant."""

    @property
    def nearest(self) -> tuple[str, ...]:
        """Names that come closest although nothing fits."""
        names = self.answer.body.get("nearest")
        return tuple(str(name) for name in names) if isinstance(names, list) else ()

    def as_json(self) -> JsonObject:
        """The keys that scripts rely on."""
        return {
            "query": self.query,
            "total_available": self.answer.body["total_available"],
            "matches": list(self.matches),
            "abstained": self.answer.abstained,
            "doubtful": self.answer.doubtful,
            "retrieval": self.answer.mode,
            "tokens": self.answer.tokens,
        }


def explain_search(crib: Crib, session: Session, query: str, *, limit: int | None, explain: bool = True) -> Explained:
    """Searches once for the answer and once for the reasons. Raises `CallError` for a query that is none."""
    answer = session.search(query, limit=limit)
    return explained(query, answer, find_reasons(crib, session.catalog, query, answer, explain=explain))


def find_reasons(crib: Crib, catalog: Catalog, query: str, answer: SearchAnswer, *, explain: bool = True) -> Ranking:
    """Why an answer is as it is. Takes many times as long as the answer itself."""
    return crib.discovery.rank(catalog, query, limit=max(1, len(answer.names)), explain=explain)


def explained(query: str, answer: SearchAnswer, ranking: Ranking) -> Explained:
    """An answer with its reasons."""
    evidence = {hit.key: hit.evidence for hit in ranking.hits}
    found = answer.body.get("matches")
    shown = [match for match in found if isinstance(match, dict)] if isinstance(found, list) else []
    matches: list[JsonObject] = []
    for match, score in zip(shown, answer.scores, strict=False):
        item: JsonObject = {"toolset" if key == "source" else key: value for key, value in match.items()}
        item["score"] = round(score, 4)
        parts = evidence.get(str(match["name"]))
        if parts:
            item["evidence"] = {name: round(value, 4) for name, value in parts.items()}
        matches.append(item)
    return Explained(query=query, answer=answer, matches=tuple(matches), confidence=ranking.confidence)
