"""The type of an answer: `read_output_type(Weather)` gives its schema for the provider and its parser. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from asides.agents.outputs.schemas import (
    WRAPPER_FIELD,
    SchemaOrJson,
    build_schema,
    find_pydantic_adapter,
    has_own_schema,
    name_json_type,
)
from asides.agents.tools.type_readers import Problem, parse_msgspec_error, parse_pydantic_error
from asides.values.errors import ConfigError
from asides.values.json_schema import DEFINITIONS
from asides.values.messages import OutputSchema
from asides.values.parts import ToolResult

T = TypeVar("T")

# fastjsonschema generates and compiles code. An invalid schema makes it raise any of these errors.
_SCHEMA_FAULTS = (ValueError, LookupError, TypeError, AttributeError, NameError, SyntaxError, RecursionError, re.error)


class OutputMismatch(Exception):
    """An answer does not fit its type. The flow asks the model again, so users never see this.

    `feedback` is text for the model and may quote the model; `str()` never does.
    """

    def __init__(self, feedback: str, *, results: tuple[ToolResult, ...] = ()) -> None:
        super().__init__("the answer does not have the form that was asked for")
        self.feedback = feedback
        self.results = results
        """Results for the calls that carried the answer, so that the conversation can continue."""

    def __repr__(self) -> str:
        return f"OutputMismatch(<{len(self.feedback)} characters>)"


class OutputType(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """The type T that an answer must have."""

    schema: SchemaOrJson
    """The schema for the provider."""
    wrapped: bool
    """The value is in the field "value" of an object."""
    parser: Callable[[bytes], T]
    """Turns JSON into the value; raises OutputMismatch."""
    source: Any = None
    """The option `output` that it was read from."""

    @property
    def name(self) -> str:
        """The schema's name."""
        return self.schema.name if isinstance(self.schema, OutputSchema) else "output"

    def parse(self, text: str | bytes) -> T:
        """Parse a JSON text. Raises OutputMismatch with feedback for the model."""
        document = _encode(text)
        if self.wrapped:
            document = _unwrap(document)
        return self.parser(document)

    def __repr__(self) -> str:
        return f"OutputType({self.name!r})"


@overload
def read_output_type(output: type[T]) -> OutputType[T]: ...
@overload
def read_output_type(
    output: OutputSchema | Mapping[str, Any] | Literal["json", "json_object"],
) -> OutputType[dict[str, Any]]: ...
@overload
def read_output_type(output: object) -> OutputType[Any]: ...
def read_output_type(output: object) -> OutputType[Any]:
    """Read the `output` option: a dataclass, a Struct, a TypedDict, a pydantic model, any other type that JSON can
    carry, a JSON schema, or "json" for any object. Raises ConfigError for anything else.

    A schema whose root is not an object yields values of that schema.
    """
    built = build_schema(output)
    return OutputType(built.schema, built.wrapped, _choose_parser(output, built.schema, built.wrapped), output)


def _choose_parser(output: object, schema: SchemaOrJson, wrapped: bool) -> Callable[[bytes], Any]:
    if schema == "json":
        return _parse_object
    if isinstance(output, (OutputSchema, Mapping)):
        return _build_schema_parser(_unwrap_schema(schema.schema) if wrapped else schema.schema)
    if has_own_schema(output):
        return _build_pydantic_parser(output.model_validate_json)  # type: ignore[attr-defined]
    adapter = find_pydantic_adapter(output)
    if adapter is not None:
        return _build_pydantic_parser(adapter.validate_json)
    return _build_msgspec_parser(output)


def _unwrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = {keyword: schema[keyword] for keyword in DEFINITIONS if keyword in schema}
    return {**schema["properties"][WRAPPER_FIELD], **definitions}


def _parse_object(document: bytes) -> dict[str, Any]:
    value = _decode(document)
    if not isinstance(value, dict):
        raise OutputMismatch(f"$: expected object, found {name_json_type(value)}")
    return value


def _build_schema_parser(schema: dict[str, Any]) -> Callable[[bytes], Any]:
    validate = build_validator(schema)

    def parse(document: bytes) -> Any:
        value = _decode(document)
        validate(value)
        return value

    return parse


