"""The answer to a search: what it shows of the tools that were found, and how much.

A search is meant to end in a call: hits carry a typed signature, the best ones their whole schema while the answer
stays small (X3), and a hit that was shown before is not paid for twice (X7). Nothing that fits is an answer of its own
(X2).
"""

from collections.abc import Mapping, Sequence, Set
from operator import attrgetter

import orjson
from msgspec import Struct

from toolcrib.bridge import TOOL_CALL, TOOL_DESCRIBE
from toolcrib.cards import Card, Shelf
from toolcrib.catalog import Catalog
from toolcrib.definitions import Json, JsonObject, Tool, json_chars
from toolcrib.limits import NEAREST_NAMES, QUERY_SHOWN_CHARS
from toolcrib.progress import Stance
from toolcrib.retrieval.base import Hit, Ranking
from toolcrib.retrieval.signature import compact_parameters
from toolcrib.tokens import estimate_tokens

_SCHEMA_COMFORT_TOKENS = 300
"""Below this size an answer may grow by the schemas of further hits; the first hit's may take the whole budget."""
_PARAMETERS_KEY_CHARS = len(',"parameters":')
_TOOLSETS_NAMED = 20
_ONLY_NEED = (0,)
_SCORE = attrgetter("score")
_DOUBT = (
    "Perhaps none of these does it: use one only if its description says so. "
    "If none does, tell the user; rephrasing will not help."
)


class Found(Struct, gc=False):
    """A hit on its way into the answer."""

    tool: Tool
    card: Card
    score: float
    needs: tuple[int, ...]
    """Which of the queries it answers."""
    twins: list[Json] | None = None
    """Names of the same tool on other servers, if there are any."""

    @property
    def same(self) -> tuple[str, bytes, str]:
        """Equal for twins: the same name and schema, and the same words on what it is for. No words are no proof."""
        tool = self.tool
        return self.card.leaf, tool.schema, tool.description.strip() or tool.name

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


def find_tools(shelf: Shelf, rankings: Sequence[Ranking], limit: int) -> list[Found]:
    """The tools of all rankings, each once, taken in turns so that no need is crowded out."""
    if len(rankings) == 1:
        hits = rankings[0].hits[:limit]
        return [
            Found(*there, hit.score, _ONLY_NEED)
            for hit in hits
            if (there := shelf.get(hit.key) or shelf.fetch(hit)) is not None
        ]
    needs: dict[str, list[int]] = {}
    best: dict[str, Hit] = {}
    for rank in range(limit):
        for index, ranking in enumerate(rankings):
            if rank < len(ranking.hits):
                hit = ranking.hits[rank]
                needs.setdefault(hit.key, []).append(index)
                best[hit.key] = max(best.get(hit.key, hit), hit, key=_SCORE)
    return [
        Found(*there, hit.score, tuple(sorted(needs[name])))
        for name, hit in best.items()
        if (there := shelf.get(name) or shelf.fetch(hit)) is not None
    ]


