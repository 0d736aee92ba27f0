"""What the examples share: a crib of real functions, and a model to talk to.

The crib holds more than a hundred functions of the standard library. The model is whatever `OPENAI_BASE_URL` (or
`ANTHROPIC_BASE_URL`) and `MODEL` name; without them a scripted endpoint on loopback plays the model, so that every
example runs without a key and can be checked.
"""

import asyncio
import os
import statistics
import string
import sys
import textwrap
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import base64
import calendar
import cmath
import colorsys
import html
import math
import shlex
import urllib.parse

from tests.fakes.scripted_model import Say, ScriptedModel, search, through_bridge

from toolcrib import Bounds, Crib, Functions, Settings
from toolcrib.settings import ToolSearchSettings, ToolsSettings

BOUNDS = Bounds(number=10_000, text=10_000, items=1_000)
MODULES = (base64, calendar, cmath, colorsys, html, math, shlex, statistics, string, textwrap, urllib.parse)

QUESTION = "What is the greatest common divisor of 84 and 36? Use a tool."
SCRIPT = (
    search("greatest common divisor of integers"),
    through_bridge("math__gcd", integers=[84, 36]),
    Say("The greatest common divisor of 84 and 36 is 12."),
)
ANSWER = "12"


def open_workshop() -> Crib:
    """The crib of the examples."""
    settings = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on")))
    return Crib(*(Functions.of(module, bounds=BOUNDS) for module in MODULES), settings=settings)


@contextmanager
def open_endpoint(variable: str = "OPENAI_BASE_URL") -> Generator[tuple[str, str, ScriptedModel | None]]:
    """Address and model name; the scripted endpoint if no other is set."""
    address = os.environ.get(variable)
    if address:
        yield address, os.environ.get("MODEL", "gpt-5.4"), None
        return
    with ScriptedModel(SCRIPT) as model:
        yield (model.url if variable.startswith("ANTHROPIC") else model.openai_url), "scripted", model


def check(crib: Crib, answer: str, endpoint: ScriptedModel | None) -> None:
    """The claims of every example. Ends the program with an error if one fails."""
    ran = [(event.tool, event.outcome) for event in crib.activity.events if event.stage == "done"]
    require(("math__gcd", "ok") in ran, f"the real tool ran, under its real name: {ran}")
    require(ANSWER in answer, f"the answer holds the result: {answer!r}")
    if endpoint is not None:
        names = {tuple(request.names) for request in endpoint.requests}
        require(names == {("tool_search", "tool_describe", "tool_call")}, f"three tools stood for all: {names}")
        require(endpoint.finished, "the model came to its end")
    print(f"{sum(len(toolset.tools) for toolset in crib.inventory.toolsets)} tools in the crib; answer: {answer}")


def require(holds: bool, claim: str) -> None:
    """Ends the program if a claim does not hold."""
    if not holds:
        sys.exit(f"does not hold: {claim}")


def main(example: Callable[[], Coroutine[None, None, None]]) -> None:
    """Runs an example."""
    asyncio.run(example())
