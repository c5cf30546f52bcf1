"""Schemas inside a schema, values that only look like one, and definitions moved to the root without name clashes."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.json_schema import (
    close_objects,
    find_inner_schemas,
    find_references,
    find_schema_fault,
    hoist_definitions,
    map_inner_schemas,
    remove_titles,
    resolve_reference,
)

A: dict[str, Any] = {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    "schema",
    [
        {"items": A},
        {"items": [A, True]},
        {"additionalProperties": A},
        {"not": A},
        {"if": A, "then": True},
        {"anyOf": [A, {"type": "null"}]},
        {"prefixItems": [A]},
        {"properties": {"default": A}},
        {"patternProperties": {"^enum": A}},
        {"$defs": {"title": A}},
        {"definitions": {"title": A}},
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_a_schema_inside_is_found_and_can_be_changed(schema: dict[str, Any]) -> None:
    assert A in find_inner_schemas(schema)
    assert find_references(schema) == {"#/$defs/A"}
    assert find_references(map_inner_schemas(schema, lambda _: {"type": "null"})) == set()


@pytest.mark.parametrize(
    "schema",
    [
        {"default": A},
        {"const": A},
        {"enum": [A]},
        {"examples": [A]},
        {"required": ["items"]},
        {"discriminator": {"mapping": {"title": "#/$defs/A"}}},
        {"properties": "none"},
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_a_value_that_looks_like_a_schema_stays_unchanged(schema: dict[str, Any]) -> None:
    assert find_inner_schemas(schema) == []
    assert map_inner_schemas(schema, lambda _: {"type": "null"}) == schema


def test_references_are_found_at_any_depth() -> None:
    assert find_references({"items": {"anyOf": [{"properties": {"a": A}}, {"$ref": "#"}]}}) == {"#/$defs/A", "#"}


def test_inner_definitions_move_to_the_root() -> None:
    definitions: dict[str, Any] = {"B": {"type": "null"}}
    inner = {"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/$defs/A"}}
    assert hoist_definitions({"anyOf": [inner, {"type": "null"}]}, definitions) == {
        "anyOf": [{"items": {"$ref": "#/$defs/A"}}, {"type": "null"}]
    }
    assert definitions == {"A": {"type": "integer"}, "B": {"type": "null"}}


def test_the_same_definition_twice_is_one() -> None:
    definitions: dict[str, Any] = {}
    tree = {"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}, "$ref": "#/$defs/A"}
    assert hoist_definitions(tree, definitions) == hoist_definitions(tree, definitions) == {"$ref": "#/$defs/A"}
    assert definitions == {"A": {"items": {"$ref": "#/$defs/A"}}}


def test_a_different_definition_of_the_same_name_is_renamed_with_its_references() -> None:
    definitions: dict[str, Any] = {"A": {"type": "integer"}, "A_2": {"type": "string"}}
    tree = {
        "$defs": {
            "A": {"items": {"$ref": "#/$defs/A"}, "not": {"$ref": "#/$defs/A_3"}},
            "A_3": {"type": "null"},
        },
        "properties": {"default": {"$ref": "#/$defs/A"}, "x": {"default": {"$ref": "#/$defs/A"}}},
    }
    assert hoist_definitions(tree, definitions)["properties"] == {
        "default": {"$ref": "#/$defs/A_4"},
        "x": {"default": {"$ref": "#/$defs/A"}},
    }
    assert definitions["A"] == {"type": "integer"}
    assert definitions["A_4"] == {"items": {"$ref": "#/$defs/A_4"}, "not": {"$ref": "#/$defs/A_3"}}
    assert definitions["A_3"] == {"type": "null"}


def test_a_reference_is_merged_with_the_keywords_beside_it() -> None:
    definitions = {"A": {"type": "integer", "description": "a number"}}
    assert resolve_reference({"$ref": "#/$defs/A", "description": "this one"}, definitions) == {
        "type": "integer",
        "description": "this one",
    }
    assert resolve_reference({"$ref": "#/$defs/B"}, definitions) == {"$ref": "#/$defs/B"}
    assert resolve_reference({"type": "null"}, definitions) == {"type": "null"}


def test_objects_without_fields_stay_open() -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert close_objects({"type": "object", "properties": {"a": free}}, {}) == {
        "type": "object",
        "properties": {"a": free},
        "additionalProperties": False,
    }


def test_titles_are_removed_and_a_field_called_title_stays() -> None:
    schema = {"title": "Book", "properties": {"title": {"title": "Title", "type": "string", "default": {"title": 1}}}}
    assert remove_titles(schema) == {"properties": {"title": {"type": "string", "default": {"title": 1}}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": True}, "required": ["a"]},
        {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["x", 1, None]}], "x-own": 5},
        {"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}, "type": "array", "maxItems": 3}}},
        {"const": {"type": "not a schema"}, "default": {"type": 5}},
        {"additionalProperties": False, "patternProperties": {"^a": {"maxLength": 3.0}}, "not": {}},
    ],
)
def test_a_good_schema_has_no_fault(schema: dict[str, Any]) -> None:
    assert find_schema_fault(schema) is None


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "objekt"}, "$.type is 'objekt'; the types are array"),
        ({"type": ["string", 5]}, "$.type is 5"),
        ({"type": {}}, "$.type is {}"),
        ({"name": "Ada", "age": 36}, "$ has no keyword of a JSON schema, such as type; it has 'name', 'age'"),
        ({"properties": ["a"]}, "$.properties is not an object of schemas"),
        ({"properties": {"a": "string"}}, "$.properties.a is not a schema"),
        ({"properties": {"a": {"items": {"type": "int"}}}}, "$.properties.a.items.type is 'int'"),
        ({"type": "object", "required": "a"}, "$.required is not a list of names"),
        ({"required": [1]}, "$.required is not a list of names"),
        ({"enum": {}}, "$.enum is not a list of values"),
        ({"anyOf": {"type": "null"}}, "$.anyOf is not a list of schemas"),
        ({"anyOf": [{"type": "null"}, 5]}, "$.anyOf[1] is not a schema"),
        ({"minLength": -1}, "$.minLength is not a whole number"),
        ({"maxItems": True}, "$.maxItems is not a whole number"),
        ({"minimum": "0"}, "$.minimum is not a number"),
        ({"$ref": 5}, "$.$ref is not text"),
        ([], "$ is not a schema"),
    ],
)
def test_a_fault_is_named_with_its_place(schema: object, fault: str) -> None:
    assert (find_schema_fault(schema) or "").startswith(fault)
