"""Every requirement has a test that names it, and every name is a requirement."""

import ast
from pathlib import Path

from tests.requirements import IMPLEMENTED, LATER

TESTS = Path(__file__).parent


def claimed() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{path}: requirement ids are literals"
                    found.setdefault(str(argument.value), []).append(path.name)
    return found


def test_every_requirement_has_a_test_that_names_it() -> None:
    missing = sorted(set(IMPLEMENTED) - set(claimed()))
    assert not missing


def test_every_id_that_a_test_names_is_a_requirement() -> None:
    unknown = sorted(name for name in set(claimed()) - set(IMPLEMENTED) if name[0] in "SX")
    assert not unknown


def test_nothing_is_both_implemented_and_left_for_later() -> None:
    assert not set(IMPLEMENTED) & set(LATER)
