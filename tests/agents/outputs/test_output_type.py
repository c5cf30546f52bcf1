"""Every way to name an output type gives a schema, a parser, and feedback where an answer does not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Union, assert_type

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from asides.agents.outputs.output_type import OutputMismatch, OutputType, read_output_type
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema
from tests.agents.outputs.shapes import (
    WEATHER_SCHEMA,
    Cat,
    Colour,
    Dog,
    Forecast,
    Node,
    Percent,
    Person,
    Place,
    Team,
    Tree,
    Weather,
)

CHAT_SHAPE = {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER_SCHEMA, "strict": True}}
RESPONSES_SHAPE = {"type": "json_schema", "name": "w", "schema": WEATHER_SCHEMA, "strict": True}

# What names the form, an answer that fits, its value, and whether it is sent inside {"value": …}.
FITTING: list[tuple[Any, str, Any, bool]] = [
    (Weather, '{"city": "Oslo", "degrees": 3}', Weather("Oslo", 3.0), False),
    (Forecast, '{"days": [{"city": "Oslo", "degrees": 3}]}', Forecast([Weather("Oslo", 3.0)]), False),
    (Place, '{"name": "Oslo", "population": 7}', {"name": "Oslo", "population": 7}, False),
    (Person, '{"name": "Ada", "age": 36}', Person(name="Ada", age=36), False),
    (Team, '{"people": [{"name": "Ada", "age": 36}]}', Team(people=[Person(name="Ada", age=36)]), False),
    (list[Person], '{"value": [{"name": "Ada", "age": 36}]}', [Person(name="Ada", age=36)], True),
    (Node, '{"name": "a", "below": [{"name": "b", "below": []}]}', Node("a", [Node("b", [])]), False),
    (Tree, '{"name": "a", "below": [{"name": "b", "below": []}]}', Tree(name="a", below=[Tree(name="b")]), False),
    (dict[str, int], '{"a": 1}', {"a": 1}, False),
    (list[int], '{"value": [1, 2]}', [1, 2], True),
    (Colour, '{"value": "red"}', "red", True),
    (Union[Cat, Dog], '{"value": {"type": "dog", "tricks": ["sit"]}}', Dog(["sit"]), True),  # noqa: UP007
    (int | None, '{"value": null}', None, True),
    (Percent, '{"value": 50}', 50, True),
    (WEATHER_SCHEMA, '{"city": "Oslo", "degrees": 3}', {"city": "Oslo", "degrees": 3}, False),
    (CHAT_SHAPE, '{"city": "Oslo", "degrees": 3}', {"city": "Oslo", "degrees": 3}, False),
    (RESPONSES_SHAPE, '{"city": "Oslo", "degrees": 3}', {"city": "Oslo", "degrees": 3}, False),
    (OutputSchema("w", WEATHER_SCHEMA), '{"city": "Oslo", "degrees": 3}', {"city": "Oslo", "degrees": 3}, False),
    ({"type": "array", "items": {"type": "integer"}}, '{"value": [1]}', [1], True),
    (OutputSchema("list", {"type": "array"}), "[1]", [1], False),
    ("json", '{"anything": [1]}', {"anything": [1]}, False),
]
NAMES = [str(getattr(output, "__name__", type(output).__name__)) for output, *_ in FITTING]


def test_checkers_know_the_type_of_what_comes() -> None:
    assert_type(read_output_type(Weather), OutputType[Weather])
    assert_type(read_output_type(Person).parse('{"name": "Ada", "age": 1}'), Person)
    assert_type(read_output_type(list[int]).parse("[1]"), list[int])
    schema: dict[str, object] = WEATHER_SCHEMA
    assert_type(read_output_type(schema), OutputType[dict[str, Any]])
    assert_type(read_output_type("json"), OutputType[dict[str, Any]])


@pytest.mark.parametrize(("output", "text", "value", "wrapped"), FITTING, ids=NAMES)
def test_a_form_by_any_name_is_read(output: Any, text: str, value: Any, wrapped: bool) -> None:
    form = read_output_type(output)
    assert form.parse(text) == value
    assert form.parse(text.encode()) == value
    assert type(form.parse(text)) is type(value)
    assert form.wrapped == wrapped


@pytest.mark.parametrize(("output", "text", "value", "wrapped"), FITTING, ids=NAMES)
def test_providers_get_an_object_at_the_root_and_the_answer_fits_the_schema(
    output: Any, text: str, value: Any, wrapped: bool
) -> None:
    import fastjsonschema

    schema = read_output_type(output).schema
    if isinstance(output, OutputSchema):
        assert schema is output
    if schema == "json":
        return
    if not isinstance(output, OutputSchema):
        assert schema.schema["type"] == "object"
    assert "$ref" not in schema.schema
    fastjsonschema.validate(schema.schema, json.loads(text))
    assert schema.name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(("output", "text", "value"), [(o, t, v) for o, t, v, wrapped in FITTING if wrapped])
def test_a_bare_value_is_as_good_as_one_in_its_object(output: Any, text: str, value: Any) -> None:
    assert read_output_type(output).parse(json.dumps(json.loads(text)["value"])) == value


@pytest.mark.parametrize(
    ("output", "text", "words"),
    [
        (Weather, '{"city": "Oslo", "degrees": "warm"}', ["$.degrees", "float", "str"]),
        (Weather, '{"city": "Oslo"}', ["degrees"]),
        (Forecast, '{"days": [{"city": 1, "degrees": 3}]}', ["$.days[0].city", "str", "int"]),
        (Place, '{"name": "Oslo", "population": 1.5}', ["$.population", "int", "float"]),
        (Person, '{"name": "Ada", "age": -1}', ["$.age", "greater than or equal to 0"]),
        (Team, '{"people": [{"name": "Ada"}, {"age": 1}]}', ["$.people[0].age", "$.people[1].name", "required"]),
        (list[int], '{"value": [1, "two"]}', ["$[1]", "int", "str"]),
        (Percent, '{"value": 101}', ["<= 100"]),
        (WEATHER_SCHEMA, '{"city": 7, "degrees": 3}', ["$.city", "string", "integer"]),
        (WEATHER_SCHEMA, '{"city": "Oslo"}', ["$", "missing", "degrees"]),
        (WEATHER_SCHEMA, '{"city": "Oslo", "degrees": 3, "secret": 1}', ["$", "only these", "city"]),
        ({"type": "object", "properties": {"c": {"enum": ["x", "y"]}}}, '{"c": "z"}', ["$.c", '["x","y"]', "string"]),
        ({"type": "array", "items": {"type": "integer", "minimum": 3}}, "[1]", ["$[0]", "minimum 3", "integer"]),
        ({"properties": {"d": {"type": "string", "format": "date"}}}, '{"d": "no"}', ["$.d", "format", "date"]),
        ("json", "[1]", ["object", "array"]),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(output: Any, text: str, words: list[str]) -> None:
    with pytest.raises(OutputMismatch) as raised:
        read_output_type(output).parse(text)
    assert [word for word in words if word not in raised.value.feedback] == []


@pytest.mark.parametrize("output", [Weather, Person, WEATHER_SCHEMA, list[int], list[Person], "json"])
@pytest.mark.parametrize("text", ["", "no", '{"city"', "{'a': 1}", "NaN", "[" * 9000, "\ud800", '{"a": 1} {"a": 1}'])
def test_what_is_no_json_is_a_mismatch_for_every_form(output: Any, text: str) -> None:
    with pytest.raises(OutputMismatch):
        read_output_type(output).parse(text)


CANARY = "canary-2718"


@pytest.mark.parametrize("output", [Weather, Person, Place, WEATHER_SCHEMA, Colour, list[int], "json"])
@pytest.mark.parametrize(
    "text",
    [CANARY, f'"{CANARY}"', f'{{"city": "{CANARY}", "name": "{CANARY}", "age": "{CANARY}", "{CANARY}": 1}}', "[1"],
)
def test_a_mismatch_shows_people_nothing_of_the_answer(output: Any, text: str) -> None:
    if output == "json" and text.startswith("{"):
        return
    with pytest.raises(OutputMismatch) as raised:
        read_output_type(output).parse(text)
    assert CANARY not in f"{raised.value} {raised.value!r} {raised.value.args}"
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "object", "properties": 3},
        {"type": "string", "pattern": "("},
        {"$ref": "#/$defs/nowhere"},
    ],
)
def test_what_is_no_schema_is_found_before_anything_is_asked(schema: Any) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        read_output_type(schema)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/schema", "file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_a_schema_fetches_nothing(address: str) -> None:
    with pytest.raises(ConfigError, match="another document"):
        read_output_type({"type": "object", "properties": {"a": {"$ref": address}}})


@pytest.mark.parametrize("output", ["yaml", 3, lambda: 1, object, type("Plain", (), {})])
def test_what_names_no_form_is_said_to_name_none(output: Any) -> None:
    with pytest.raises(ConfigError, match="output"):
        read_output_type(output)


def test_a_schema_that_refers_to_its_own_root_stays_at_the_root() -> None:
    nested: Any = {"type": "array", "items": {"$ref": "#"}}
    form: OutputType[Any] = read_output_type(nested)
    assert form.schema == OutputSchema("output", nested)
    assert form.parse("[[], [[]]]") == [[], [[]]]
    with pytest.raises(OutputMismatch):
        form.parse("[1]")


def test_a_format_of_ones_own_is_no_reason_to_refuse_a_schema() -> None:
    form = read_output_type({"type": "object", "properties": {"a": {"type": "string", "format": "klingon"}}})
    assert form.parse('{"a": "nuqneH"}') == {"a": "nuqneH"}


def test_defaults_of_a_schema_are_not_put_into_the_answer() -> None:
    form = read_output_type({"type": "object", "properties": {"a": {"type": "integer", "default": 3}}})
    assert form.parse("{}") == {}


def test_a_dataclass_with_a_model_of_pydantic_inside_is_read_by_pydantic() -> None:
    @dataclass
    class Crew:
        name: str
        captain: Person
        others: list[Person] = field(default_factory=list[Person])

    Crew.__annotations__ = {"name": str, "captain": Person, "others": list[Person]}
    form = read_output_type(Crew)
    assert form.parse('{"name": "x", "captain": {"name": "Ada", "age": 1}}') == Crew("x", Person(name="Ada", age=1))
    with pytest.raises(OutputMismatch) as raised:
        form.parse('{"name": "x", "captain": {"name": "Ada", "age": -1}}')
    assert "$.captain.age" in raised.value.feedback


def test_a_rule_of_the_type_itself_is_told_to_the_model() -> None:
    @dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("number must be even")

    with pytest.raises(OutputMismatch) as raised:
        read_output_type(Even).parse('{"number": 3}')
    assert "number must be even" in raised.value.feedback


def test_strict_where_the_schema_leaves_nothing_open() -> None:
    class Loose(msgspec.Struct):
        anything: Any

    def strict(output: Any) -> bool:
        schema = read_output_type(output).schema
        assert isinstance(schema, OutputSchema)
        return schema.strict

    assert [strict(output) for output in (Weather, list[int], Colour, Union[Cat, Dog], Person)] == [True] * 5  # noqa: UP007
    assert [strict(output) for output in (Forecast, dict[str, int], Loose, {"type": "object"})] == [False] * 4
    unknown_word = {
        **WEATHER_SCHEMA,
        "properties": {**WEATHER_SCHEMA["properties"], "city": {"type": "string", "minLength": 1}},
    }
    assert not strict(unknown_word)


def test_a_choice_says_of_what_since_some_hosts_want_it() -> None:
    schema = read_output_type(Colour).schema
    assert isinstance(schema, OutputSchema)
    assert schema.schema["properties"]["value"] == {"enum": ["green", "red"], "type": "string"}


@settings(deadline=None)
@given(some.recursive(some.none() | some.booleans() | some.integers() | some.text(), some.lists, max_leaves=6))
def test_whatever_is_sent_in_its_object_comes_out_again(value: Any) -> None:
    form = read_output_type({"type": ["array", "null", "boolean", "integer", "string"]})
    assert form.wrapped
    assert form.parse(msgspec.json.encode({"value": value})) == value


def test_neither_pydantic_nor_the_checker_is_imported_for_a_type_of_ours() -> None:
    code = (
        "import sys, dataclasses\n"
        "from asides.agents.outputs.output_type import read_output_type\n"
        "kind = dataclasses.make_dataclass('Sky', [('blue', bool)])\n"
        "assert read_output_type(kind).parse('{\"blue\": true}').blue\n"
        "assert read_output_type(list[int]).parse('[1]') == [1]\n"
        "print([name for name in ('pydantic', 'fastjsonschema') if name in sys.modules])\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"
