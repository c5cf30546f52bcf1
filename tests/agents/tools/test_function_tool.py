"""The decorator: functions, methods and other callables as tools, and what it refuses."""

from __future__ import annotations

import functools
import inspect
import re
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, assert_type

import msgspec
import pytest

import asides
from asides.agents.tools.executor import BadArguments, Runnable
from asides.agents.tools.function_tool import FunctionTool, tool
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides.values.tools import Tool
from tests.agents.tools.calls import call


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@tool(name="wait_for", description="Waits.", approval="ask", timeout=2.5, fatal=(OSError,), strict=True)
async def wait(seconds: float) -> str:
    """This is for people."""
    return f"{seconds} s"


def test_a_tool_is_still_its_function() -> None:
    assert_type(add(2, b=3), int)
    assert add(2, b=3) == 5
    assert (add.__name__, add.__module__) == ("add", __name__)
    assert (add.__doc__ or "").startswith("Add two numbers.")
    assert list(inspect.signature(add).parameters) == ["a", "b"]
    assert repr(add) == "FunctionTool(add)"


def test_a_tool_is_runnable() -> None:
    assert isinstance(add, Runnable)
    assert add.tool == Tool(
        "add",
        "Add two numbers.",
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "b": {"type": "integer", "description": "The second.", "default": 1},
            },
            "required": ["a"],
        },
    )
    assert (add.approval, add.timeout, add.fatal, add.blocking) == (None, None, (), True)
    assert add.run(call(a=2)) == 3


async def test_options_are_kept_and_an_async_function_is_awaited() -> None:
    assert isinstance(wait, Runnable)
    assert (wait.tool.name, wait.tool.description, wait.tool.strict) == ("wait_for", "Waits.", True)
    assert wait.__name__ == "wait"
    assert (wait.approval, wait.timeout, wait.fatal, wait.blocking) == ("ask", 2.5, (OSError,), False)
    assert await wait.run(call(seconds=1)) == "1.0 s"
    assert await wait(2) == "2 s"


def test_an_async_function_does_not_start_with_arguments_that_do_not_fit() -> None:
    with pytest.raises(BadArguments):
        wait.run(call(seconds="soon"))


def test_a_request_takes_a_function_tool() -> None:
    body = asides.explain("openai:gpt-4o", "?", tools=[add]).body
    assert body["tools"][0]["function"]["parameters"] == add.tool.parameters


def test_one_exception_may_be_given_alone() -> None:
    assert tool(fatal=KeyError)(print_place).fatal == (KeyError,)


class Shop:
    """Has tools of each kind that a class can have."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def price(self, item: str, times: int = 1) -> str:
        """What an item costs."""
        return f"{self.name}: {item * times}"

    @tool
    async def order(self, item: str) -> str:
        return f"{self.name} orders {item}"

    @tool
    @classmethod
    def found(cls, name: str) -> str:
        return f"{cls.__name__} {name}"

    @tool
    @staticmethod
    def hours(day: str) -> str:
        return f"{day}: all day"


def test_a_method_is_bound_to_its_object() -> None:
    shop, other = Shop("A"), Shop("B")
    assert_type(shop.price("tea"), str)
    assert shop.price("tea") == "A: tea"
    assert shop.price.run(call(item="tea", times="2")) == "A: teatea"
    assert other.price.run(call(item="tea")) == "B: tea"
    assert list(shop.price.tool.parameters["properties"]) == ["item", "times"]
    assert list(inspect.signature(shop.price).parameters) == ["item", "times"]
    assert shop.price.tool is other.price.tool
    assert Shop.price(other, "milk") == "B: milk"


async def test_an_async_method_is_a_tool() -> None:
    assert Shop("A").order.blocking is False
    assert await Shop("A").order.run(call(item="tea")) == "A orders tea"


def test_class_methods_and_static_methods_are_tools_of_the_class() -> None:
    class Stall(Shop):
        pass

    assert Stall.found.run(call(name="x")) == "Stall x"
    assert Shop.hours.run(call(day="Monday")) == "Monday: all day"
    shop: Any = Shop("A")
    assert shop.hours("Monday") == "Monday: all day"


def test_an_unbound_method_is_no_tool() -> None:
    for given in (Shop.price, Shop.price.__wrapped__):  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess, reportAttributeAccessIssue]
        with pytest.raises(ConfigError, match=r"Shop\.price is not bound to an object.*thing\.price"):
            asides.explain("openai:gpt-4o", "?", tools=[given])
    with pytest.raises(ConfigError, match="is not bound to an object"):
        Shop.price.run(call(item="tea"))


def test_a_tool_without_self_is_not_bound_by_a_class() -> None:
    class Holder:
        helper = add

    holder: Any = Holder()
    assert holder.helper is add


class Multiplier:
    factor: str
    "An annotation of the class, not of the call."

    def __init__(self, factor: str) -> None:
        self.factor = factor

    def __call__(self, times: int) -> str:
        """Repeat it."""
        return self.factor * times


class AwaitedMultiplier(Multiplier):
    async def __call__(self, times: int) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.factor * times


def test_a_callable_object_is_a_tool_if_it_gets_a_name() -> None:
    made = tool(Multiplier("x"), name="repeat")
    assert made.tool.description == "Repeat it."
    assert made.tool.parameters["properties"] == {"times": {"type": "integer"}}
    assert made.run(call(times=3)) == "xxx"
    assert made.blocking is True
    assert tool(AwaitedMultiplier("x"), name="repeat").blocking is False
    with pytest.raises(ConfigError, match="it has no name"):
        tool(Multiplier("x"))


def charge(amount: int, *, account: str) -> str:
    """Take money."""
    return f"{amount} from {account}"


def test_the_model_neither_sees_nor_sets_what_a_partial_has_filled_in() -> None:
    made = tool(functools.partial(charge, account="secret"), name="charge")
    assert made.tool.description == made.__doc__ == "Take money."
    assert "secret" not in str(made.tool.parameters)
    assert made.run(call(amount=3)) == "3 from secret"
    with pytest.raises(BadArguments, match="no argument account"):
        made.run(call(amount=3, account="mine"))


def test_a_wrapped_function_is_described_by_the_inner_one() -> None:
    @tool
    @functools.lru_cache
    def square(number: int) -> int:
        """Square it."""
        return number * number

    assert square.tool == tool(square.__wrapped__.__wrapped__).tool  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess, reportAttributeAccessIssue]
    assert square.tool.description == "Square it."
    assert square.run(call(number="3")) == 9


class Counted:
    """Wraps a function in an object, as some libraries do."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return list(self.function(*args, **kwargs))


