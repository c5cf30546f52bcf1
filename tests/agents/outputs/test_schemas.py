"""The schema of a type, as a root that providers take."""

from __future__ import annotations

import msgspec

from asides.agents.outputs.schemas import build_msgspec_schema


class Tree(msgspec.Struct):
    children: list[Tree] = []


class Leaf(msgspec.Struct):
    colour: str


def test_a_type_that_holds_itself_keeps_its_definition() -> None:
    schema = build_msgspec_schema(Tree)
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["type"] == "object"


def test_a_type_that_nothing_refers_to_stands_at_the_root_alone() -> None:
    assert build_msgspec_schema(Leaf) == {
        "title": "Leaf",
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
    }


def test_a_type_that_is_no_object_is_its_own_root() -> None:
    assert build_msgspec_schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
