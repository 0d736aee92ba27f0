"""The lock file: which definitions, and which ways of starting their source, somebody has approved.

The file is JSON with one line for each tool, sorted, so that a change of an upstream shows up as a line in a review.
It holds digests only. A pin covers the whole definition as its source gave it; a launch pin covers command,
arguments, names of environment variables and headers, and the address without its secrets. Digests have 256 bits:
whoever writes both the harmless and the harmful definition must not be able to make them meet.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, urlsplit

import orjson

from toolcrib.definitions import JsonObject, Tool, Toolset, canonical_json
from toolcrib.errors import ConfigError
from toolcrib.limits import LOCK_MAX_BYTES

LOCK_NAME = "toolcrib.lock"
"""The lock of those who have no configuration file."""
LOCK_VERSION = 1
_SUFFIX = ".lock"
_ABOUT = "Approved tool definitions. Written by `toolcrib pins approve`; keep it under version control."
_HINT_CHARS = 16

State = Literal["unchanged", "changed", "new", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a source is started or reached: what a person agreed to run."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of the variables that are set; never their values."""
    cwd: str | None = None
    url: str | None = None
    headers: tuple[str, ...] = ()
    """Names of the headers that are sent; never their values."""

    @property
    def digest(self) -> str:
        """Digest of all of it; user name, password and query values of the address left out."""
        return _digest(
            canonical_json(
                {
                    "command": self.command,
                    "args": list(self.args),
                    "env": sorted(self.env),
                    "cwd": self.cwd,
                    "url": _public_url(self.url),
                    "headers": sorted(name.lower() for name in self.headers),
                }
            )
        )


def launch_of(source: object) -> Launch | None:
    """How a source was started or is reached, as its `launch` says; nothing if there is nothing to pin."""
    # Whether it has a protocol takes thirty times as long to find out, and is asked at every look at the sources. An
    # attribute that is there and fails must not pass for one that is not.
    if hasattr(type(source), "launch") or "launch" in getattr(source, "__dict__", ()):
        return cast("Any", source).launch
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What one approved definition looked like."""

    definition: str
    """Digest that decides."""
    description: str
    schema: str
    """Short digests that only tell a person which part changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Everything that was approved."""

    launches: Mapping[str, str] = field(default_factory=dict[str, str])
    """Source → digest of its launch."""
    tools: Mapping[str, Mapping[str, Pin]] = field(default_factory=dict[str, "Mapping[str, Pin]"])
    """Toolset → exposed name → pin."""

    def pins_of(self, toolset: str) -> Mapping[str, Pin]:
        """The pins of a toolset."""
        return self.tools.get(toolset, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A toolset as a source offers it."""

    toolset: Toolset
    source: str
    launch: Launch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How one tool, or the launch of one source, stands to the lock."""

    kind: Literal["tool", "launch"]
    toolset: str
    """The toolset; for a launch, the source."""
    name: str
    state: State
    parts: tuple[str, ...] = ()
    """What changed: `description`, `schema`, `other fields`."""


def lock_beside(config: Path) -> Path:
    """The lock of a configuration file that names none: `cursor.lock` for `cursor.json`.

    Of two configurations in one directory, neither may undo what was approved for the other.
    """
    return config.with_name(f"{config.name if config.suffix == _SUFFIX else config.stem}{_SUFFIX}")


def pin_of(tool: Tool) -> Pin:
    """The pin of a definition. Equal for equal definitions, whatever order their keys have."""
    return Pin(
        definition=_digest(canonical_json([tool.leaf, tool.definition])),
        description=_digest(tool.description.encode())[:_HINT_CHARS],
        schema=_digest(canonical_json(tool.parameters))[:_HINT_CHARS],
    )


def is_pinned(toolset: Toolset) -> bool:
    """Whether pins apply: to what comes from elsewhere, not to the operator's own code."""
    return toolset.origin == "mcp"


def compare_toolset(toolset: Toolset, pins: Mapping[str, Pin]) -> tuple[Drift, ...]:
    """How every tool of a toolset, and every pin without a tool, stands."""
    drifts = [_compare(tool, pins.get(tool.name)) for tool in toolset.tools]
    if toolset.tools and toolset.unavailable is None:  # a list that has not come yet has lost nothing
        gone = sorted(set(pins) - set(toolset.by_name))
        drifts.extend(Drift(kind="tool", toolset=toolset.name, name=name, state="removed") for name in gone)
    return tuple(drifts)


def compare_launch(source: str, launch: Launch | None, lock: Lock) -> Drift | None:
    """How the launch of a source stands; nothing for a source that was not launched."""
    if launch is None:
        return None
    approved = lock.launches.get(source)
    state: State = "new" if approved is None else "unchanged" if approved == launch.digest else "changed"
    return Drift(kind="launch", toolset=source, name=source, state=state)


def compare(offers: Sequence[Offer], lock: Lock) -> tuple[Drift, ...]:
    """How everything stands, sorted: launches first, then tools."""
    launches = {offer.source: compare_launch(offer.source, offer.launch, lock) for offer in offers}
    drifts = [drift for drift in launches.values() if drift is not None]
    known = {offer.toolset.name for offer in offers}
    for offer in offers:
        if is_pinned(offer.toolset):
            drifts.extend(compare_toolset(offer.toolset, lock.pins_of(offer.toolset.name)))
    for toolset in lock.tools.keys() - known:
        drifts.extend(Drift(kind="tool", toolset=toolset, name=name, state="removed") for name in lock.pins_of(toolset))
    drifts.extend(
        Drift(kind="launch", toolset=source, name=source, state="removed")
        for source in lock.launches.keys() - launches.keys()
    )
    return tuple(sorted(drifts, key=lambda drift: (drift.kind, drift.toolset, drift.name)))


