"""The compiled kernel gives what the Python beside it gives, keeps nothing alive, and may be missing."""

import copy
import gc
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from toolcrib import kernel as kernel_module
from toolcrib.kernel import kernel

ROOT = Path(__file__).parents[1]
compiled = pytest.mark.skipif(kernel is None, reason="the kernel is not in use")
profile.register_profile("kernel", deadline=None, derandomize=True, max_examples=300)
thorough = profile(profile.get_profile("kernel"))

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, -1, 2**63, 2**64, 10**40])
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


class OddDict(dict[str, Any]):
    pass


class OddText(str):
    __slots__ = ()


class OddNumber(int):
    pass


def seen(value: Any) -> Any:
    """What was kept of a value, without encoding it."""
    assert kernel is not None
    kept = kernel.keep(value, lambda given: b"", 1 << 16)
    return kept and kept[0]


def exact(value: Any) -> Any:
    """Everything that tells two plain values apart, order of keys included."""
    if isinstance(value, dict):
        return ["dict", [(key, exact(item)) for key, item in value.items()]]
    if isinstance(value, list):
        return ["list", [exact(item) for item in value]]
    if isinstance(value, float):
        return ["float", value.hex(), math.copysign(1.0, value)]
    return [type(value).__name__, value]


@compiled
@thorough
@given(PLAIN, PLAIN)
def test_a_value_is_the_same_as_its_copy_and_as_nothing_that_differs(one: Any, other: Any) -> None:
    assert kernel is not None
    kept = seen(one)
    assert kernel.same(kept, copy.deepcopy(one))
    assert kernel.same(kept, other) == (exact(one) == exact(other))


@compiled
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (0, False), (1, 1.0), (0.0, -0.0), ("1", 1), (None, False), ([], {}), ([1], [1, 2]), ({}, {"a": 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([[]], [[[]]]), ("a", "á"), ("\ud800", "\udfff"), (10**40, 10**40 + 1),
        ([1, 2], (1, 2)), ({"a": 1}, OddDict(a=1)), ("a", OddText("a")), (7, OddNumber(7)), ({"a": 1}, {OddText("a"): 1}),
    ],
)  # fmt: skip
def test_values_that_python_calls_equal_or_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert kernel is not None
    assert kernel.same(seen([one]), [copy.deepcopy(one)])
    assert not kernel.same(seen([one]), [other])


@compiled
def test_what_was_kept_is_a_copy_that_no_change_in_place_reaches() -> None:
    assert kernel is not None
    value: dict[str, Any] = {"a": [1, {"b": ["x"]}]}
    kept = seen(value)
    value["a"][1]["b"][0] = "y"
    assert not kernel.same(kept, value)
    value["a"][1]["b"][0] = "x"
    assert kernel.same(kept, value)
    del value["a"]
    assert not kernel.same(kept, value)
    gc.collect()
    assert kernel.same(kept, {"a": [1, {"b": ["x"]}]})


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.extend((value, value))
    return value


@compiled
@pytest.mark.parametrize(
    "value",
    [
        endless(), nested(250), nested(100_000), (1,), {1: 2}, OddDict(a=1), [OddText("a")], OddNumber(1), object(), b"x",
        {"a": {None: 1}}, [0] * 70_000, {OddText("a"): 1},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_not_plain_or_has_no_end_is_not_kept(value: Any) -> None:
    assert seen(value) is None
    assert kernel is not None
    assert not kernel.same(seen([1, [2]]), value)


@compiled
def test_an_encoder_that_refuses_is_heard_and_nothing_stays_behind() -> None:
    assert kernel is not None
    before = sys.getrefcount(text := "".join(("some", "text")))
    with pytest.raises(TypeError):
        kernel.keep([text, "\ud800"], orjson.dumps, 100)
    assert sys.getrefcount(text) == before


@compiled
def test_keeping_and_comparing_leaks_no_reference() -> None:
    assert kernel is not None
    leaves = ["".join(("leaf", str(number))) for number in range(5)]
    value = {key: [key, {key: 12345.678}] for key in leaves}
    before = [sys.getrefcount(leaf) for leaf in leaves]
    kept = None
    for bound in (100, 7, 1):
        for _ in range(50):
            kept = kernel.keep(value, orjson.dumps, bound)
            if kept:
                kernel.same(kept[0], value)
                kernel.same(kept[0], {**value, leaves[4]: 1})
    del kept
    assert [sys.getrefcount(leaf) for leaf in leaves] == before


@compiled
def test_wrong_arguments_are_type_errors() -> None:
    assert kernel is not None
    for call in (
        lambda: kernel.same(None, 1),
        lambda: kernel.same(),
        lambda: kernel.keep([]),
        lambda: kernel.keep([], len, "x"),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


def in_fresh_process(script: str, **environ: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **environ}
    )
    return run.stdout.strip()


def test_one_variable_switches_the_kernel_off_and_the_account_says_so() -> None:
    script = "from toolcrib.kernel import account, kernel; print(kernel, account())"
    assert in_fresh_process(script, TOOLCRIB_KERNEL="off") == "None without the compiled kernel: TOOLCRIB_KERNEL=off"


def test_a_kernel_of_other_sources_is_not_used() -> None:
    script = """
import sys, types
stale = types.ModuleType("toolcrib._kernel")
stale.INTERFACE = -1
import toolcrib
sys.modules["toolcrib._kernel"] = toolcrib._kernel = stale
from toolcrib.kernel import account, kernel
print(kernel, account())
"""
    assert in_fresh_process(script, TOOLCRIB_KERNEL="").startswith(
        "None without the compiled kernel: it was built from other"
    )


def test_without_a_kernel_the_account_says_what_is_needed() -> None:
    script = """
import sys
sys.modules["toolcrib._kernel"] = None
from toolcrib.kernel import account, kernel
print(kernel, account())
"""
    assert "a C compiler and the headers of Python are needed" in in_fresh_process(script, TOOLCRIB_KERNEL="")


def test_the_account_is_of_what_is_in_use() -> None:
    assert kernel_module.account().startswith("compiled" if kernel is not None else "without")


@pytest.mark.parametrize(
    ("environ", "said"),
    [({"TOOLCRIB_KERNEL": "off"}, "TOOLCRIB_KERNEL=off"), ({"CC": "no-such-compiler"}, "no-such-compiler")],
)
def test_a_build_without_a_compiler_says_why_and_fails_nothing(
    environ: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    import hatch_build

    monkeypatch.setenv("TOOLCRIB_KERNEL", "")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stale = tmp_path / "_kernel.so"
    stale.write_bytes(b"of an older source")
    reason = hatch_build.compile_kernel(ROOT / hatch_build.SOURCE, stale)
    assert said in reason
    assert "\n" not in reason
    assert list(tmp_path.iterdir()) == []
