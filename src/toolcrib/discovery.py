"""Discovery answers the model's two questions: which tool does this, and what does it take.

Both see one catalog and nothing else (S19). A search is meant to end in a call: hits carry a typed signature, the
best ones their whole schema while the answer stays small (X3), and a hit that was shown before is not paid for twice
(X7). Nothing that fits is an answer of its own (X2).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import orjson
from msgspec import Struct

from toolcrib.alongside import Alongside
from toolcrib.bridge import TOOL_CALL, TOOL_DESCRIBE, Describe, Search
from toolcrib.cards import Card, Cards
from toolcrib.catalog import Catalog
from toolcrib.definitions import Json, JsonObject, Tool, Toolset, ToolsetName, json_chars
from toolcrib.errors import CallError, SearchRefused
from toolcrib.limits import DESCRIBE_MAX_CHARS
from toolcrib.names import Names
from toolcrib.progress import ProgressGuard, Stance
from toolcrib.retrieval.base import Document, Grouped, Index, Ranking, Retriever
from toolcrib.retrieval.documents import documents_of
from toolcrib.retrieval.signature import compact_parameters
from toolcrib.settings import ToolSearchSettings
from toolcrib.tokens import estimate_tokens

_SCHEMA_COMFORT_TOKENS = 300
"""Below this size an answer may grow by the schemas of further hits; the first hit's may take the whole budget."""

_PARAMETERS_KEY_CHARS = len(',"parameters":')

_TOOLSETS_NAMED = 20


class RetrieverFactory(Protocol):
    """Makes the retriever when the first search needs it."""

    def __call__(self) -> Retriever:
        """The retriever of the crib."""
        ...


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """What the model reads, and what the guard and the feed need to know of it."""

    body: JsonObject
    names: tuple[str, ...]
    """Tools that the answer shows, best first."""
    abstained: bool
    mode: str
    scores: tuple[float, ...]

    @property
    def tokens(self) -> int:
        """What the answer costs."""
        return estimate_tokens(_size(self.body))


class _Found(NamedTuple):
    tool: Tool
    score: float
    needs: tuple[int, ...]
    """Which of the queries it answers."""


