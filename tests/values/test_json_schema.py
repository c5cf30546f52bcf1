"""Which schemas stand in a schema, and which of its values only look like one."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.json_schema import find_inner_schemas, find_references, map_inner_schemas

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
def test_a_value_is_no_schema_and_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert find_inner_schemas(schema) == []
    assert map_inner_schemas(schema, lambda _: {"type": "null"}) == schema


def test_references_are_found_however_deep() -> None:
    assert find_references({"items": {"anyOf": [{"properties": {"a": A}}, {"$ref": "#"}]}}) == {"#/$defs/A", "#"}
