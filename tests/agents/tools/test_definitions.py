"""Schemas with definitions inside: one place for all of them, and none lost to another of the same name."""

from __future__ import annotations

from typing import Any

from asides.values.json_schema import closed, hoisted, resolved, untitled


def test_inner_definitions_go_to_the_one_place() -> None:
    definitions: dict[str, Any] = {"B": {"type": "null"}}
    inner = {"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/$defs/A"}}
    assert hoisted({"anyOf": [inner, {"type": "null"}]}, definitions) == {
        "anyOf": [{"items": {"$ref": "#/$defs/A"}}, {"type": "null"}]
    }
    assert definitions == {"A": {"type": "integer"}, "B": {"type": "null"}}


def test_the_same_definition_twice_is_one() -> None:
    definitions: dict[str, Any] = {}
    tree = {"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}, "$ref": "#/$defs/A"}
    assert hoisted(tree, definitions) == hoisted(tree, definitions) == {"$ref": "#/$defs/A"}
    assert definitions == {"A": {"items": {"$ref": "#/$defs/A"}}}


def test_another_definition_of_the_same_name_gets_a_new_one_and_so_do_its_references() -> None:
    definitions: dict[str, Any] = {"A": {"type": "integer"}, "A_2": {"type": "string"}}
    tree = {
        "$defs": {
            "A": {"items": {"$ref": "#/$defs/A"}, "not": {"$ref": "#/$defs/A_3"}},
            "A_3": {"type": "null"},
        },
        "properties": {"default": {"$ref": "#/$defs/A"}, "x": {"default": {"$ref": "#/$defs/A"}}},
    }
    assert hoisted(tree, definitions)["properties"] == {
        "default": {"$ref": "#/$defs/A_4"},
        "x": {"default": {"$ref": "#/$defs/A"}},
    }
    assert definitions["A"] == {"type": "integer"}
    assert definitions["A_4"] == {"items": {"$ref": "#/$defs/A_4"}, "not": {"$ref": "#/$defs/A_3"}}
    assert definitions["A_3"] == {"type": "null"}


def test_a_reference_is_resolved_with_what_stands_beside_it() -> None:
    definitions = {"A": {"type": "integer", "description": "a number"}}
    assert resolved({"$ref": "#/$defs/A", "description": "this one"}, definitions) == {
        "type": "integer",
        "description": "this one",
    }
    assert resolved({"$ref": "#/$defs/B"}, definitions) == {"$ref": "#/$defs/B"}
    assert resolved({"type": "null"}, definitions) == {"type": "null"}


def test_closing_leaves_open_what_has_no_fields_of_its_own() -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert closed({"type": "object", "properties": {"a": free}}, {}) == {
        "type": "object",
        "properties": {"a": free},
        "additionalProperties": False,
    }


def test_titles_go_and_a_field_that_is_called_title_stays() -> None:
    schema = {"title": "Book", "properties": {"title": {"title": "Title", "type": "string", "default": {"title": 1}}}}
    assert untitled(schema) == {"properties": {"title": {"type": "string", "default": {"title": 1}}}}
