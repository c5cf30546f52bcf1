"""Forms that the tests of typed output ask for, and targets to ask. Not a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from pydantic import BaseModel, Field

from asides.providers.find import find_target
from asides.providers.provider import ModelRule, Provider, Quirks, Target


@dataclass
class Weather:
    """A dataclass."""

    city: str
    degrees: float


class Forecast(msgspec.Struct):
    """A Struct, with another type inside and a field that may be left out."""

    days: list[Weather]
    note: str = ""


class Place(TypedDict):
    """A TypedDict."""

    name: str
    population: int


class Person(BaseModel):
    """A model of pydantic, with bounds."""

    name: str
    age: int = Field(ge=0, le=150)


class Team(BaseModel):
    """A model with models inside."""

    people: list[Person]


class Tree(BaseModel):
    """A model inside itself, whose schema is a mere reference."""

    name: str
    below: list[Tree] = []


class Node(msgspec.Struct):
    """A type inside itself."""

    name: str
    below: list[Node]


class Cat(msgspec.Struct, tag="cat"):
    """One of a union."""

    lives: int


class Dog(msgspec.Struct, tag="dog"):
    """The other."""

    tricks: list[str]


Colour = Literal["red", "green"]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]

WEATHER_SCHEMA: dict[str, Any] = {
    "title": "Weather",
    "description": "A dataclass.",
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def target(quirks: Quirks | None = None, rule: ModelRule | None = None, dialect: str = "openai_chat") -> Target:
    """A host of its own."""
    row = Provider(name="example", dialect=dialect, base_url="http://127.0.0.1:9/v1", quirks=quirks or Quirks())
    return Target(row, "made-up", row.base_url, rule or ModelRule())


def known(model: str) -> Target:
    """A model of the table."""
    return find_target(
        model,
        environ={
            "AWS_REGION": "eu-west-1",
            "GOOGLE_CLOUD_LOCATION": "europe-west1",
            "GOOGLE_CLOUD_PROJECT": "p",
            "OPENAI_COMPATIBLE_BASE_URL": "http://127.0.0.1:9/v1",
        },
    )
