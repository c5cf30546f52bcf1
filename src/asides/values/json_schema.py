"""A JSON schema, taken apart: which schemas stand in it, and what it refers to. Pure.

Not here: making one from a type (toolbox for what a function takes, outputs for an answer).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DEFINITIONS = ("$defs", "definitions")
"""Where a schema keeps those that it refers to."""

# Keywords whose value is a schema or a list of them, and those that have schemas by name, whatever the names are.
# What stands under any other keyword is a value, also where it looks like a schema: a default, an enum, an example.
_HELD = frozenset(
    (
        *("items", "additionalProperties", "unevaluatedProperties", "not", "contains", "propertyNames"),
        *("if", "then", "else", "anyOf", "oneOf", "allOf", "prefixItems"),
    )
)
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas", *DEFINITIONS))


def map_inner_schemas(schema: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The schema, with `change` made to every schema that stands directly in it; all else as it is."""
    changed: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _NAMED and isinstance(value, dict):
            changed[word] = {name: change(inner) for name, inner in value.items()}
        elif word in _HELD:
            changed[word] = [change(inner) for inner in value] if isinstance(value, list) else change(value)
        else:
            changed[word] = value
    return changed


def find_inner_schemas(schema: dict[str, Any]) -> list[Any]:
    """The schemas that stand directly in a schema."""
    found: list[Any] = []

    def note(inner: Any) -> Any:
        found.append(inner)
        return inner

    map_inner_schemas(schema, note)
    return found


def find_references(schema: Any) -> set[str]:
    """Every `$ref` in a schema, however deep."""
    if not isinstance(schema, dict):
        return set()
    found = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set[str]()
    return found.union(*(find_references(inner) for inner in find_inner_schemas(schema)))
