"""Types that pydantic knows better: found without importing it, and read and described by it.

Not here: any need for pydantic. It is imported only for a type that comes from it.
"""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from asides.agents.tools.type_readers import TypeMisfit, parse_pydantic_error
from asides.values.json_schema import untitled

_MARKS = ("model_json_schema", "__pydantic_validator__", "__get_pydantic_core_schema__")


def is_pydantic(kind: Any) -> bool:
    """Whether a type, or one that it is made of, is pydantic's: a model, a dataclass, `Annotated[…, Field(…)]`."""
    origin = get_origin(kind)
    if origin is Literal:
        return False
    if origin is Annotated:
        return any(_is_metadata(mark) for mark in kind.__metadata__) or is_pydantic(kind.__origin__)
    if origin is not None:
        return is_pydantic(origin) or any(is_pydantic(argument) for argument in get_args(kind))
    return isinstance(kind, type) and any(hasattr(kind, mark) for mark in _MARKS)


def _is_metadata(mark: Any) -> bool:
    package = type(mark).__module__.partition(".")[0]
    if package == "annotated_types":
        # What pydantic's own types, such as PositiveInt, are made of; it is a package by itself, too.
        return importlib.util.find_spec("pydantic") is not None
    return package in ("pydantic", "pydantic_core") or hasattr(mark, "__get_pydantic_core_schema__")


def is_field_default(value: Any) -> bool:
    """Whether a default is no value but pydantic's `Field(…)`."""
    kind = type(value)
    return kind.__name__ == "FieldInfo" and kind.__module__.partition(".")[0] == "pydantic"


class PydanticReader:
    """Reads and describes one type of pydantic's. Raises TypeError for one that is none, NameError for one to come."""

    def __init__(self, kind: Any) -> None:
        from pydantic import PydanticUserError, TypeAdapter

        try:
            self._adapter: Any = TypeAdapter(kind)
            self._schema: dict[str, Any] = untitled(self._adapter.json_schema())
        except PydanticUserError as problem:
            # What follows the first sentence is advice for who writes models.
            reason = problem.message.partition(". ")[0]
            later = problem.code == "class-not-fully-defined"
            raise (NameError if later else TypeError)(reason) from None

    def schema(self) -> dict[str, Any]:
        """Its JSON schema; definitions of its own stand in it."""
        return self._schema

    def read(self, value: Any) -> Any:
        """The value as the type. Raises TypeMisfit."""
        from pydantic import ValidationError

        try:
            # As JSON, since a strict model takes a date as text from JSON only.
            return self._adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as problem:
            raise TypeMisfit(parse_pydantic_error(problem)) from None
