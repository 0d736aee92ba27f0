"""From the options of a command to a gateway that serves, and ends well: signals, draining, and what was started."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolcrib.config import Loaded, load_settings, lock_file, open_sources
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, RequiredToolsMissing
from toolcrib.gateway.approvals import ClientApprover
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.desk import ApprovalDesk
from toolcrib.gateway.lock_watch import watch_lock
from toolcrib.gateway.profiles import Principal, Profiles, open_session
from toolcrib.gateway.server import Gateway
from toolcrib.gateway.starting import report_starts
from toolcrib.limits import GC_EVERY_OBJECTS, UPSTREAM_BODY_MAX_BYTES
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.gateway.annex import OpenAnnex

logger = logging.getLogger("toolcrib.gateway")

DEFAULT_CONFIG = Path("toolcrib.yaml")
ANY_PORT = "127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    config: Path | None = None
    http: str | None = None
    profile: str = "default"
    allow_unauthenticated: bool = False
    public: bool = False
    console_at: str | None = None
    """Address of the console, if it has one of its own."""
    verbose: bool = False


def use_fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop, where there is one."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


def gateway_settings(loaded: Loaded) -> Settings:
    """Settings for a gateway: results are relayed whole unless the operator set a limit (X18)."""
    settings = loaded.settings
    if "limits.result_max_chars" in loaded.origins:
        return settings
    limits = msgspec.structs.replace(settings.limits, result_max_chars=UPSTREAM_BODY_MAX_BYTES)
    return msgspec.structs.replace(settings, limits=limits)


def open_gateway(settings: Settings, *, lock: Path | None = None) -> tuple[Crib, Gateway]:
    """The crib of these settings, and a gateway over it. Raises `ConfigError`."""
    core, desk = settings.tools.core or (), ApprovalDesk(ttl_s=settings.approvals.ttl_s)
    crib = Crib(*open_sources(settings), settings=settings, core=core, approver=ClientApprover(desk=desk), lock=lock)
    profiles = Profiles(settings.profiles)
    profiles.check(crib)
    return crib, Gateway(crib, profiles, desk=desk)


async def run_gateway(options: Options, open_annex: "OpenAnnex | None" = None) -> None:
    """Serves until the client leaves or a signal comes, with an annex if there is one. Raises `ConfigError`."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("httpx2", "httpcore2", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    path = _config_path(options)
    settings = gateway_settings(load_settings(path))
    crib, gateway = open_gateway(settings, lock=lock_file(path, settings))
    principal = gateway.profiles.principal("local", options.profile)
    async with crib:
        changes = ChangeFeed(crib)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        _spare_the_collector()
        beside = [
            asyncio.ensure_future(report_starts(gateway.servers)),
            asyncio.ensure_future(watch_lock(crib, changes)),
        ]
        try:
            if not await _unless(stop, _require_tools(gateway, principal)):
                pass  # told to end before it began
            elif options.http is None and open_annex is None:
                await _serve_pipes(gateway, principal, changes, stop)
            else:
                await _serve_addresses(gateway, principal, changes, options, settings, stop, open_annex)
        finally:
            for task in beside:
                task.cancel()
            changes.close()


async def _serve_pipes(gateway: Gateway, principal: Principal, changes: ChangeFeed, stop: asyncio.Event) -> None:
    from toolcrib.gateway.stdio import serve_stdio

    if sys.stdin is not None and sys.stdin.isatty():
        logger.info(
            "waiting for an MCP client on standard input, which is this terminal: clients start this "
            "command themselves, or reach it with --http HOST:PORT; Ctrl-C ends it"
        )
    await serve_stdio(gateway, principal, changes, stop)


async def _serve_addresses(
    gateway: Gateway,
    principal: Principal,
    changes: ChangeFeed,
    options: Options,
    settings: Settings,
    stop: asyncio.Event,
    open_annex: "OpenAnnex | None",
) -> None:
    """Serves HTTP, and the annex on the same address or on one of its own; without HTTP, pipes and the annex."""
    from toolcrib.gateway.annex import served_apart
    from toolcrib.gateway.http import open_door, serve_http

    door = open_door(options, settings)
    annex = open_annex(gateway, door) if open_annex is not None else None
    async with AsyncExitStack() as stack:
        if annex is not None and (options.console_at is not None or options.http is None):
            try:
                await stack.enter_async_context(served_apart(annex, door, options.console_at or ANY_PORT))
            except ConfigError as error:
                if options.http is not None:
                    raise
                # A client that starts the gateway a second time must not lose its tools for it.
                logger.warning("the console is not served: %s", error)
            annex = None
        if options.http is not None:
            await serve_http(gateway, changes, options, settings, stop, door=door, annex=annex)
        else:
            await _serve_pipes(gateway, principal, changes, stop)


def _spare_the_collector() -> None:
    """Lets the collector of reference cycles pass over what was there at the start, and come less often.

    What a call leaves behind is freed when it ends; looking for cycles after every 700 new objects finds none.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_EVERY_OBJECTS, 20, 20)


def _config_path(options: Options) -> Path:
    if options.config is None and not DEFAULT_CONFIG.exists():
        raise ConfigError(f"There is no {DEFAULT_CONFIG} here: give --config FILE.")
    return options.config or DEFAULT_CONFIG


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether the work was done before it was told to stop. Raises what the work raises."""
    task, told = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, told), return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            return False
        await task
        return True
    finally:
        task.cancel()
        told.cancel()
        await asyncio.gather(task, told, return_exceptions=True)


async def _require_tools(gateway: Gateway, principal: Principal) -> None:
    """A profile that was promised tools does not start without them (S22)."""
    if not principal.required:
        return
    await gateway.wait_settled()
    session = open_session(gateway.crib, principal)
    session.required = principal.required
    missing = session.missing_tools()
    if missing:
        raise RequiredToolsMissing(missing)
