"""A typed function as a tool: its name, its first paragraph, the schema of its signature."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from asides.agents.tools.signatures import tool_of
from asides.values.errors import ConfigError
from asides.values.tools import Tool, read_tool


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(msgspec.Struct):
    city: str
    country: str | None = None


def forecast(
    place: Place,
    days: Annotated[int, msgspec.Meta(description="how far ahead", ge=1, le=14)],
    *,
    unit: Unit = Unit.CELSIUS,
    style: Literal["short", "long"] = "short",
    notes: list[str] = [],  # noqa: B006 - it happens
    anything: Any = None,
) -> str:
    """The weather
    to come.

    This is for people.
    """
    return f"{place} {days} {unit} {style} {notes} {anything}"


def test_a_function_is_a_tool() -> None:
    made = tool_of(forecast)
    assert (made.name, made.description) == ("forecast", "The weather to come.")
    schema = made.parameters
    assert schema["type"] == "object"
    assert schema["required"] == ["place", "days"]
    assert schema["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert schema["properties"]["days"]["description"] == "how far ahead"
    assert (schema["properties"]["days"]["minimum"], schema["properties"]["days"]["maximum"]) == (1, 14)
    assert schema["properties"]["unit"]["default"] == "c"
    assert schema["properties"]["style"] == {"enum": ["long", "short"], "default": "short"}
    assert schema["properties"]["notes"]["items"] == {"type": "string"}
    assert schema["$defs"]["Place"]["required"] == ["city"]
    assert "title" not in schema
    msgspec.json.encode(schema)


def test_a_function_without_parameters_or_words_is_one_too() -> None:
    def now() -> str:
        return "now"

    assert tool_of(now) == Tool("now", "", {"type": "object", "properties": {}, "required": []})


def test_a_method_is_one_without_its_self() -> None:
    class Sky:
        def look(self, at: str) -> str:
            return at

    assert list(tool_of(Sky().look).parameters["properties"]) == ["at"]


def takes_anything(*places: str) -> None: ...
def takes_names(**places: str) -> None: ...
def takes_by_position(place: str, /) -> None: ...
def takes_a_lock(lock: threading.Lock) -> None: ...
def takes_what_is_not_there(place: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037  # pyright: ignore[reportUndefinedVariable]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (takes_anything, r"takes_anything cannot take \*places"),
        (takes_names, r"takes_names cannot take \*\*places"),
        (takes_by_position, "by name"),
        (takes_a_lock, "takes_a_lock takes what JSON cannot carry"),
        (takes_what_is_not_there, "takes_what_is_not_there does not read"),
        (lambda place: place, "it has no name"),
        (functools.partial(forecast), "it has no name"),
    ],
)
def test_what_a_model_could_not_call_is_refused_with_the_reason(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tool_of(function)


def test_a_dict_without_parameters_is_a_tool_that_takes_none() -> None:
    assert read_tool({"type": "function", "function": {"name": "now"}}) == Tool("now")


def test_strictness_is_read() -> None:
    assert read_tool({"name": "now", "strict": True}).strict is True
    assert read_tool({"name": "now"}).strict is None
