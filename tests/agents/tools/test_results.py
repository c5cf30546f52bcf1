"""Results of calls: values of every kind, and failures as text, without secrets and tracebacks."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import re
import warnings
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest

from asides.agents.tools.executor import BadArguments, Raised, Returned, TimedOut
from asides.agents.tools.results import build_result, deny_call, reject_unknown_tool
from asides.values.messages import Message
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.result import Result, Step
from asides.values.thinking import Thought

CALL = ToolCall("call_7", "look")
PICTURE = Image(data=b"\x89PNG")


class Colour(enum.Enum):
    RED = "red"


class Size(msgspec.Struct):
    width: int


@dataclasses.dataclass
class Place:
    city: str
    since: dt.date


class Found(TypedDict):
    place: Place


class Matrix:
    """As arrays of other libraries have it."""

    def tolist(self) -> list[list[int]]:
        return [[1, 2], [3, 4]]

    def __repr__(self) -> str:
        return "Matrix()"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("fine", "fine"),
        ("", ""),
        (None, "Done; there is nothing to report."),
        (3, "3"),
        (2**100, str(2**100)),
        (True, "true"),
        (1.5, "1.5"),
        (["a", "b"], '["a","b"]'),
        ([], "[]"),
        ((), "[]"),
        ({"a": None}, '{"a":null}'),
        ({1: {2}}, '{"1":[2]}'),
        (Size(3), '{"width":3}'),
        (Found(place=Place("Ulm", dt.date(854, 7, 22))), '{"place":{"city":"Ulm","since":"0854-07-22"}}'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (Colour.RED, '"red"'),
        (Path("a/b"), '"a/b"'),
        ({"m": Matrix()}, '{"m":[[1,2],[3,4]]}'),
        (Text("words"), (Text("words"),)),
        (PICTURE, (PICTURE,)),
        (["see:", PICTURE, {"width": 3}], (Text("see:"), PICTURE, Text('{"width":3}'))),
        ((File("a.pdf", b"%PDF"),), (File("a.pdf", b"%PDF"),)),
    ],
    ids=repr,
)
def test_a_value_becomes_text_json_or_parts(value: Any, content: Any) -> None:
    assert build_result(CALL, Returned(value)) == ToolResult("call_7", content, "look")


def test_a_tool_result_keeps_its_content_and_gets_the_id_of_the_call() -> None:
    own = ToolResult("whatever", "no such place", is_error=True, cache=True)
    assert build_result(CALL, Returned(own)) == ToolResult("call_7", "no such place", "look", is_error=True, cache=True)
    assert build_result(CALL, Returned(ToolResult("", "x", name="other"))).name == "other"


def test_another_models_answer_goes_without_its_thinking() -> None:
    thought = Thought("CANARY", "raw", "field")
    reply = Reply(parts=(thought, Text("42")))
    run = Result(Size(3), messages=(Message("assistant", (thought, Text("42"))),), steps=(Step(1, reply),))
    for value, text in ((reply, "42"), (run.messages[0], "42"), (run, '{"width":3}'), (Result("42"), "42")):
        assert build_result(CALL, Returned(value)) == ToolResult("call_7", text, "look")


async def waits() -> str:
    return "never"


def endless() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (object, r"look ran, but its value \(object\) cannot be sent"),
        (lambda: {"a": object()}, r"\(dict\) cannot be sent.*a value that JSON can hold"),
        (lambda: [PICTURE, object()], r"\(list\) cannot be sent"),
        (lambda: {(1, 2): 3}, r"\(dict\)"),
        (endless, r"\(list\)"),
        (lambda: iter([1]), r"\(list_iterator\)"),
        (lambda: b"\x89PNG", r"\(bytes\) cannot be sent.*asides\.Image"),
        (waits, r"\(coroutine\) cannot be sent.*make the function async"),
    ],
)
def test_a_value_that_cannot_be_sent_is_an_error_result(make: Any, words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = build_result(CALL, Returned(make()))
    assert result.is_error
    assert result.call_id == "call_7"
    assert re.search(words, result.text)


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("Ulm"), "KeyError: 'Ulm'"),
        (ValueError(), "ValueError, without a reason."),
        (Wordless(), "Wordless, without a reason."),
        (BadArguments("days is missing"), "days is missing"),
        (ExceptionGroup("two", [OSError("disk"), ValueError("city")]), "OSError: disk; ValueError: city"),
        (PermissionError("key sk-live-1234567890 was refused"), "PermissionError: key *** was refused"),
    ],
    ids=repr,
)
def test_an_exception_becomes_its_type_and_message(error: Exception, text: str) -> None:
    assert build_result(CALL, Raised(error)) == ToolResult("call_7", text, "look", is_error=True)


def test_an_exception_shows_no_traceback_and_no_key_and_is_cut() -> None:
    try:
        raise ValueError("sk-live-" + "x" * 5000 + " and " + "y" * 5000)
    except ValueError as error:
        text = build_result(CALL, Raised(error)).text
    assert len(text) == len(f"ValueError: *** and {'y' * 5000}"[:1000]) + 1
    assert "Traceback" not in text
    assert __file__ not in text
    assert "xxx" not in text


def test_a_call_that_took_too_long_says_so() -> None:
    assert build_result(CALL, TimedOut(2.5)) == ToolResult(
        "call_7", "look was given up after 2.5 s: it took too long. Ask for less.", "look", is_error=True
    )
    assert "after" not in build_result(CALL, TimedOut()).text


def test_a_denied_call_names_the_reason() -> None:
    assert deny_call(CALL).text == "The call of look was not allowed. Go on without it."
    assert deny_call(CALL, " Not today. ").text == "The call of look was not allowed: Not today. Go on without it."
    assert "sk-live" not in deny_call(CALL, "sk-live-1234567890").text
    assert deny_call(CALL).is_error
    assert deny_call(CALL).call_id == "call_7"


@pytest.mark.parametrize(
    ("name", "names", "text"),
    [
        ("get_wether", ["get_weather", "add"], "There is no tool named 'get_wether'. Did you mean get_weather?"),
        ("zzz", ["get_weather", "add"], "There is no tool named 'zzz'. The tools are add, get_weather."),
        ("zzz", [], "There is no tool named 'zzz'. There are no tools. Answer without one."),
    ],
)
def test_a_tool_that_does_not_exist_is_answered_with_the_existing_ones(name: str, names: list[str], text: str) -> None:
    assert reject_unknown_tool(ToolCall("call_7", name), names) == ToolResult("call_7", text, name, is_error=True)


def test_only_some_of_very_many_tools_are_named() -> None:
    text = reject_unknown_tool(ToolCall("1", "z" * 500), [f"tool_{number}" for number in range(500)]).text
    assert "and more." in text
    assert len(text) < 600
