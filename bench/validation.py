"""Checking the arguments of a call, against `jsonschema` with a validator made before, and made for every call."""

import random
from collections.abc import Sequence
from typing import Any, cast

import jsonschema

from bench.catalogs import definitions
from bench.measure import Case, Family, interleaved, run_family
from toolcrib.definitions import JsonObject
from toolcrib.execution.validation import Validator
from toolcrib.intake.freezing import freeze_tool

_VALUES = {"string": "text", "integer": 7, "boolean": True}
_SCHEMAS = 200


def report(sizes: Sequence[int]) -> Family:
    """One valid call of each of 200 schemas."""
    rng = random.Random(5)
    raws = rng.sample(definitions(2_000), _SCHEMAS)
    tools = [freeze_tool(raw, toolset="x", origin="mcp") for raw in raws]
    schemas = [tool.parameters for tool in tools]
    calls = [
        cast("JsonObject", {name: _VALUES[value["type"]] for name, value in cast("Any", schema["properties"]).items()})
        for schema in schemas
    ]
    prebuilt = [jsonschema.Draft202012Validator(schema) for schema in schemas]
    validator = Validator()
    few = 12
    found = interleaved(
        {
            "ours": Case(lambda: [validator.check(tool, call) for tool, call in zip(tools, calls, strict=True)]),
            "prebuilt": Case(lambda: [each.is_valid(call) for each, call in zip(prebuilt, calls, strict=True)]),
            "one-shot": Case(
                lambda: [jsonschema.validate(call, schema) for call, schema in zip(calls[:few], schemas, strict=False)],
                most=5,
            ),
        }
    )
    micros = {
        "ours": found["ours"] * 1000 / _SCHEMAS,
        "prebuilt": found["prebuilt"] * 1000 / _SCHEMAS,
        "one-shot": found["one-shot"] * 1000 / few,
    }
    return Family(
        name="validation",
        title="Checking the arguments of one valid call (CPU µs)",
        headings=["way", "µs", "against ours"],
        rows=[[name, f"{value:,.1f}", f"{value / micros['ours']:,.0f}×"] for name, value in micros.items()],
    )


if __name__ == "__main__":
    run_family("validation")
