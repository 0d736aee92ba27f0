"""Servers are started side by side, asked once, and ended whatever happens."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from tests.audit.test_audit_report import tools

from toolcrib.audit.report import Failure
from toolcrib.audit.starting import build_starter, list_all
from toolcrib.definitions import JsonObject, Toolset
from toolcrib.errors import ConfigError, SourceUnavailable
from toolcrib.sources.base import build_toolset, freeze_toolset


class Server:
    """A source that lists its tools when the test lets it."""

    def __init__(
        self, name: str, count: int = 2, *, fault: str | None = None, gate: asyncio.Event | None = None
    ) -> None:
        self.name = name
        self.count = count
        self.fault = fault
        self.gate = gate
        self.closed = False
        self.started = asyncio.Event()
        self._toolset = build_toolset(name, (), origin="mcp")
        self._changed: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def snapshot(self) -> Sequence[Toolset]:
        return (self._toolset,)

    def watch(self, changed: Callable[[], None]) -> bool:
        self._changed.append(changed)
        return True

    async def start(self) -> None:
        self.started.set()
        if self.fault == "raises":
            raise SourceUnavailable("it cannot be reached.")
        self._task = asyncio.create_task(self._list())

    async def _list(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.fault == "silent":
            return
        self._toolset = (
            build_toolset(self.name, (), origin="mcp", unavailable=self.fault)
            if self.fault
            else freeze_toolset(f"mcp-{self.name}", tools(self.name, self.count), origin="mcp")
        )
        for changed in self._changed:
            changed()

    async def close(self) -> None:
        self.closed = True


@pytest.mark.requirement("X23")
async def test_each_server_lists_its_tools_or_says_why_not_and_all_are_ended() -> None:
    made = {
        "good": Server("good", 3),
        "empty": Server("empty", 0),
        "down": Server("down", fault="the program `npx` was not found"),
        "raises": Server("raises", fault="raises"),
    }

    def open_server(name: str, entry: JsonObject) -> Server:
        if name == "wrong":
            raise ConfigError("mcpServers.wrong: give `command` or `url`.")
        return made[name]

    heard: list[str] = []
    entries: dict[str, JsonObject] = {name: {"command": name} for name in (*made, "wrong")}
    listed = await list_all(entries, open_server, done=heard.append)
    assert list(listed) == list(entries) and sorted(heard) == sorted(entries)
    assert isinstance(listed["good"], list) and [tool["name"] for tool in listed["good"]] == [
        "good_0",
        "good_1",
        "good_2",
    ]
    assert listed["empty"] == []
    assert listed["down"] == Failure(reason="the program `npx` was not found")
    assert listed["raises"] == Failure(reason="it cannot be reached")
    assert listed["wrong"] == Failure(reason="mcpServers.wrong: give `command` or `url`")
    assert all(server.closed for server in made.values())


@pytest.mark.requirement("X23")
async def test_a_server_that_says_nothing_is_given_up_and_ended() -> None:
    silent = Server("silent", fault="silent")
    listed = await list_all({"silent": {}}, lambda name, entry: silent, done=lambda name: None, deadline_s=0.05)
    assert listed == {"silent": Failure(reason="it did not answer within 0.05 seconds")}
    assert silent.closed


@pytest.mark.requirement("X23")
async def test_servers_start_side_by_side() -> None:
    gate = asyncio.Event()
    made = {name: Server(name, gate=gate) for name in "abc"}
    work = asyncio.create_task(
        list_all({name: {} for name in made}, lambda name, entry: made[name], done=lambda name: None)
    )
    for server in made.values():
        await server.started.wait()
    gate.set()
    assert {name: len(listed) for name, listed in (await work).items() if isinstance(listed, list)} == dict.fromkeys(
        "abc", 2
    )


@pytest.mark.requirement("X23")
async def test_an_audit_that_is_stopped_ends_what_it_started() -> None:
    made = {name: Server(name, fault="silent") for name in "ab"}
    work = asyncio.create_task(
        list_all({name: {} for name in made}, lambda name, entry: made[name], done=lambda name: None)
    )
    for server in made.values():
        await server.started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert all(server.closed for server in made.values())


def test_the_starter_runs_a_loop_of_its_own() -> None:
    starter = build_starter(lambda name, entry: Server(name, 1))
    assert len(starter({"one": {}}, done=lambda name: None)["one"]) == 1
