"""Discovery answers the model's two questions: which tool does this, and what does it take.

Both see one catalog and nothing else (S19). What an answer looks like is decided in `answers`.
"""

from collections.abc import Mapping, Sequence, Set
from threading import Lock
from typing import Protocol, cast
from weakref import WeakKeyDictionary

import orjson
from msgspec import Struct, structs

from toolcrib.alongside import Alongside
from toolcrib.answers import AnswerWriter, Found, all_doubtful, find_tools, most_different, without_twins
from toolcrib.bridge import TOOL_CALL, TOOL_DESCRIBE, Describe, Search
from toolcrib.cards import Cards, Shelf
from toolcrib.catalog import Catalog
from toolcrib.definitions import Json, JsonObject, Tool, Toolset, ToolsetName, json_chars
from toolcrib.errors import CallError, SearchRefused
from toolcrib.limits import DESCRIBE_MAX_CHARS, RESULTS_MAX_HITS
from toolcrib.names import Names, shown_name
from toolcrib.progress import ProgressGuard
from toolcrib.retrieval.base import Document, Grouped, Index, Ranking, Retriever
from toolcrib.retrieval.documents import documents_of
from toolcrib.settings import ToolSearchSettings
from toolcrib.tokens import estimate_tokens

_NOTHING = frozenset[str]()
_DEEPER = 4
"""Times as many hits are looked at where twins took places."""


class RetrieverFactory(Protocol):
    """Makes the retriever when the first search needs it."""

    def __call__(self) -> Retriever:
        """The retriever of the crib."""
        ...


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """What the model reads, and what the guard and the feed need to know of it."""

    body: JsonObject
    names: tuple[str, ...]
    """Tools that the answer shows, those that are the same as a shown one included, best first."""
    abstained: bool
    doubtful: bool
    """Perhaps none of the tools does what any of the queries asks for."""
    mode: str
    scores: tuple[float, ...]
    """Of each of the names."""

    @property
    def tokens(self) -> int:
        """What the answer costs."""
        return estimate_tokens(json_chars(orjson.dumps(self.body)))