class _Shown(NamedTuple):
    """A hit on its way into the answer."""

    tool: Tool
    needs: tuple[int, ...]
    card: Card
    twins: list[Json]
    """Names of the same tool on other servers."""

    def brief(self) -> JsonObject:
        """The entry of a tool that was shown before."""
        match: JsonObject = {"name": self.tool.name, "shown_before": True}
        if self.twins:
            match["same_as"] = self.twins
        return match

    def full(self, unavailable: Mapping[str, str], *, several: bool) -> JsonObject:
        """The entry with everything that the model needs for a call."""
        match = self.card.entry.copy()
        if several:
            match["for"] = list(self.needs)
        if self.tool.toolset in unavailable:
            match["unavailable"] = unavailable[self.tool.toolset]
        if self.twins:
            match["same_as"] = self.twins
        return match


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
        self._aliases = dict(aliases or {})
        self._indexes: WeakKeyDictionary[Catalog, Index] = WeakKeyDictionary()
        self._cards = Cards()
        self._documents: Alongside[Toolset, tuple[Document, ...]] = Alongside(self._make_documents)
        self._latest: Mapping[ToolsetName, tuple[Document, ...]] = {}
        """By toolset, the documents that were indexed last: what the next has in common with them is not made anew."""

    def rank(self, catalog: Catalog, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """The bare ranking of one query."""
        return self._index(catalog).search(query, limit=limit, explain=explain)

    def prepare(self, catalog: Catalog) -> Retriever:
        """The retriever, once it has the index of this catalog; what it makes in the background has begun."""
        self._index(catalog)
        return self._require_retriever()

    def search(self, catalog: Catalog, question: Search, guard: ProgressGuard) -> SearchAnswer:
        """The answer to `tool_search`. Raises `SearchRefused` when searching again cannot help."""
        verdict = guard.before_search(question.queries, catalog.fingerprint)
        if verdict.stance == "refuse":
            raise refusal(guard, verdict.stale)
        limit = self._limit(question.limit)
        rankings = [self.rank(catalog, query, limit=limit) for query in question.queries]
        found = _merge(catalog, rankings, limit)
        known = guard.shown if verdict.stance != "full" else frozenset[str]()
        body = self._body(catalog, question, rankings, found, known, verdict.stance)
        names = [item.tool.name for item in found]
        guard.after_search(question.queries, names)
        return SearchAnswer(
            body=body,
            names=tuple(names),
            abstained=not found,
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
            found = names.find(name, bridged=True)
            body = found.for_model() if isinstance(found, CallError) else self._description(names.catalog, found)
            room -= len(orjson.dumps(body))
            if room < 0:
                bodies.append({"name": name, "error": "The answer would be too long: describe this one alone."})
                continue
            bodies.append({"name": name, **body})
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

    def _index(self, catalog: Catalog) -> Index:
        index = self._indexes.get(catalog)
        if index is None:
            groups = self._documents.of(catalog.toolsets)
            self._latest = {
                toolset.name: documents for toolset, documents in zip(catalog.toolsets, groups, strict=True)
            }
            index = self._indexes[catalog] = self._require_retriever().index(Grouped(groups))
        return index

    def _require_retriever(self) -> Retriever:
        if self._retriever is None:
            self._retriever = self._make_retriever()
        return self._retriever

    def _make_documents(self, toolset: Toolset) -> tuple[Document, ...]:
        return documents_of(toolset, self._aliases, self._latest.get(toolset.name, ()))

    def _body(
        self,
        catalog: Catalog,
        question: Search,
        rankings: Sequence[Ranking],
        found: Sequence[_Found],
        known: frozenset[str],
        stance: Stance,
    ) -> JsonObject:
        queries = question.queries
        body: JsonObject = {
            "query": queries[0] if len(queries) == 1 else list(queries),
            "total_available": catalog.size,
        }
        if not found:
            return {**body, "matches": [], **_nothing(catalog, rankings)}
        unmet = [queries[i] for i, ranking in enumerate(rankings) if not ranking.hits]
        if unmet:
            body["nothing_for"] = unmet
        if stance != "full":
            body["hint"] = _next_step(found[0].tool, firm=stance == "firm")
        budget = self._settings.search_result_max_tokens
        matches: list[JsonObject] = []
        used = estimate_tokens(_size(body)) + 5
        groups = self._grouped(found)
        unavailable, several = catalog.unavailable, len(queries) > 1
        for item in groups:
            match = item.brief() if item.tool.name in known else item.full(unavailable, several=several)
            # A card of its own size, unless something was added or left out.
            cost = item.card.tokens if len(match) == len(item.card.entry) else estimate_tokens(_size(match))
            if matches and used + cost > budget:
                body["more"] = len(groups) - len(matches)
                break
            used += cost
            matches.append(match)
        _attach_schemas(matches, groups, used, budget)
        body["matches"] = matches
        return body

    def _grouped(self, found: Sequence[_Found]) -> list[_Shown]:
        """What is shown: the same tool on other servers is shown once, with its twins' names."""
        groups: dict[tuple[str, bytes], _Shown] = {}
        card_of = self._cards.of
        for tool, _, needs in found:
            card = card_of(tool)
            first = groups.get(card.twin)
            if first is None:
                groups[card.twin] = _Shown(tool, needs, card, [])
            else:
                first.twins.append(tool.name)
        return list(groups.values())


def _attach_schemas(matches: Sequence[JsonObject], shown: Sequence[_Shown], used: int, budget: int) -> None:
    """Gives hits whose signature is not enough their whole schema, the best first, while it fits."""
    for rank, (match, item) in enumerate(zip(matches, shown, strict=False)):
        if match.get("complete") is not False:
            continue
        more = estimate_tokens(item.card.schema_chars + _PARAMETERS_KEY_CHARS)
        if used + more <= (budget if rank == 0 else min(budget, _SCHEMA_COMFORT_TOKENS)):
            match["parameters"] = compact_parameters(item.tool)
            match["complete"] = True
            used += more


def _merge(catalog: Catalog, rankings: Sequence[Ranking], limit: int) -> list[_Found]:
    """The hits of all queries, each tool once, taken in turns so that no need is crowded out."""
    if len(rankings) == 1:
        hits = rankings[0].hits[:limit]
        return [_Found(tool, hit.score, (0,)) for hit in hits if (tool := catalog.get(hit.key)) is not None]
    needs: dict[str, list[int]] = {}
    scores: dict[str, float] = {}
    for rank in range(limit):
        for index, ranking in enumerate(rankings):
            if rank < len(ranking.hits):
                hit = ranking.hits[rank]
                needs.setdefault(hit.key, []).append(index)
                scores[hit.key] = max(hit.score, scores.get(hit.key, hit.score))
    tools = ((catalog.get(name), name) for name in needs)
    return [_Found(tool, scores[name], tuple(sorted(needs[name]))) for tool, name in tools if tool is not None]


def _nothing(catalog: Catalog, rankings: Sequence[Ranking]) -> JsonObject:
    """An honest empty answer: what was searched, and what comes nearest without fitting."""
    searched = [f"{toolset.name} ({len(toolset.tools)})" for toolset in catalog.toolsets]
    if len(searched) > _TOOLSETS_NAMED:
        searched = [*searched[:_TOOLSETS_NAMED], f"{len(searched) - _TOOLSETS_NAMED} more"]
    nearest = list(dict.fromkeys(key for ranking in rankings for key in ranking.nearest))[:3]
    body: JsonObject = {
        "abstained": True,
        "hint": "No tool of this session does this: say so, or use the tools that you have. Rephrasing will not help.",
        "searched": searched,
    }
    return {**body, "nearest": nearest} if nearest else body


def _next_step(tool: Tool, *, firm: bool) -> str:
    step = f'call it: {TOOL_CALL} with {{"name": "{tool.name}", "arguments": {{...}}}}, or {TOOL_DESCRIBE} it first'
    if firm:
        return f"Searching for this again shows nothing new: {step}, or tell the user that it cannot be done."
    return f"You have seen this before: {step}."


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


def _size(body: JsonObject) -> int:
    return json_chars(orjson.dumps(body))
