"""Scopes: narrowing only narrows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import definition, tool, toolset

from toolcrib.core import CoreSet, is_deferrable, undeferrable
from toolcrib.definitions import Origin
from toolcrib.intake.freezing import freeze_tool
from toolcrib.scope import Scope, part_toolset

SETS = st.frozensets(st.sampled_from(["a", "b", "c", "d"]))
PATTERNS = st.frozensets(st.sampled_from(["*", "a_*", "*_1", "b_2", "c_?"]), min_size=1)
NARROWINGS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"enabled": SETS, "disabled": SETS, "tools": PATTERNS, "read_only": st.booleans()}
    ),
    max_size=6,
)


def granted(scope: Scope) -> set[str]:
    found: set[str] = set()
    for name in "abcd":
        raw = [definition(f"{name}_{n}") for n in range(3)]
        tools = [
            freeze_tool({**item, "annotations": {"readOnlyHint": n == 1}}, toolset=name, origin="mcp")
            for n, item in enumerate(raw)
        ]
        part = part_toolset(toolset(name, *tools), scope, CoreSet.of([]))
        found |= {item.name for item in part.deferrable.tools} if part.deferrable else set()
    return found


@pytest.mark.requirement("S19")
@given(NARROWINGS)
def test_a_narrowed_scope_never_grants_more(steps: list[dict[str, object]]) -> None:
    scope = Scope()
    before = granted(scope)
    for step in steps:
        scope = scope.narrow(**step)
        after = granted(scope)
        assert after <= before
        before = after


def test_a_denied_toolset_stays_denied_whatever_is_enabled() -> None:
    scope = Scope().narrow(disabled=["a"]).narrow(enabled=["a", "b"])
    assert not scope.allows_toolset("a")
    assert scope.allows_toolset("b")
    assert not scope.allows_toolset("c")


def test_scopes_are_values() -> None:
    assert Scope().narrow(enabled=["b", "a"]) == Scope().narrow(enabled=["a", "b"])
    assert hash(Scope(disabled=frozenset("a"))) == hash(Scope(disabled=frozenset("a")))


@pytest.mark.requirement("S9", "S10")
def test_only_mcp_and_plugin_tools_outside_the_core_set_can_be_deferred() -> None:
    core = CoreSet.of(["read_file", "browser_*"])
    assert is_deferrable(tool("x", origin="mcp"), core)
    assert is_deferrable(tool("x", origin="plugin"), core)
    assert not is_deferrable(tool("x", origin="host"), core)
    assert not is_deferrable(tool("read_file", origin="plugin"), core)
    assert not is_deferrable(tool("browser_click", origin="mcp"), core)
    assert is_deferrable(tool("browse", origin="mcp"), core)


@pytest.mark.parametrize("patterns", [(), ("read_file", "browser_*"), ("*",)])
@pytest.mark.parametrize(
    "names",
    [
        (),
        ("browse", "read_files", "my_browser_click"),
        ("browse", "read_file"),
        ("x", "browser_click"),
        ("browser_click", "y"),
    ],
)
@pytest.mark.parametrize("origin", ["mcp", "host"])
def test_of_many_tools_those_that_cannot_be_deferred_are_the_same_as_one_by_one(
    patterns: tuple[str, ...], names: tuple[str, ...], origin: Origin
) -> None:
    core = CoreSet.of(patterns)
    tools = [*(tool(name, origin="plugin") for name in names), tool("last", origin=origin)]
    assert undeferrable(tools, core) == [each for each in tools if not is_deferrable(each, core)]


@pytest.mark.requirement("S8")
def test_a_scope_never_hides_core_or_unclassified_tools() -> None:
    mixed = toolset("p", tool("read_file", toolset="p", origin="plugin"), tool("x", toolset="p", origin="plugin"))
    part = part_toolset(mixed, Scope(enabled=frozenset()), CoreSet.of())
    assert [item.name for item in part.visible] == ["read_file"]
    assert part.deferrable is None
