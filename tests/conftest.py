"""Coroutine tests run in a loop of their own; nothing else is magic."""

import asyncio
import inspect

import pytest
from hypothesis import settings

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
