"""Schemas inside a schema, values that only look like one, and definitions moved to the root without name clashes."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.json_schema import (
    close_objects,
    find_inner_schemas,
    find_references,
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