def approve(offers: Sequence[Offer], lock: Lock, drifts: Iterable[Drift]) -> Lock:
    """The lock after somebody agreed to these drifts, and to nothing else."""
    tools = {toolset: dict(pins) for toolset, pins in lock.tools.items()}
    launches = dict(lock.launches)
    by_toolset: dict[str, Toolset] = {offer.toolset.name: offer.toolset for offer in offers}
    by_source = {offer.source: offer.launch for offer in offers if offer.launch is not None}
    for drift in drifts:
        if drift.kind == "launch":
            if drift.state == "removed":
                launches.pop(drift.name, None)
            else:
                launches[drift.name] = by_source[drift.name].digest
        elif drift.state == "removed":
            tools.get(drift.toolset, {}).pop(drift.name, None)
        else:
            tools.setdefault(drift.toolset, {})[drift.name] = pin_of(by_toolset[drift.toolset].by_name[drift.name])
    return Lock(launches=launches, tools={toolset: pins for toolset, pins in tools.items() if pins})


# The file


def render_lock(lock: Lock) -> str:
    """The text of the file: sorted, one line for each tool."""
    lines = ["{", f'  "about": {_json(_ABOUT)},', f'  "version": {LOCK_VERSION},', '  "launches": {']
    lines += _entries([(source, _json(digest)) for source, digest in sorted(lock.launches.items())], indent=4)
    lines += ["  },", '  "tools": {']
    toolsets = sorted((toolset, pins) for toolset, pins in lock.tools.items() if pins)
    for position, (toolset, pins) in enumerate(toolsets, 1):
        lines.append(f"    {_json(toolset)}: {{")
        lines += _entries([(name, _pin_json(pins[name])) for name in sorted(pins)], indent=6)
        lines.append("    }" + ("," if position < len(toolsets) else ""))
    return "\n".join([*lines, "  }", "}", ""])


def parse_lock(text: bytes, *, where: str) -> Lock:
    """The lock that a file holds. Raises `ConfigError` that says what to do about it."""
    try:
        data = cast("object", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        conflict = " It holds the marks of a merge conflict." if b"<<<<<<<" in text else ""
        raise ConfigError(f"{where}: is no valid JSON: {error}.{conflict} {_REMEDY}") from None
    if not isinstance(data, dict) or cast("JsonObject", data).get("version") != LOCK_VERSION:
        raise ConfigError(f"{where}: is no lock file of version {LOCK_VERSION}. {_REMEDY}")
    body = cast("JsonObject", data)
    try:
        launches = {name: _require_digest(digest) for name, digest in _require_object(body.get("launches")).items()}
        tools = {
            toolset: {name: _require_pin(pin) for name, pin in _require_object(pins).items()}
            for toolset, pins in _require_object(body.get("tools")).items()
        }
    except ValueError as error:
        raise ConfigError(f"{where}: {error}. {_REMEDY}") from None
    return Lock(launches=launches, tools=tools)


def read_lock(path: Path) -> Lock | None:
    """The lock of a file, or nothing if there is no such file. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            text = file.read(LOCK_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    if len(text) > LOCK_MAX_BYTES:
        raise ConfigError(f"{path}: has more than {LOCK_MAX_BYTES} bytes. {_REMEDY}")
    return parse_lock(text, where=str(path))


def write_lock(path: Path, lock: Lock) -> None:
    """Replaces the file as a whole: a reader sees the old lock or the new one. Raises `ConfigError`."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(render_lock(lock))
                file.flush()
                os.fsync(file.fileno())
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}.") from None


_REMEDY = "Restore it from version control, or remove it and run `toolcrib pins approve --all` after a review."


def _compare(tool: Tool, pin: Pin | None) -> Drift:
    if pin is None:
        return Drift(kind="tool", toolset=tool.toolset, name=tool.name, state="new")
    now = pin_of(tool)
    if now.definition == pin.definition:
        return Drift(kind="tool", toolset=tool.toolset, name=tool.name, state="unchanged")
    parts = [part for part in ("description", "schema") if getattr(now, part) != getattr(pin, part)]
    return Drift(
        kind="tool", toolset=tool.toolset, name=tool.name, state="changed", parts=tuple(parts or ["other fields"])
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _public_url(url: str | None) -> list[object] | None:
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return [parts.scheme, host, parts.path, sorted(key for key, _ in parse_qsl(parts.query, keep_blank_values=True))]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _pin_json(pin: Pin) -> str:
    return f'{{"definition": "{pin.definition}", "description": "{pin.description}", "schema": "{pin.schema}"}}'


def _entries(pairs: Sequence[tuple[str, str]], *, indent: int) -> list[str]:
    last = len(pairs) - 1
    return [
        f"{' ' * indent}{_json(key)}: {value}{',' if position < last else ''}"
        for position, (key, value) in enumerate(pairs)
    ]


def _require_object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("`launches` and `tools` must be objects")
    return cast("Mapping[str, object]", value)


def _require_digest(value: object, size: int = 64) -> str:
    if not isinstance(value, str) or len(value) != size or set(value) - set("0123456789abcdef"):
        raise ValueError(f"`{str(value)[:80]}` is no digest")
    return value


def _require_pin(value: object) -> Pin:
    pin = _require_object(value)
    return Pin(
        definition=_require_digest(pin.get("definition")),
        description=_require_digest(pin.get("description"), _HINT_CHARS),
        schema=_require_digest(pin.get("schema"), _HINT_CHARS),
    )
