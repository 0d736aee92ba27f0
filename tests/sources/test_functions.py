"""Python functions as tools."""

import asyncio
import math
import statistics
import threading
from dataclasses import InitVar, dataclass, field
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from tests.factories import bridged, core, crib, model_call, settings

from toolcrib.definitions import Traits, text_result
from toolcrib.errors import ConfigError, DefinitionError, InvalidArguments
from toolcrib.execution.dispatch import CallContext
from toolcrib.settings import ApprovalSettings, LimitSettings, Settings
from toolcrib.sources.functions import Bounds, Functions
from toolcrib.sources.plugins import load_plugins
from toolcrib.sources.signatures import parameter_words, read_function, summary_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    fast: bool


def plan(
    city: str,
    day: date,
    mode: Literal["walk", "train"],
    colour: Colour = Colour.RED,
    stops: list[Point] | None = None,
    options: Options | None = None,
    limit: Annotated[int, "How many results at most."] = 3,
) -> str:
    """Plans a trip.

    Takes the weather into account.

    Args:
        city: Where to start.
        day: When to go.
        mode: How to go.

    Returns:
        The plan.
    """
    return f"{city} {day.isoformat()} {mode} {colour.value} {[s.x for s in stops or []]} {options} {limit}"


def test_the_schema_comes_from_hints_and_the_words_from_the_docstring() -> None:
    shape = read_function(plan)
    assert shape.description == "Plans a trip.\n\nTakes the weather into account."
    properties: Any = shape.schema["properties"]
    assert properties["city"] == {"type": "string", "description": "Where to start."}
    assert properties["day"]["format"] == "date"
    assert properties["mode"]["enum"] == ["train", "walk"]
    assert properties["limit"] == {"type": "integer", "description": "How many results at most.", "default": 3}
    assert shape.schema["required"] == ["city", "day", "mode"]
    assert shape.schema["additionalProperties"] is False


async def test_arguments_arrive_as_what_the_hints_ask_for() -> None:
    trips = Functions("trips")
    trips.tool(plan)
    session = crib(core(), trips).session()
    arguments = {
        "city": "Rome",
        "day": "2026-11-15",
        "mode": "train",
        "colour": "blue",
        "stops": [{"x": 1.5}],
        "options": {"fast": True},
    }
    (answer,) = await session.execute([bridged("plan", arguments)])
    assert answer.result.text == "Rome 2026-11-15 train blue [1.5] {'fast': True} 3"
    (wrong,) = await session.execute([bridged("plan", {**arguments, "day": "yesterday"})])
    assert wrong.result.code == "invalid_arguments"
    (unknown,) = await session.execute([bridged("plan", {**arguments, "speed": 1})])
    assert unknown.result.code == "invalid_arguments"


async def test_a_decorated_function_stays_a_function() -> None:
    toolset = Functions("mine")

    @toolset.tool(read_only=True, parallel=True, aliases=["sum"])
    async def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert await add(2, 3) == 5
    (tool,) = toolset.snapshot()[0].tools
    assert (tool.name, tool.traits.read_only, tool.traits.parallel, tool.aliases) == ("add", True, True, ("sum",))


async def test_functions_are_added_and_removed_while_sessions_run() -> None:
    toolset = Functions("mine")
    session = crib(core(), toolset).session()
    assert session.catalog.size == 0
    toolset.add(math.sqrt, types={"x": float})
    assert [tool.name for tool in session.catalog] == ["sqrt"]
    before = toolset.snapshot()
    assert toolset.snapshot() is before
    generation = toolset.generation
    toolset.remove("sqrt")
    assert toolset.generation == generation + 1
    assert session.catalog.size == 0
    with pytest.raises(DefinitionError, match="there is no tool `sqrt`"):
        toolset.remove("sqrt")


def test_a_modules_functions_become_a_toolset_filtered_by_name() -> None:
    toolset = Functions.of(
        statistics, include=["mean", "med*"], exclude=["median_grouped"], types={"data": list[float]}
    )
    (snapshot,) = toolset.snapshot()
    assert [tool.name for tool in snapshot.tools] == [
        "statistics__mean",
        "statistics__median",
        "statistics__median_high",
        "statistics__median_low",
    ]
    assert snapshot.prefix == "statistics"