class AnswerWriter:
    """Puts answers together, none larger than its budget."""

    def __init__(self, *, max_tokens: int) -> None:
        self._budget = max_tokens

    def write(
        self,
        catalog: Catalog,
        queries: Sequence[str],
        rankings: Sequence[Ranking],
        found: Sequence[Found],
        *,
        stance: Stance,
        known: Set[str],
    ) -> JsonObject:
        """What the model reads of what was found, twins put together. Tools that are `known` are only named again."""
        several = len(queries) > 1
        # Repeating what was asked takes a quarter of a small budget at most.
        room = min(QUERY_SHOWN_CHARS // 4 if several else QUERY_SHOWN_CHARS, self._budget // len(queries))
        shown = [_cut(query, room) for query in queries]
        body: JsonObject = {"query": list(shown) if several else shown[0], "total_available": catalog.size}
        if not found:
            return self._empty({**body, "matches": []}, catalog, rankings)
        if several:
            asked = list(zip(shown, rankings, strict=True))
            if unmet := [query for query, ranking in asked if not ranking.hits]:
                body["nothing_for"] = list(unmet)
            if doubted := [query for query, ranking in asked if ranking.doubtful]:
                body["doubtful_for"] = list(doubted)
        if all_doubtful(rankings) and stance != "firm":
            body["hint"] = _DOUBT
        elif stance != "full" and found[0].tool.name in known:
            body["hint"] = _next_step(found[0].tool, firm=stance == "firm")
        self._show(body, found, catalog.unavailable, known, several=several)
        return body

    def _empty(self, body: JsonObject, catalog: Catalog, rankings: Sequence[Ranking]) -> JsonObject:
        """An answer without matches. Of many toolsets it names as many as the budget has room for, at least one."""
        for most in range(_TOOLSETS_NAMED, 0, -1):
            found = {**body, **_nothing(catalog, rankings, most)}
            if estimate_tokens(_size(found)) <= self._budget:
                return found
        return {**body, **_nothing(catalog, rankings, 1)}

    def _show(
        self,
        body: JsonObject,
        shown: Sequence[Found],
        unavailable: Mapping[str, str],
        known: Set[str],
        *,
        several: bool,
    ) -> None:
        """Adds entries for as many as the budget has room for."""
        budget = self._budget
        matches: list[JsonObject] = []
        used = estimate_tokens(_size(body)) + 5
        as_they_are = not (known or several or unavailable)
        for item in shown:
            card = item.card
            if as_they_are and not item.twins:
                match, cost = card.entry.copy(), card.tokens
            else:
                match = item.brief() if item.tool.name in known else item.full(unavailable, several=several)
                # A card of its own size, unless something was added or left out.
                cost = card.tokens if len(match) == len(card.entry) else estimate_tokens(_size(match))
            if matches and used + cost > budget:
                body["more"] = len(shown) - len(matches)
                break
            used += cost
            matches.append(match)
        _attach_schemas(matches, shown, used, budget)
        body["matches"] = matches


def all_doubtful(rankings: Sequence[Ranking]) -> bool:
    """Whether something was found, and nothing that clearly fits."""
    if len(rankings) == 1:
        return rankings[0].doubtful and bool(rankings[0].hits)
    found = [ranking.doubtful for ranking in rankings if ranking.hits]
    return bool(found) and all(found)


def without_twins(found: Sequence[Found]) -> Sequence[Found]:
    """What is shown: the same tool on other servers is shown once, with its twins' names."""
    if len({item.card.leaf for item in found}) == len(found):
        return found
    groups: dict[tuple[str, bytes, str], Found] = {}
    for item in found:
        first = groups.setdefault(item.same, item)
        if first is not item:
            first.twins = [*(first.twins or ()), item.tool.name]
            first.needs = tuple(sorted({*first.needs, *item.needs}))
    return list(groups.values())


def most_different(found: Sequence[Found], limit: int) -> Sequence[Found]:
    """The first of what was found, until that many tools are among them that are no twins."""
    different: set[tuple[str, bytes, str]] = set()
    for place, item in enumerate(found):
        different.add(item.same)
        if len(different) > limit:
            return found[:place]
    return found


def _attach_schemas(matches: Sequence[JsonObject], shown: Sequence[Found], used: int, budget: int) -> None:
    """Gives hits whose signature is not enough their whole schema, the best first, while it fits."""
    for rank, match in enumerate(matches):
        if match.get("complete") is not False:
            continue
        item = shown[rank]
        room = (budget if rank == 0 else min(budget, _SCHEMA_COMFORT_TOKENS)) - used
        if room <= 0:
            continue
        more = estimate_tokens(item.card.schema_chars + _PARAMETERS_KEY_CHARS)
        if more <= room:
            match["parameters"] = compact_parameters(item.tool)
            match["complete"] = True
            used += more


def _nothing(catalog: Catalog, rankings: Sequence[Ranking], most: int) -> JsonObject:
    """An honest empty answer: what was searched, and what comes nearest without fitting."""
    searched = [f"{toolset.name} ({len(toolset.tools)})" for toolset in catalog.toolsets[:most]]
    if len(catalog.toolsets) > most:
        searched.append(f"{len(catalog.toolsets) - most} more")
    nearest = list(dict.fromkeys(key for ranking in rankings for key in ranking.nearest))[:NEAREST_NAMES]
    hint = "No tool of this session seems to do this: say so, or use the tools that you have. Rephrasing will not help."
    body: JsonObject = {"abstained": True, "hint": hint, "searched": searched}
    if nearest:
        body["hint"] = f"{hint} Only if the name of one of the nearest says that it does, {TOOL_DESCRIBE} it."
        body["nearest"] = nearest
    return body


def _cut(query: str, most: int) -> str:
    """A query as an answer repeats it."""
    return query if len(query) <= most else f"{query[:most]}…"


def _next_step(tool: Tool, *, firm: bool) -> str:
    step = f'call it: {TOOL_CALL} with {{"name": "{tool.name}", "arguments": {{...}}}}, or {TOOL_DESCRIBE} it first'
    if firm:
        return f"Searching for this again shows nothing new: {step}, or tell the user that it cannot be done."
    return f"You have seen this before: {step}."


def _size(body: JsonObject) -> int:
    return json_chars(orjson.dumps(body))
