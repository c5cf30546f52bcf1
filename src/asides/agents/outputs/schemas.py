"""The JSON schema for an answer, from whatever names it: a type, a schema in any of its shapes, or "json". Pure.

Not here: how an answer is read (wanted), and which model is told the schema in which way (ways).
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

AskedOutput: TypeAlias = OutputSchema | Literal["json"]

HOLDER = "value"
"""Providers want an object at the root. What is none is sent as an object with this one field, and taken out again."""

_MOST_NAME = 64
# Words of a schema that is put together of others.
_COMPOSED = ("anyOf", "oneOf", "allOf", "prefixItems")

# What strict mode knows; a schema with anything else in it is refused there (platform.openai.com structured-outputs,
# "Supported schemas", 2026-08).
_STRICT_KEYWORDS = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"),
        *("title", "description", "pattern", "format", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", *DEFINITIONS),
    )
)


_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class Asked(msgspec.Struct, frozen=True):
    """What goes to the provider."""

    schema: AskedOutput
    wrapped: bool = False
    """The value stands in the field "value" of an object."""


def asked_for(output: object) -> Asked:
    """The schema for what `output` names. An `OutputSchema` stays as it is. Raises ConfigError."""
    if isinstance(output, OutputSchema):
        return Asked(output)
    if isinstance(output, str):
        if output not in ("json", "json_object"):
            raise ConfigError(f'output={output!r} is not known. To do: use "json", a JSON schema or a type.')
        return Asked("json")
    if isinstance(output, Mapping):
        return _of_schema(dict(output))
    schema = _tidied(_spelled_out(_schema_of_type(output)))
    return _named(_name(getattr(output, "__name__", "output")), schema)


def _of_schema(document: dict[str, Any]) -> Asked:
    """A JSON schema as it is, or inside what chat completions or Responses have around it."""
    held = document.get("json_schema")
    if not isinstance(held, Mapping) and document.get("type") == "json_schema":
        held = document
    if isinstance(held, Mapping) and isinstance(held.get("schema"), Mapping):
        name = _name(str(held.get("name", "output")))
        return _named(name, dict(held["schema"]), strict=held.get("strict") is True)
    return _named(_name(str(document.get("title", "output"))), document)


def _named(name: str, schema: dict[str, Any], *, strict: bool | None = None) -> Asked:
    sent = schema if _is_object(schema) else _wrapped(schema)
    settled = fits_strict_mode(sent) if strict is None else strict
    return Asked(OutputSchema(name, sent, strict=settled), wrapped=sent is not schema)


def _name(text: str) -> str:
    name = "".join(mark if (mark.isascii() and mark.isalnum()) or mark in "_-" else "_" for mark in text)
    return name[:_MOST_NAME] or "output"


# --- types ------------------------------------------------------------------------------------------------------------


def describes_itself(kind: object) -> bool:
    """Whether it is a model that brings its own schema, as those of pydantic do."""
    return callable(getattr(kind, "model_json_schema", None))


def adapter_of(kind: object) -> Any:
    """What pydantic reads such a type with; None for types that are not its business. Never the first to import it."""
    if "pydantic" not in sys.modules or not (is_pydantic(kind) or _is_beyond_us(kind)):
        return None
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

    form: Any = kind
    try:
        return TypeAdapter(form)
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return None


def _is_beyond_us(kind: object) -> bool:
    """A dataclass or TypedDict that has a model of pydantic somewhere inside, perhaps."""
    if not hasattr(kind, "__dataclass_fields__") and not hasattr(kind, "__total__"):
        return False
    try:
        schema_of(kind)
    except (TypeError, NameError):
        return True
    return False


def _schema_of_type(kind: object) -> dict[str, Any]:
    if describes_itself(kind):
        return dict(kind.model_json_schema())  # type: ignore[attr-defined]
    adapter = adapter_of(kind)
    if adapter is not None:
        return dict(adapter.json_schema())
    try:
        return schema_of(kind)
    except (TypeError, NameError) as problem:
        raise ConfigError(f"output has no JSON schema ({problem}). To do: use a dataclass or a schema.") from None


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type that msgspec knows, its root spelled out, since providers want an object there and no
    reference. Raises TypeError, or NameError for a type that is still to come.
    """
    (root,), definitions = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    reference = root.get("$ref", "")
    if reference:
        name = reference.removeprefix("#/$defs/")
        root = dict(definitions[name])
        if not any(reference in find_references(definition) for definition in definitions.values()):
            del definitions[name]
    return {**root, "$defs": definitions} if definitions else root


# --- schemas ----------------------------------------------------------------------------------------------------------


def _spelled_out(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its root in place, and no mere reference there."""
    kind, _, name = str(schema.get("$ref", "")).removeprefix("#/").partition("/")
    if kind not in DEFINITIONS:
        return schema
    return {**schema[kind][name], kind: schema[kind]}


def _tidied(schema: Any) -> Any:
    """A type's schema without room for fields that the type does not have, and in the words that all providers know."""
    if not isinstance(schema, dict):
        return schema
    # That only one of them fits is checked when the answer is read.
    kept = {"anyOf" if word == "oneOf" else word: value for word, value in schema.items() if word != "discriminator"}
    tidy = map_inner_schemas(kept, _tidied)
    if tidy.get("type") == "object" and "properties" in tidy:
        tidy.setdefault("additionalProperties", False)
    if "enum" in tidy and "type" not in tidy:
        # Some hosts refuse a choice that does not say of what.
        kinds = list(dict.fromkeys(kind_of(each) for each in tidy["enum"]))
        tidy["type"] = kinds[0] if len(kinds) == 1 else kinds
    return tidy


def kind_of(value: object) -> str:
    """What JSON calls it."""
    return _KINDS.get(type(value), "value")


def _says_nothing(schema: Any) -> bool:
    return isinstance(schema, dict) and not any(word in schema for word in ("type", "$ref", "anyOf", "enum", "const"))


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is None:
        # Said of nothing: an object, unless it is put together of others or has only these values.
        return not any(word in schema for word in (*_COMPOSED, "enum", "const", "not"))
    return kind == "object" and not any(word in schema for word in ("anyOf", "oneOf"))


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that holds such a value; its definitions stay at the root, where references look."""
    kept = {word: schema[word] for word in DEFINITIONS if word in schema}
    inner = {word: value for word, value in schema.items() if word not in (*DEFINITIONS, "$schema")}
    if any(not reference.startswith(("#/$defs/", "#/definitions/")) for reference in find_references(inner)):
        return schema  # it refers to its own root, which would be another then
    return {
        "type": "object",
        "properties": {HOLDER: inner},
        "required": [HOLDER],
        "additionalProperties": False,
        **kept,
    }


def fits_strict_mode(schema: Any) -> bool:
    """Whether strict mode takes a schema: known words only, every object closed and every field of it required, and
    nothing that could be anything.
    """
    if not isinstance(schema, dict):
        return True
    if not isinstance(schema.get("properties", {}), dict) or not isinstance(schema.get("required", []), list):
        return False
    if not schema.keys() <= _STRICT_KEYWORDS or any(_says_nothing(inner) for inner in find_inner_schemas(schema)):
        return False
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or sorted(schema.get("required", ())) != sorted(fields):
            return False
    return all(fits_strict_mode(inner) for inner in find_inner_schemas(schema))
