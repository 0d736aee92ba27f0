"""The documents are true: every key, code and command is in them, and what they show runs."""

import asyncio
import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest

import toolcrib.errors
from bench import shown
from toolcrib.config import build_settings
from toolcrib.core import DEFAULT_CORE
from toolcrib.settings import Settings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def keys(section: Any = Settings, prefix: str = "") -> list[str]:
    found: list[str] = []
    for field in msgspec.structs.fields(section):
        name = f"{prefix}{field.name}"
        kinds = [field.type, *get_args(field.type)]
        inner = next((kind for kind in kinds if hasattr(kind, "__struct_fields__")), None)
        if inner is None:
            found.append(name)
        elif inner is field.type:
            found.extend(keys(inner, f"{name}."))
        else:
            found.extend([name, *keys(inner, f"{name}.NAME.")])
    return found


def test_every_setting_is_documented_and_nothing_else() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert documented == set(keys())


@pytest.mark.parametrize("page", ["configuration", "library"])
def test_the_default_core_list_is_documented_whole(page: str) -> None:
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
    assert ", ".join(f"`{pattern}`" for pattern in DEFAULT_CORE) in text


def row(page: str, *starts: str) -> list[list[str]]:
    """The cells of the rows of a page that begin so."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(starts)]


def test_the_figures_of_the_readme_are_those_of_the_pages_that_it_names() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (by_words,), (transform,) = row("docs/performance.md", "| lexical | 0"), row("docs/performance.md", "| FastMCP tr")
    assert f"| {p95(by_words[4])} ms | {p95(transform[4])} ms (FastMCP's search transform)" in text
    ours, relay, proxy = row(
        "docs/performance.md", "| HTTP | toolcrib, bridged", "| HTTP | bare relay", "| HTTP | FastMCP proxy"
    )
    ours, relay, proxy = (cells[3].split()[0] for cells in (ours, relay, proxy))
    assert f"| {ours} µs | {proxy} µs (FastMCP's proxy), {relay} µs (a relay that checks nothing)" in text
    (load,) = row("docs/performance.md", "| calls in 60 s")
    assert f"| {load[1].split(' or ')[1].split()[0]}, no error |" in text
    (mean,) = row("docs/research/retrieval.md", "| **macro mean**")
    recalls = [f"{float(cell.strip('*').split(' / ')[0]):.1%}".replace("%", " %") for cell in (mean[6], mean[3])]
    assert f"| {recalls[0]} | {recalls[1]} (its search by words alone)" in text


def p95(cell: str) -> str:
    """The second figure of a cell such as `0.04 / 0.15, 1 changed 0.52`."""
    return cell.split(" / ")[1].split(",")[0].split()[0]


def test_every_error_code_is_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    codes = {
        value.code
        for value in vars(toolcrib.errors).values()
        if isinstance(value, type) and issubclass(value, toolcrib.errors.ToolcribError)
    }
    assert codes == set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: the headings of a page, written as GitHub does."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors(page.parent / target if target else page), f"{page.name}: {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_lines_of_a_page_end_within_120_columns(page: Path) -> None:
    made = r"^```.*?^```|<!-- (\w+):begin -->.*?<!-- \1:end -->"
    text = re.sub(made, "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    # Rows of tables, pictures and comments cannot be broken.
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "![", "<!--"))] == []


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "forecast", "arguments": '{"city": "Rome"}'}}]
    space: dict[str, Any] = {"message": SimpleNamespace(tool_calls=calls), "messages": []}

    async def run() -> None:
        import ast

        for block in blocks(page, "python"):
            code = compile(block, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, space)
            if asyncio.iscoroutine(result):
                await result

    asyncio.run(run())
    for answer in space.get("answers", []):
        assert not answer.result.is_error


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_settings_of_a_page_are_settings(page: Path) -> None:
    import yaml

    for block in blocks(page, "yaml"):
        data = yaml.safe_load(block)
        if isinstance(data, dict) and set(data) <= set(Settings.__struct_fields__):
            build_settings(data, where=page.name)


NEEDS_SOMETHING = (
    "toolcrib chat ",
    "toolcrib run ",
    "toolcrib serve",
    "toolcrib install ",
    "toolcrib uninstall ",
    "toolcrib audit",
)
"""Commands that need a model, keep serving or change a person's files: they have tests of their own."""

COMMANDS = [
    (page.name, line)
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.splitlines()
    if line.startswith("toolcrib ") and not line.startswith(NEEDS_SOMETHING)
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_the_commands_of_a_page_run(page: str, line: str, tmp_path: Path) -> None:
    words = shlex.split(line, comments=True)
    # In a home of its own: what a page promises must not hang on what else this machine has.
    home = {**os.environ, "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, env=home, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


@pytest.mark.parametrize("page", shown.pages(), ids=lambda page: page.name)
def test_what_a_page_shows_is_what_comes_out(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # `python -m bench.shown` makes it anew.
    assert shown.renewed(text) == text


def test_the_readme_shows_the_two_commands_and_they_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("run", "test"):
        assert f"make {target}" in text
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize(
    "example", [path.name for path in sorted((ROOT / "examples").glob("*.py")) if path.name == "story.py"]
)
def test_an_example_runs_and_its_claims_hold(example: str) -> None:
    run = subprocess.run([sys.executable, f"examples/{example}"], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def alone(*command: str) -> list[str]:
    """The command, in a network of its own where the system has such a thing."""
    prefix = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    with contextlib.suppress(OSError):
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return [*prefix, *command]
    return list(command)


def test_what_make_run_starts_serves_a_client_and_ends_well() -> None:
    command = alone(sys.executable, "examples/gateway.py", "--check", "--port", "0")
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "% saved" in run.stdout
    assert "Checked: three tools are listed" in run.stdout
    assert not run.stderr


def test_the_sources_name_no_machine_and_no_registry() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.suffix in {".npz", ".svg", ".png"} or not path.is_file() or name == "tests/test_docs.py":
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for word in ("/wo" + "rk/", "/ro" + "ot/", "pythonho" + "sted", "registry.np" + "mjs"):
            assert word not in text, f"{name}: {word}"
