"""Values as plain JSON: `to_dict` of replies, events, messages and the values in them.

Thinking and seals are left out unless they are asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

Private: TypeAlias = Literal["thinking", "seals", "both"]


class JsonForm:
    """A value that can be written as plain JSON."""

    __slots__ = ()

    _private: ClassVar[Mapping[str, Private]] = {}
    """The fields that hold thinking, or what a provider wants back verbatim, or "both"."""

    def to_dict(self, *, thinking: bool = False, seals: bool = False) -> dict[str, Any]:
        """Return the value as plain JSON: `json.dumps` takes it.

        Text of thoughts is None unless `thinking=True`. Seals, and items that go back verbatim, need `seals=True`. The
        entry of a seal may hold both, and needs both.
        """
        fields: dict[str, Any] = to_json_value(self, thinking=thinking, seals=seals)
        return fields


def to_json_value(value: Any, *, thinking: bool = False, seals: bool = False) -> Any:
    """Return any value as plain JSON.

    Bytes become base64, sets lists, and numbers that JSON does not have ("NaN", "Infinity") text. A value of an unknown
    class becomes its text, and so does what contains itself or is nested too deeply for `json.dumps`.
    """
    shown: frozenset[str] = frozenset(name for name, is_shown in (("thinking", thinking), ("seals", seals)) if is_shown)
    return _Writer(shown).write(value)


def write_json(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Write plain JSON as text. Half a surrogate pair, which UTF-8 cannot hold, is escaped with all of its text.

    `ascii_only` escapes all other characters too, for a terminal that cannot show them.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


class _Writer:
    """Writes one value. Few frames for each level, since a server decides how deep arguments are."""

    __slots__ = ("_outer", "_shown")

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._outer: set[int] = set()
        """The ids of the values that this one is in."""

    def write(self, value: Any) -> Any:
        match value:
            case None | bool() | str():
                # An enum of text is text too, and a plain one is wanted.
                return str.__str__(value) if isinstance(value, str) and type(value) is not str else value
            case int():
                return int(value) if value.bit_length() <= _MAX_BITS else hex(value)
            case float() | Decimal():
                return _write_number(value)
            case _:
                return self._write_holder(value)

    def _write_holder(self, value: Any) -> Any:
        if id(value) in self._outer:
            return "<contains itself>"
        if len(self._outer) >= _MAX_LEVELS:
            return "<nested too deeply>"
        self._outer.add(id(value))
        written: list[Any] = []
        try:
            match value:
                case Mapping():
                    fields: dict[str, Any] = {}
                    for name, inner in value.items():
                        fields[self._write_key(name)] = self.write(inner)
                    return fields
                case list() | tuple():
                    for inner in value:
                        written.append(self.write(inner))  # noqa: PERF401 - a comprehension is one more frame
                    return written
                case msgspec.Struct():
                    return self._write_struct(value)
                case set() | frozenset():
                    return self.write(sorted(value, key=lambda each: (type(each).__name__, _describe(each))))
                case _:
                    return self.write(_convert(value))
        finally:
            self._outer.discard(id(value))

    def _write_struct(self, value: msgspec.Struct) -> dict[str, Any]:
        config = value.__struct_config__
        fields: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
        private: Mapping[str, Private] = getattr(value, "_private", {})
        for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            if name == "seals" and "seals" not in self._shown:
                continue
            if name == "source" and name in private and getattr(value, name) is None:
                continue
            is_hidden = name in private and not _NEEDED[private[name]] <= self._shown
            fields[key] = None if is_hidden else self.write(getattr(value, name))
        return fields

    def _write_key(self, name: object) -> str:
        if isinstance(name, str):
            return str.__str__(name)
        written = self.write(name)
        return written if isinstance(written, str) else json.dumps(written)


_NEEDED: dict[Private, set[str]] = {"thinking": {"thinking"}, "seals": {"seals"}, "both": {"thinking", "seals"}}
# What is read (MAX_DEPTH of parts) is not deeper, wherever it is in a reply. `json.dumps` and this need some frames for
# each level, and Python has 1000 of them.
_MAX_LEVELS = 220
# Python does not write integers with more than 4300 digits.
_MAX_BITS = 14_000


def _write_number(value: float | Decimal) -> float | str:
    if isinstance(value, Decimal) and value.is_snan():
        return "NaN"
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _convert(value: Any) -> Any:
    """A value of another class: as msgspec or pydantic would write it, or its text."""
    try:
        if (names := getattr(type(value), "__dataclass_fields__", None)) is not None:
            # By its fields, since there may be a thought among them.
            return {name: getattr(value, name) for name in names if not name.startswith("_")}
        dump = getattr(value, "model_dump", None)
        if callable(dump):
            return dump(mode="json")
        return msgspec.to_builtins(value, enc_hook=_describe)
    except Exception:  # noqa: BLE001 - code of the caller, or a value that contains itself
        return _describe(value)


def _describe(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - code of the caller
        return f"<{type(value).__name__}>"
