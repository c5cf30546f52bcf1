"""Operations on JSON schemas: find or change the schemas inside one, its faults, and its definitions. Pure."""

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


# --- faults -----------------------------------------------------------------------------------------------------------

_TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
_LISTS_OF_SCHEMAS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_COUNTS = frozenset(
    ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
)
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_TEXTS = frozenset(("$ref", "$id", "$schema", "$anchor", "title", "description", "pattern", "format", "$comment"))
_OTHER_KEYWORDS = frozenset(("type", "enum", "const", "required", "default", "examples", "uniqueItems", "nullable"))
_KEYWORDS = _SCHEMA_KEYWORDS | _NAMED_SCHEMA_KEYWORDS | _COUNTS | _NUMBERS | _TEXTS | _OTHER_KEYWORDS


def find_schema_fault(schema: object) -> str | None:
    """Return what is wrong with a JSON schema, and where; None if it is valid. Unknown keywords are allowed, but not a
    schema of unknown keywords only.
    """
    if isinstance(schema, dict) and schema and _KEYWORDS.isdisjoint(schema):
        return f"$ has no keyword of a JSON schema, such as type; it has {', '.join(map(repr, list(schema)[:3]))}"
    return _find_fault(schema, "$")


def _find_fault(schema: object, where: str) -> str | None:
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"{where} is not a schema, which is an object"
    for keyword, value in schema.items():
        place = f"{where}.{keyword}"
        fault = _find_value_fault(keyword, value)
        if fault is not None:
            return f"{place} {fault}"
        inner: list[tuple[str, object]] = []
        if keyword in _NAMED_SCHEMA_KEYWORDS:
            inner = [(f"{place}.{name}", deeper) for name, deeper in value.items()]
        elif keyword in _SCHEMA_KEYWORDS and isinstance(value, list):
            inner = [(f"{place}[{number}]", deeper) for number, deeper in enumerate(value)]
        elif keyword in _SCHEMA_KEYWORDS:
            inner = [(place, value)]
        fault = next((found for deep, deeper in inner if (found := _find_fault(deeper, deep)) is not None), None)
        if fault is not None:
            return fault
    return None


def _find_value_fault(keyword: str, value: Any) -> str | None:
    """Return what is wrong with the value of a keyword itself."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if keyword == "type":
        kinds = value if isinstance(value, list) else [value]
        wrong = [kind for kind in kinds if not (isinstance(kind, str) and kind in _TYPES)]
        return f"is {wrong[0]!r}; the types are {', '.join(sorted(_TYPES))}" if wrong else None
    if keyword == "required":
        is_good = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return None if is_good else "is not a list of names"
    if keyword == "enum":
        return None if isinstance(value, list) and value else "is not a list of values"
    if keyword in _NAMED_SCHEMA_KEYWORDS:
        return None if isinstance(value, dict) else "is not an object of schemas"
    if keyword in _LISTS_OF_SCHEMAS:
        return None if isinstance(value, list) and value else "is not a list of schemas"
    if keyword in _COUNTS:
        return None if is_number and value >= 0 and value == int(value) else "is not a whole number"
    if keyword in _NUMBERS:
        return None if is_number else "is not a number"
    if keyword in _TEXTS:
        return None if isinstance(value, str) else "is not text"
    return None