def test_an_object_that_wraps_a_function_is_described_by_it_and_runs_its_own_code() -> None:
    counted = Counted(yields)
    made = tool(counted)
    assert made.tool.parameters["properties"] == {"place": {"type": "string"}}
    assert made.tool.description == "Say it twice."
    assert made.run(call(place="Ulm")) == ["Ulm", "Ulm"]
    assert counted.count == 1


class Order(msgspec.Struct):
    item: str
    count: int = 1


def test_a_class_is_called_like_a_function() -> None:
    made = tool(Order, name="order")
    assert made.tool.parameters["required"] == ["item"]
    assert made.run(call(item="tea", count="2")) == Order("tea", 2)
    assert tool(Multiplier, name="make").tool.parameters["properties"] == {"factor": {"type": "string"}}
    assert tool(Shop, name="open").tool.parameters["properties"] == {"name": {"type": "string"}}


@tool
def uses_what_comes_later(thing: Later) -> str:
    return thing.name


class Later(msgspec.Struct):
    name: str


def test_a_type_may_be_defined_below_the_function() -> None:
    assert uses_what_comes_later.run(call(thing={"name": "x"})) == "x"
    assert "Later" in uses_what_comes_later.tool.parameters["$defs"]


def test_a_type_that_is_never_defined_is_named_when_the_tool_is_used() -> None:
    class Local(msgspec.Struct):
        name: str

    @tool
    def uses_a_local(thing: Local) -> str:
        return thing.name

    with pytest.raises(
        ConfigError, match=r"uses_a_local cannot be read \(name 'Local' is not defined\).*outside of any"
    ):
        _ = uses_a_local.tool


def print_place(place: str) -> str:
    return place


WRONG: Any = "maybe"


def yields(place: str) -> Iterator[str]:
    """Say it twice."""
    yield place
    yield place


async def yields_later(place: str) -> AsyncIterator[str]:
    yield place


grown: Any = types.FunctionType(print_place.__code__, {}, "größe")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tool(yields), "yields is a generator, and a tool returns one value"),
        (lambda: tool(yields_later), "one value"),
        (lambda: tool(grown), "'größe' cannot be the name"),
        (lambda: tool(name="get weather")(print_place), "'get weather' cannot be the name"),
        (lambda: tool(name="x" * 65)(print_place), "at most 64"),
        (lambda: tool(name="")(print_place), "cannot be the name"),
        (lambda: tool(approval=WRONG)(print_place), 'Use "allow", "deny" or "ask"'),
        (lambda: tool(timeout=0)(print_place), "timeout"),
        (lambda: tool(timeout=WRONG)(print_place), "timeout"),
        (lambda: tool(timeout=float("nan"))(print_place), "timeout"),
        (lambda: tool(fatal=(WRONG,))(print_place), "not an exception"),
        (lambda: tool(WRONG), "a tool must be a function, not str"),
        (lambda: tool(add), "add is already a tool"),
        (lambda: tool(lambda place: place), "it has no name"),
        (lambda: tool(functools.partial(print_place)), "it has no name"),
    ],
)
def test_a_function_that_makes_no_tool_is_refused_with_the_reason(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        make()
    assert re.search(r"\. [A-Z]", str(caught.value))


def test_a_tool_with_options_keeps_its_types() -> None:
    made: FunctionTool[[str], str] = tool(name="show")(print_place)
    assert_type(made("x"), str)
    assert made.run(ToolCall("1", "show", {"place": "x"})) == "x"


def test_pydantic_is_not_loaded_for_plain_types() -> None:
    code = (
        "import sys\n"
        "from asides.agents.tools.function_tool import tool\n"
        "@tool\n"
        "def add(a: int, b: list[str] = []) -> int: return a\n"
        "assert add.tool.parameters\n"
        "print(sorted({'pydantic', 'asyncio', 'sqlite3', 'difflib'} & set(sys.modules)) )\n"
    )
    source = str(Path(asides.__file__).parent.parent)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    assert found.stdout.strip() == "[]"
