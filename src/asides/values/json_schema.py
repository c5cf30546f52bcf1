"""Operations on JSON schemas: find or change the schemas inside one, and move, resolve or close its definitions. Pure.

Not here: the schema of a type (agents/tools for a function's parameters, agents/outputs for an answer).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DEFINITIONS = ("$defs", "definitions")
"""The keywords that hold the definitions of a schema."""

# Keywords whose value is a schema or a list of schemas, and keywords whose value maps names to schemas.
# The value of any other keyword (a default, an enum, an example) is data, even if it looks like a schema.
_SCHEMA_KEYWORDS = frozenset(
    (
        *("items", "additionalProperties", "unevaluatedProperties", "not", "contains", "propertyNames"),
        *("if", "then", "else", "anyOf", "oneOf", "allOf", "prefixItems"),
    )
)
_NAMED_SCHEMA_KEYWORDS = frozenset(("properties", "patternProperties", "dependentSchemas", *DEFINITIONS))
_REFERENCE_PREFIX = "#/$defs/"


def map_inner_schemas(schema: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the schema with `change` applied to every schema directly inside it."""
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMA_KEYWORDS and isinstance(value, dict):
            changed[keyword] = {name: change(inner) for name, inner in value.items()}
        elif keyword in _SCHEMA_KEYWORDS:
            changed[keyword] = [change(inner) for inner in value] if isinstance(value, list) else change(value)
        else:
            changed[keyword] = value
    return changed


def find_inner_schemas(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas directly inside a schema."""
    found: list[Any] = []

    def collect(inner: Any) -> Any:
        found.append(inner)
        return inner

    map_inner_schemas(schema, collect)
    return found


def find_references(schema: Any) -> set[str]:
    """Return every `$ref` in a schema, at any depth."""
    if not isinstance(schema, dict):
        return set()
    found = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set[str]()
    return found.union(*(find_references(inner) for inner in find_inner_schemas(schema)))


def hoist_definitions(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return the schema with its inner definitions moved to `definitions`: providers look for them only at the root.

    A definition whose name is taken by a different one gets a new name.
    """
    if not isinstance(schema, dict):
        return schema
    inner = schema.get("$defs")
    if isinstance(inner, dict):
        names = {name: _find_free_name(name, inner, definitions) for name in inner}
        schema = _rename_references({key: value for key, value in schema.items() if key != "$defs"}, names)
        definitions |= {names[name]: _rename_references(body, names) for name, body in inner.items()}
    return map_inner_schemas(schema, lambda deeper: hoist_definitions(deeper, definitions))


def _find_free_name(name: str, inner: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return the name, or the first free one like it, unless the name already has the same definition."""
    candidate, number = name, 1
    while (
        candidate in definitions and definitions[candidate] != _rename_references(inner[name], {name: candidate})
    ) or (candidate != name and candidate in inner):
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _rename_references(schema: Any, names: dict[str, str]) -> Any:
    """Return the schema with its references changed from the old names to the new ones."""
    if not isinstance(schema, dict):
        return schema
    changed = map_inner_schemas(schema, lambda deeper: _rename_references(deeper, names))
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_REFERENCE_PREFIX):
        name = reference.removeprefix(_REFERENCE_PREFIX)
        changed["$ref"] = f"{_REFERENCE_PREFIX}{names.get(name, name)}"
    return changed


def resolve_reference(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the definition a schema refers to, merged with its other keywords; any other schema unchanged."""
    reference = schema.get("$ref")
    definition = definitions.get(reference.removeprefix(_REFERENCE_PREFIX)) if isinstance(reference, str) else None
    if not isinstance(definition, dict):
        return schema
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def close_objects(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return the schema for strict mode: objects take no other fields, and a `$ref` has no keyword beside it."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and len(schema) > 1:
        schema = resolve_reference(schema, definitions)
    closed = map_inner_schemas(schema, lambda deeper: close_objects(deeper, definitions))
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def remove_titles(schema: Any) -> Any:
    """Return the schema without titles: they only repeat the names, and each costs tokens."""
    if not isinstance(schema, dict):
        return schema
    return map_inner_schemas({key: value for key, value in schema.items() if key != "title"}, remove_titles)
