"""Coroutine tests run in a loop of their own; nothing else is magic."""

import asyncio
import importlib
import inspect
from collections.abc import Generator

import pytest
from hypothesis import settings
from tests.fakes.steady import LAG_MAX_S, measured_lag

from toolcrib.intake.rules import phrase_rules

# A busy machine is no reason to fail: what is slow is found by the benchmarks.
settings.register_profile("toolcrib", deadline=None)
settings.load_profile("toolcrib")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def steady_loop() -> Generator[None]:
    """Fails a test in which a single callback keeps the loop to itself for longer than others may wait."""
    # What is imported or compiled with the first server of its kind is no matter of that server.
    for module in ("mcp_http", "mcp_stdio"):
        importlib.import_module(f"toolcrib.sources.{module}")
    phrase_rules()
    with measured_lag() as lag:
        yield
    assert lag.longest < LAG_MAX_S, f"{lag.longest:.3f} s of processor time in {lag.what}"
