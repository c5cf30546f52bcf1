"""Arguments as models write them: read where the meaning is clear, and otherwise refused with all problems at once."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
import pytest

from asides.agents.tools.executor import BadArguments
from asides.agents.tools.function_tool import tool
from asides.values.parts import ToolCall
from tests.agents.tools.calls import call


class Place(msgspec.Struct):
    city: str
    country: str = "FR"


@tool
def forecast(
    place: Place,
    days: Annotated[int, msgspec.Meta(ge=1)],
    unit: Literal["c", "f"] = "c",
    tags: list[str] | None = None,
    loud: bool = False,
) -> tuple[Any, ...]:
    return place, days, unit, tags, loud


PARIS = {"city": "Paris"}


def refusal(made: ToolCall, of: Any = forecast) -> str:
    with pytest.raises(BadArguments) as caught:
        of.run(made)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ({"place": PARIS, "days": 3}, (Place("Paris"), 3, "c", None, False)),
        ({"place": PARIS, "days": "3", "loud": "true"}, (Place("Paris"), 3, "c", None, True)),
        ({"place": PARIS, "days": 3.0, "loud": 1}, (Place("Paris"), 3, "c", None, True)),
        ({"place": '{"city": "Paris"}', "days": 3, "tags": ' ["a"]'}, (Place("Paris"), 3, "c", ["a"], False)),
        ({"place": PARIS, "days": 3, "unit": None, "tags": None, "loud": None}, (Place("Paris"), 3, "c", None, False)),
        ({"place": {**PARIS, "planet": "Earth"}, "days": 3}, (Place("Paris"), 3, "c", None, False)),
    ],
)
def test_arguments_with_a_clear_meaning_are_taken(arguments: dict[str, Any], got: tuple[Any, ...]) -> None:
    assert forecast.run(call(**arguments)) == got


def test_text_that_looks_like_json_stays_text_for_a_text_parameter() -> None:
    @tool
    def save(text: str, either: str | list[int]) -> str:
        return f"{text} {either}"

    assert save.run(call(text='{"a": 1}', either="[1]")) == '{"a": 1} [1]'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["place is missing", "days is missing (it takes {", "; "]),
        (
            {"place": PARIS, "days": "soon"},
            ['days: Expected `int`, got `str` (it takes {"type":"integer","minimum":1})'],
        ),
        ({"place": PARIS, "days": 0}, ["days: Expected `int` >= 1"]),
        ({"place": PARIS, "days": 1.5}, ["days: Expected `int`, got `float`"]),
        ({"place": PARIS, "days": None}, ["days: Expected `int`, got `null`"]),
        ({"place": {}, "days": 1}, ["place: Object missing required field `city`", '"required":["city"]']),
        ({"place": {"city": 3}, "days": 1}, ["place.city: Expected `str`, got `int`"]),
        ({"place": "Paris", "days": 1}, ["place: Expected `object`, got `str`"]),
        ({"place": "{Paris}", "days": 1}, ["place: Expected `object`, got `str`"]),
        ({"place": '{"town": "Paris"}', "days": 1}, ["place: Expected `object`, got `str`"]),
        ({"place": PARIS, "days": 1, "tags": ["a", 2]}, ["tags[1]: Expected `str`, got `int`"]),
        ({"place": PARIS, "days": 1, "unit": "kelvin"}, ["unit: Invalid enum value 'kelvin'", '"enum":["c","f"]']),
        ({"place": PARIS, "days": 1, "units": "c"}, ["there is no argument units (did you mean unit?)"]),
        ({"place": PARIS, "days": 1, "zzz": "c"}, ["no argument zzz (it takes place, days, unit, tags, loud)"]),
    ],
)
def test_an_argument_that_does_not_fit_is_named_with_its_schema(arguments: dict[str, Any], words: list[str]) -> None:
    message = refusal(call(**arguments))
    assert message.startswith("The arguments of named do not fit: ")
    assert message.endswith(". Call it again with ones that do.")
    for word in words:
        assert word in message


def test_a_key_that_does_not_fit_is_called_a_key() -> None:
    @tool
    def count(times: dict[int, str]) -> str:
        return str(times)

    assert count.run(call(times={"1": "x"})) == "{1: 'x'}"
    assert "times: Expected `int`, got `str` as a key" in refusal(call(times={"x": "x"}), count)


def test_a_tool_without_parameters_takes_none() -> None:
    @tool
    def now() -> str:
        return "now"

    assert now.run(call()) == "now"
    assert "no argument zone (it takes none)" in refusal(call(zone="UTC"), now)


def test_a_long_list_of_problems_is_cut() -> None:
    assert len(refusal(call(**{f"wrong_{number}": 1 for number in range(500)}))) < 1700
    assert len(refusal(call(place=PARIS, days=1, unit="x" * 10_000))) < 1700


def test_a_long_schema_is_not_repeated() -> None:
    def choose(one: Any) -> str:
        return str(one)

    choose.__annotations__["one"] = Literal[tuple(f"choice number {number}" for number in range(50))]

    assert "it takes" not in refusal(call(one="none"), tool(choose))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"place": {"city": "Par', "they are not JSON (Input data was truncated)"),
        ("{'place': 1}", "they are not JSON (JSON is malformed"),
        ("[1, 2]", "they are a JSON list and not an object"),
    ],
)
def test_arguments_that_are_no_object_are_refused(raw: str, words: str) -> None:
    assert words in refusal(ToolCall("1", "forecast", {}, raw))


def test_raw_arguments_that_are_an_object_are_read() -> None:
    made = ToolCall("1", "forecast", {}, '{"place": {"city": "Paris"}, "days": 2}')
    assert forecast.run(made) == (Place("Paris"), 2, "c", None, False)


def test_custom_input_is_the_only_argument() -> None:
    @tool
    def run_code(code: str, language: str = "python") -> str:
        return f"{language}: {code}"

    @tool
    def show(text: str = "") -> str:
        return text

    made = ToolCall("1", "run_code", {}, '{"not": json', custom=True)
    assert run_code.run(made) == 'python: {"not": json'
    assert show.run(made) == '{"not": json'
    assert "the tool takes a JSON object and got text" in refusal(made)

    @tool
    def wait(seconds: float) -> str:
        return f"{seconds} s"

    assert wait.run(ToolCall("1", "wait", {}, "3", custom=True)) == "3.0 s"
    assert "seconds: Expected `float`, got `str`" in refusal(made, wait)


def test_a_time_is_read_from_text_or_from_a_timestamp() -> None:
    @tool
    def remind(at: dt.datetime) -> str:
        return at.isoformat()

    assert remind.run(call(at="2026-01-02T03:04:05Z")) == "2026-01-02T03:04:05+00:00"
    assert remind.run(call(at=0)) == "1970-01-01T00:00:00+00:00"
    assert "at: Invalid RFC3339 encoded datetime" in refusal(call(at="tomorrow"), remind)


def test_a_function_that_changes_its_arguments_does_not_change_the_call() -> None:
    @tool
    def note(options: Any, places: dict[str, Any]) -> None:
        options["seen"] = True
        places["sea"].append("blue")

    made = ToolCall("c1", "note", {"options": {}, "places": {"sea": []}})
    note.run(made)
    assert made.arguments == {"options": {}, "places": {"sea": []}}
