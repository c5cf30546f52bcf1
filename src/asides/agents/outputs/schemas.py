"""The JSON schema of an answer, from a type, a schema in any of its shapes, or "json": `build_schema`. Pure.

Not here: how an answer is parsed (output_type), and how a model gets the schema (strategy).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from asides.agents.outputs.strict_schema import is_strict_schema
from asides.agents.tools.type_readers import is_pydantic
from asides.values.errors import ConfigError
from asides.values.json_schema import DEFINITIONS, find_references, map_inner_schemas
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
