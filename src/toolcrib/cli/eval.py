"""`toolcrib eval`: how well the right tool is found, on anybody's own tools."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from toolcrib.cli.output import print_json, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.crib import Crib
    from toolcrib.definitions import Json, Toolset
    from toolcrib.evals.corpus import Query
    from toolcrib.evals.run import Evaluation
    from toolcrib.retrieval.base import Document
    from toolcrib.settings import SemanticTier, Settings

Retrieval = Literal["lexical", "hybrid"]
Other = Literal["lexical", "hybrid", "onnx"]
_TIERS: "dict[Other, SemanticTier]" = {"lexical": "off", "hybrid": "static", "onnx": "onnx"}


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
    retrieval: Annotated[Retrieval, typer.Option(help="How to search.")] = "hybrid",
    semantic: Annotated[
        Literal["static", "onnx", "off"], typer.Option(help="What meaning comes from; `onnx` needs the extra.")
    ] = "static",
    compare: Annotated[
        Other | None, typer.Option(help="Another way of searching, on the same queries; `hybrid` is with `static`.")
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
    from toolcrib.evals import report
    from toolcrib.evals.compare import compare as compare_runs
    from toolcrib.evals.run import unmet

    catalog = _read(tools, config, queries)
    run = _run(catalog, retrieval, semantic, weighed=True)
    other = _run(catalog, "hybrid", _TIERS[compare]) if compare else None
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
        if other:
            typer.echo(report.text_comparison(compare_runs(run, other), (run.retrieval, other.retrieval)))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Catalog:
    """What is searched and asked, and what it costs to attach."""

    documents: "Sequence[Document]"
    queries: "Sequence[Query]"
    toolsets: "Sequence[Toolset]"
    """The definitions; none if the file only has names and words of tools."""
    settings: "Settings | None"


def _read(tools: Path | None, config: Path | None, queries: Path | None) -> _Catalog:
    from toolcrib.errors import ConfigError
    from toolcrib.evals.corpus import read_queries, unknown_answers, with_keys
    from toolcrib.evals.generate import synthetic_queries

    if tools is not None and config is not None:
        raise ConfigError("Give --tools or --config, not both.")
    catalog = _of_file(tools) if tools is not None else _of_servers(config)
    documents = catalog.documents
    if queries is None:
        return replace(catalog, queries=synthetic_queries(documents))
    asked = with_keys(documents, read_queries(queries))
    unknown = unknown_answers(documents, asked)
    if unknown:
        count = "1 right answer is no tool" if len(unknown) == 1 else f"{len(unknown)} right answers are no tools"
        raise ConfigError(f"{queries}: {count} of {tools or 'the servers'}, the first is `{unknown[0]}`.")
    return replace(catalog, queries=asked)


def _of_file(tools: Path) -> _Catalog:
    from toolcrib.cli.catalogs import load_catalog
    from toolcrib.errors import ConfigError
    from toolcrib.evals.corpus import read_tools

    documents = read_tools(tools)
    try:
        toolsets = load_catalog(tools).inventory.toolsets
    except ConfigError as error:
        # Its tools can be searched, but a model could not call them: there is nothing to attach.
        typer.echo(f"toolcrib: No token break-even: {error}", err=True)
        toolsets = ()
    return _Catalog(documents=documents, queries=(), toolsets=toolsets, settings=None)


def _of_servers(config: Path | None) -> _Catalog:
    """The tools of a configuration as a session searches them, aliases included; their names are their ids."""
    from toolcrib.cli.cribs import open_crib, use_crib
    from toolcrib.errors import ConfigError
    from toolcrib.retrieval.documents import documents_of

    async def take(crib: "Crib") -> _Catalog:
        aliases = crib.settings.tools.aliases
        toolsets = crib.session().catalog.toolsets
        return _Catalog(
            documents=[found for toolset in toolsets for found in documents_of(toolset, aliases)],
            queries=(),
            toolsets=crib.inventory.toolsets,
            settings=crib.settings,
        )

    catalog = use_crib(open_crib(tools=None, config=config), take)
    if not catalog.documents:
        raise ConfigError("No server has a tool that can be searched: `toolcrib doctor` says more.")
    return catalog


def _run(catalog: _Catalog, retrieval: Retrieval, semantic: "SemanticTier", *, weighed: bool = False) -> "Evaluation":
    import os

    from toolcrib.audit.weighing import weigh
    from toolcrib.cli.progress import wait_for_vectors
    from toolcrib.evals.run import evaluate as run_evaluation
    from toolcrib.retrieval.factory import build_retriever, encoder_fill, semantic_tier
    from toolcrib.settings import ToolSearchSettings

    settings = ToolSearchSettings(retrieval=retrieval, semantic=semantic)
    retriever = build_retriever(settings, clock=time.monotonic, environ=os.environ)
    fill = encoder_fill(retriever)
    if fill is not None:
        # Measured is the whole tier: a figure of half of it would be of no use.
        retriever.index(catalog.documents)
        wait_for_vectors(fill)
    modes = {"off": "lexical", "static": "hybrid", "onnx": "hybrid+onnx"}
    run = run_evaluation(
        retriever, catalog.documents, catalog.queries, retrieval=modes[semantic_tier(settings)], clock=time.perf_counter
    )
    if not (weighed and catalog.toolsets):
        return run
    texts = [query.text for query in catalog.queries]
    # After it, and with the same retriever: the times above are those of an index that nobody has asked yet.
    found = weigh(catalog.toolsets, texts, settings=catalog.settings, retriever=lambda: retriever)
    return replace(run, break_even=found)
