"""Hermes Agent.

`~/.hermes/config.yaml`, or in `HERMES_HOME`. YAML, key `mcp_servers`. Local: `command`, `args`, `env`. Remote: `url`,
`headers`. `enabled: false` switches one off; `tools.include` and `tools.exclude` choose tools. `${NAME}` refers to the
environment. `model.context_length` is the model's window, if set.
"""

from collections.abc import Sequence
from dataclasses import replace

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings, as_object
from toolcrib.clients.servers import Keys, read_server
from toolcrib.definitions import JsonObject


def places(around: Surroundings) -> Sequence[Place]:
    """The one file."""
    directory = around.directory("HERMES_HOME", around.home / ".hermes")
    return (Place(path=directory / "config.yaml", section=("mcp_servers",)),)


def read(name: str, raw: JsonObject) -> ClientServer:
    """One entry of the file."""
    tools = as_object(raw.get("tools")) or {}
    plain: JsonObject = {**raw, "include": tools.get("include"), "exclude": tools.get("exclude")}
    return replace(read_server(name, plain, Keys(include="include", exclude="exclude")), raw=raw)


FAMILY = Family(
    name="hermes",
    title="Hermes Agent",
    format="yaml",
    places=places,
    read=read,
    window_key=("model", "context_length"),
    note="Type /reload-mcp, or start Hermes anew.",
)
