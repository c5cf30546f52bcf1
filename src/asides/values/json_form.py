"""Values as plain JSON: `to_dict` of replies, events, messages and the values in them.

Thinking and seals are left out unless they are asked for. Not here: the fields of a reply (reply), and a run (result).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

Private: TypeAlias = Literal["thinking", "seals"]


class JsonForm:
    """A value that can be written as plain JSON."""

    __slots__ = ()

    _private: ClassVar[Mapping[str, Private]] = {}
    """The fields that hold thinking, or what a provider wants back verbatim."""

    def to_dict(self, *, thinking: bool = False, seals: bool = False) -> dict[str, Any]:
        """Return the value as plain JSON: `json.dumps` takes it.

        Text of thoughts is None unless `thinking=True`. Seals, and items that go back verbatim, need `seals=True`.
        """
        fields: dict[str, Any] = to_json_value(self, thinking=thinking, seals=seals)
        return fields


def to_json_value(value: Any, *, thinking: bool = False, seals: bool = False) -> Any:
    """Return any value as plain JSON.

    Bytes become base64, sets lists, and numbers that JSON does not have ("NaN", "Infinity") text. A value of an unknown
    class becomes its text.
    """
    shown: frozenset[str] = frozenset(name for name, is_shown in (("thinking", thinking), ("seals", seals)) if is_shown)
    return _write(value, shown)


def write_json(value: Any, *, indent: int | None = None) -> str:
    """Write plain JSON as text. Half a surrogate pair, which UTF-8 cannot hold, is escaped with all of its text."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def _write(value: Any, shown: frozenset[str]) -> Any:
    match value:
        case None | bool() | str():
            # An enum of text is text too, and a plain one is wanted.
            return str.__str__(value) if isinstance(value, str) and type(value) is not str else value
        case int():
            return int(value)
        case float() | Decimal():
            return _write_number(value)
        case Mapping():
            return {_write_key(name): _write(inner, shown) for name, inner in value.items()}
        case list() | tuple():
            return [_write(inner, shown) for inner in value]
        case msgspec.Struct():
            return _write_struct(value, shown)
        case set() | frozenset():
            return [_write(inner, shown) for inner in sorted(value, key=lambda each: (type(each).__name__, str(each)))]
        case _:
            return _write(msgspec.to_builtins(value, enc_hook=_describe), shown)


def _write_struct(value: msgspec.Struct, shown: frozenset[str]) -> dict[str, Any]:
    config = value.__struct_config__
    fields: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    private: Mapping[str, Private] = getattr(value, "_private", {})
    for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        if name == "seals" and "seals" not in shown:
            continue
        is_hidden = name in private and private[name] not in shown
        fields[key] = None if is_hidden else _write(getattr(value, name), shown)
    return fields


def _write_number(value: float | Decimal) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_key(name: object) -> str:
    if isinstance(name, str):
        return str.__str__(name)
    written = _write(name, frozenset())
    return written if isinstance(written, str) else json.dumps(written)


def _describe(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):  # pydantic
        return dump(mode="json")
    return str(value)
