"""The JSON schema of an answer, from a type, a schema in any of its shapes, or "json": `build_schema`. Pure.

Not here: how an answer is parsed (output_type), and how a model gets the schema (strategy).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from asides.agents.tools.type_readers import is_pydantic
from asides.values.errors import ConfigError
from asides.values.json_schema import DEFINITIONS, find_inner_schemas, find_references, map_inner_schemas
from asides.values.messages import OutputSchema

SchemaOrJson: TypeAlias = OutputSchema | Literal["json"]

WRAPPER_FIELD = "value"
"""Providers want an object at the root. Any other value is asked for in an object with this one field."""

_MOST_NAME = 64
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
    """The value stands in the field "value" of an object."""


def build_schema(output: object) -> ProviderSchema:
    """The schema for the `output` option. An `OutputSchema` stays as it is. Raises ConfigError."""
    if isinstance(output, OutputSchema):
        return ProviderSchema(output)
    if isinstance(output, str):
        if output not in ("json", "json_object"):
            raise ConfigError(f'output={output!r} is not known. To do: use "json", a JSON schema or a type.')
        return ProviderSchema("json")
    if isinstance(output, Mapping):
        return _read_schema(dict(output))
    schema = _normalise(_inline_root(_read_type(output)))
    return _wrap(_clean_name(getattr(output, "__name__", "output")), schema)


def _read_schema(document: dict[str, Any]) -> ProviderSchema:
    """A bare JSON schema, or one in the envelope of chat completions or Responses."""
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
    return name[:_MOST_NAME] or "output"


# --- types ------------------------------------------------------------------------------------------------------------


def has_own_schema(kind: object) -> bool:
    """Whether it is a model with a schema of its own, like those of pydantic."""
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
    """Whether a dataclass or TypedDict is not for msgspec alone: a pydantic model may stand inside it."""
    if not hasattr(kind, "__dataclass_fields__") and not hasattr(kind, "__total__"):
        return False
    try:
        build_msgspec_schema(kind)
    except (TypeError, NameError):
        return True
    return False


def _read_type(kind: object) -> dict[str, Any]:
    if has_own_schema(kind):
        return dict(kind.model_json_schema())  # type: ignore[attr-defined]
    adapter = find_pydantic_adapter(kind)
    if adapter is not None:
        return dict(adapter.json_schema())
    try:
        return build_msgspec_schema(kind)
    except (TypeError, NameError) as problem:
        raise ConfigError(f"output has no JSON schema ({problem}). To do: use a dataclass or a schema.") from None


def build_msgspec_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type that msgspec knows. Its root is inlined, since providers want an object there and not a
    reference. Raises TypeError, or NameError for a type that is not defined yet.
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


# --- schemas ----------------------------------------------------------------------------------------------------------


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its root in place of a reference to it."""
    kind, _, name = str(schema.get("$ref", "")).removeprefix("#/").partition("/")
    if kind not in DEFINITIONS:
        return schema
    return {**schema[kind][name], kind: schema[kind]}


def _normalise(schema: Any) -> Any:
    """A type's schema with closed objects and only keywords that all providers know."""
    if not isinstance(schema, dict):
        return schema
    # The parser checks that exactly one of them fits.
    known = {"anyOf" if word == "oneOf" else word: value for word, value in schema.items() if word != "discriminator"}
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
        # Without a type it is an object, unless it combines others or lists its values.
        return not any(word in schema for word in (*_COMPOSED, "enum", "const", "not"))
    return kind == "object" and not any(word in schema for word in ("anyOf", "oneOf"))


def _wrap_in_object(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that holds such a value. Definitions stay at the root, where references point."""
    definitions = {word: schema[word] for word in DEFINITIONS if word in schema}
    inner = {word: value for word, value in schema.items() if word not in (*DEFINITIONS, "$schema")}
    if any(not reference.startswith(("#/$defs/", "#/definitions/")) for reference in find_references(inner)):
        return schema  # it refers to its own root, which would change
    return {
        "type": "object",
        "properties": {WRAPPER_FIELD: inner},
        "required": [WRAPPER_FIELD],
        "additionalProperties": False,
        **definitions,
    }


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
_MOST_OPTIONAL = 10
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
    return isinstance(schema, dict) and not any(word in schema for word in ("type", "$ref", "anyOf", "enum", "const"))


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema for hosts that know only shapes. None when it cannot be expressed for them: open objects, recursive
    types, or too many optional fields.
    """
    if _is_recursive(schema) or not _is_closable(schema) or _count_optional_fields(schema) > _MOST_OPTIONAL:
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
    """Whether a definition leads back to itself, or a reference leads anywhere but to a definition."""
    named = {f"#/{word}/{name}": inner for word in DEFINITIONS for name, inner in schema.get(word, {}).items()}

    def leads_back(inner: Any, seen: frozenset[str]) -> bool:
        if not isinstance(inner, dict):
            return False
        reference = inner.get("$ref")
        if isinstance(reference, str):
            if reference not in named or reference in seen:
                return True
            return leads_back(named[reference], seen | {reference})
        below = {word: value for word, value in inner.items() if word not in DEFINITIONS}
        return any(leads_back(each, seen) for each in find_inner_schemas(below))

    return leads_back(schema, frozenset()) or any(leads_back(each, frozenset({name})) for name, each in named.items())


def _is_refused(word: str, value: Any) -> bool:
    return word in _BOUNDS or (word == "minItems" and value > 1) or (word == "format" and value not in _FORMATS)


def _move_bounds(schema: Any) -> Any:
    """The schema with its bounds as text in the descriptions."""
    if not isinstance(schema, dict):
        return schema
    accepted: dict[str, Any] = {}
    bounds: list[str] = []
    for word, value in schema.items():
        if _is_refused(word, value):
            bounds.append(f"{word}: {msgspec.json.encode(value).decode()}")
        else:
            accepted["anyOf" if word == "oneOf" else word] = value
    simple = map_inner_schemas(accepted, _move_bounds)
    if simple.get("type") == "object":
        simple["additionalProperties"] = False
    if bounds:
        text = f"({'; '.join(bounds)})"
        simple["description"] = f"{simple['description']} {text}" if simple.get("description") else text
    return simple
