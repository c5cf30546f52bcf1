"""Tools by name, each with the object that runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import msgspec
import pytest

from asides.agents.tools.executor import Approval, Runnable
from asides.agents.tools.function_tool import OfferedTool, build_toolset, find_runnable, tool
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides.values.tools import Tool


def add(a: int, b: int) -> int:
    return a + b


@tool
def subtract(a: int, b: int) -> int:
    return a - b


class Remote(msgspec.Struct, frozen=True):
    """A Runnable that is no function."""

    tool: Tool
    approval: Approval | None = None
    timeout: float | None = None
    fatal: tuple[type[BaseException], ...] = ()
    blocking: bool = True

    def run(self, call: ToolCall) -> Any:
        return f"{self.tool.name}({sorted(call.arguments)})"


REMOTE = Remote(Tool("remote"))
DESCRIBED = Tool("described", "The caller runs it.")


def test_each_tool_has_its_runnable() -> None:
    offered = build_toolset([add, subtract, REMOTE, DESCRIBED, {"name": "from_json", "description": "x"}])
    assert list(offered) == ["add", "subtract", "remote", "described", "from_json"]
    assert offered["subtract"] == OfferedTool(subtract.tool, subtract)
    assert offered["remote"].runnable is REMOTE
    assert offered["described"] == OfferedTool(DESCRIBED, None)
    assert offered["from_json"] == OfferedTool(Tool("from_json", "x"), None)
    ran = offered["add"].runnable
    assert isinstance(ran, Runnable)
    assert ran.run(ToolCall("1", "add", {"a": "1", "b": 2})) == 3


def test_a_class_is_not_one_of_its_objects() -> None:
    with pytest.raises(ConfigError, match="Remote has a type that JSON cannot hold: fatal"):
        find_runnable(Remote)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two tools are called add\. Rename one"):
        build_toolset([add, Tool("add")])
    assert list(build_toolset([add, tool(add, name="plus")])) == ["add", "plus"]


@pytest.mark.parametrize("given", [3, None, "add"])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=f"not {type(given).__name__}"):
        build_toolset([given])


# --- functions that were read before ----------------------------------------------------------------------------------


class Place(msgspec.Struct):
    """A place."""

    city: str


class Region(msgspec.Struct):
    """A region."""

    country: str


NAMES: dict[str, Any] = {"Place": Place, "list": list}


def make_function() -> Any:
    """A function whose names are looked up in a dictionary of its own."""

    def look(place: Place, days: int = 1, *, exact: bool = False) -> str:
        """Look it up.

        Args:
            days: How many.
        """
        return f"{place} {days} {exact}"

    made = FunctionType(look.__code__, dict(NAMES), "look", look.__defaults__)
    made.__kwdefaults__ = dict(look.__kwdefaults__ or {})
    made.__annotations__ = dict(look.__annotations__)
    made.__doc__ = look.__doc__
    return made


def wrap(function: Any) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped


class Desk:
    """Something with a method."""

    def look(self, place: str) -> str:
        """Look it up."""
        return place


def add_attribute(function: Any) -> Any:
    function.__signature__ = None
    return function


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "function": make_function,
    "wrapped": lambda: wrap(make_function()),
    "wrapped twice": lambda: wrap(wrap(make_function())),
    "method": lambda: MethodType(make_function(), Desk()),
}
READ_EACH_TIME: dict[str, Callable[[], Any]] = {
    "partial": lambda: functools.update_wrapper(functools.partial(make_function(), days=2), make_function()),
    "object": type("look", (), {"__call__": Desk.look, "__name__": "look"}),
    "class": lambda: Place,
    "with attributes": lambda: add_attribute(make_function()),
}


def get_inner(function: Any) -> Any:
    while True:
        function = getattr(function, "__func__", function)
        if not hasattr(function, "__wrapped__"):
            return function
        function = function.__wrapped__


CHANGES: dict[str, Callable[[Any], object]] = {
    "nothing": lambda _: None,
    "its docstring": lambda made: setattr(made, "__doc__", "Look somewhere else."),
    "no docstring": lambda made: setattr(made, "__doc__", None),
    "its defaults": lambda made: setattr(made, "__defaults__", (7,)),
    "its defaults by name": lambda made: setattr(made, "__kwdefaults__", {"exact": True}),
    "a default in place": lambda made: made.__kwdefaults__ and made.__kwdefaults__.update(exact=True),
    "an annotation in place": lambda made: made.__annotations__.update(place="list[Place]"),
    "an annotation of a built-in type": lambda made: made.__annotations__.update(days="float"),
    "its annotations": lambda made: setattr(made, "__annotations__", {"days": float}),
    "its code": lambda made: setattr(made, "__code__", make_code()),
    "a type of that name": lambda made: made.__globals__.update(Place=Region),
    "its name": lambda made: setattr(made, "__name__", "seek"),
}


def make_code() -> Any:
    def look(place: str, days: int, other: int = 2, *, exact: bool) -> str:
        return f"{place} {days} {other} {exact}"

    return look.__code__


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_function_that_was_read_before_is_the_same_tool_as_one_that_is_read_now(kind: str, change: str) -> None:
    function = FUNCTIONS[kind]()
    earlier = build_toolset([function])
    CHANGES[change](get_inner(function))
    now, fresh = build_toolset([function], earlier), build_toolset([function])
    assert [offer.tool for offer in now.values()] == [offer.tool for offer in fresh.values()]
    runnables = [offer.runnable for offer in (*earlier.values(), *now.values())]
    assert (runnables[0] is runnables[1]) == (change == "nothing")


@pytest.mark.parametrize("kind", READ_EACH_TIME)
def test_other_callables_are_read_each_time(kind: str) -> None:
    given = READ_EACH_TIME[kind]()
    (first,) = (earlier := build_toolset([given])).values()
    (second,) = build_toolset([given], earlier).values()
    assert first.tool == second.tool
    assert first.runnable is not second.runnable


def test_a_function_is_not_taken_for_another_of_its_name_or_for_one_with_options() -> None:
    first, second = make_function(), make_function()
    earlier = build_toolset([first])
    assert build_toolset([second], earlier)["look"].runnable is not earlier["look"].runnable
    decorated = build_toolset([tool(first, description="Another.")])
    assert build_toolset([first], decorated)["look"].tool.description == "Look it up."


def test_a_function_that_wraps_itself_is_refused_as_before() -> None:
    function = make_function()
    function.__wrapped__ = function
    with pytest.raises(ConfigError, match="cannot be read"):
        build_toolset([function])
