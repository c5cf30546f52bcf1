"""The short notation of `--schema`: "name, age int, tags list[str], email?: if it is known" becomes a JSON schema.

A field is a name, a type and a description; only the name is needed.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeAlias

from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError

_Schema: TypeAlias = dict[str, Any]

_TYPES = {
    "str": "string",
    "string": "string",
    "text": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
}
_SHOWN_TYPES = "str, int, float, bool, list[…], {…} of fields, and one|of|these"
_NAME = re.compile(r"[^\W\d][\w-]*")
_WORD = re.compile(r"[\w.-]+")
_CHOICES = re.compile(r"[\w.-]+(?:\s*\|\s*[\w.-]+)+")
_BLANKS = re.compile(r"[ \t\r\f\v]*")
_MOST_CHARACTERS = 10_000
_DEEPEST = 20


def parse_schema_notation(text: str, where: str) -> _Schema:
    """The JSON schema of an object with these fields. Raises ConfigError that names `where` and the place."""
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"{where} is longer than {_MOST_CHARACTERS} characters. Write a JSON schema.")
    parser = _Parser(text, where)
    schema = parser.read_fields(closing="")
    if not schema["properties"]:
        raise ConfigError(f'{where} names no field. Write names, such as "name, age int, tags list[str]".')
    return schema


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._at = 0
        self._depth = 0
        # In a text of several lines a description may have commas.
        self._description = re.compile(r"[^\n]*" if "\n" in text.strip() else r"[^,\n]*")

    def read_fields(self, closing: str) -> _Schema:
        """The object of the fields up to `closing`, or up to the end of the text."""
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(f"fields are nested deeper than {_DEEPEST} levels")
        properties: dict[str, _Schema] = {}
        while True:
            self._skip_separators()
            if self._peek() == closing:
                break
            if self._at >= len(self._text):
                self._fail(f"a {closing} is missing here")
            self._read_field(properties, closing)
            self._skip_blanks()
            if self._peek() not in (",", "\n", closing):
                self._fail_at_rest(closing)
        self._at += len(closing)
        self._depth -= 1
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _read_field(self, properties: dict[str, _Schema], closing: str) -> None:
        start = self._at
        name = self._take(_NAME)
        if not name:
            self._fail(f"{self._show()} is not a field name: a name begins with a letter", start)
        if name in properties:
            self._fail(f"the field {name!r} comes twice", start)
        optional = self._take_mark("?")
        self._skip_blanks()
        schema: _Schema | None = None
        if self._peek() not in (",", "\n", ":", closing, ""):
            schema = self._read_type(name)
            optional = self._take_mark("?") or optional
            self._skip_blanks()
        description = ""
        if self._take_mark(":"):
            annotated = None if schema is not None else self._read_annotation(name, closing)
            if annotated is not None:
                schema, is_optional = annotated
                optional = optional or is_optional
            # `age int: in years`, or `age: int: in years`.
            if annotated is None or self._take_mark(":"):
                description = self._read_description(closing)
        schema = schema or {"type": "string"}
        if optional:
            # Required and null, rather than left out: strict modes of providers take nothing else.
            schema = {"anyOf": [schema, {"type": "null"}]}
        properties[name] = {**schema, "description": description} if description else schema

    def _read_type(self, name: str) -> _Schema:
        schema = self._read_single_type(name)
        while self._text.startswith("[]", self._at):
            self._at += 2
            schema = {"type": "array", "items": schema}
        return schema

    def _read_single_type(self, name: str) -> _Schema:
        start = self._at
        if self._take_mark("{"):
            schema = self.read_fields("}")
            if not schema["properties"]:
                self._fail("the braces hold no field", start)
            return schema
        if choices := self._take(_CHOICES):
            return {"type": "string", "enum": [choice.strip() for choice in choices.split("|")]}
        word = self._take(_WORD)
        if word.lower() in ("list", "array"):
            items: _Schema = {"type": "string"}
            if not self._text.startswith("[]", self._at) and self._take_mark("["):
                self._skip_blanks()
                items = self._read_type(name)
                self._skip_blanks()
                if not self._take_mark("]"):
                    self._fail("a ] is missing here")
            elif self._text.startswith("[]", self._at):
                self._at += 2
            return {"type": "array", "items": items}
        known = _TYPES.get(word.lower())
        if known is None:
            self._fail(self._explain_type(name, word), start)
        return {"type": known}

    def _read_description(self, closing: str) -> str:
        pattern = re.compile(r"[^,\n}]*") if closing else self._description
        return self._take(pattern).strip().rstrip(",").rstrip()

    def _read_annotation(self, name: str, closing: str) -> tuple[_Schema, bool] | None:
        """The type after the colon, as Python writes it (`age: int`), and whether it is optional; None, and nothing
        read, if a description is there.
        """
        start = self._at
        self._skip_blanks()
        must_be_type = self._text.startswith(("{", "list["), self._at)
        try:
            schema = self._read_type(name)
            optional = self._take_mark("?")
            self._skip_blanks()
            if must_be_type or self._peek() in (",", "\n", ":", closing):
                return schema, optional
        except ConfigError:
            if must_be_type:
                raise
        self._at = start
        return None

    # --- characters ---------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return "" if found is None else found[0]

    def _take_mark(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _skip_blanks(self) -> None:
        self._take(_BLANKS)

    def _skip_separators(self) -> None:
        while self._at < len(self._text) and (self._peek().isspace() or self._peek() == ","):
            self._at += 1

    # --- errors -------------------------------------------------------------------------------------------------------

    def _show(self) -> str:
        """The text here, up to the next separator."""
        found = re.match(r"[^,\s]{1,30}", self._text[self._at :])
        return repr(found[0]) if found else "the end"

    def _explain_type(self, name: str, word: str) -> str:
        listed = f"the types are {_SHOWN_TYPES}; a colon begins a description."
        hint = suggest_name(word.lower(), (*_TYPES, "list"), listed, cutoff=0.5)
        return f"{repr(word) if word else self._show()} is not a valid type for the field {name!r}; {hint}"

    def _fail_at_rest(self, closing: str) -> NoReturn:
        if self._at >= len(self._text):
            self._fail(f"a {closing} is missing here")
        self._fail(f"{self._show()} is not expected here; a comma ends a field, and a colon begins a description")

    def _fail(self, what: str, at: int | None = None) -> NoReturn:
        place = self._at if at is None else at
        line = self._text.count("\n", 0, place) + 1
        column = place - self._text.rfind("\n", 0, place)
        position = f"character {column}" if "\n" not in self._text else f"line {line}, character {column}"
        raise ConfigError(f"{self._where}, {position}: {what}{'' if what[-1] in '.?' else '.'}")
