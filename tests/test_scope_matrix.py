"""What each kind of name gets on each way in: one table."""

import json

import pytest
from tests.factories import Recorder, bridged, core, definition, github, model_call
from tests.factories import crib as make_crib

from toolcrib.session import Session

RUNS, DIRECT, UNAVAILABLE, INVALID = "runs", "call_directly", "tool_not_available", "invalid_call"

NAMES = {
    "granted": "github__list_issues",
    "not granted": "secrets__read_vault",
    "core": "read_file",
    "bridge": "tool_call",
    "unknown": "no_such_thing_at_all",
}
ARGUMENTS = {"owner": "o", "repo": "r", "path": "p", "key": "k"}

EXPECTED = {
    # (action, way in): granted, not granted, core, bridge, unknown
    ("call", "direct"): (RUNS, UNAVAILABLE, RUNS, INVALID, UNAVAILABLE),
    ("call", "bridged"): (RUNS, UNAVAILABLE, DIRECT, INVALID, UNAVAILABLE),
    ("describe", "direct"): ("described", UNAVAILABLE, DIRECT, UNAVAILABLE, UNAVAILABLE),
    ("describe", "bridged"): (INVALID, INVALID, INVALID, INVALID, INVALID),
    ("search", "direct"): ("found", "absent", "absent", "absent", "absent"),
    ("search", "bridged"): (INVALID, INVALID, INVALID, INVALID, INVALID),
}
ROUTES = ("sequential", "parallel", "caller")


def arguments_for(kind: str) -> dict[str, str]:
    wanted = {"granted": ("owner", "repo"), "not granted": ("key",), "core": ("path",)}.get(kind, ())
    return {name: ARGUMENTS[name] for name in wanted}


def request(action: str, way: str, kind: str) -> tuple[str, dict[str, object]]:
    name = NAMES[kind]
    choices: dict[str, tuple[str, dict[str, object]]] = {
        "call": (name, dict(arguments_for(kind))),
        "describe": ("tool_describe", {"name": name}),
        "search": ("tool_search", {"query": name}),
    }
    inner = choices[action]
    if way == "bridged":
        return "tool_call", {"name": inner[0], "arguments": inner[1]}
    return inner


async def answer(session: Session, route: str, name: str, arguments: dict[str, object]) -> tuple[str, bool, str | None]:
    if route == "caller":
        result = await session.call(name, arguments)
    else:
        (reply,) = await session.execute(
            [model_call(name, arguments)], mode="sequential" if route == "sequential" else "parallel"
        )
        result = reply.result
    return result.text, result.is_error, result.code


CELLS = [
    (action, way, route, kind, expected)
    for (action, way), row in EXPECTED.items()
    for route in ROUTES
    for kind, expected in zip(NAMES, row, strict=True)
]


@pytest.mark.requirement("S6", "S19", "S20", "X6")
@pytest.mark.parametrize(("action", "way", "route", "kind", "expected"), CELLS)
async def test_each_kind_of_name_gets_its_answer_on_every_way_in(
    action: str, way: str, route: str, kind: str, expected: str
) -> None:
    secrets = Recorder(
        "mcp-secrets", [definition("read_vault", "Read a secret.", key={"type": "string"})], prefix="secrets"
    )
    mine, bench = github(), core()
    session = make_crib(bench, mine, secrets).session(enabled_toolsets=["mcp-github"])

    text, is_error, code = await answer(session, route, *request(action, way, kind))

    if expected == RUNS:
        assert not is_error
        assert text == f"{NAMES[kind]} ran"
        assert len(mine.calls) + len(bench.calls) == 1
    else:
        assert not mine.calls
        assert not bench.calls
    if expected == "described":
        assert json.loads(text)["name"] == NAMES[kind]
    elif expected in {"found", "absent"}:
        names = [match["name"] for match in json.loads(text)["matches"]]
        assert (NAMES[kind] in names) == (expected == "found")
    elif expected != RUNS:
        assert is_error
        assert code == expected
    assert not secrets.calls
    assert "read_vault" not in text.replace(NAMES["not granted"], "")


@pytest.mark.requirement("X6", "S20")
async def test_a_name_out_of_scope_and_a_name_that_does_not_exist_get_the_same_bytes() -> None:
    secrets = Recorder("mcp-secrets", [definition("read_vault", "Read a secret.")], prefix="secrets")
    with_it = make_crib(core(), github(), secrets).session(enabled_toolsets=["mcp-github"])
    without_it = make_crib(core(), github()).session(enabled_toolsets=["mcp-github"])
    for call in (
        bridged("secrets__read_vault"),
        model_call("secrets__read_vault"),
        bridged("read_vault"),
        model_call("tool_describe", {"name": "secrets__read_vault"}),
        model_call("tool_search", {"query": "read a secret from the vault"}),
    ):
        one, other = (await with_it.execute([call]))[0], (await without_it.execute([call]))[0]
        assert one.message == other.message
