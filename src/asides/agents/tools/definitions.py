"""Changes to a JSON schema as a whole: its definitions in one place, its objects closed. Not here: making one."""

from __future__ import annotations

from typing import Any

from asides.values.json_schema import map_inner_schemas

_PREFIX = "#/$defs/"


def hoisted(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with its inner definitions moved to `definitions`, since providers look for them at the root alone.

    One whose name another has gets a new name.
    """
    if not isinstance(schema, dict):
        return schema
    inner = schema.get("$defs")
    if isinstance(inner, dict):
        names = {name: _free_name(name, inner, definitions) for name in inner}
        schema = renamed({key: value for key, value in schema.items() if key != "$defs"}, names)
        definitions |= {names[name]: renamed(body, names) for name, body in inner.items()}
    return map_inner_schemas(schema, lambda deeper: hoisted(deeper, definitions))


def _free_name(name: str, inner: dict[str, Any], definitions: dict[str, Any]) -> str:
    """The name, or the first free one like it, unless it stands for the very same."""
    candidate, number = name, 1
    while (candidate in definitions and definitions[candidate] != renamed(inner[name], {name: candidate})) or (
        candidate != name and candidate in inner
    ):
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def renamed(schema: Any, names: dict[str, str]) -> Any:
    """The schema, its references changed from the old names to the new ones."""
    if not isinstance(schema, dict):
        return schema
    changed = map_inner_schemas(schema, lambda deeper: renamed(deeper, names))
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PREFIX):
        name = reference.removeprefix(_PREFIX)
        changed["$ref"] = f"{_PREFIX}{names.get(name, name)}"
    return changed


def resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for, with what stands beside it; any other schema as it is."""
    reference = schema.get("$ref")
    held = definitions.get(reference.removeprefix(_PREFIX)) if isinstance(reference, str) else None
    if not isinstance(held, dict):
        return schema
    return {**held, **{key: value for key, value in schema.items() if key != "$ref"}}


def closed(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema as strict mode takes it: no object with room for other fields, nothing beside a reference."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and len(schema) > 1:
        schema = resolved(schema, definitions)
    shut = map_inner_schemas(schema, lambda deeper: closed(deeper, definitions))
    if shut.get("type") == "object" and "properties" in shut:
        shut.setdefault("additionalProperties", False)
    return shut


def untitled(schema: Any) -> Any:
    """The schema without titles: they repeat the names in other words, and a model pays for each of them."""
    if not isinstance(schema, dict):
        return schema
    return map_inner_schemas({key: value for key, value in schema.items() if key != "title"}, untitled)
