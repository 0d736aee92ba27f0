"""The before/after picture as SVG: self-contained, readable on light and dark pages, made from real figures."""

from html import escape

from toolcrib.audit.report import AuditReport

_WIDTH = 720
_LEFT = 130
_BAR = 450
_STYLE = (
    "text{font:14px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}"
    ".t{font-size:17px;font-weight:600}.s{fill:#59636e;font-size:12.5px}.n{font-weight:600}"
    ".a{fill:#cf5b4a}.b{fill:#2f8f5b}.g{fill:#8c959f;fill-opacity:.18}"
    ".c{fill:#fff;stroke:#d1d9e0}@media(prefers-color-scheme:dark){.c{fill:#151b23;stroke:#3d444d}text{fill:#f0f3f6}"
    ".s{fill:#9aa4ae}.a{fill:#e5786a}.b{fill:#4bb37b}}"
)


def svg_picture(report: AuditReport) -> str:
    """Per turn and per conversation, now and with Toolcrib."""
    conversation = report.conversation
    servers = sum(server.status == "ok" for server in report.servers)
    title = f"{report.tools:,} tools of {servers:,} MCP server{'' if servers == 1 else 's'}"
    searches = f", {conversation.searches} searches included" if conversation.searches else ""
    parts = [
        # A ground of its own: a page may be dark where the reader's system is light.
        f'<rect class="c" x=".5" y=".5" width="{_WIDTH - 1}" height="299" rx="8"/>',
        f'<text class="t" x="16" y="32">{escape(title)}</text>',
        *_group(62, "Tokens in every request", report.total_tokens, report.with_toolcrib_tokens),
        *_group(
            170,
            f"Tokens in a conversation of {conversation.turns} requests{searches}",
            conversation.now,
            conversation.with_toolcrib,
        ),
        f'<text class="s" x="16" y="282">{escape(_footnote(report))}</text>',
    ]
    label = f"{title}: {report.total_tokens:,} tokens per request now, {report.with_toolcrib_tokens:,} with Toolcrib"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="300" viewBox="0 0 {_WIDTH} 300" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title><style>{_STYLE}</style>{"".join(parts)}</svg>\n'
    )


def _group(top: int, title: str, now: int, then: int) -> list[str]:
    most = max(now, then, 1)
    rows = [f'<text class="s" x="16" y="{top}">{escape(title)}</text>']
    for place, (label, value, style) in enumerate((("now", now, "a"), ("with Toolcrib", then, "b"))):
        y = top + 12 + place * 34
        width = max(2.0, _BAR * value / most) if value else 0.0
        rows += [
            f'<text x="16" y="{y + 17}">{label}</text>',
            f'<rect class="g" x="{_LEFT}" y="{y}" width="{_BAR}" height="24" rx="4"/>',
            f'<rect class="{style}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="24" rx="4"/>',
            f'<text class="n" x="{_LEFT + _BAR + 12}" y="{y + 17}">{value:,}</text>',
        ]
    return rows


def _footnote(report: AuditReport) -> str:
    conversation = report.conversation
    if not report.activated:
        return "Tool search would not be in use here: everything stays attached. Estimate: characters / 4."
    return (
        f"{report.saved_pct} % saved per request. Break-even at {conversation.break_even:,} searches a conversation. "
        "Estimate: characters / 4."
    )
