"""Schemas of generateContent: `read_schema(schema) → JSON schema`."""

from __future__ import annotations

from typing import Any

# Words of the API's own schema that JSON schema does not have, and counts, which its clients write as text.
_OWN_WORDS = frozenset({"nullable", "propertyOrdering", "property_ordering"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_TYPES = frozenset({"OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL"})


def read_schema(schema: Any) -> Any:
    """Convert the API's own schema to JSON schema: types in lower case, null as a type, whole numbers not as text."""
    if isinstance(schema, list):
        return [read_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {
        name: _to_lower_type(inner) if name == "type" else read_schema(inner) for name, inner in schema.items()
    }
    kind = converted.get("type")
    if isinstance(kind, str) and converted.get("nullable") is True:
        converted["type"] = [kind, "null"]
        if isinstance(converted.get("enum"), list) and None not in converted["enum"]:
            converted["enum"] = [*converted["enum"], None]
    if isinstance(kind, str):
        converted = {name: inner for name, inner in converted.items() if name not in _OWN_WORDS}
    for name in _COUNTS & converted.keys():
        if isinstance(converted[name], str) and converted[name].isdecimal():
            converted[name] = int(converted[name])
    return converted


def _to_lower_type(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_to_lower_type(one) for one in kind]
    return kind.lower() if isinstance(kind, str) and kind in _TYPES else read_schema(kind)
