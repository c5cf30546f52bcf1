"""JSON schemas that strict hosts accept: `is_strict_schema` checks one, `simplify_schema` rewrites one. Pure.

Two kinds of hosts are strict. Some take a schema only in strict mode: known keywords, closed objects, required fields.
Others know only shapes: no bounds, nothing open. For those, bounds move into the description; the parser of the answer
still checks them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.json_schema import DEFINITIONS, find_inner_schemas, map_inner_schemas

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
