"""Functions as tools: name, docstring, and each type of parameter as the model sees it and the function gets it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict

import msgspec
import pytest

from asides.agents.tools.function_tool import tool
from asides.agents.tools.signatures import DeclaredParameter, Parameters, read_parameters, read_signature
from asides.values.errors import ConfigError
from asides.values.tools import Tool
from tests.agents.tools.calls import call


@dataclasses.dataclass
class Place:
    """A place.

    Nothing that a model needs.
    """

    city: str
    country: str = "FR"


class Box(msgspec.Struct):
    width: Annotated[int, msgspec.Meta(ge=1, description="in cm")]
    inner: Box | None = None


class Options(TypedDict):
    loud: bool
    colour: NotRequired[str]


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: int = 0


City = NewType("City", str)


def read_one(kind: Any, default: Any = msgspec.UNSET, description: str = "") -> Parameters:
    return read_parameters(
        "thing", [DeclaredParameter("it", kind, default)], {"it": description} if description else {}
    )


@pytest.mark.parametrize(
    ("kind", "schema", "given", "got"),
    [
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, True, True),
        (str, {"type": "string"}, "3", "3"),
        (City, {"type": "string"}, "Paris", "Paris"),
        (Any, {}, {"a": [1]}, {"a": [1]}),
        (None, {"type": "null"}, None, None),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3, 3),  # noqa: UP045 - people write it
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3", "3"),
        (Literal["b", "a"], {"enum": ["a", "b"]}, "b", "b"),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [1, 2], {1, 2}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (
            dt.datetime,
            {"type": "string", "format": "date-time"},
            "2026-01-02T03:04:05Z",
            dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        ),
        (
            dt.time | None,
            {"anyOf": [{"type": "string", "format": "time"}, {"type": "null"}]},
            "03:04:05",
            dt.time(3, 4, 5),
        ),
        (dt.date, {"type": "string", "format": "date"}, "2026-01-02", dt.date(2026, 1, 2)),
        (dt.timedelta, {"type": "string", "format": "duration"}, "PT5S", dt.timedelta(seconds=5)),
        (decimal.Decimal, {"type": "string", "format": "decimal"}, "1.10", decimal.Decimal("1.10")),
        (uuid.UUID, {"type": "string", "format": "uuid"}, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        (bytes, {"type": "string", "contentEncoding": "base64"}, "YWI=", b"ab"),
        (Path, {"type": "string", "format": "path"}, "a/b", Path("a/b")),
        (list[Path], {"type": "array", "items": {"type": "string", "format": "path"}}, ["a"], [Path("a")]),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
    ],
    ids=str,
)
def test_plain_types(kind: Any, schema: dict[str, Any], given: Any, got: Any) -> None:
    read = read_one(kind)
    assert read.each[0].schema == schema
    assert read.definitions == {}
    found = read.each[0].reader.read(given)
    assert (found, type(found)) == (got, type(got))


@pytest.mark.parametrize(
    ("kind", "name", "definition", "given", "got"),
    [
        (
            Place,
            "Place",
            {
                "title": "Place",
                "description": "A place.",
                "type": "object",
                "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "FR"}},
                "required": ["city"],
            },
            {"city": "Paris"},
            Place("Paris"),
        ),
        (
            Options,
            "Options",
            {
                "title": "Options",
                "type": "object",
                "properties": {"loud": {"type": "boolean"}, "colour": {"type": "string"}},
                "required": ["loud"],
            },
            {"loud": "true"},
            {"loud": True},
        ),
        (Unit, "Unit", {"title": "Unit", "enum": ["c", "f"]}, "f", Unit.FAHRENHEIT),
        (Level, "Level", {"title": "Level", "enum": [1, 2]}, "2", Level.HIGH),
        (
            Point,
            "Point",
            {
                "title": "Point",
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer", "default": 0}],
                "minItems": 1,
                "maxItems": 2,
            },
            [1],
            Point(1),
        ),
        (
            Box,
            "Box",
            {
                "title": "Box",
                "type": "object",
                "properties": {
                    "width": {"type": "integer", "minimum": 1, "description": "in cm"},
                    "inner": {"anyOf": [{"$ref": "#/$defs/Box"}, {"type": "null"}], "default": None},
                },
                "required": ["width"],
            },
            {"width": 2, "inner": {"width": "1"}},
            Box(2, Box(1)),
        ),
    ],
    ids=str,
)
def test_classes_are_definitions(kind: Any, name: str, definition: dict[str, Any], given: Any, got: Any) -> None:
    read = read_one(kind)
    assert read.each[0].schema == {"$ref": f"#/$defs/{name}"}
    assert read.definitions == {name: definition}
    assert read.schema()["$defs"] == {name: definition}
    assert read.each[0].reader.read(given) == got


def test_two_classes_of_one_name_stay_two() -> None:
    def another() -> Any:
        @dataclasses.dataclass
        class Place:
            planet: str

        return Place

    read = read_parameters("thing", [DeclaredParameter("here", Place), DeclaredParameter("there", another())], {})
    assert [parameter.schema["$ref"] for parameter in read.each] == ["#/$defs/Place", "#/$defs/Place_2"]
    assert list(read.definitions["Place"]["properties"]) == ["city", "country"]
    assert list(read.definitions["Place_2"]["properties"]) == ["planet"]
    again = read_parameters("thing", [DeclaredParameter("here", Place), DeclaredParameter("there", list[Place])], {})
    assert list(again.definitions) == ["Place"]


def test_two_classes_of_one_name_in_one_parameter_are_refused() -> None:
    one, two = (dataclasses.make_dataclass("Same", [("it", kind)]) for kind in (int, str))
    with pytest.raises(ConfigError, match="two classes in it have the same name"):
        read_one(tuple[one, two])  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("kind", "default", "shown"),
    [
        (int, 3, 3),
        (int, None, None),
        (list[int], [1], [1]),
        (Unit, Unit.CELSIUS, "c"),
        (Place, Place("Paris"), {"city": "Paris", "country": "FR"}),
        (dt.date, dt.date(2026, 1, 2), "2026-01-02"),
        (Path, Path("a/b"), "a/b"),
        (dict[int, int], {1: 2}, {"1": 2}),
        (set[int], {1}, [1]),
    ],
    ids=str,
)
def test_the_model_sees_defaults(kind: Any, default: Any, shown: Any) -> None:
    (parameter,) = read_one(kind, default).each
    assert parameter.required is False
    assert parameter.schema["default"] == shown


def test_a_default_that_json_cannot_express_is_hidden_and_works() -> None:
    sentinel = object()

    def ask(it: Any = sentinel) -> bool:
        return it is sentinel

    made = tool(ask)
    assert made.tool.parameters["properties"] == {"it": {}}
    assert made.run(call()) is True


def test_a_parameter_of_any_type_has_an_empty_schema() -> None:
    def show(given: object, untyped="x") -> str:  # type: ignore[no-untyped-def]  # pyright: ignore[reportMissingParameterType]
        return f"{given} {untyped}"

    made = tool(show)
    assert made.tool.parameters["properties"] == {"given": {}, "untyped": {"default": "x"}}
    assert made.run(call(given=[1], untyped={})) == "[1] {}"


class Documented:
    def __init__(self, documentation: str) -> None:
        self.documentation = documentation

    def __repr__(self) -> str:
        return "Documented()"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int, "from the docstring"),
        (Place, "from the docstring"),
        (Annotated[int, msgspec.Meta(description="annotated")], "annotated"),
        (Annotated[int, msgspec.Meta(ge=1)], "from the docstring"),
        (Annotated[int, "annotated"], "annotated"),
        (Annotated[int, Documented("annotated")], "annotated"),
        (Annotated[Place, msgspec.Meta(description="annotated")], "annotated"),
        (Optional[Annotated[int, msgspec.Meta(description="annotated")]], "annotated"),  # noqa: UP045 - 3.11 has no | here
    ],
    ids=str,
)
def test_a_description_comes_from_annotated_or_else_from_the_docstring(kind: Any, words: str) -> None:
    assert read_one(kind, description="from the docstring").each[0].schema["description"] == words


def takes_a_lock(city: str, lock: threading.Lock) -> None: ...
def takes_a_function(city: str, then: Callable[[], None]) -> None: ...
def takes_two_objects(city: str, place: Place | Options) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [(takes_a_lock, "lock"), (takes_a_function, "then"), (takes_two_objects, "place")],
)
def test_a_type_that_json_cannot_carry_is_named_with_its_parameter(function: Callable[..., Any], name: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"{function.__name__} has a type that JSON cannot hold: {name} \("
    ) as caught:
        read_signature(function)
    assert "\n" not in str(caught.value)
    assert "schema_hook" not in str(caught.value)


def test_strict_closes_every_object_and_leaves_nothing_beside_a_reference() -> None:
    @tool(strict=True)
    def put(box: Annotated[Box, "what to put"], default: dict[str, int]) -> None: ...

    schema = put.tool.parameters
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Box"]["additionalProperties"] is False
    assert schema["properties"]["box"]["additionalProperties"] is False
    assert schema["properties"]["box"]["description"] == "what to put"
    assert "$ref" not in schema["properties"]["box"]
    assert schema["properties"]["default"]["additionalProperties"] == {"type": "integer"}


def forecast(
    place: Place,
    days: Annotated[int, msgspec.Meta(description="how far ahead", ge=1, le=14)],
    *,
    unit: Unit = Unit.CELSIUS,
    style: Literal["short", "long"] = "short",
    notes: list[str] = [],  # noqa: B006 - it happens
    anything: Any = None,
) -> str:
    """The weather
    to come.

    This is for people.
    """
    return f"{place} {days} {unit} {style} {notes} {anything}"


def test_a_function_is_a_tool() -> None:
    made = read_signature(forecast).tool
    assert (made.name, made.description) == ("forecast", "The weather to come.")
    schema = made.parameters
    assert schema["type"] == "object"
    assert schema["required"] == ["place", "days"]
    assert schema["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert schema["properties"]["days"]["description"] == "how far ahead"
    assert (schema["properties"]["days"]["minimum"], schema["properties"]["days"]["maximum"]) == (1, 14)
    assert schema["properties"]["unit"]["default"] == "c"
    assert schema["properties"]["style"] == {"enum": ["long", "short"], "default": "short"}
    assert schema["properties"]["notes"]["items"] == {"type": "string"}
    assert schema["$defs"]["Place"]["required"] == ["city"]
    assert "title" not in schema
    msgspec.json.encode(schema)


def test_a_function_needs_neither_parameters_nor_a_docstring() -> None:
    def now() -> str:
        return "now"

    assert read_signature(now).tool == Tool("now", "", {"type": "object", "properties": {}, "required": []})


def test_a_bound_method_is_a_tool_without_self() -> None:
    class Sky:
        def look(self, at: str) -> str:
            return at

    assert list(read_signature(Sky().look).tool.parameters["properties"]) == ["at"]


def takes_anything(*places: str) -> None: ...
def takes_names(**places: str) -> None: ...
def takes_by_position(place: str, /) -> None: ...
def takes_an_undefined_type(place: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037  # pyright: ignore[reportUndefinedVariable]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (takes_anything, r"takes_anything cannot take \*places"),
        (takes_names, r"takes_names cannot take \*\*places"),
        (takes_by_position, "by name"),
        (takes_a_lock, "takes_a_lock has a type that JSON cannot hold"),
        (takes_an_undefined_type, "takes_an_undefined_type cannot be read"),
        (lambda place: place, "it has no name"),
        (functools.partial(forecast), "it has no name"),
    ],
)
def test_a_function_that_a_model_could_not_call_is_refused_with_the_reason(
    function: Callable[..., Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        read_signature(function)
