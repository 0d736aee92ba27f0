"""The report on a screen, in a pipe and as a picture."""

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from rich.console import Console
from tests.audit.test_audit_report import listed, tools

from toolcrib.audit.picture import svg_picture
from toolcrib.audit.rendering import render
from toolcrib.audit.report import Failure, build_report
from toolcrib.audit.tokenizers import Tokenizer


def shown(width: int, *, terminal: bool = False, context: int | None = 32_000, exact: bool = False) -> str:
    file = io.StringIO()
    tokenizer = Tokenizer(name="words", count=lambda text: len(text.split())) if exact else None
    report = build_report(
        listed(), context=context, tokenizer=tokenizer, clients={"cursor": ["github"], "zed": ["gitlab", "web"]}
    )
    render(report, Console(file=file, width=width, force_terminal=terminal, highlight=False))
    return file.getvalue()


@pytest.mark.requirement("X23")
@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("context", [None, 32_000])
def test_no_line_is_wider_than_the_screen(width: int, context: int | None) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(width, context=context, terminal=True))
    assert max(map(len, text.splitlines())) <= width
    titles = (
        "tools",
        "tokens/turn",
        "biggest schemas",
        "on several servers",
        "paid again",
        "with Toolcrib",
        "per turn",
    )
    for word in ("github", "together", *titles, *(("of window",) if context else ())):
        assert word in text


@pytest.mark.requirement("X23")
def test_a_pipe_gets_plain_text() -> None:
    text = shown(80)
    assert "\x1b" not in text and "─" not in text
    assert "\x1b" in shown(80, terminal=True)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in shown(80, terminal=True)


def test_servers_that_did_not_start_are_named_with_the_reason() -> None:
    text = shown(80)
    assert "broken did not start: the program `npx` was not found" in text
    assert "asleep was not started: it is switched off" in text


def test_the_sentences_say_what_a_search_costs_and_what_was_counted() -> None:
    text = " ".join(shown(120).split())
    assert "searches in 20 turns, tool search is the cheaper way" in text
    assert "All figures are estimates" in text
    assert "Counted with words" in " ".join(shown(120, exact=True).split())


def test_a_gate_that_stays_shut_is_said() -> None:
    file = io.StringIO()
    render(build_report({"s": tools("t", 2)}, context=200_000), Console(file=file, width=100))
    assert "would not be in use" in file.getvalue()
    empty = io.StringIO()
    render(build_report({"s": Failure(reason="gone")}), Console(file=empty, width=60))
    assert "nothing to save" in empty.getvalue()


@pytest.mark.requirement("X23")
def test_the_picture_is_well_formed_and_shows_the_figures() -> None:
    report = build_report(listed(), context=32_000)
    picture = svg_picture(report)
    root = ElementTree.fromstring(picture)
    texts = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for value in (report.total_tokens, report.with_toolcrib_tokens, report.conversation.now):
        assert f"{value:,}" in texts
    widths = [
        float(node.attrib["width"])
        for node in root.iter("{http://www.w3.org/2000/svg}rect")
        if node.attrib["class"] in {"a", "b"}
    ]
    assert widths[1] / widths[0] == pytest.approx(report.with_toolcrib_tokens / report.total_tokens, abs=0.01)
    assert "http://" not in picture.replace("http://www.w3.org/2000/svg", "") and "https://" not in picture
