"""A schema in the words of hosts that know only shapes: closed objects, lists, choices; no bounds, nothing open. Pure.

Bounds that such a host refuses become words of the description; whether they are kept is seen when the answer is read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.json_schema import DEFINITIONS, find_inner_schemas, map_inner_schemas

_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"),
)
# More are "too complex" (vercel/ai @ai-sdk/anthropic 2.0.112 and 4.0.94, 2026-11).
_MOST_OPTIONAL = 10
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")


def plain_shapes(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema without what such hosts refuse; None where it cannot be said so: open objects, types inside
    themselves, or too many fields that may be left out.
    """
    if _is_recursive(schema) or not _is_closable(schema) or _optional_fields(schema) > _MOST_OPTIONAL:
        return None
    plain: dict[str, Any] = _plain(schema)
    return plain


def _optional_fields(schema: Any) -> int:
    if not isinstance(schema, dict):
        return 0
    own = len(set(schema.get("properties", ())) - set(schema.get("required", ())))
    return own + sum(_optional_fields(inner) for inner in find_inner_schemas(schema))


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


def _plain(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    told: list[str] = []
    for word, value in schema.items():
        if _is_refused(word, value):
            told.append(f"{word}: {msgspec.json.encode(value).decode()}")
        else:
            kept["anyOf" if word == "oneOf" else word] = value
    plain = map_inner_schemas(kept, _plain)
    if plain.get("type") == "object":
        plain["additionalProperties"] = False
    if told:
        words = f"({'; '.join(told)})"
        plain["description"] = f"{plain['description']} {words}" if plain.get("description") else words
    return plain
