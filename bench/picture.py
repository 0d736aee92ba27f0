"""Pictures for the documentation: lines over a common axis, as plain SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

_COLOURS = ("#b4532a", "#2a6fb4", "#4b8b3b")
_PALETTE = (
    "#b4532a", "#2a6fb4", "#4b8b3b", "#8a4fb4", "#b48a2a", "#2ab4a0", "#b42a6f", "#555555", "#7a8b2a", "#2a3fb4",
)  # fmt: skip
_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 120, 40, 40


def draw_lines(lines: Mapping[str, Sequence[float]], *, title: str, across: str) -> str:
    """A picture of several lines, each with its name and last value at its end."""
    top = max(max(values) for values in lines.values())
    count = max(len(values) for values in lines.values())

    def x(index: int) -> float:
        return _LEFT + index * (_WIDTH - _LEFT - _RIGHT) / max(1, count - 1)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value * (_HEIGHT - _TOP - _BOTTOM) / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="14" fill="#222222">{escape(title)}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>'
            f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#555555">{value:,.0f}</text>'
        )
    parts.extend(
        f'<text x="{x(index):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle" fill="#555555">{index + 1}</text>'
        for index in range(0, count, max(1, count // 10))
    )
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle" fill="#555555">'
        f"{escape(across)}</text>"
    )
    for colour, (name, values) in zip(_COLOURS, lines.items(), strict=False):
        points = " ".join(f"{x(index):.1f},{y(value):.1f}" for index, value in enumerate(values))
        end = values[-1]
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
            f'<text x="{x(len(values) - 1) + 8:.1f}" y="{y(end) - 6:.1f}" fill="{colour}">{escape(name)}</text>'
            f'<text x="{x(len(values) - 1) + 8:.1f}" y="{y(end) + 9:.1f}" fill="{colour}">{end:,.0f}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def draw_growth(lines: Mapping[str, Mapping[int, float]], *, title: str) -> str:
    """A picture of milliseconds over numbers of tools, both logarithmic: a straight line at 45° is linear growth."""
    sizes = sorted({size for values in lines.values() for size in values})
    every = [value for values in lines.values() for value in values.values()]
    low, high = floor(log10(min(every))), ceil(log10(max(every)))
    width, height, left, right = 760, 420, 70, 170

    def x(size: int) -> float:
        span = log10(sizes[-1] / sizes[0]) or 1.0
        return left + log10(size / sizes[0]) / span * (width - left - right)

    def y(value: float) -> float:
        return height - 40 - (log10(value) - low) / max(1, high - low) * (height - 80)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" role="img"><title>{escape(title)}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="13" fill="#222222">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(
            f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#555555">{10.0**power:g} ms</text>'
        )
    parts.extend(
        f'<text x="{x(size):.1f}" y="{height - 20}" text-anchor="middle" fill="#555555">{size:,}</text>'
        for size in sizes
    )
    ends = sorted((y(values[max(values)]), name) for name, values in lines.items())
    labels: dict[str, float] = {}
    last = 0.0
    for at, name in ends:
        last = labels[name] = max(at, last + 13)
    for number, (name, values) in enumerate(lines.items()):
        colour = _PALETTE[number % len(_PALETTE)]
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in sorted(values.items()))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{width - right + 8}" y="{labels[name] + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
