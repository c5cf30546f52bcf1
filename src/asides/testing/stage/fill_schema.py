"""A JSON schema filled in from the words of a question: what the actor gives a tool, or an answer with a shape.

Guesses, but lawful ones: the value fits the schema's types, and what must be there is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“«']([^\"”»']{1,80})[\"”»']")
_PLACED = re.compile(r"\b(?:in|at|of|for|from|about|to)\s+([^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_NAMED = re.compile(r"(?<=[\w,]\s)([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_SMALL_WORDS = frozenset({"the", "a", "an", "me", "my", "your", "it", "this", "that", "today", "now"})


def fill(schema: Mapping[str, Any], words: str) -> Any:
    """A value that fits the schema, taken from the words where they have something to take."""
    return _Filler(schema, words).value(schema)


class _Filler:
    def __init__(self, root: Mapping[str, Any], words: str) -> None:
        self._root = root
        self._words = words
        self._numbers = iter(_NUMBERS.findall(words))
        self._names = _names_in(words)
        self._open: list[str] = []

    def value(self, schema: Any) -> Any:
        if not isinstance(schema, Mapping):  # "true" fits anything
            return None
        if "const" in schema:
            return schema["const"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return self._named_in_words(choices)
        if isinstance(address := schema.get("$ref"), str):
            return self._at(address)
        for several in ("anyOf", "oneOf", "allOf"):
            if isinstance(options := schema.get(several), list) and options:
                return self.value(options[0])
        return self._of_type(schema)

    def _of_type(self, schema: Mapping[str, Any]) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind[0] if isinstance(kind, list) and kind else kind:
            case "object":
                properties = schema.get("properties") or {}
                wanted = schema.get("required")
                names = wanted if isinstance(wanted, list) else list(properties)
                return {name: self.value(properties.get(name, {})) for name in names}
            case "array":
                count = schema.get("minItems")
                return [self.value(schema.get("items", {})) for _ in range(count if isinstance(count, int) else 1)]
            case "integer":
                return int(float(next(self._numbers, "1")))
            case "number":
                return float(next(self._numbers, "1"))
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return next(self._names, self._words.strip())

    def _named_in_words(self, choices: list[Any]) -> Any:
        heard = self._words.lower()
        return next((choice for choice in choices if isinstance(choice, str) and choice.lower() in heard), choices[0])

    def _at(self, address: str) -> Any:
        # A schema that contains itself has no smallest value here; null is as good as any.
        if not address.startswith("#/") or address in self._open:
            return None
        place: Any = self._root
        for step in address[2:].split("/"):
            place = place.get(step) if isinstance(place, Mapping) else None
        self._open.append(address)
        filled = self.value(place)
        self._open.pop()
        return filled


def _names_in(words: str) -> Iterator[str]:
    """What a string argument may want: what is quoted, what stands behind "in" or "of", what has a capital."""
    seen: set[str] = set()
    for pattern in (_QUOTED, _PLACED, _NAMED):
        for name in pattern.findall(words):
            if name.lower() not in _SMALL_WORDS and name not in seen:
                seen.add(name)
                yield name