async def test_an_objects_methods_become_a_toolset() -> None:
    class Counter:
        """Counts."""

        def __init__(self) -> None:
            self.value = 0

        def increase(self, by: int = 1) -> int:
            """Counts up."""
            self.value += by
            return self.value

        def _hidden(self) -> None: ...

    counter = Counter()
    session = crib(core(), Functions.of(counter, name="counter")).session()
    assert [tool.name for tool in session.catalog] == ["counter__increase"]
    (answer,) = await session.execute([bridged("increase", {"by": 5})])
    assert answer.result.text == "5"
    assert counter.value == 5


def test_one_function_that_cannot_be_a_tool_is_left_out_counted_and_reported() -> None:
    class Handle: ...

    def takes_handle(handle: Handle) -> None: ...

    toolset = Functions("mine")
    toolset.add(math.sqrt, types={"x": float})
    problem = toolset.add(takes_handle)
    toolset.add(math.hypot)
    assert problem is not None
    assert "JSON cannot carry" in problem.reason
    (snapshot,) = toolset.snapshot()
    assert [tool.leaf for tool in snapshot.tools] == ["sqrt"]
    assert [item.name for item in snapshot.skipped] == ["takes_handle", "hypot"]
    with pytest.raises(DefinitionError, match="takes_handle"):
        toolset.tool(takes_handle)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({"a": date(2026, 1, 2)}, '{"a":"2026-01-02"}'),
        ({1: 2}, '{"1":2}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (iter([1, 2]), "[1,2]"),
        (b"\x00\x01", '"AAE="'),
        (object, "object"),
        (10**30, str(10**30)),
        ({"n": 10**30, "name": "\udcff"}, '{"n": 1000000000000000000000000000000, "name": "\\udcff"}'),
        (text_result("as it is"), "as it is"),
    ],
)
async def test_whatever_a_function_returns_becomes_a_result(value: Any, text: str) -> None:
    def give() -> Any:
        """Gives."""
        return value

    toolset = Functions("mine")
    toolset.tool(give)
    (answer,) = await crib(core(), toolset).session().execute([bridged("give")])
    assert not answer.result.is_error
    assert text in answer.result.text


async def test_what_a_function_may_be_given_is_bounded() -> None:
    bounds = Bounds(number=1000, text=10, items=3)
    toolset = Functions("mine", bounds=bounds)
    toolset.add(math.factorial, types={"x": int, "n": int})
    (parameter,) = toolset.snapshot()[0].tools[0].parameters["properties"]
    (answer,) = await crib(core(), toolset).session().execute([bridged("factorial", {parameter: 10**9})])
    assert answer.result.code == "invalid_arguments"
    assert "beyond" in answer.result.text
    for value in ({"a": "x" * 11}, {"a": [1, 2, 3, 4]}, {"a": {"b": [{"c": -1001}]}}):
        with pytest.raises(InvalidArguments):
            bounds.require(value)
    bounds.require({"a": [1, True, "x"]})


async def test_a_blocking_function_does_not_block_the_loop() -> None:
    entered, release = threading.Event(), threading.Event()

    def block() -> str:
        """Blocks."""
        entered.set()
        assert release.wait(60)
        return "done"

    toolset = Functions("mine")
    toolset.tool(block)
    task = asyncio.create_task(crib(core(), toolset).session().execute([bridged("block")]))
    assert await asyncio.to_thread(entered.wait, 60)
    release.set()
    (answer,) = await task
    assert answer.result.text == "done"


async def test_a_function_can_report_how_far_it_is() -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    toolset = Functions("mine")

    @toolset.tool
    async def work(steps: int, context: CallContext) -> str:
        """Works."""
        for step in range(steps):
            context.report(step + 1, steps, "working")
        return "done"

    assert "context" not in str(toolset.snapshot()[0].tools[0].parameters)
    session = crib(
        core(), toolset, progress=[lambda call, done, total, message: seen.append((done, total, message))]
    ).session()
    await session.execute([bridged("work", {"steps": 2})])
    assert seen == [(1, 2, "working"), (2, 2, "working")]


