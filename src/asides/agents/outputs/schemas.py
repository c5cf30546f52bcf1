"""The JSON schema of an answer, from a type, a JSON schema or "json": `build_schema`. Pure.

Also the forms that some hosts require: `is_strict_schema` and `simplify_schema`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias, TypeGuard
from weakref import WeakKeyDictionary

import msgspec

from asides.agents.tools.type_readers import is_pydantic
from asides.values.errors import ConfigError
from asides.values.json_schema import DEFINITIONS, find_inner_schemas, find_references, map_inner_schemas
from asides.values.messages import OutputSchema

SchemaOrJson: TypeAlias = OutputSchema | Literal["json"]

WRAPPER_FIELD = "value"
"""Providers require an object at the root. Any other value is wrapped in an object with this one field."""

_MAX_NAME = 64
# Keywords of a schema that combines others.
_COMPOSED = ("anyOf", "oneOf", "allOf", "prefixItems")

_JSON_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class ProviderSchema(msgspec.Struct, frozen=True):
    """The schema for the provider."""

    schema: SchemaOrJson
    wrapped: bool = False
    """The value is in the field "value" of an object."""


def build_schema(output: object) -> ProviderSchema:
    """Build the schema of the `output` option. An `OutputSchema` stays as it is. Raises ConfigError."""
    if isinstance(output, OutputSchema):
        return ProviderSchema(output)
    if isinstance(output, str):
        if output not in ("json", "json_object"):
            raise ConfigError(f'output={output!r} is not known. Use "json", a JSON schema or a type.')
        return ProviderSchema("json")
    if isinstance(output, Mapping):
        return _read_schema(dict(output))
    return _find_built(output) or _build_from_type(output)


class _Built(msgspec.Struct, frozen=True):
    """The schema of a class. It does not reference the class, so that an unused class is freed."""

    name: str
    doc: str | None
    strict: bool
    wrapped: bool
    schema: bytes
    """As JSON, so that each caller gets a schema of its own."""


# Building a schema costs as much as some requests. Only classes that declare it once and for all are here: a model of
# pydantic builds its schema itself, and may build another one each time.
_built: WeakKeyDictionary[type, _Built] = WeakKeyDictionary()


def _find_built(kind: object) -> ProviderSchema | None:
    built = _built.get(kind) if _is_plain_class(kind) else None
    if built is None or (built.name, built.doc) != (kind.__name__, kind.__doc__):  # type: ignore[attr-defined]
        return None
    schema = OutputSchema(_clean_name(built.name), msgspec.json.decode(built.schema), strict=built.strict)
    return ProviderSchema(schema, built.wrapped)


def _build_from_type(kind: object) -> ProviderSchema:
    read = _read_type(kind)
    made = _wrap(_clean_name(getattr(kind, "__name__", "output")), _normalise(_inline_root(read.schema)))
    if read.is_fixed and _is_plain_class(kind) and isinstance(made.schema, OutputSchema):
        with suppress(msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            schema = msgspec.json.encode(made.schema.schema)
            if msgspec.json.decode(schema) == made.schema.schema:
                _built[kind] = _Built(kind.__name__, kind.__doc__, made.schema.strict, made.wrapped, schema)
    return made


def _is_plain_class(kind: object) -> TypeGuard[type]:
    """Whether a class equals only itself: a metaclass may define equality."""
    meta = type(kind)
    return isinstance(kind, type) and meta.__eq__ is type.__eq__ and meta.__hash__ is type.__hash__


def _read_schema(document: dict[str, Any]) -> ProviderSchema:
    """Read a bare JSON schema, or one in the envelope of chat completions or Responses."""
    envelope = document.get("json_schema")
    if not isinstance(envelope, Mapping) and document.get("type") == "json_schema":
        envelope = document
    if isinstance(envelope, Mapping) and isinstance(envelope.get("schema"), Mapping):
        name = _clean_name(str(envelope.get("name", "output")))
        return _wrap(name, dict(envelope["schema"]), strict=envelope.get("strict") is True)
    return _wrap(_clean_name(str(document.get("title", "output"))), document)


def _wrap(name: str, schema: dict[str, Any], *, strict: bool | None = None) -> ProviderSchema:
    sent = schema if _is_object(schema) else _wrap_in_object(schema)
    strict = is_strict_schema(sent) if strict is None else strict
    return ProviderSchema(OutputSchema(name, sent, strict=strict), wrapped=sent is not schema)


def _clean_name(text: str) -> str:
    name = "".join(mark if (mark.isascii() and mark.isalnum()) or mark in "_-" else "_" for mark in text)
    return name[:_MAX_NAME] or "output"


# --- types ------------------------------------------------------------------------------------------------------------


def has_own_schema(kind: object) -> bool:
    """Whether a type builds its schema itself, like the models of pydantic."""
    return callable(getattr(kind, "model_json_schema", None))


def find_pydantic_adapter(kind: object) -> Any:
    """The pydantic TypeAdapter of a type; None for types that do not need one. Never imports pydantic first."""
    if "pydantic" not in sys.modules or not (is_pydantic(kind) or _may_hold_pydantic(kind)):
        return None
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

    form: Any = kind
    try:
        return TypeAdapter(form)
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return None


def _may_hold_pydantic(kind: object) -> bool:
    """Whether a dataclass or TypedDict may hold pydantic models: msgspec alone cannot read it."""
    if not hasattr(kind, "__dataclass_fields__") and not hasattr(kind, "__total__"):
        return False
    if _find_built(kind) is not None:
        return False
    try:
        build_msgspec_schema(kind)
    except (TypeError, NameError):
        return True
    return False


class _TypeSchema(msgspec.Struct, frozen=True):
    schema: dict[str, Any]
    is_fixed: bool = False
    """The schema is the same each time."""


def _read_type(kind: object) -> _TypeSchema:
    if has_own_schema(kind):
        return _TypeSchema(dict(kind.model_json_schema()))  # type: ignore[attr-defined]
    adapter = find_pydantic_adapter(kind)
    if adapter is not None:
        return _TypeSchema(dict(adapter.json_schema()))
    try:
        return _TypeSchema(build_msgspec_schema(kind), is_fixed=True)
    except (TypeError, NameError) as problem:
        raise ConfigError(f"output has no JSON schema ({problem}). Use a dataclass or a schema.") from None


def build_msgspec_schema(kind: Any) -> dict[str, Any]:
    """Build the JSON schema of a type that msgspec supports. Its root is inlined, since providers require an object
    there and no reference. Raises TypeError, or NameError for a type that is not defined yet.
    """
    (root,), definitions = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    reference = root.get("$ref", "")
    if reference:
        name = reference.removeprefix("#/$defs/")
        root = dict(definitions[name])
        if not any(reference in find_references(definition) for definition in definitions.values()):
            del definitions[name]
    return {**root, "$defs": definitions} if definitions else root


def name_json_type(value: object) -> str:
    """The JSON name of a value's type."""
    return _JSON_TYPES.get(type(value), "value")


