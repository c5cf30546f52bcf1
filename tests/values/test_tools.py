"""Tools read from a dict in the format of a provider, and their limits."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.errors import ConfigError, TooManyTools
from asides.values.tools import Tool, check_tools, read_tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    "document",
    [
        {"type": "function", "function": {"name": "look", "description": "See.", "parameters": CITY}},
        {"type": "function", "name": "look", "description": "See.", "parameters": CITY},
        {"name": "look", "description": "See.", "input_schema": CITY},
    ],
    ids=["chat completions", "responses", "anthropic"],
)
def test_each_format_is_read(document: dict[str, Any]) -> None:
    assert read_tool(document) == Tool("look", "See.", CITY)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "a tool has no name"),
        ({"function": "look"}, "a tool has no name"),
        ({"name": "x", "parameters": 1}, "the tool x is invalid"),
    ],
)
def test_a_dict_that_is_no_tool_is_refused_with_the_reason(document: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_tool(document)


def test_a_dict_without_parameters_is_a_tool_that_takes_none() -> None:
    assert read_tool({"type": "function", "function": {"name": "now"}}) == Tool("now")


def test_strict_is_read() -> None:
    assert read_tool({"name": "now", "strict": True}).strict is True
    assert read_tool({"name": "now"}).strict is None


def test_too_many_or_too_large_tools_are_refused_with_the_numbers() -> None:
    tools = [Tool(f"tool_{number}", "x" * 600) for number in range(4)]
    check_tools(tools, most=4, most_kb=3)
    with pytest.raises(TooManyTools, match=r"4 tools .2\.\d KB of JSON. were given and 3 are allowed"):
        check_tools(tools, most=3, most_kb=3)
    with pytest.raises(TooManyTools, match=r"2\.\d KB of JSON .* and 2 KB are allowed"):
        check_tools(tools, most=4, most_kb=2)
