"""Shows an evaluation to a person: lines of text with bars, and a small SVG chart for a page.

Every figure carries its number of queries and its 95 % interval: sets of a hundred queries wobble by nine points.
"""

from collections.abc import Sequence
from html import escape

from toolcrib.evals.break_even import BreakEven
from toolcrib.evals.compare import Difference
from toolcrib.evals.run import Evaluation, doubt

_SHOWN = ("recall@1", "recall@5", "recall@10", "mrr", "ndcg@10")
_BAR = 24


def text_report(evaluation: Evaluation) -> str:
    """The run in lines of at most 60 characters."""
    answerable = sum(outcome.answerable for outcome in evaluation.outcomes)
    absent = len(evaluation.outcomes) - answerable
    lines = [
        f"{_count(evaluation.tools, 'tool', 'tools')}, {_count(answerable, 'answerable query', 'answerable queries')}, "
        f"{absent} absent; {evaluation.retrieval}"
    ]
    for name in _SHOWN if answerable else ():
        values = evaluation.values(name)
        mean = sum(values) / len(values) if values else 0.0
        low, high = evaluation.interval(name)
        lines.append(f"{name:<10} {_bar(mean)} {mean:.3f}  [{low:.3f}, {high:.3f}]")
    emptied = sum(outcome.answerable and not outcome.found for outcome in evaluation.outcomes)
    right = sum(not outcome.answerable and not outcome.found for outcome in evaluation.outcomes)
    if absent:
        lines.append(f"absent     {_bar(right / absent)} {right} of {absent} rightly empty")
    if answerable:
        lines.append(f"emptied    {emptied} of {answerable} answerable queries got nothing")
    doubted = doubt(evaluation.outcomes)
    found = sum(outcome.shows_right for outcome in evaluation.outcomes)
    missed = answerable - found - emptied
    lines.append(
        f"doubtful   {doubted['absent']} of {absent - right} other absent, "
        f"{doubted['missed']} of {missed} missed, {doubted['found']} of {found} found"
    )
    if evaluation.break_even:
        lines += _break_even(evaluation.break_even, evaluation.tools)
    return "\n".join(lines)


def text_comparison(differences: Sequence[Difference], names: tuple[str, str] = ("first", "second")) -> str:
    """Two runs side by side; a star marks what chance does not explain."""
    widths = [max(7, len(name)) for name in names]
    titles = " ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    lines = [f"{'':<10} {titles} {'change':>8}  95 % interval"]
    for each in differences:
        star = " *" if each.clear else ""
        change = each.second - each.first
        lines.append(
            f"{each.measure:<10} {each.first:>{widths[0]}.3f} {each.second:>{widths[1]}.3f} {change:>+8.3f}"
            f"  [{each.low:+.3f}, {each.high:+.3f}]{star}"
        )
    return "\n".join(lines)


def svg_chart(evaluation: Evaluation) -> str:
    """The measures as bars with their intervals; one self-contained picture."""
    rows: list[str] = []
    for place, name in enumerate(_SHOWN):
        values = evaluation.values(name)
        mean = sum(values) / len(values) if values else 0.0
        low, high = evaluation.interval(name)
        top = 34 + place * 26
        middle = top + 8
        rows.append(
            f'<text x="8" y="{top + 12}">{escape(name)}</text>'
            f'<rect x="90" y="{top}" width="{300 * mean:.1f}" height="16" fill="#4a7ebb"/>'
            f'<path d="M{90 + 300 * low:.1f} {middle}H{90 + 300 * high:.1f}" stroke="#222"/>'
            f'<text x="400" y="{top + 12}">{mean:.3f}</text>'
        )
    title = f"{evaluation.retrieval}: {evaluation.tools} tools, {len(evaluation.outcomes)} queries"
    height = 40 + 26 * len(_SHOWN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="450" height="{height}" '
        f'font-family="sans-serif" font-size="12"><text x="8" y="18">{escape(title)}</text>{"".join(rows)}</svg>'
    )


def _break_even(found: BreakEven, tools: int) -> list[str]:
    """What both ways cost, and up to how many searches the second is cheaper."""
    of_these = "" if found.tools == tools else f" ({_count(found.tools, 'tool', 'tools')})"
    lines = [
        f"attached   {found.direct:,} tokens per turn{of_these}",
        f"bridge     {found.visible:,} tokens per turn with tool search",
        f"a search   {found.answer(50):,} tokens of answer, {found.answer(95):,} at p95 (n={len(found.answers):,})",
    ]
    if found.visible >= found.direct:
        return [*lines, "break-even none: attaching every tool is cheaper"]
    often = f"{found.searches(50):,} searches in {found.turns} turns ({found.per_turn(50):g} a turn)"
    return [*lines, f"break-even {often}, {found.searches(95):,} at p95"]


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _bar(share: float) -> str:
    full = round(max(0.0, min(1.0, share)) * _BAR)
    return "█" * full + "·" * (_BAR - full)
