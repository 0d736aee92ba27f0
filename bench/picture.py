"""Pictures for the documentation: lines over a common axis, as plain SVG."""

from collections.abc import Mapping, Sequence
from html import escape

_COLOURS = ("#b4532a", "#2a6fb4", "#4b8b3b")
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
