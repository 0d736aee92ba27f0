"""Codex: its command line, its IDE extension and its application share one file.

User: `~/.codex/config.toml`, or in `CODEX_HOME`. Project: `.codex/config.toml` of a trusted project. TOML, a table
`mcp_servers.<name>` each. Local: `command`, `args`, `env`, `env_vars` (names to pass on), `cwd`. Remote: `url`,
`http_headers`, `env_http_headers` (header → variable), `bearer_token_env_var`. `enabled = false` switches one off;
`enabled_tools` and `disabled_tools` choose tools. Nothing in the values refers to the environment. Beside the tables,
`model_context_window` is the model's window, if set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings
from toolcrib.clients.servers import Keys, read_server
from toolcrib.definitions import Json, JsonObject

_SECTION = ("mcp_servers",)


def places(around: Surroundings) -> Sequence[Place]:
    """The user's file, and one in every directory from here upwards."""
    user = around.directory("CODEX_HOME", around.home / ".codex") / "config.toml"
    return (
        Place(path=user, section=_SECTION),
        *(
            Place(path=path, section=_SECTION, scope="project")
            for path in (directory / ".codex" / "config.toml" for directory in around.tree)
            if path != user
        ),
    )


def read(name: str, raw: JsonObject) -> ClientServer:
    """One table; variables that Codex passes on become references."""
    headers: dict[str, Json] = dict(_object(raw.get("http_headers")))
    for header, variable in _object(raw.get("env_http_headers")).items():
        headers[header] = f"${{{variable}}}"
    token = raw.get("bearer_token_env_var")
    if isinstance(token, str) and token:
        headers["Authorization"] = f"Bearer ${{{token}}}"
    env: dict[str, Json] = dict(_object(raw.get("env")))
    passed = raw.get("env_vars")
    for variable in passed if isinstance(passed, list) else ():
        if isinstance(variable, str):
            env.setdefault(variable, f"${{{variable}}}")
    plain: JsonObject = {**raw, "headers": headers, "env": env}
    server = read_server(name, plain, Keys(include="enabled_tools", exclude="disabled_tools"))
    return replace(server, raw=raw)


def write(command: str, args: Sequence[str], variables: Sequence[str]) -> JsonObject:
    """A table; Codex passes on variables by name."""
    entry: JsonObject = {"command": command, "args": list(args)}
    return {**entry, "env_vars": list(variables)} if variables else entry


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


FAMILY = Family(
    name="codex",
    title="Codex",
    format="toml",
    places=places,
    read=read,
    write=write,
    window_key=("model_context_window",),
    note="Start Codex anew.",
)
