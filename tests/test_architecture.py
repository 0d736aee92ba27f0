"""The house: imports point one way, modules stay small, importing costs nothing."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import toolcrib

ROOT = Path(toolcrib.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py"))

LAYERS = [
    {"definitions", "limits", "alongside", "kernel", "_kernel"},
    {"errors", "home", "jsonc", "yaml_text"},
    {"dialects"},
    {"intake", "settings", "tokens"},
    {"core", "catalog", "scope", "gate"},
    {"inventory"},
    {"retrieval"},
    {"listing", "bridge", "progress", "names", "cards"},
    {"answers", "assembly", "discovery", "evals"},
    {"activity", "indexing"},
    {"execution"},
    {"sources"},
    {"config", "session", "stock", "wrong_settings"},
    {"crib"},
    {"terminal", "explaining"},
    {"gateway", "agent", "adapters", "clients", "audit", "learning"},
    {"doctor", "console"},
    {"cli"},
]
"""From the inside out: a module may import its own layer and those above it in this list."""


def layer_of(module: str) -> int:
    name = module.split(".")[1] if "." in module else ""
    return next((number for number, layer in enumerate(LAYERS) if name in layer), len(LAYERS))


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("toolcrib.")
            and id(node) not in guarded
        ):
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    own = layer_of(".".join(("toolcrib", *parts)))
    for module in imports_of(path):
        assert layer_of(module) <= own, f"{path.name} imports {module}, which lies further out"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_five_hundred_lines_and_each_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    assert ast.get_docstring(ast.parse(text))


PURE = [
    "core",
    "catalog",
    "scope",
    "gate",
    "inventory",
    "listing",
    "assembly",
    "answers",
    "bridge",
    "discovery",
    "progress",
    "names",
    "tokens",
    "settings",
]


@pytest.mark.parametrize("name", PURE)
def test_the_middle_has_no_clock_no_files_no_network_and_no_randomness(name: str) -> None:
    tree = ast.parse((ROOT / f"{name}.py").read_text(encoding="utf-8"))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {
        node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    assert not imported & {
        "time",
        "datetime",
        "random",
        "os",
        "pathlib",
        "socket",
        "asyncio",
        "logging",
        "subprocess",
        "http",
        "urllib",
    }
    assert not any(isinstance(node, ast.Name) and node.id == "open" for node in ast.walk(tree))


def test_the_executor_does_not_know_the_bridge_by_name() -> None:
    text = (ROOT / "execution" / "executor.py").read_text(encoding="utf-8")
    for name in ("tool_call", "tool_search", "tool_describe", "TOOL_CALL", "BRIDGE_NAMES"):
        assert name not in text


def in_fresh_process(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_opens_no_file_of_its_own_and_pulls_in_nothing_heavy() -> None:
    script = """
import asyncio, dataclasses, difflib, fnmatch, hashlib, json, logging, sys, typing, unicodedata, weakref
import jsonschema_rs, msgspec, orjson
seen, watched = [], ("open", "socket.connect", "subprocess.Popen")
sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event in watched else None)
import toolcrib
toolcrib.Crib
opened = [name for name in seen if not name.endswith((".py", ".pyc")) and "__pycache__" not in name]
heavy = {"numpy", "mcp", "pydantic", "yaml", "rich", "typer", "httpx2", "starlette"}
print(json.dumps([opened, sorted({name.split(".")[0] for name in sys.modules} & heavy)]))
"""
    assert json.loads(in_fresh_process(script)) == [[], []]


def test_the_public_names_are_few_and_all_there() -> None:
    assert len(toolcrib.__all__) <= 25
    assert list(toolcrib.__all__) == sorted(toolcrib.__all__)
    for name in toolcrib.__all__:
        assert getattr(toolcrib, name) is not None


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_here"):
        toolcrib.nothing_here  # noqa: B018


def test_there_are_at_most_twelve_direct_dependencies() -> None:
    import tomllib

    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 12


def test_locked_requirements_have_hashes_and_name_no_index() -> None:
    for path in ROOT.parents[1].glob("requirements*.lock"):
        text = path.read_text(encoding="utf-8")
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "index-url" not in text
