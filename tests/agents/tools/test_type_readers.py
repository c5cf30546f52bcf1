"""Types read by msgspec or pydantic, alone and inside each other, and the problems with values that do not fit."""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from asides.agents.tools.executor import BadArguments
from asides.agents.tools.function_tool import tool
from asides.agents.tools.type_readers import (
    MsgspecReader,
    PydanticReader,
    TypeMismatch,
    build_reader,
    encode_custom,
    is_pydantic,
    is_pydantic_field,
)
from asides.values.errors import ConfigError
from tests.agents.tools.calls import call, run_call

Item = TypeVar("Item")


class City(pydantic.BaseModel):
    """A city."""

    title: str
    people: int = pydantic.Field(default=1, ge=1, description="how many")
    twins: list[City] = []


class Trip(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    start: City
    day: dt.date


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Pair(pydantic.BaseModel, Generic[Item]):
    one: Item
    two: Item


@pydantic.dataclasses.dataclass
class Size:
    width: Annotated[int, pydantic.Field(ge=1)]


@dataclasses.dataclass
class Journey:
    """A class of another sort, with a model in it."""

    trip: Trip
    cities: list[City]


def test_a_model_is_described_and_read() -> None:
    @tool
    def visit(city: City, days: int = 1) -> str:
        """Go there.

        Args:
            city: Where to.
        """
        return f"{type(city).__name__} {city.title} {city.people} {len(city.twins)} {days}"

    schema = visit.tool.parameters
    assert schema["properties"]["city"] == {"$ref": "#/$defs/City", "description": "Where to."}
    assert schema["$defs"] == {
        "City": {
            "type": "object",
            "description": "A city.",
            "properties": {
                "title": {"type": "string"},
                "people": {"type": "integer", "default": 1, "minimum": 1, "description": "how many"},
                "twins": {"type": "array", "items": {"$ref": "#/$defs/City"}, "default": []},
            },
            "required": ["title"],
        }
    }
    assert visit.run(call(city={"title": "Ulm", "twins": [{"title": "Jinotega"}]}, days="2")) == "City Ulm 1 1 2"
    assert visit.run(call(city='{"title": "Ulm"}')) == "City Ulm 1 0 1"


def test_a_problem_names_its_place_in_the_value() -> None:
    @tool
    def visit(city: City, cities: list[City]) -> str:
        raise AssertionError

    with pytest.raises(BadArguments) as caught:
        visit.run(call(city={"people": "none"}, cities=[{"title": "Ulm", "people": 0}]))
    words = str(caught.value)
    assert "city.title: Field required" in words
    assert "city.people: Input should be a valid integer" in words
    assert "cities[0].people: Input should be greater than or equal to 1" in words
    assert "pydantic.dev" not in words


@pytest.mark.parametrize(
    ("kind", "given", "got"),
    [
        (City | None, None, None),
        (City | None, {"title": "Ulm"}, City(title="Ulm")),
        (Cat | Dog, {"kind": "dog"}, Dog(kind="dog")),
        (Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], {"kind": "cat"}, Cat(kind="cat")),
        (dict[str, City], {"a": {"title": "Ulm"}}, {"a": City(title="Ulm")}),
        (Pair[int], {"one": 1, "two": "2"}, Pair[int](one=1, two=2)),
        (Size, {"width": 3}, Size(width=3)),
        (pydantic.PositiveInt, 3, 3),
        (Annotated[int, pydantic.Field(ge=1)], "3", 3),
        (pydantic.HttpUrl, "https://example.org/", pydantic.HttpUrl("https://example.org/")),
        # A strict model takes a date as text, as it does from JSON.
        (
            Trip,
            {"start": {"title": "Ulm"}, "day": "2026-01-02"},
            Trip(start=City(title="Ulm"), day=dt.date(2026, 1, 2)),
        ),
    ],
    ids=str,
)
def test_pydantic_types_are_read(kind: Any, given: Any, got: Any) -> None:
    def take(it: Any) -> Any:
        return it

    take.__annotations__["it"] = kind
    assert is_pydantic(kind)
    made = tool(take)
    assert made.run(call(it=given)) == got
    assert msgspec.json.encode(made.tool.parameters)


@pytest.mark.parametrize(
    ("kind", "given"),
    [(Size, {"width": 0}), (pydantic.PositiveInt, 0), (Annotated[int, pydantic.Field(ge=1)], 0), (Cat | Dog, {})],
    ids=str,
)
def test_values_that_do_not_fit_a_pydantic_type_are_refused(kind: Any, given: Any) -> None:
    def take(it: Any) -> Any:
        return it

    take.__annotations__["it"] = kind
    with pytest.raises(BadArguments):
        tool(take).run(call(it=given))


@pytest.mark.parametrize("kind", [int, list[str], Journey, Literal["a"], Annotated[int, msgspec.Meta(ge=1)], Any])
def test_other_types_do_not_belong_to_pydantic(kind: Any) -> None:
    assert not is_pydantic(kind)


