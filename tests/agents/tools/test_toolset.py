"""Tools by name, each with the object that runs it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.agents.tools.executor import Approval, Runnable
from asides.agents.tools.function_tool import OfferedTool, build_toolset, find_runnable, tool
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall
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
    with pytest.raises(ConfigError, match=r"two tools are called add\. To do: rename one"):
        build_toolset([add, Tool("add")])
    assert list(build_toolset([add, tool(add, name="plus")])) == ["add", "plus"]


@pytest.mark.parametrize("given", [3, None, "add"])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=f"not {type(given).__name__}"):
        build_toolset([given])
