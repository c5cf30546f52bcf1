"""What an answer is to be: `wanted(Weather)`, its schema for the provider, and its reading. Pure.

Not here: which way a model is told (ways, dressing), and where in a reply the answer stands (reading).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from asides.agents.outputs.checking import checker_of
from asides.agents.outputs.misfit import Misfit
from asides.agents.outputs.schemas import HOLDER, AskedOutput, adapter_of, asked_for, describes_itself, kind_of
from asides.agents.tools.type_readers import Problem, parse_msgspec_error, parse_pydantic_error
from asides.values.errors import ConfigError
from asides.values.json_schema import DEFINITIONS
from asides.values.messages import OutputSchema

T = TypeVar("T")


class Wanted(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """A value of type T, to be had from a model."""

    schema: AskedOutput
    """What the provider is told."""
    wrapped: bool
    """The value stands in the field "value" of the object that comes."""
    reader: Callable[[bytes], T]
    """JSON as the value; raises Misfit."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.schema.name if isinstance(self.schema, OutputSchema) else "output"

    def parse(self, text: str | bytes) -> T:
        """The value of a JSON text. Raises Misfit, with words that the model can use."""
        document = _bytes(text)
        if self.wrapped:
            document = _taken_out(document)
        return self.reader(document)

    def __repr__(self) -> str:
        return f"Wanted({self.name!r})"


@overload
def wanted(output: type[T]) -> Wanted[T]: ...
@overload
def wanted(output: OutputSchema | Mapping[str, Any] | Literal["json", "json_object"]) -> Wanted[dict[str, Any]]: ...
@overload
def wanted(output: object) -> Wanted[Any]: ...
def wanted(output: object) -> Wanted[Any]:
    """What `output` names: a dataclass, a Struct, a TypedDict, a pydantic model, any other type that JSON can carry, a
    JSON schema, or "json" for any object. Raises ConfigError for what is none of these.

    A schema whose root is no object gives whatever it describes.
    """
    asked = asked_for(output)
    return Wanted(asked.schema, asked.wrapped, _reader_of(output, asked.schema, asked.wrapped))


def _reader_of(output: object, schema: AskedOutput, wrapped: bool) -> Callable[[bytes], Any]:
    if schema == "json":
        return _any_object
    if isinstance(output, (OutputSchema, Mapping)):
        return _by_schema(_inner(schema.schema) if wrapped else schema.schema)
    if describes_itself(output):
        return _by_model(output.model_validate_json)  # type: ignore[attr-defined]
    adapter = adapter_of(output)
    if adapter is not None:
        return _by_model(adapter.validate_json)
    return _by_type(output)


def _inner(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = {word: schema[word] for word in DEFINITIONS if word in schema}
    return {**schema["properties"][HOLDER], **definitions}


def _any_object(document: bytes) -> dict[str, Any]:
    value = _decoded(document)
    if not isinstance(value, dict):
        raise Misfit(f"$: expected object, found {kind_of(value)}")
    return value


def _by_schema(schema: dict[str, Any]) -> Callable[[bytes], Any]:
    check = checker_of(schema)

    def read(document: bytes) -> Any:
        value = _decoded(document)
        check(value)
        return value

    return read


def _by_type(kind: Any) -> Callable[[bytes], Any]:
    try:
        decoder = msgspec.json.Decoder(kind)
    except TypeError as problem:
        raise ConfigError(f"output cannot be read ({problem}). To do: use a dataclass or a schema.") from None

    def read(document: bytes) -> Any:
        try:
            return decoder.decode(document)
        except msgspec.ValidationError as problem:
            raise Misfit(_lines(parse_msgspec_error(problem))) from None
        except AssertionError as problem:
            # Of a `__post_init__`: said there as one says it with ValueError, and as pydantic takes it.
            raise Misfit(f"$: {str(problem) or 'it does not hold together'}") from None
        except (msgspec.DecodeError, RecursionError) as problem:
            raise _no_json(problem) from None

    return read


def _by_model(validate: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def read(document: bytes) -> Any:
        _decoded(document)
        try:
            return validate(document)
        except ValueError as problem:
            # A model that only looks like pydantic's says it in its own way.
            told = parse_pydantic_error(problem) if hasattr(problem, "errors") else (("", str(problem)),)
            raise Misfit(_lines(*told)) from None

    return read


def _lines(*problems: Problem) -> str:
    return "\n".join(f"${where}: {what}" for where, what in problems)


class _Holder(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw


def _taken_out(document: bytes) -> bytes:
    """The value inside its object; a bare one is as good, and is left to its reader."""
    try:
        return bytes(msgspec.json.decode(document, type=_Holder).value)
    except msgspec.ValidationError:
        return document
    except (msgspec.DecodeError, RecursionError) as problem:
        raise _no_json(problem) from None


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Misfit("$: it has characters that no text can have") from None


def _decoded(document: bytes) -> Any:
    try:
        return msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise _no_json(problem) from None


def _no_json(problem: Exception) -> Misfit:
    return Misfit("it is nested too deeply" if isinstance(problem, RecursionError) else f"it is no JSON: {problem}")