def test_a_model_inside_of_another_class_has_its_definitions_at_the_root() -> None:
    @tool
    def travel(journey: Journey, to: City) -> str:
        return f"{journey.trip.start.title} {journey.trip.day} {journey.cities} {to.title}"

    schema = travel.tool.parameters
    assert sorted(schema["$defs"]) == ["City", "Journey"]
    inner = schema["$defs"]["Journey"]["properties"]
    assert "$defs" not in str(inner["trip"]).replace("#/$defs/", "")
    assert inner["trip"]["properties"]["start"] == {"$ref": "#/$defs/City"}
    assert inner["cities"]["items"] == {"$ref": "#/$defs/City"}
    trip = {"start": {"title": "Ulm"}, "day": "2026-01-02"}
    assert travel.run(call(journey={"trip": trip, "cities": []}, to={"title": "Bern"})) == "Ulm 2026-01-02 [] Bern"
    with pytest.raises(BadArguments, match=r"journey\.trip: .*day: Field required"):
        travel.run(call(journey={"trip": {"start": {"title": "Ulm"}}, "cities": []}, to={"title": "Bern"}))


def test_two_models_of_one_name_stay_two() -> None:
    fields: Any = {"mayor": (str, ...), "sisters": ("list[City]", [])}
    other: Any = pydantic.create_model("City", **fields)

    def visit(city: City, other: Any) -> str:
        return f"{city.title} {other.mayor}"

    visit.__annotations__["other"] = list[other]
    schema = tool(visit).tool.parameters
    assert schema["properties"]["city"] == {"$ref": "#/$defs/City"}
    assert schema["properties"]["other"]["items"] == {"$ref": "#/$defs/City_2"}
    assert list(schema["$defs"]["City"]["properties"]) == ["title", "people", "twins"]
    assert list(schema["$defs"]["City_2"]["properties"]) == ["mayor", "sisters"]
    assert schema["$defs"]["City_2"]["properties"]["sisters"]["items"] == {"$ref": "#/$defs/City_2"}


def test_models_are_returned_as_json() -> None:
    @tool
    def find(day: str) -> Any:
        if day == "all":
            return [Trip(start=City(title="Ulm"), day=dt.date(2026, 1, 2))]
        return {"size": Size(width=2), "city": City(title="Ulm")}

    (trip,) = msgspec.json.decode(run_call(find, call(day="all")).text)
    assert trip == {"start": {"title": "Ulm", "people": 1, "twins": []}, "day": "2026-01-02"}
    assert msgspec.json.decode(run_call(find, call(day="some")).text)["size"] == {"width": 2}


def test_the_model_sees_the_default() -> None:
    @tool
    def visit(city: City = City(title="Ulm"), days: pydantic.PositiveInt = 2) -> str:  # noqa: B008 - it happens
        return f"{city.title} {days}"

    fields = visit.tool.parameters["properties"]
    assert fields["city"]["default"] == {"title": "Ulm", "people": 1, "twins": []}
    assert fields["days"] == {"type": "integer", "exclusiveMinimum": 0, "default": 2}
    assert visit.run(call()) == "Ulm 2"


def test_a_field_as_a_default_is_refused() -> None:
    def visit(days: int = pydantic.Field(default=3, description="how many")) -> str:
        return str(days)

    with pytest.raises(ConfigError, match=r"Field\(…\) as the default of days.*Annotated"):
        tool(visit)


def test_a_type_that_pydantic_cannot_describe_is_named() -> None:
    class Odd:
        pass

    def take(it: Any) -> str:
        return str(it)

    take.__annotations__["it"] = City | Odd
    with pytest.raises(ConfigError, match=r"take has a type that JSON cannot hold: it \("):
        tool(take)


class Early(pydantic.BaseModel):
    name: str
    later: Later | None = None


@tool
def uses_a_model_to_come(early: Early) -> str:
    return type(early.later).__name__


class Later(pydantic.BaseModel):
    name: str


def test_a_model_may_name_one_that_is_defined_below_the_function() -> None:
    assert uses_a_model_to_come.run(call(early={"name": "a", "later": {"name": "b"}})) == "Later"


def test_a_reader_is_chosen_by_the_type() -> None:
    assert isinstance(build_reader(City), PydanticReader)
    assert isinstance(build_reader(list[City]), PydanticReader)
    assert isinstance(build_reader(Journey), MsgspecReader)


@pytest.mark.parametrize(
    ("kind", "value", "problems"),
    [
        (int, "many", (("", "Expected `int`, got `str`"),)),
        (list[dict[str, int]], [{}, {"a": None}], (("[1][...]", "Expected `int`, got `null`"),)),
        (dict[int, str], {"x": "y"}, (("", "Expected `int`, got `str` as a key"),)),
        (City, {"people": "none"}, ((".title", "Field required"), (".people", "Input should be a valid integer"))),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_described_by_its_problems(kind: Any, value: Any, problems: Any) -> None:
    with pytest.raises(TypeMismatch) as caught:
        build_reader(kind).read(value)
    found = [(where, what.partition(",")[0] if kind is City else what) for where, what in caught.value.problems]
    assert found == list(problems)


def test_only_the_first_problems_are_kept() -> None:
    with pytest.raises(TypeMismatch) as caught:
        build_reader(list[City]).read([{}] * 20)
    assert len(caught.value.problems) == 5


def test_a_field_is_no_value() -> None:
    assert is_pydantic_field(pydantic.Field(default=3))
    assert not is_pydantic_field(3)


def test_values_that_msgspec_does_not_encode_become_json_values() -> None:
    class Word(str):
        __slots__ = ()

    assert encode_custom(Path("a/b")) == "a/b"
    assert type(encode_custom(Word("x"))) is str
    assert encode_custom(Cat(kind="cat")) == {"kind": "cat"}
    with pytest.raises(TypeError, match="type object is unsupported"):
        encode_custom(object())