def _build_msgspec_parser(kind: Any) -> Callable[[bytes], Any]:
    try:
        decoder = msgspec.json.Decoder(kind)
    except TypeError as problem:
        raise ConfigError(f"output cannot be read ({problem}). Use a dataclass or a schema.") from None

    def parse(document: bytes) -> Any:
        try:
            return decoder.decode(document)
        except msgspec.ValidationError as problem:
            raise OutputMismatch(_list_problems(parse_msgspec_error(problem))) from None
        except AssertionError as problem:
            # A `__post_init__` may assert instead of raising ValueError; pydantic accepts both too.
            raise OutputMismatch(f"$: {str(problem) or 'it is not consistent'}") from None
        except (msgspec.DecodeError, RecursionError) as problem:
            raise _build_json_mismatch(problem) from None

    return parse


def _build_pydantic_parser(validate: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def parse(document: bytes) -> Any:
        _decode(document)
        try:
            return validate(document)
        except ValueError as problem:
            # Other libraries have models like pydantic's, with different errors.
            problems = parse_pydantic_error(problem) if hasattr(problem, "errors") else (("", str(problem)),)
            raise OutputMismatch(_list_problems(*problems)) from None

    return parse


def _list_problems(*problems: Problem) -> str:
    return "\n".join(f"${where}: {what}" for where, what in problems)


class _Wrapper(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw


def _unwrap(document: bytes) -> bytes:
    """Extract the value from its wrapper object. A bare value is accepted too."""
    try:
        return bytes(msgspec.json.decode(document, type=_Wrapper).value)
    except msgspec.ValidationError:
        return document
    except (msgspec.DecodeError, RecursionError) as problem:
        raise _build_json_mismatch(problem) from None


def _encode(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise OutputMismatch("$: it has characters that are not valid text") from None


def _decode(document: bytes) -> Any:
    try:
        return msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise _build_json_mismatch(problem) from None


def _build_json_mismatch(problem: Exception) -> OutputMismatch:
    is_deep = isinstance(problem, RecursionError)
    return OutputMismatch("it is nested too deeply" if is_deep else f"it is not JSON: {problem}")


# --- JSON schema ------------------------------------------------------------------------------------------------------


def build_validator(schema: dict[str, Any]) -> Callable[[Any], None]:
    """Build a function that raises OutputMismatch for values that do not fit. It names the place, never the content.

    Drafts 4, 6, 7 and 2019-09. Raises ConfigError for an invalid schema. Nothing is fetched: a reference to another
    document is refused.
    """
    import fastjsonschema

    def compile_schema(*, use_formats: bool) -> Callable[[Any], Any]:
        compiled: Callable[[Any], Any] = fastjsonschema.compile(
            schema, handlers=_RefuseAll(), use_default=False, use_formats=use_formats
        )
        return compiled

    try:
        try:
            check = compile_schema(use_formats=True)
        except fastjsonschema.JsonSchemaDefinitionException:
            check = compile_schema(use_formats=False)  # an unknown format does not make a schema invalid
    except _SCHEMA_FAULTS as problem:
        raise ConfigError(
            f"output is not a JSON schema that can be checked ({type(problem).__name__}). Correct it."
        ) from None

    def validate(value: Any) -> None:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException as problem:
            raise OutputMismatch(_describe_violation(problem)) from None
        except RecursionError:
            raise OutputMismatch("$: it is nested too deeply") from None

    return validate


class _RefuseAll(dict[str, Callable[[str], Any]]):
    """fastjsonschema looks here for a function that fetches a document. Every scheme gets one that refuses."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __getitem__(self, scheme: str) -> Callable[[str], Any]:
        return _refuse_reference


def _refuse_reference(_: str) -> Any:
    raise ConfigError("the schema of output refers to another document. Put its definitions into $defs.")


def _describe_violation(problem: Any) -> str:
    place = "$" + str(problem.name or "data").removeprefix("data")
    rule, definition = problem.rule, problem.rule_definition
    match rule:
        case "type":
            expected = f"expected {definition if isinstance(definition, str) else ' or '.join(definition)}"
        case "enum":
            expected = f"expected one of {_to_json(definition)}"
        case "required":
            missing = [name for name in definition if isinstance(problem.value, dict) and name not in problem.value]
            return f"{place}: these fields are missing: {_to_json(missing)}"
        case "additionalProperties":
            known = list((problem.definition or {}).get("properties", {}))
            return f"{place}: only these fields are allowed: {_to_json(known)}"
        case None:
            expected = "expected something else"
        case _:
            expected = f"expected {rule} {_to_json(definition)}"
    return f"{place}: {expected}, found {name_json_type(problem.value)}"


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
