"""`toolcrib eval`: how well the right tool is found, on anybody's own tools."""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from toolcrib.cli.output import print_json, require_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolcrib.crib import Crib
    from toolcrib.definitions import Json, Toolset
    from toolcrib.evals.corpus import Query
    from toolcrib.evals.run import Evaluation
    from toolcrib.retrieval.base import Document
    from toolcrib.retrieval.reranker import Reranker
    from toolcrib.settings import Abstention, SemanticTier, Settings, ToolSearchSettings

Retrieval = Literal["lexical", "hybrid"]
_TIERS: "dict[Retrieval, SemanticTier]" = {"lexical": "off", "hybrid": "static"}


def evaluate(
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="One tool per line: id, name, description, parameters, server; any dialect."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Configuration file, instead of --tools; without both, toolcrib.yaml here."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="One query per line: id, query, relevant, category. Made up if not given."),
    ] = None,
    retrieval: Annotated[
        Retrieval | None, typer.Option(help="How to search; else as configured, `hybrid` with --tools.")
    ] = None,
    semantic: Annotated[
        Literal["static", "off"] | None,
        typer.Option(help="What meaning comes from; else as configured, `static` with --tools."),
    ] = None,
    abstention: Annotated[
        Literal["usual", "cautious", "off"] | None,
        typer.Option(help="How readily to answer with nothing; else as configured, `usual` with --tools."),
    ] = None,
    compare: Annotated[
        Retrieval | None,
        typer.Option(help="Another way of searching, on the same queries; `hybrid` is with `static`, no reranker."),
    ] = None,
    min_recall1: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Fail below this recall@1.")
    ] = None,
    min_recall5: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Fail below this recall@5.")
    ] = None,
    min_recall10: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Fail below this recall@10.")
    ] = None,
    min_mrr: Annotated[float | None, typer.Option(metavar="X", min=0, max=1, help="Fail below this MRR.")] = None,
    min_ndcg10: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Fail below this NDCG@10.")
    ] = None,
    chart: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a chart (SVG) here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measures how well tools are found (recall, MRR, NDCG, abstention, latency), and up to how many searches it pays.

    Exits with 1 if a minimum is not reached.

    Example: toolcrib eval --tools corpus/tools.jsonl --queries corpus/queries.jsonl --min-recall5 0.8
    """
    from toolcrib.errors import ConfigError
    from toolcrib.evals import report
    from toolcrib.evals.compare import compare as compare_runs
    from toolcrib.evals.run import unmet
    from toolcrib.settings import ToolSearchSettings

    if chart:
        require_writable(chart)
    catalog = _read(tools, config, queries, _Wish(retrieval=retrieval, semantic=semantic, abstention=abstention))
    against = ToolSearchSettings(semantic=_TIERS[compare]) if compare else None
    if against and _way(against) == _way(catalog.search):
        raise ConfigError(
            f"--compare {compare} compares the run with itself: give it another --retrieval or --abstention."
        )
    run = _run(catalog, catalog.search, weighed=True)
    other = _run(catalog, against) if against else None
    summary = run.summary()
    if chart:
        write_file(chart, report.svg_chart(run))
    if json:
        extra = {"synthetic": True} if queries is None else {}
        both = {"compared_with": other.summary()} if other else {}
        print_json(cast("Json", {**summary, **extra, **both}))
    else:
        typer.echo(
            "Queries made up from the tools themselves: good for comparing, not for boasting.\n"
            if queries is None
            else "",
            nl=False,
        )
        typer.echo(report.text_report(run))
        if against and other:
            names = (run.retrieval, other.retrieval)
            if names[0] == names[1]:
                names = (catalog.search.abstention, against.abstention)
            typer.echo(report.text_comparison(compare_runs(run, other), names))
    minimums = {
        "recall@1": min_recall1,
        "recall@5": min_recall5,
        "recall@10": min_recall10,
        "mrr": min_mrr,
        "ndcg@10": min_ndcg10,
    }
    complaints = unmet(summary, {name: least for name, least in minimums.items() if least is not None})
    for complaint in complaints:
        typer.echo(f"toolcrib: {complaint}", err=True)
    if complaints:
        raise typer.Exit(1)


def _way(search: "ToolSearchSettings") -> object:
    """What tells one way of searching from another."""
    from toolcrib.retrieval.factory import semantic_tier

    tier = semantic_tier(search)
    return tier, tier == "off" or search.abstention, search.reranker.enabled and search.reranker


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """How the command line wants to search. Who asks for meaning gets it, although the configuration has it off."""

    retrieval: Retrieval | None
    semantic: "SemanticTier | None"
    abstention: "Abstention | None"

    def flags(self) -> "Mapping[str, Json]":
        """What counts above the configuration."""
        meant = "hybrid" if self.semantic == "static" else None
        given = {"retrieval": self.retrieval or meant, "semantic": self.semantic, "abstention": self.abstention}
        return {f"tools.tool_search.{key}": value for key, value in given.items() if value}

    def search(self, settings: "Settings") -> "ToolSearchSettings":
        """How to search, with settings that have the flags already."""
        from msgspec.structs import replace

        found = settings.tools.tool_search
        is_contrary = self.retrieval == "hybrid" and self.semantic is None and found.semantic == "off"
        return replace(found, semantic="static") if is_contrary else found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Catalog:
    """What is searched and asked, how, and what it costs to attach."""

    documents: "Sequence[Document]"
    queries: "Sequence[Query]"
    search: "ToolSearchSettings"
    toolsets: "Sequence[Toolset]"
    """The definitions; none if the file only has names and words of tools."""
    settings: "Settings | None"


def _read(tools: Path | None, config: Path | None, queries: Path | None, wish: _Wish) -> _Catalog:
    from toolcrib.errors import ConfigError
    from toolcrib.evals.corpus import read_queries, unknown_answers, with_keys
    from toolcrib.evals.generate import synthetic_queries

    if tools is not None and config is not None:
        raise ConfigError("Give --tools or --config, not both.")
    catalog = _of_file(tools, wish) if tools is not None else _of_servers(config, wish)
    documents = catalog.documents
    if queries is None:
        return replace(catalog, queries=synthetic_queries(documents))
    asked = with_keys(documents, read_queries(queries))
    unknown = unknown_answers(documents, asked)
    if unknown:
        count = "1 right answer is no tool" if len(unknown) == 1 else f"{len(unknown)} right answers are no tools"
        raise ConfigError(f"{queries}: {count} of {tools or 'the servers'}, the first is `{unknown[0]}`.")
    return replace(catalog, queries=asked)


def _of_file(tools: Path, wish: _Wish) -> _Catalog:
    from toolcrib.cli.catalogs import load_catalog
    from toolcrib.config import load_settings
    from toolcrib.errors import ConfigError
    from toolcrib.evals.corpus import read_tools

    documents = read_tools(tools)
    try:
        toolsets = load_catalog(tools).inventory.toolsets
    except ConfigError as error:
        # Its tools can be searched, but a model could not call them: there is nothing to attach.
        typer.echo(f"toolcrib: No token break-even: {error}", err=True)
        toolsets = ()
    # A file of tools has no configuration: neither one that lies here nor the environment has a say in its figures.
    search = wish.search(load_settings(environ={}, flags=wish.flags()).settings)
    return _Catalog(documents=documents, queries=(), search=search, toolsets=toolsets, settings=None)


def _of_servers(config: Path | None, wish: _Wish) -> _Catalog:
    """The tools of a configuration, searched as a session does, aliases included; their names are their ids."""
    from toolcrib.cli.cribs import open_crib, use_crib
    from toolcrib.errors import ConfigError
    from toolcrib.retrieval.documents import documents_of

    async def take(crib: "Crib") -> _Catalog:
        aliases = crib.settings.tools.aliases
        toolsets = crib.session().catalog.toolsets
        return _Catalog(
            documents=[found for toolset in toolsets for found in documents_of(toolset, aliases)],
            queries=(),
            search=wish.search(crib.settings),
            toolsets=crib.inventory.toolsets,
            settings=crib.settings,
        )

    catalog = use_crib(open_crib(tools=None, config=config, flags=wish.flags()), take)
    if not catalog.documents:
        raise ConfigError("No server has a tool that can be searched: `toolcrib doctor` says more.")
    return catalog


def _run(catalog: _Catalog, search: "ToolSearchSettings", *, weighed: bool = False) -> "Evaluation":
    import os

    from toolcrib.audit.weighing import weigh
    from toolcrib.cli.progress import wait_for_vectors
    from toolcrib.evals.run import evaluate as run_evaluation
    from toolcrib.retrieval.factory import RerankedRetriever, build_retriever, endpoint_of, semantic_tier

    retriever = build_retriever(search, clock=time.monotonic, environ=os.environ)
    mode = "lexical" if semantic_tier(search) == "off" else "hybrid"
    # Measured is the whole tier: a figure of half of it would be of no use.
    if isinstance(retriever, RerankedRetriever):
        _prepare(retriever.reranker, catalog, endpoint_of(search, os.environ).host)
        mode = f"{mode}+{search.reranker.mode}"
    run = run_evaluation(
        retriever,
        catalog.documents,
        catalog.queries,
        retrieval=mode,
        clock=time.perf_counter,
        settle=partial(wait_for_vectors, retriever),
    )
    failure = retriever.reranker.state.last_failure if isinstance(retriever, RerankedRetriever) else None
    if failure is not None:
        typer.echo(f"toolcrib: The reranker failed ({failure}): some of these answers are without it.", err=True)
    if not (weighed and catalog.toolsets):
        return run
    texts = [query.text for query in catalog.queries]
    # After it, and with the same retriever: the times above are those of an index that nobody has asked yet.
    found = weigh(catalog.toolsets, texts, settings=catalog.settings, retriever=lambda: retriever)
    return replace(run, break_even=found)


def _prepare(reranker: "Reranker", catalog: _Catalog, host: str) -> None:
    """Has the vectors of all tools made. Raises `ConfigError`: what was asked for must not turn into something else."""
    from toolcrib.errors import ConfigError
    from toolcrib.retrieval.factory import PREPARE_BUDGET_S

    if not reranker.prepare(catalog.documents, budget_s=PREPARE_BUDGET_S):
        raise ConfigError(
            f"The reranker at {host} does not answer ({reranker.state.last_failure}): start it, or set "
            "`tools.tool_search.reranker.enabled: false`."
        )
