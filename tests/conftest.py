"""Coroutine tests run in a loop of their own; nothing else is magic."""

import asyncio
import atexit
import importlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from tests.fakes.steady import LAG_MAX_S, measured_lag
from tests.surroundings import leave_outside

from toolcrib.intake.rules import phrase_rules

leave_outside(os.environ)
# Vectors of tools are kept between two starts, and those of a test with nobody else's.
_kept = tempfile.mkdtemp(prefix="toolcrib-tests-")
atexit.register(shutil.rmtree, _kept, ignore_errors=True)
os.environ["XDG_CACHE_HOME"] = _kept

# A busy machine is no reason to fail: what is slow is found by the benchmarks. The same examples in every run, so that
# a change is judged by itself; `pytest --hypothesis-profile=explore` looks for new ones.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("toolcrib", steady, derandomize=True)
settings.register_profile("explore", steady, print_blob=True)
settings.load_profile("toolcrib")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def patient_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in which nobody is sent away for waiting: how long it takes is a matter of the machine."""
    monkeypatch.setattr("toolcrib.execution.dispatch.QUEUE_WAIT_S", 3_600.0)


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
