"""The lock file: what a pin covers, how it is written and read, and how things stand to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import TEXT, definition

from toolcrib.definitions import Toolset
from toolcrib.errors import ConfigError
from toolcrib.intake.freezing import freeze_tool
from toolcrib.intake.pins import (
    Launch,
    Lock,
    Offer,
    Pin,
    approve,
    compare,
    launch_of,
    parse_lock,
    pin_of,
    read_lock,
    render_lock,
    write_lock,
)  # fmt: skip
from toolcrib.sources.base import freeze_toolset

LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8)  # fmt: skip


def pinned(raw: Any) -> Pin:
    return pin_of(freeze_tool(raw, toolset="mcp-t", origin="mcp"))


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.requirement("X21", "C5")
@profile(max_examples=60, deadline=None)
@given(meta=VALUES)
def test_the_digest_is_stable_under_the_order_of_keys(meta: Any) -> None:
    raw = {**definition("add", "Adds.", a=TEXT, b_=TEXT), "_meta": {"x": meta}}
    assert pinned(raw) == pinned(shuffled(raw))


@pytest.mark.requirement("C5")
@profile(max_examples=60, deadline=None)
@given(one=VALUES, two=VALUES)
def test_any_other_value_anywhere_is_another_digest(one: Any, two: Any) -> None:
    first, second = ({**definition("add"), "_meta": {"x": value}} for value in (one, two))
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (pinned(first).definition == pinned(second).definition) == same


@pytest.mark.parametrize(
    "change",
    [
        {"name": "add2"},
        {"description": "Adds!"},
        {"title": "T"},
        {"inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"icons": [{"src": "https://example.org/i.png"}]},
        {"_meta": {"a": 1}},
        {"unknownField": 0},
    ],
)
@pytest.mark.requirement("C5")
def test_every_field_of_a_definition_counts(change: dict[str, Any]) -> None:
    assert pinned({**definition("add", "Adds."), **change}).definition != pinned(definition("add", "Adds.")).definition


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "other",
    [
        Launch(command="npx", args=("-y", "server"), env=("TOKEN",)),
        Launch(command="uvx", args=("server",), env=("TOKEN",)),
        Launch(command="npx", args=("server",), env=("TOKEN", "LD_PRELOAD")),
        Launch(command="npx", args=("server",), env=("TOKEN",), headers=("X",)),
        Launch(url="https://example.org/mcp"),
    ],
)
def test_a_launch_digest_covers_command_arguments_variables_headers_and_address(other: Launch) -> None:
    assert other.digest != Launch(command="npx", args=("server",), env=("TOKEN",)).digest


def test_a_launch_digest_leaves_secrets_of_the_address_and_the_order_of_names_out() -> None:
    one = Launch(url="https://me:pw1@example.org/mcp?key=1", headers=("A", "b"))
    two = Launch(url="https://example.org/mcp?key=2", headers=("B", "a"))
    assert one.digest == two.digest
    assert one.digest != Launch(url="https://example.com/mcp?key=1", headers=("a", "b")).digest


def toolset(**descriptions: str) -> Toolset:
    return freeze_toolset("mcp-mail", [definition(name, text) for name, text in descriptions.items()], origin="mcp")


def test_a_source_says_how_it_is_started_or_has_nothing_to_pin() -> None:
    class Plain:
        def __init__(self) -> None:
            self.launch = Launch(command="serve")

    class Failing:
        @property
        def launch(self) -> Launch:
            raise AttributeError("not started yet")

    assert launch_of(Plain()) == Launch(command="serve")
    assert launch_of(object()) is None
    with pytest.raises(AttributeError, match="not started yet"):
        launch_of(Failing())


def offer(launch: Launch | None = None, **descriptions: str) -> Offer:
    return Offer(toolset=toolset(**descriptions), source="mail", launch=launch)


def states(offers: list[Offer], lock: Lock) -> dict[str, str]:
    return {drift.name: drift.state for drift in compare(offers, lock)}


def approved(*offers: Offer) -> Lock:
    return approve(offers, Lock(), compare(offers, Lock()))


@pytest.mark.requirement("C5", "C7")
def test_tools_are_unchanged_changed_new_or_removed() -> None:
    lock = approved(offer(send="Sends.", read="Reads.", drop="Drops."))
    now = compare([offer(send="Sends.", read="Reads all.", list="Lists.")], lock)
    assert {drift.name: (drift.state, drift.parts) for drift in now} == {
        "mail__send": ("unchanged", ()),
        "mail__read": ("changed", ("description",)),
        "mail__list": ("new", ()),
        "mail__drop": ("removed", ()),
    }


def test_a_change_outside_description_and_schema_is_told_as_such() -> None:
    lock = approved(offer(send="Sends."))
    raw = {**definition("send", "Sends."), "annotations": {"readOnlyHint": True}}
    changed = Offer(toolset=freeze_toolset("mcp-mail", [raw], origin="mcp"), source="mail")
    assert [drift.parts for drift in compare([changed], lock)] == [("other fields",)]


def test_a_toolset_that_is_unavailable_has_removed_nothing() -> None:
    lock = approved(offer(send="Sends."))
    gone = Toolset(name=toolset().name, origin="mcp", tools=(), unavailable="restarting")
    assert not compare([Offer(toolset=gone, source="mail")], lock)


def test_only_what_is_approved_changes_the_lock() -> None:
    before = approved(offer(send="Sends.", read="Reads."))
    offers = [offer(send="Sends!", read="Reads!", new="New.")]
    wanted = [drift for drift in compare(offers, before) if drift.name == "mail__send"]
    assert states(offers, approve(offers, before, wanted)) == {
        "mail__send": "unchanged",
        "mail__read": "changed",
        "mail__new": "new",
    }


def test_approving_everything_leaves_nothing_to_report() -> None:
    first = [offer(Launch(command="a"), send="Sends.", drop="Drops.")]
    second = [offer(Launch(command="b"), send="Sends!")]
    lock = approved(*first)
    assert states(second, lock) == {"mail": "changed", "mail__send": "changed", "mail__drop": "removed"}
    after = approve(second, lock, compare(second, lock))
    assert set(states(second, after).values()) == {"unchanged"}
    assert states([], after) == {"mail": "removed", "mail__send": "removed"}
    assert approve([], after, compare([], after)) == Lock(launches={}, tools={})


def test_the_operators_own_code_is_not_pinned() -> None:
    own = Offer(toolset=freeze_toolset("tools", [definition("add")], origin="plugin"), source="tools")
    assert not compare([own], Lock())


NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
PINS = st.builds(
    Pin,
    definition=st.text("0123456789abcdef", min_size=64, max_size=64),
    description=st.text("0123456789abcdef", min_size=16, max_size=16),
    schema=st.text("0123456789abcdef", min_size=16, max_size=16),
)
LOCKS = st.builds(
    Lock,
    launches=st.dictionaries(NAMES, st.text("0123456789abcdef", min_size=64, max_size=64), max_size=3),
    tools=st.dictionaries(NAMES, st.dictionaries(NAMES, PINS, min_size=1, max_size=3), max_size=3),
)


@profile(max_examples=40, deadline=None)
@given(lock=LOCKS)
def test_what_is_written_is_read_again(lock: Lock) -> None:
    assert parse_lock(render_lock(lock).encode(), where="lock") == lock


def test_the_file_is_sorted_with_one_line_for_each_tool(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.lock"
    write_lock(path, approved(offer(zip="Z.", add="A.", mid="M.")))
    lines = [line for line in path.read_text().splitlines() if "definition" in line and "about" not in line]
    assert [line.split('"')[1] for line in lines] == ["mail__add", "mail__mid", "mail__zip"]
    again = tmp_path / "again.lock"
    write_lock(again, approved(offer(mid="M.", zip="Z.", add="A.")))
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no valid JSON"),
        ("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n", "merge conflict"),
        ("[]", "version 1"),
        ('{"version": 2}', "version 1"),
        ('{"version": 1}', "must be objects"),
        ('{"version": 1, "launches": {"a": "short"}, "tools": {}}', "`short` is no digest"),
        ('{"version": 1, "launches": {}, "tools": {"t": {"x": {"definition": 7}}}}', "no digest"),
        ('{"version": 1, "launches": {}, "tools": {"t": []}}', "must be objects"),
    ],
)
def test_a_broken_file_is_an_error_that_says_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "toolcrib.lock"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_lock(path)
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert "pins approve --all" in str(caught.value)


def test_a_missing_file_is_no_lock_and_an_unreadable_one_an_error(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "none") is None
    with pytest.raises(ConfigError, match="cannot be read"):
        read_lock(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toolcrib.lock"
    write_lock(path, Lock())
    before = path.read_bytes()

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_lock(path, approved(offer(send="Sends.")))
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["toolcrib.lock"]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_lock(tmp_path / "nowhere" / "toolcrib.lock", Lock())
