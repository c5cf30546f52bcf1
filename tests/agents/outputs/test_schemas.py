"""The schema of a type, as a root that providers take."""

from __future__ import annotations

import enum
import gc
import weakref
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from asides.agents.outputs import schemas
from asides.agents.outputs.output_type import read_output_type
from asides.agents.outputs.schemas import build_msgspec_schema, build_schema
from asides.values.messages import OutputSchema


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


# --- classes whose schema was built before ----------------------------------------------------------------------------


@dataclass
class Leg:
    """A part of a way."""

    start: str
    end: Leaf
    km: Annotated[float, msgspec.Meta(ge=1.0)] = 2.5


class Mode(enum.Enum):
    """How to travel."""

    FAST = "fast"
    SLOW = "slow"


class Way(TypedDict, total=False):
    """A way."""

    legs: list[Leg]
    mode: Mode


class Large(msgspec.Struct):
    """It has a default that JSON cannot carry exactly."""

    limit: float = float("inf")


class Model(BaseModel):
    """A model of another library."""

    city: str


@dataclass
class Mixed:
    """A class with such a model inside."""

    model: Model


ALL_KINDS: list[Any] = [
    *(Tree, Leaf, Leg, Mode, Way, Large, Model, Mixed, int, str, dict, list, bool),
    *(list[int], list[Leaf], Leaf | None, Literal["a", "b"], dict[str, Leg]),
]


@pytest.mark.parametrize("kind", ALL_KINDS, ids=str)
def test_a_schema_that_was_built_before_is_the_same_and_nobody_elses(kind: Any) -> None:
    schemas._built.clear()
    first, second = build_schema(kind), build_schema(kind)
    assert first == second
    assert msgspec.json.encode(first) == msgspec.json.encode(second)  # in the same order
    assert isinstance(second.schema, OutputSchema)
    second.schema.schema.setdefault("properties", {})["more"] = {"type": "string"}
    assert build_schema(kind) == first


@pytest.mark.parametrize(("kind", "most"), [(Leaf, 1), (Leg, 2)])
def test_the_schema_of_a_class_is_not_built_for_each_call(
    kind: type, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[object] = []

    def count(kind: Any) -> dict[str, Any]:
        built.append(kind)
        return build_msgspec_schema(kind)

    monkeypatch.setattr(schemas, "build_msgspec_schema", count)
    schemas._built.clear()
    for _ in range(5):
        read_output_type(kind)
    assert built == [kind] * most  # a dataclass is also tried, since it may hold a model of pydantic


def make_class() -> type:
    @dataclass
    class Made:
        """Made here."""

        city: str

    return Made


def test_a_class_is_freed_though_its_schema_was_built() -> None:
    made = make_class()
    read_output_type(made)
    watched, count = weakref.ref(made), len(schemas._built)
    del made
    gc.collect()
    assert watched() is None
    assert len(schemas._built) < count


def test_a_class_with_another_name_or_docstring_gets_another_schema() -> None:
    made = make_class()
    first = build_schema(made)
    made.__doc__ = "Another one."
    second = build_schema(made)
    made.__name__ = "Other"
    third = build_schema(made)
    assert isinstance(first.schema, OutputSchema)
    assert isinstance(second.schema, OutputSchema)
    assert isinstance(third.schema, OutputSchema)
    assert (first.schema.schema["description"], second.schema.schema["description"]) == ("Made here.", "Another one.")
    assert (second.schema.name, third.schema.name) == ("Made", "Other")


class OwnEquality(type):
    """It decides which of its classes are equal."""

    def __eq__(cls, other: object) -> bool:
        return cls is other

    def __hash__(cls) -> int:
        return 1


def test_the_schema_of_a_class_that_may_equal_others_is_not_kept() -> None:
    schemas._built.clear()
    made: Any = OwnEquality("First", (), {"__annotations__": {"city": str}})
    kind: Any = dataclass(made)
    assert build_schema(kind) == build_schema(kind)
    assert not schemas._built


def test_a_class_that_builds_its_schema_itself_is_asked_each_time() -> None:
    names = iter(["first", "second"])

    class Own:
        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"type": "object", "properties": {next(names): {"type": "string"}}}

    found = [build_schema(Own).schema for _ in range(2)]
    assert [list(each.schema["properties"]) for each in found if isinstance(each, OutputSchema)] == [
        ["first"],
        ["second"],
    ]