# --- root and keywords of a schema ------------------------------------------------------------------------------------


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace a reference at the root by the schema that it refers to."""
    kind, _, name = str(schema.get("$ref", "")).removeprefix("#/").partition("/")
    if kind not in DEFINITIONS:
        return schema
    return {**schema[kind][name], kind: schema[kind]}


def _normalise(schema: Any) -> Any:
    """Close the objects of a type's schema, and use only keywords that all providers know."""
    if not isinstance(schema, dict):
        return schema
    # The parser checks that exactly one of them fits.
    known = {
        "anyOf" if keyword == "oneOf" else keyword: value
        for keyword, value in schema.items()
        if keyword != "discriminator"
    }
    normal = map_inner_schemas(known, _normalise)
    if normal.get("type") == "object" and "properties" in normal:
        normal.setdefault("additionalProperties", False)
    if "enum" in normal and "type" not in normal:
        # Some hosts refuse an enum without a type.
        kinds = list(dict.fromkeys(name_json_type(each) for each in normal["enum"]))
        normal["type"] = kinds[0] if len(kinds) == 1 else kinds
    return normal


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is None:
        # Without a type it is an object, unless it combines other schemas or lists its values.
        return not any(keyword in schema for keyword in (*_COMPOSED, "enum", "const", "not"))
    return kind == "object" and not any(keyword in schema for keyword in ("anyOf", "oneOf"))


