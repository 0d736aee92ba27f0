"""What searching a catalog costs, measured on its own tools: for `toolcrib audit` and for `toolcrib eval`."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from toolcrib.crib import Crib
from toolcrib.definitions import Toolset
from toolcrib.errors import CallError
from toolcrib.evals.break_even import BreakEven, sampled
from toolcrib.limits import EVAL_SAMPLE_SEARCHES
from toolcrib.retrieval.base import Retriever
from toolcrib.settings import ActivitySettings, Settings
from toolcrib.sources.listed import ListedToolsets
from toolcrib.tokens import estimate_tokens


def direct_tokens(toolsets: Iterable[Toolset]) -> int:
    """What every tool of these costs per request, attached."""
    return estimate_tokens(sum(toolset.chars for toolset in toolsets))


def open_searched(
    toolsets: Sequence[Toolset], settings: Settings, *, retriever: Callable[[], Retriever] | None = None
) -> Crib:
    """A crib over these toolsets in which tool search is in use, whatever the gate would say."""
    search = msgspec.structs.replace(settings.tools.tool_search, enabled="on")
    forced = msgspec.structs.replace(settings, tools=msgspec.structs.replace(settings.tools, tool_search=search))
    return Crib(ListedToolsets("weighed", tuple(toolsets)), settings=forced, retriever=retriever)


def answer_sizes(crib: Crib, queries: Iterable[str]) -> list[int]:
    """What searches for these answer, in tokens; queries that are refused are left out."""
    sizes: list[int] = []
    for query in queries:
        try:
            # A session each: the progress guard answers repeated searches more shortly.
            sizes.append(crib.session().search(query).tokens)
        except CallError:
            continue
    return sizes


def weigh(
    toolsets: Sequence[Toolset],
    queries: Sequence[str],
    *,
    settings: Settings | None = None,
    retriever: Callable[[], Retriever] | None = None,
) -> BreakEven:
    """What both ways cost on these toolsets, with answers to these queries; many queries are sampled."""
    # Whatever is weighed was let in before, and what only counts is nobody's activity.
    plain = msgspec.structs.replace(settings or Settings(), pins="off", screening="off", activity=ActivitySettings())
    crib = open_searched(toolsets, plain, retriever=retriever)
    return BreakEven(
        tools=sum(len(toolset.tools) for toolset in toolsets),
        direct=direct_tokens(toolsets),
        visible=crib.session().assemble().assembly.tokens,
        answers=tuple(answer_sizes(crib, sampled(queries, EVAL_SAMPLE_SEARCHES))),
    )