def test_positional_variadic_and_keyword_parameters_are_called_as_they_must_be() -> None:
    def mixed(a: int, /, b: int, *rest: int, c: int = 0, d: int = 9) -> None: ...

    shape = read_function(mixed)
    context: Any = None
    assert shape.bind({"a": 1, "b": 2, "rest": [3, 4], "c": 5}, context) == ([1, 2, 3, 4], {"c": 5, "d": 9})
    assert shape.bind({"a": 1, "b": 2}, context) == ([1, 2], {"c": 0, "d": 9})
    with pytest.raises(InvalidArguments):
        shape.bind({"a": 1}, context)


def test_what_follows_a_parameter_that_is_left_out_does_not_take_its_place() -> None:
    first: list[int] = []

    def only(a: list[int] = first, b: int = 2, /) -> None: ...

    def more(a: list[int] = first, *rest: int) -> None: ...

    context: Any = None
    assert read_function(only).bind({"b": 7}, context) == ([first, 7], {})
    assert read_function(more).bind({"rest": [1, 2]}, context) == ([first, 1, 2], {})
    assert read_function(more).bind({}, context) == ([], {})


def test_a_hint_that_cannot_be_read_costs_only_itself() -> None:
    def table(city: "str", near: "Nowhere", days: "int" = 1) -> "Frame":  # type: ignore[name-defined]  # noqa: F821
        """Gives a table."""

    class Called:
        days: str = ""

        async def __call__(self, days: "int") -> int:
            return days

    properties: Any = read_function(table).schema["properties"]
    assert (properties["city"], properties["near"], properties["days"]["type"]) == ({"type": "string"}, {}, "integer")
    for function in (Called(), partial(table, "Rome"), partial(Called())):
        properties = read_function(function).schema["properties"]
        assert properties["days"]["type"] == "integer"


@dataclass
class Leg:
    city: str
    days: InitVar[int] = 1
    stops: "list[Point]" = field(default_factory=list["Point"])

    def __call__(self, city: bytes, days: bytes) -> None: ...


class Stay:
    def __init__(self, city: "str", days: int = 1) -> None: ...


class Stop(NamedTuple):
    city: str
    days: "int" = 1


@pytest.mark.parametrize("made", [Leg, Stay, Stop, partial(Leg), partial(Stop, city="Rome")])
def test_a_class_takes_what_making_an_object_of_it_takes(made: Any) -> None:
    properties: Any = read_function(made).schema["properties"]
    assert (properties["city"]["type"], properties["days"]["type"]) == ("string", "integer")
    assert "stops" not in properties or properties["stops"]["items"] == {"$ref": "#/$defs/Point"}


async def test_a_dataclass_as_a_tool_gives_the_object() -> None:
    toolset = Functions("mine")
    toolset.tool(Point)
    session = crib(core(), toolset).session()
    right, wrong = await session.execute([bridged("Point", {"x": 1.5}), bridged("Point", {"x": "far"})])
    assert right.result.structured == {"x": 1.5, "y": 0.0}
    assert wrong.result.code == "invalid_arguments"


async def numbers(n: int) -> Any:
    for number in range(n):
        yield number


def plainly(function: Any) -> Any:
    """A decorator that knows nothing of coroutines."""

    def inner(n: int) -> Any:
        return function(n)

    return inner


class Waiting:
    async def __call__(self, n: int) -> list[int]:
        return list(range(n))


@pytest.mark.parametrize("function", [numbers, plainly(numbers), plainly(Waiting()), Waiting(), plainly(range)])
async def test_what_a_function_promises_or_yields_is_waited_for(function: Any) -> None:
    toolset = Functions("mine")
    assert toolset.add(function, name="count", description="Counts.") is None
    (answer,) = await crib(core(), toolset).session().execute([bridged("count", {"n": 3})])
    assert answer.result.text in {"[0,1,2]", '"range(0, 3)"'}


@pytest.mark.parametrize("function", [numbers, lambda n: iter(range(n))])
async def test_a_generator_is_read_so_far_and_what_is_left_is_told(function: Any) -> None:
    toolset = Functions("mine")
    toolset.add(function, name="count", description="Counts.", types={"n": int})
    session = crib(core(), toolset).session()
    whole, cut = await session.execute([bridged("count", {"n": 1_000}), bridged("count", {"n": 1_001})])
    assert whole.result.text.endswith(",999]")
    assert cut.result.text.endswith(",999]\n[only the first 1,000 items were read]")


