"""Schemas for hosts that know only shapes: refused keywords move into descriptions, or the schema is rejected."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.agents.outputs.output_type import read_output_type
from asides.agents.outputs.schemas import simplify_schema
from asides.values.messages import OutputSchema
from tests.agents.outputs.shapes import Cat, Dog, Forecast, Node, Person, Team, Weather


def schema_of(output: Any) -> dict[str, Any]:
    schema = read_output_type(output).schema
    assert isinstance(schema, OutputSchema)
    return schema.schema


def objects_in(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects_in(item)]
    if not isinstance(schema, dict):
        return []
    inside = [found for value in schema.values() for found in objects_in(value)]
    return [schema, *inside] if schema.get("type") == "object" else inside


@pytest.mark.parametrize("output", [Weather, Forecast, Person, Team, list[Person], Cat | Dog], ids=str)
def test_what_is_left_has_closed_objects_and_no_bounds(output: Any) -> None:
    schema = schema_of(output)
    before = msgspec.json.encode(schema)
    plain = simplify_schema(schema)
    assert plain is not None
    assert msgspec.json.encode(schema) == before
    assert all(each["additionalProperties"] is False for each in objects_in(plain))
    spelled = msgspec.json.encode(plain).decode()
    assert not any(f'"{word}":' in spelled for word in ("minimum", "maximum", "default", "oneOf", "minLength"))
    assert [sorted(each["properties"]) for each in objects_in(plain)] == [
        sorted(each["properties"]) for each in objects_in(schema)
    ]


def test_bounds_become_words_behind_the_description_that_is_there() -> None:
    field = {"type": "array", "items": {"type": "string", "format": "klingon"}, "minItems": 2, "description": "Names"}
    plain = simplify_schema({"type": "object", "properties": {"minimum": field}, "required": ["minimum"]})
    assert plain == {
        "type": "object",
        "properties": {
            "minimum": {
                "type": "array",
                "items": {"type": "string", "description": '(format: "klingon")'},
                "description": "Names (minItems: 2)",
            }
        },
        "required": ["minimum"],
        "additionalProperties": False,
    }


def test_what_is_understood_stays() -> None:
    schema = {
        "type": "object",
        "properties": {"at": {"type": "string", "format": "date-time"}, "some": {"type": "array", "minItems": 1}},
        "additionalProperties": False,
    }
    assert simplify_schema(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}, "$defs": {}},
        {"type": "object", "properties": {}, "patternProperties": {"^a": {"type": "string"}}},
    ],
)
def test_what_cannot_be_said_in_shapes_is_not_said_wrong(schema: dict[str, Any]) -> None:
    assert simplify_schema(schema) is None


def test_many_fields_that_may_be_left_out_are_too_many() -> None:
    def with_optional(count: int) -> dict[str, Any]:
        fields = {f"f{number}": {"type": "string"} for number in range(count)}
        inner = {"type": "object", "properties": {**fields, "kept": {"type": "string"}}, "required": ["kept"]}
        return {"type": "object", "properties": {"inner": inner}, "required": ["inner"]}

    assert simplify_schema(with_optional(10)) is not None
    assert simplify_schema(with_optional(11)) is None


def test_a_type_inside_itself_is_found_however_far_the_way_round() -> None:
    assert simplify_schema(schema_of(Node)) is None
    around = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {
            "A": {"type": "object", "properties": {"b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}}},
            "B": {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/A"}}}},
        },
    }
    assert simplify_schema(around) is None
    twice = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }
    assert simplify_schema(twice) is not None
