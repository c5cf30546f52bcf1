"""The parameters of a function: what each is called, how it is described as JSON, and how it is read from JSON.

Not here: what to do with them (function_tool), and the words for a call that does not fit (call_arguments).
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Sequence
from datetime import datetime, time
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any, Protocol, Union, get_args, get_origin

import msgspec

from asides.agents.tools.type_readers import (
    PydanticReader,
    TypeMisfit,
    is_field_default,
    is_pydantic,
    parse_msgspec_error,
)
from asides.values.errors import ConfigError
from asides.values.json_schema import hoisted


class _UnknownType(ConfigError):
    """An annotation names a type that is not there, or not yet."""


class Reader(Protocol):
    """How values of one type are described and read."""

    def schema(self) -> dict[str, Any]:
        """Its JSON schema; definitions of its own stand in it."""
        ...

    def read(self, value: Any) -> Any:
        """A JSON value as the type. Raises TypeMisfit."""
        ...


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function."""

    name: str
    kind: Any
    """Its annotation, `Any` where it has none."""
    required: bool
    reader: Reader
    schema: dict[str, Any]
    """Its JSON schema, which may refer to the definitions of the function."""


class Parameters(msgspec.Struct, frozen=True):
    """All that a function takes."""

    each: tuple[Parameter, ...]
    definitions: dict[str, Any]
    """What the schemas refer to as `#/$defs/…`."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of an object that has the parameters as its fields."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.each},
            "required": [parameter.name for parameter in self.each if parameter.required],
        }
        return {**schema, "$defs": self.definitions} if self.definitions else schema


class Declared(msgspec.Struct, frozen=True):
    """A parameter as the function declares it."""

    name: str
    kind: Any
    default: Any = msgspec.UNSET


class MsgspecReader:
    """Reads one of the types that msgspec knows: nearly all of the standard library's, and classes made of them.

    Raises TypeError for one that it does not know, and NameError for one that is still to come.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        try:
            self._schema = msgspec.json.schema(_seen(kind), schema_hook=_describe_custom)
        except KeyError:
            raise TypeError("two classes in it have the same name") from None
        for definition in self._schema.get("$defs", {}).values():
            if isinstance(text := definition.get("description"), str):
                definition["description"] = " ".join(text.strip().partition("\n\n")[0].split())

    def schema(self) -> dict[str, Any]:
        """Its JSON schema; definitions of its own stand in it."""
        return self._schema

    def read(self, value: Any) -> Any:
        """The value as the type. Raises TypeMisfit."""
        try:
            # Not strict: models write "3" for 3 and "true" for true, and it is plain what they mean.
            return msgspec.convert(value, self._kind, strict=False, dec_hook=_read_custom)
        except msgspec.ValidationError as problem:
            raise TypeMisfit((parse_msgspec_error(problem),)) from None


def read_parameters(function: str, declared: Sequence[Declared], words: dict[str, str]) -> Parameters:
    """The parameters of the function of this name; `words` describe those that do not describe themselves.

    Raises a ConfigError that names the parameter whose type JSON cannot carry.
    """
    each: list[Parameter] = []
    definitions: dict[str, Any] = {}
    for parameter in declared:
        reader = _reader(function, parameter)
        schema: dict[str, Any] = hoisted(reader.schema(), definitions)
        # What the type says of itself comes last: here it plays one certain part.
        if text := _told(parameter.kind) or words.get(parameter.name):
            schema["description"] = text
        required = parameter.default is msgspec.UNSET
        if not required:
            _show_default(schema, parameter.default)
        each.append(Parameter(parameter.name, parameter.kind, required, reader, schema))
    # Only now, so that what two parameters have in common was found to be the same.
    for name in list(definitions):
        definitions[name] = hoisted(definitions[name], definitions)
    return Parameters(tuple(each), definitions)


def _reader(function: str, parameter: Declared) -> Reader:
    if is_field_default(parameter.default):
        raise ConfigError(
            f"the tool {function} has Field(…) as the default of {parameter.name}. To do: write "
            f"{parameter.name}: Annotated[type, Field(…)], and the default behind it."
        )
    try:
        return PydanticReader(parameter.kind) if is_pydantic(parameter.kind) else MsgspecReader(parameter.kind)
    except NameError as problem:
        raise _UnknownType(
            f"the parameter {parameter.name} of the tool {function} does not read ({problem})."
        ) from None
    except (TypeError, ValueError) as problem:
        raise _unfit(function, parameter, problem) from None


def _seen(kind: Any) -> Any:
    """The type with a hint of how it is written, where msgspec leaves it open since it takes more than one form."""
    if kind is datetime:
        return Annotated[kind, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    if kind is time:
        return Annotated[kind, msgspec.Meta(extra_json_schema={"format": "time"})]
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(_seen(part) for part in get_args(kind))]  # noqa: UP007 - made of a list
    return kind


def _unfit(function: str, parameter: Declared, problem: Exception) -> ConfigError:
    # Some of msgspec's reasons are a page of advice for its own users, with the reason in the last line.
    reason = str(problem).strip().split("\n")[-1] if str(problem).startswith("Generating") else str(problem)
    reason = " ".join(reason.split())[:300]
    return ConfigError(
        f"the tool {function} takes what JSON cannot carry: {parameter.name} ({reason}). To do: change its type."
    )


def _told(kind: Any) -> str | None:
    """What `Annotated` says about a parameter: a string, or what has a description; also inside of `X | None`."""
    if get_origin(kind) is Annotated:
        for mark in kind.__metadata__:
            text = mark if isinstance(mark, str) else getattr(mark, "description", getattr(mark, "documentation", None))
            if isinstance(text, str) and text:
                return text
        return None
    inner = get_args(kind) if type(None) in get_args(kind) else ()
    return next((text for part in inner if (text := _told(part))), None)


def _show_default(schema: dict[str, Any], default: Any) -> None:
    try:
        spelled = msgspec.to_builtins(default, str_keys=True, enc_hook=spell_custom)
        msgspec.json.encode(spelled)
    except (TypeError, ValueError, RecursionError):
        return  # one that only Python can have: the model leaves the argument out, and gets it
    schema["default"] = spelled


# --- types that neither JSON nor msgspec has --------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _nested(kind: Hashable) -> PydanticReader:
    """For a model of pydantic's that stands in a class of another sort."""
    return PydanticReader(kind)


def _describe_custom(kind: Any) -> dict[str, Any]:
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    if is_pydantic(kind):
        return _nested(kind).schema()
    raise NotImplementedError


def _read_custom(kind: Any, value: Any) -> Any:
    if issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise TypeError(f"Expected `path`, got `{type(value).__name__}`")
        return kind(value)
    if is_pydantic(kind):
        try:
            return _nested(kind).read(value)
        except TypeMisfit as problem:
            raise ValueError(str(problem)) from None
    return value


def spell_custom(value: Any) -> Any:
    """A JSON value for what msgspec does not write: paths, models of pydantic, arrays, text of a class of its own."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, str):  # one of its subclasses: the text is the same
        return str.__str__(value)
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if not isinstance(value, type) and callable(listed := getattr(value, "tolist", None)):
        return listed()
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