async def test_the_body_of_a_generator_runs_beside_the_event_loop() -> None:
    homes: list[threading.Thread] = []

    def steps() -> Any:
        """Steps."""
        homes.append(threading.current_thread())
        yield 1

    toolset = Functions("mine")
    toolset.tool(steps)
    await crib(core(), toolset).session().execute([bridged("steps")])
    assert homes != [threading.current_thread()]


async def test_a_function_that_raises_the_end_of_an_iteration_is_answered() -> None:
    def stop() -> None:
        """Stops."""
        raise StopIteration

    toolset = Functions("mine")
    toolset.tool(stop)
    (answer,) = await crib(core(), toolset).session().execute([bridged("stop")])
    assert answer.result.code == "tool_failed"


async def test_functions_that_hang_hold_up_no_other_toolset() -> None:
    release = threading.Event()
    slow, quick = Functions("slow"), Functions("quick")

    @slow.tool(parallel=True)
    def hang() -> bool:
        """Hangs."""
        return release.wait(60)

    @quick.tool
    def answer() -> str:
        """Answers."""
        return "at once"

    shared = crib(core(), slow, quick, settings=Settings(limits=LimitSettings(concurrency_per_session=64)))
    hanging = asyncio.create_task(
        shared.session().execute([model_call("hang", {}, str(n)) for n in range(40)], mode="parallel")
    )
    try:
        assert (await shared.session().call("answer")).text == "at once"
    finally:
        release.set()
        await hanging
        await shared.close()


@pytest.mark.requirement("X5")
async def test_arguments_that_a_function_cannot_take_are_refused_before_anybody_is_asked() -> None:
    asked: list[Any] = []

    async def ask(request: Any) -> bool:
        asked.append(request)
        return True

    toolset = Functions("mine", bounds=Bounds(number=10))

    @toolset.tool
    def meet(day: date, people: int = 1) -> str:
        """Meets."""
        return day.isoformat()

    house = Settings(tools=settings(enabled="on").tools, approvals=ApprovalSettings(default="ask"))
    session = crib(core(), toolset, settings=house, approver=ask).session()
    for arguments in ({"day": "yesterday"}, {"day": "2026-01-02", "people": 11}):
        (answer,) = await session.execute([bridged("meet", arguments)])
        assert answer.result.code == "invalid_arguments"
    assert asked == []


def test_docstrings_are_read_in_three_styles() -> None:
    assert parameter_words("X.\n\nArgs:\n    a (int): First.\n    b: Second.") == {"a": "First.", "b": "Second."}
    assert parameter_words("X.\n\n:param a: First.\n:param int b: Second.") == {"a": "First.", "b": "Second."}
    assert parameter_words("X.\n\nParameters\n----------\na : int\n    First.\n") == {"a": "First."}
    assert summary_of("sqrt(x, /)\n--\n\nThe root.") == "The root."


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "tool\n"])
def test_a_toolset_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a toolset"):
        Functions(name)


class Point_:
    """An entry point, as far as loading plugins looks at it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = f"pkg:{name}"
        self._loaded = value

    def load(self) -> Any:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def test_plugins_are_loaded_in_order_and_a_broken_one_costs_only_itself() -> None:
    one, two = Functions("one"), Functions("two")
    points: Any = [
        Point_("c", lambda: [two]),
        Point_("b", ImportError("gone")),
        Point_("a", one),
        Point_("d", 7),
        Point_("e", lambda: 1 / 0),
    ]
    plugins = load_plugins(points)
    assert plugins.sources == (one, two)
    assert [item.toolset for item in plugins.skipped] == ["b", "d", "e"]
    assert load_plugins().skipped == ()


async def test_a_tool_of_a_toolset_that_says_it_is_safe_runs_in_parallel() -> None:
    barrier = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        """Meets."""
        await barrier.wait()
        return name

    toolset = Functions("mine")
    toolset.add(meet, traits=Traits(parallel=True))
    answers = (
        await crib(core(), toolset)
        .session()
        .execute([bridged("meet", {"name": "a"}, "1"), bridged("meet", {"name": "b"}, "2")], mode="parallel")
    )
    assert [answer.result.text for answer in answers] == ["a", "b"]