class Discovery:
    """Searches and describes catalogs; keeps their indexes while the catalogs live."""

    def __init__(
        self,
        *,
        settings: ToolSearchSettings,
        retriever: RetrieverFactory,
        aliases: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._settings = settings
        self._make_retriever = retriever
        self._retriever: Retriever | None = None
        self._prepared: WeakKeyDictionary[Catalog, tuple[Index, Shelf]] = WeakKeyDictionary()
        self._cards = Cards()
        self._writer = AnswerWriter(max_tokens=settings.search_result_max_tokens)
        self._made = _Made(dict(aliases or {}))
        self._documents: Alongside[Toolset, tuple[Document, ...]] = Alongside(self._made.of)
        self._making = Lock()

    def rank(self, catalog: Catalog, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """The bare ranking of one query."""
        index, _ = self._prepare(catalog)
        return index.search(query, limit=limit, explain=explain)

    def is_prepared(self, catalog: Catalog) -> bool:
        """Whether the index of this catalog is made."""
        return catalog in self._prepared

    def prepare(self, catalog: Catalog) -> Retriever:
        """The retriever, once it has the index of this catalog; what it makes in the background has begun."""
        self._prepare(catalog)
        return self._require_retriever()

    def search(self, catalog: Catalog, question: Search, guard: ProgressGuard) -> SearchAnswer:
        """The answer to `tool_search`. Raises `SearchRefused` when searching again cannot help."""
        verdict = guard.before_search(question.queries, catalog.mark)
        if verdict.stance == "refuse":
            raise refusal(guard, verdict.stale)
        limit = self._limit(question.limit)
        index, shelf = self._prepare(catalog)
        rankings = [index.search(query, limit=limit) for query in question.queries]
        found = find_tools(shelf, rankings, limit)
        shown = without_twins(found)
        if len(shown) < len(found):
            asked = zip(question.queries, rankings, strict=True)
            rankings = [_refilled(index, shelf, query, ranking, limit) for query, ranking in asked]
            found = find_tools(shelf, rankings, RESULTS_MAX_HITS)
            shown = without_twins(found)
        body = self._writer.write(
            catalog,
            question.queries,
            rankings,
            shown,
            stance=verdict.stance,
            known=guard.shown if verdict.stance != "full" else _NOTHING,
        )
        if "more" in body:
            visible = _names_in(body)
            found = [item for item in found if item.tool.name in visible]
        names = tuple([item.tool.name for item in found])
        guard.after_search(question.queries, names)
        return SearchAnswer(
            body=body,
            names=names,
            abstained=not names,
            doubtful=all_doubtful(rankings),
            mode=rankings[0].mode,
            scores=tuple([item.score for item in found]),
        )

    def describe(self, names: Names, question: Describe) -> tuple[JsonObject, tuple[Tool, ...]]:
        """The answer to `tool_describe`, and the tools that it shows. Raises `CallError` for a single unknown name."""
        if len(question.names) == 1:
            tool = names.require(question.names[0], bridged=True)
            return self._description(names.catalog, tool), (tool,)
        bodies: list[Json] = []
        tools: list[Tool] = []
        room = DESCRIBE_MAX_CHARS
        for name in question.names:
            found, shown = names.find(name, bridged=True), shown_name(name)
            body = found.for_model() if isinstance(found, CallError) else self._description(names.catalog, found)
            size = len(orjson.dumps(body))
            if size > room:
                bodies.append({"name": shown, "error": "The answer would be too long: describe this one alone."})
                continue
            room -= size
            bodies.append({"name": shown, **body})
            if isinstance(found, Tool):
                tools.append(found)
        return {"tools": bodies}, tuple(tools)

    def _description(self, catalog: Catalog, tool: Tool) -> JsonObject:
        body: JsonObject = {
            "name": tool.name,
            "source": tool.toolset,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        reason = catalog.unavailable.get(tool.toolset)
        return {**body, "unavailable": reason} if reason else body

    def _limit(self, asked: int | None) -> int:
        settings = self._settings
        if asked is None:
            return min(settings.search_default_limit, settings.max_search_limit)
        return max(1, min(asked, settings.max_search_limit))

    def _prepare(self, catalog: Catalog) -> tuple[Index, Shelf]:
        prepared = self._prepared.get(catalog)
        if prepared is None:
            # Beside the event loop as well: whoever comes second finds the index made.
            with self._making:
                prepared = self._prepared.get(catalog) or self._make(catalog)
        return prepared

    def _make(self, catalog: Catalog) -> tuple[Index, Shelf]:
        groups = self._documents.of(catalog.toolsets)
        if len(self._made.latest) > 2 * len(groups):
            self._made.latest = {toolset.name: made for toolset, made in zip(catalog.toolsets, groups, strict=True)}
        index = self._require_retriever().index(Grouped(groups))
        prepared = self._prepared[catalog] = (index, Shelf(catalog, self._cards))
        return prepared

    def _require_retriever(self) -> Retriever:
        if self._retriever is None:
            self._retriever = self._make_retriever()
        return self._retriever


class _Made:
    """Makes the documents of toolsets. A part of its own, so that nothing holds what holds it."""

    __slots__ = ("_aliases", "latest")

    def __init__(self, aliases: Mapping[str, tuple[str, ...]]) -> None:
        self._aliases = aliases
        self.latest: dict[ToolsetName, tuple[Document, ...]] = {}
        """By toolset, the documents that were made last: what the next has in common with them is not made anew."""

    def of(self, toolset: Toolset) -> tuple[Document, ...]:
        """The documents of a toolset."""
        known = self.latest.get(toolset.name, ())
        documents = self.latest[toolset.name] = documents_of(toolset, self._aliases, known)
        return documents


def _names_in(body: JsonObject) -> Set[str]:
    """The names that an answer shows: what its budget has no room for was not seen by anybody."""
    names: set[str] = set()
    for match in cast("list[JsonObject]", body["matches"]):
        names.add(str(match["name"]))
        if isinstance(same := match.get("same_as"), list):
            names.update(map(str, same))
    return names


def _refilled(index: Index, shelf: Shelf, query: str, ranking: Ranking, limit: int) -> Ranking:
    """The ranking with further hits for the places that twins took, as far as there are any."""
    depth, reached = limit, len(ranking.hits)
    while reached == depth < RESULTS_MAX_HITS and len(_different(shelf, ranking)) < limit:
        depth = min(_DEEPER * depth, RESULTS_MAX_HITS)
        deeper = index.search(query, limit=depth).hits
        reached, known = len(deeper), {hit.key for hit in ranking.hits}
        ranking = structs.replace(ranking, hits=(*ranking.hits, *(hit for hit in deeper if hit.key not in known)))
    found = find_tools(shelf, (ranking,), RESULTS_MAX_HITS)
    return structs.replace(ranking, hits=ranking.hits[: len(most_different(found, limit))])


def _different(shelf: Shelf, ranking: Ranking) -> Sequence[Found]:
    return without_twins(find_tools(shelf, (ranking,), RESULTS_MAX_HITS))


def refusal(guard: ProgressGuard, stale: int) -> SearchRefused:
    """The answer when searching has to stop."""
    names = sorted(guard.shown)[:10]
    if names:
        text = (
            f"{stale} searches without using a result. Searching is closed until you use one: "
            f"{TOOL_CALL} or {TOOL_DESCRIBE} on a tool that you have found, or answer the user without one."
        )
    else:
        text = f"{stale} searches found nothing. The ability is not in this session; answer the user without it."
    return SearchRefused(text, extra={"found": list(names)} if names else None)
