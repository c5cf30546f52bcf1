"""Readers of types. Each describes a type as a JSON schema and converts JSON values to it, with msgspec or pydantic.

pydantic is imported only for a type that comes from it.
"""

from __future__ import annotations

import importlib.util
import re
import types
from collections.abc import Hashable
from datetime import datetime, time
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any, Literal, Protocol, TypeAlias, Union, get_args, get_origin

import msgspec

from asides.values.json_schema import remove_titles

_MAX_PROBLEMS = 5
_MSGSPEC_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<where>.*)`)?", re.DOTALL)
_PYDANTIC_ATTRIBUTES = ("model_json_schema", "__pydantic_validator__", "__get_pydantic_core_schema__")

Problem: TypeAlias = tuple[str, str]
"""The place in a value (`"[0].city"`; `""` for the whole value), and the problem there. It quotes no content."""


class TypeMismatch(Exception):
    """A value does not fit its type."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{where or 'it'}: {what}" for where, what in problems))
        self.problems = problems


def parse_msgspec_error(error: Exception) -> Problem:
    """Parse the problem that msgspec found."""
    message = str(error)
    parsed = _MSGSPEC_MESSAGE.fullmatch(message)
    if parsed is None:
        return "", message
    return parsed["where"] or "", f"{parsed['what']}{' as a key' if parsed['key'] else ''}"


def parse_pydantic_error(error: Any) -> tuple[Problem, ...]:
    """Parse the first few problems that pydantic found, without the values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        ("".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"]), str(each["msg"]))
        for each in found[:_MAX_PROBLEMS]
    )


class Reader(Protocol):
    """Describes and reads the values of one type."""

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with its definitions inside."""
        ...

    def read(self, value: Any) -> Any:
        """Convert a JSON value to the type. Raises TypeMismatch."""
        ...


def build_reader(kind: Any) -> Reader:
    """Build the reader of a type. Raises TypeError if JSON cannot hold it, NameError if it is not defined yet."""
    return PydanticReader(kind) if is_pydantic(kind) else MsgspecReader(kind)


class MsgspecReader:
    """Reads a type that msgspec supports: most of the standard library's, and classes made of them.

    Raises TypeError for a type it does not support, and NameError for one that is not defined yet.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        try:
            self._schema = msgspec.json.schema(_add_format(kind), schema_hook=_describe_custom)
        except KeyError:
            raise TypeError("two classes in it have the same name") from None
        for definition in self._schema.get("$defs", {}).values():
            if isinstance(text := definition.get("description"), str):
                definition["description"] = " ".join(text.strip().partition("\n\n")[0].split())

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with its definitions inside."""
        return self._schema

    def read(self, value: Any) -> Any:
        """Convert a JSON value to the type. Raises TypeMismatch."""
        try:
            # Not strict: models write "3" for 3 and "true" for true, and the meaning is clear.
            return msgspec.convert(value, self._kind, strict=False, dec_hook=_read_custom)
        except msgspec.ValidationError as error:
            raise TypeMismatch((parse_msgspec_error(error),)) from None


class PydanticReader:
    """Reads a type that belongs to pydantic.

    Raises TypeError for a type it does not support, and NameError for one that is not defined yet.
    """

    def __init__(self, kind: Any) -> None:
        from pydantic import PydanticUserError, TypeAdapter

        try:
            self._adapter: Any = TypeAdapter(kind)
            self._schema: dict[str, Any] = remove_titles(self._adapter.json_schema())
        except PydanticUserError as error:
            # The sentences after the first are advice for authors of models.
            reason = error.message.partition(". ")[0]
            is_undefined = error.code == "class-not-fully-defined"
            raise (NameError if is_undefined else TypeError)(reason) from None

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with its definitions inside."""
        return self._schema

    def read(self, value: Any) -> Any:
        """Convert a JSON value to the type. Raises TypeMismatch."""
        from pydantic import ValidationError

        try:
            # As JSON, because a strict model takes a date as text only from JSON.
            return self._adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as error:
            raise TypeMismatch(parse_pydantic_error(error)) from None


def is_pydantic(kind: Any) -> bool:
    """Whether a type, or a part of it, is pydantic's: a model, a dataclass, `Annotated[…, Field(…)]`."""
    origin = get_origin(kind)
    if origin is Literal:
        return False
    if origin is Annotated:
        return any(_is_pydantic_metadata(mark) for mark in kind.__metadata__) or is_pydantic(kind.__origin__)
    if origin is not None:
        return is_pydantic(origin) or any(is_pydantic(argument) for argument in get_args(kind))
    return isinstance(kind, type) and any(hasattr(kind, name) for name in _PYDANTIC_ATTRIBUTES)


def _is_pydantic_metadata(mark: Any) -> bool:
    package = type(mark).__module__.partition(".")[0]
    if package == "annotated_types":
        # Types of pydantic, such as PositiveInt, are made of these; the package also exists without pydantic.
        return importlib.util.find_spec("pydantic") is not None
    return package in ("pydantic", "pydantic_core") or hasattr(mark, "__get_pydantic_core_schema__")


def is_pydantic_field(value: Any) -> bool:
    """Whether a default is pydantic's `Field(…)` and not a value."""
    kind = type(value)
    return kind.__name__ == "FieldInfo" and kind.__module__.partition(".")[0] == "pydantic"


def encode_custom(value: Any) -> Any:
    """Encode a value that msgspec does not support: paths, pydantic models, arrays, subclasses of str."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if not isinstance(value, type) and callable(to_list := getattr(value, "tolist", None)):
        return to_list()
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _add_format(kind: Any) -> Any:
    """Add the text format of dates and times, which msgspec's schema leaves out because it also takes numbers."""
    if kind is datetime:
        return Annotated[kind, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    if kind is time:
        return Annotated[kind, msgspec.Meta(extra_json_schema={"format": "time"})]
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(_add_format(part) for part in get_args(kind))]  # noqa: UP007 - made of a list
    return kind


def _describe_custom(kind: Any) -> dict[str, Any]:
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    if is_pydantic(kind):
        return _get_pydantic_reader(kind).schema()
    raise NotImplementedError


def _read_custom(kind: Any, value: Any) -> Any:
    if issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise TypeError(f"Expected `path`, got `{type(value).__name__}`")
        return kind(value)
    if is_pydantic(kind):
        try:
            return _get_pydantic_reader(kind).read(value)
        except TypeMismatch as mismatch:
            raise ValueError(str(mismatch)) from None
    return value


@lru_cache(maxsize=256)
def _get_pydantic_reader(kind: Hashable) -> PydanticReader:
    """Return the reader of a pydantic model inside a class of another kind."""
    return PydanticReader(kind)
