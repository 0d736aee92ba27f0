"""Whatever happens, in whatever order: the promises hold. A small reference decides what is right."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.factories import Recorder, bridged, core, crib, definition, model_call, settings

from toolcrib.crib import Crib
from toolcrib.session import Session

NAMES = ["alpha", "beta", "gamma", "delta"]
WORDS = ["open", "close", "read", "write", "send", "paint"]


@pytest.mark.requirement("S8")
@profile(max_examples=80, deadline=None)
@given(
    st.sampled_from(["auto", "on", "off"]),
    st.integers(0, 300_000) | st.none(),
    st.floats(0, 100),
    st.sampled_from(["auto", "on", "off"]),
    st.lists(st.sampled_from(NAMES), unique=True),
    st.booleans(),
)
def test_every_core_tool_is_in_every_assembly_byte_for_byte(
    enabled: str, window: int | None, pct: float, listing: str, granted: list[str], read_only: bool
) -> None:
    bench = core()
    others = [
        Recorder(f"mcp-{name}", [definition(f"{word}_it", "x" * 200) for word in WORDS], prefix=name) for name in NAMES
    ]
    shared = Crib(bench, *others, settings=settings(enabled=enabled, threshold_pct=pct, listing=listing))
    session = shared.session(
        model_context=window, enabled_toolsets=[f"mcp-{name}" for name in granted], read_only=read_only
    )
    child = session.narrow(enabled_toolsets=[], tools=["nothing"])
    expected = [tool.definition for tool in bench.snapshot()[0].tools]
    for each in (session, child):
        turn = each.assemble(dialect="mcp")
        assert turn.tools[: len(expected)] == expected
        assert turn.activated == (turn.tools[-1]["name"] == "tool_call")
        if not each.catalog.size:
            assert not turn.activated


class Reference:
    """What a session may do, in as few words as possible."""

    def __init__(self) -> None:
        self.tools: dict[str, set[str]] = {}
        self.scopes: list[set[str]] = [set(NAMES)]

    def granted(self, scope: int) -> set[str]:
        return {f"{name}__{word}_it" for name in self.scopes[scope] for word in self.tools.get(name, set())}


class Life(RuleBasedStateMachine):
    """Sources come, change and go; sessions narrow, search, describe and call."""

    @initialize()
    def start(self) -> None:
        self.reference = Reference()
        self.sources: dict[str, Recorder] = {}
        self.shared = crib(core())
        self.sessions: list[Session] = [self.shared.session()]
        self.calls = 0

    @rule(name=st.sampled_from(NAMES), words=st.sets(st.sampled_from(WORDS), min_size=1))
    def register_or_change(self, name: str, words: set[str]) -> None:
        definitions = [definition(f"{word}_it", f"{word.title()} it.") for word in sorted(words)]
        if name in self.sources:
            self.sources[name].define(definitions)
        else:
            self.sources[name] = Recorder(f"mcp-{name}", definitions, prefix=name)
            self.shared.add(self.sources[name])
        self.reference.tools[name] = words

    @precondition(lambda self: self.sources)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.sources)))
        self.shared.remove(f"mcp-{name}")
        del self.sources[name]
        del self.reference.tools[name]

    @precondition(lambda self: len(self.sessions) < 6)
    @rule(data=st.data(), names=st.sets(st.sampled_from(NAMES)))
    def narrow(self, data: st.DataObject, names: set[str]) -> None:
        parent = data.draw(st.integers(0, len(self.sessions) - 1))
        self.sessions.append(self.sessions[parent].narrow(enabled_toolsets=[f"mcp-{name}" for name in names]))
        self.reference.scopes.append(self.reference.scopes[parent] & names)

    @rule(data=st.data(), word=st.sampled_from(WORDS))
    def search(self, data: st.DataObject, word: str) -> None:
        number = data.draw(st.integers(0, len(self.sessions) - 1))
        session, granted = self.sessions[number], self.reference.granted(number)
        session.begin_turn()
        answer = session.search(f"{word} it", limit=20)
        assert answer.body["total_available"] == len(granted)
        assert set(answer.names) <= granted
        wanted = {name for name in granted if name.endswith(f"__{word}_it")}
        assert wanted <= set(answer.names)

    @rule(
        data=st.data(),
        name=st.sampled_from(NAMES),
        word=st.sampled_from(WORDS),
        way=st.sampled_from(["bridge", "direct", "caller", "describe"]),
    )
    def use(self, data: st.DataObject, name: str, word: str, way: str) -> None:
        number = data.draw(st.integers(0, len(self.sessions) - 1))
        session, tool = self.sessions[number], f"{name}__{word}_it"
        allowed = tool in self.reference.granted(number)
        if way == "caller":
            result = asyncio.run(session.call(tool))
        else:
            call: Any = {
                "bridge": bridged(tool),
                "direct": model_call(tool),
                "describe": model_call("tool_describe", {"name": tool}),
            }[way]
            result = asyncio.run(session.execute([call], mode="parallel"))[0].result
        assert result.is_error == (not allowed)
        if not allowed:
            assert result.code == "tool_not_available"
        elif way == "describe":
            assert json.loads(result.text)["name"] == tool
        else:
            assert result.text == f"{tool} ran"
            self.calls += 1

    @invariant()
    def catalogs_are_exactly_what_was_granted(self) -> None:
        for number, session in enumerate(getattr(self, "sessions", [])):
            assert {tool.name for tool in session.catalog} == self.reference.granted(number)
            turn = session.assemble()
            assert turn.activated == bool(self.reference.granted(number))
            assert turn.tools[0]["function"]["name"] == "read_file"


Life.TestCase.settings = profile(max_examples=25, stateful_step_count=25, deadline=None)
test_a_life_of_changes_agrees_with_the_reference = pytest.mark.requirement("S18", "S19", "S20", "S21")(Life.TestCase)