def _wrap_in_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Wrap the schema in an object with one field. Definitions stay at the root, where references point."""
    definitions = {keyword: schema[keyword] for keyword in DEFINITIONS if keyword in schema}
    inner = {keyword: value for keyword, value in schema.items() if keyword not in (*DEFINITIONS, "$schema")}
    if any(not reference.startswith(("#/$defs/", "#/definitions/")) for reference in find_references(inner)):
        return schema  # it refers to its own root, which would change
    return {
        "type": "object",
        "properties": {WRAPPER_FIELD: inner},
        "required": [WRAPPER_FIELD],
        "additionalProperties": False,
        **definitions,
    }


# --- schemas for strict mode and for hosts that know only shapes ------------------------------------------------------

# The keywords of strict mode; it refuses a schema with any other (platform.openai.com structured-outputs,
# "Supported schemas", 2026-08).
_STRICT_KEYWORDS = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"),
        *("title", "description", "pattern", "format", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", *DEFINITIONS),
    )
)
_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"),
)
# More are "too complex" (vercel/ai @ai-sdk/anthropic 2.0.112 and 4.0.94, 2026-11).
_MAX_OPTIONAL = 10
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")


def is_strict_schema(schema: Any) -> bool:
    """Whether strict mode accepts a schema: known keywords only, every object closed with all fields required, and no
    schema that accepts anything.
    """
    if not isinstance(schema, dict):
        return True
    if not isinstance(schema.get("properties", {}), dict) or not isinstance(schema.get("required", []), list):
        return False
    if not schema.keys() <= _STRICT_KEYWORDS or any(_accepts_anything(inner) for inner in find_inner_schemas(schema)):
        return False
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or sorted(schema.get("required", ())) != sorted(fields):
            return False
    return all(is_strict_schema(inner) for inner in find_inner_schemas(schema))


def _accepts_anything(schema: Any) -> bool:
    return isinstance(schema, dict) and not any(
        keyword in schema for keyword in ("type", "$ref", "anyOf", "enum", "const")
    )


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Simplify the schema for hosts that know only shapes. None when that is impossible: open objects, recursive types,
    or too many optional fields.
    """
    if _is_recursive(schema) or not _is_closable(schema) or _count_optional_fields(schema) > _MAX_OPTIONAL:
        return None
    simple: dict[str, Any] = _move_bounds(schema)
    return simple


def _count_optional_fields(schema: Any) -> int:
    if not isinstance(schema, dict):
        return 0
    own = len(set(schema.get("properties", ())) - set(schema.get("required", ())))
    return own + sum(_count_optional_fields(inner) for inner in find_inner_schemas(schema))


def _is_closable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and ("properties" not in schema or schema.get("additionalProperties", False)):
        return False
    if "patternProperties" in schema:
        return False
    return all(_is_closable(inner) for inner in find_inner_schemas(schema))


def _is_recursive(schema: dict[str, Any]) -> bool:
    """Whether a definition is recursive, or a reference does not point to a definition."""
    named = {f"#/{keyword}/{name}": inner for keyword in DEFINITIONS for name, inner in schema.get(keyword, {}).items()}

    def leads_back(inner: Any, seen: frozenset[str]) -> bool:
        if not isinstance(inner, dict):
            return False
        reference = inner.get("$ref")
        if isinstance(reference, str):
            if reference not in named or reference in seen:
                return True
            return leads_back(named[reference], seen | {reference})
        below = {keyword: value for keyword, value in inner.items() if keyword not in DEFINITIONS}
        return any(leads_back(each, seen) for each in find_inner_schemas(below))

    return leads_back(schema, frozenset()) or any(leads_back(each, frozenset({name})) for name, each in named.items())


def _is_refused(keyword: str, value: Any) -> bool:
    return (
        keyword in _BOUNDS or (keyword == "minItems" and value > 1) or (keyword == "format" and value not in _FORMATS)
    )


def _move_bounds(schema: Any) -> Any:
    """Move the bounds of the schema into the descriptions, as text."""
    if not isinstance(schema, dict):
        return schema
    accepted: dict[str, Any] = {}
    bounds: list[str] = []
    for keyword, value in schema.items():
        if _is_refused(keyword, value):
            bounds.append(f"{keyword}: {msgspec.json.encode(value).decode()}")
        else:
            accepted["anyOf" if keyword == "oneOf" else keyword] = value
    simple = map_inner_schemas(accepted, _move_bounds)
    if simple.get("type") == "object":
        simple["additionalProperties"] = False
    if bounds:
        text = f"({'; '.join(bounds)})"
        simple["description"] = f"{simple['description']} {text}" if simple.get("description") else text
    return simple
