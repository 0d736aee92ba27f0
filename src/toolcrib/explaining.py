"""A search as a model would do it, with the reasons: what each field and each stage gave to each hit (X26).

The command line and the console show the same value.
"""

from collections.abc import Sequence

from msgspec import Struct

from toolcrib.bridge import search_for
from toolcrib.catalog import Catalog
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.discovery import SearchAnswer
from toolcrib.retrieval.base import Ranking
from toolcrib.session import Session

_UNMET = ("nothing_for", "doubtful_for")
"""Of several needs those that nothing was found for, or nothing sure."""


class Explained(Struct, frozen=True, kw_only=True):
    """An answer of `tool_search`, and why it is as it is."""

    query: str
    answer: SearchAnswer
    matches: tuple[JsonObject, ...]
    """The hits, best first: what the model reads of each, its score, and its evidence if that was asked for."""
    confidence: float
    """0 to 1: how likely the first hit is what was meant."""
    read_as: str
    """What was looked up, where that is not what was typed; of several needs a line each."""

    @property
    def nearest(self) -> tuple[str, ...]:
        """Names that come closest although nothing fits."""
        names = self.answer.body.get("nearest")
        return tuple(str(name) for name in names) if isinstance(names, list) else ()

    def as_json(self) -> JsonObject:
        """The keys that scripts rely on."""
        unmet = {key: self.answer.body[key] for key in _UNMET if key in self.answer.body}
        return {
            "query": self.query,
            "read_as": self.read_as,
            "total_available": self.answer.body["total_available"],
            "matches": list(self.matches),
            "abstained": self.answer.abstained,
            "doubtful": self.answer.doubtful,
            "retrieval": self.answer.mode,
            "tokens": self.answer.tokens,
            **unmet,
        }


def explain_search(crib: Crib, session: Session, query: str, *, limit: int | None, explain: bool = True) -> Explained:
    """Searches once for the answer and once for the reasons. Raises `CallError` for a query that is none."""
    answer = session.search(query, limit=limit)
    return explained(query, answer, find_reasons(crib, session.catalog, query, answer, explain=explain))


def find_reasons(
    crib: Crib, catalog: Catalog, query: str, answer: SearchAnswer, *, explain: bool = True
) -> tuple[Ranking, ...]:
    """Why an answer is as it is, for each of its needs. Takes many times as long as the answer itself."""
    more = answer.body.get("more")
    limit = max(1, len(answer.names) + (more if isinstance(more, int) else 0))
    needs = search_for((query,)).queries
    return tuple([crib.discovery.rank(catalog, need, limit=limit, explain=explain) for need in needs])


def explained(query: str, answer: SearchAnswer, rankings: Sequence[Ranking]) -> Explained:
    """An answer with its reasons: those of the need that a hit answers best."""
    scores = dict(zip(answer.names, answer.scores, strict=True))
    by_need = [{hit.key: hit for hit in ranking.hits} for ranking in rankings]
    found = answer.body.get("matches")
    shown = [match for match in found if isinstance(match, dict)] if isinstance(found, list) else []
    matches: list[JsonObject] = []
    for match in shown:
        item: JsonObject = {"toolset" if key == "source" else key: value for key, value in match.items()}
        name = str(match["name"])
        item["score"] = round(scores[name], 4)
        needs = match.get("for")
        # What another need found further down gave the tool nothing here.
        own = [by_need[need] for need in needs if isinstance(need, int)] if isinstance(needs, list) else by_need
        hit = max((hits[name] for hits in own if name in hits), key=lambda hit: hit.score, default=None)
        if hit is not None and hit.evidence:
            item["evidence"] = {part: round(value, 4) for part, value in hit.evidence.items()}
        matches.append(item)
    read = [each.read_as or need for each, need in zip(rankings, search_for((query,)).queries, strict=True)]
    first = answer.names[0] if answer.names else None
    leading = [each for each in rankings if (each.hits[0].key if each.hits else None) == first] or rankings
    return Explained(
        query=query,
        answer=answer,
        matches=tuple(matches),
        confidence=max(each.confidence for each in leading),
        read_as="\n".join(read) if any(ranking.read_as for ranking in rankings) else "",
    )
