"""Objects of other libraries as plain JSON values: `to_plain(value)`.

Fields come from `model_dump`, `to_dict`, a dataclass or the attributes of the object. Bytes become base64.
"""

from __future__ import annotations

import inspect
import re
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from asides.values.error_words import describe_type
from asides.values.errors import ConfigError

_MAX_LEVELS = 100
_MAX_VALUES = 1_000_000
_LEAVES = frozenset({str, int, float, bool, type(None)})
_LISTS = (list, tuple, set, frozenset, deque)
_PRINTED = (Decimal, UUID, PurePath)
# Values of the caller or a tool: every field counts.
_OPAQUE = frozenset({"args", "input", "arguments", "response", "json", "kwargs", "schema"})
# Fields that clients add to the wire format: parsed values and their own records, of any type.
_ADDED = frozenset(
    {
        *("parsed", "parsed_arguments", "parsed_output", "artifact", "sdk_http_response", "sdkHttpResponse"),
        *("automatic_function_calling_history", "automaticFunctionCallingHistory", "_request_id"),
    }
)
# Objects without a method that lists their fields are read only if they have one of these.
_KNOWN_FIELDS = frozenset(
    {"role", "content", "choices", "candidates", "output", "parts", "message", "messages", "kind", "part_kind", "type"}
)

_PROPERTIES = (*sorted(_KNOWN_FIELDS), "name", "tool_calls", "tool_call_id", "thinking", "usage", "stop_reason")


def is_plain(value: object) -> bool:
    """Whether a value consists of dicts, lists and JSON scalars only."""
    waiting: list[object] = [value]
    count = 0
    while waiting:
        found = waiting.pop()
        kind = type(found)
        if kind in _LEAVES:
            continue
        count += 1
        if count > _MAX_VALUES:
            return False
        if kind is dict:
            waiting += cast("dict[Any, object]", found).values()
        elif kind is list or kind is tuple:
            waiting += cast("list[object]", found)
        else:
            return False
    return True


def to_plain(value: object) -> Any:
    """Convert a value to plain JSON values. Raises ConfigError for values without fields, coroutines, unread streams
    and endless structures.
    """
    try:
        return _Walker(describe_type(value)).walk(value, 0, added=True)
    except ConfigError:
        raise
    except Exception as problem:  # noqa: BLE001 - code of the object runs here
        raise _build_error(value, f"reading its fields raised {type(problem).__name__}") from None


class _Walker:
    """Converts one value recursively."""

    def __init__(self, whole: str) -> None:
        self._whole = whole
        self._count = 0

    def walk(self, value: Any, level: int, *, added: bool) -> Any:
        """Convert a value. `added`: drop the fields that clients add."""
        kind = type(value)
        if kind in _LEAVES:
            return value
        self._count += 1
        if level > _MAX_LEVELS or self._count > _MAX_VALUES:
            raise ConfigError(
                f"{self._whole} has too many levels or values to be a message: it may hold itself. Pass a "
                "message or a response."
            )
        if kind is dict or isinstance(value, Mapping):
            return self._walk_fields(value, level, added=added)
        if isinstance(value, _LISTS):
            return [self.walk(each, level + 1, added=added) for each in value]
        if isinstance(value, Enum):
            return self.walk(value.value, level + 1, added=added)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return b64encode(bytes(value)).decode()
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, (int, float)):
            return int(value) if isinstance(value, int) else float(value)
        if isinstance(value, (date, time)):
            return value.isoformat()
        if isinstance(value, _PRINTED):
            return str(value)
        fields = read_fields(value)
        if fields is None and level:
            raise ConfigError(
                f"{self._whole} holds {describe_type(value)}, which is neither JSON nor a message. "
                "Leave it out, or write it as text."
            )
        if fields is None:
            raise _build_error(value, "it is neither a message nor a response")
        return self._walk_fields(fields, level, added=added)

    def _walk_fields(self, fields: Mapping[Any, Any], level: int, *, added: bool) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for name, value in fields.items():
            if not added or name not in _ADDED:
                key = name.value if isinstance(name, Enum) else name
                plain[str(key)] = self.walk(value, level + 1, added=added and name not in _OPAQUE)
        return plain


def find_messages(value: object) -> Any:
    """The messages in an object, such as a conversation or an agent's run; otherwise the value itself."""
    try:
        found = getattr(value, "messages", None)
        if found is None and callable(getattr(type(value), "all_messages", None)):
            found = cast("Any", value).all_messages()
    except Exception as problem:  # noqa: BLE001 - code of the object runs here
        raise ConfigError(
            f"{describe_type(value)} cannot be read: its messages raised {type(problem).__name__}. Pass a list "
            "of messages."
        ) from None
    return value if found is None or callable(found) else found


# --- the fields of an object ------------------------------------------------------------------------------------------


def read_fields(value: object) -> Mapping[str, Any] | None:
    """The fields of an object; None if it has none."""
    reject_unread(value)
    kind = type(value)
    ways = (_dump_model, _dump_dict, _read_dataclass, _read_attributes)
    for way in ways:
        if (fields := way(value, kind)) is not None:
            return fields
    return None


def _build_error(value: object, why: str) -> ConfigError:
    return ConfigError(
        f"{describe_type(value)} cannot be read: {why}. Pass messages or responses of openai, anthropic, "
        "google-genai, LangChain, pydantic-ai, ollama, cohere or boto3, dicts, or messages of asides."
    )


def _dump_model(value: Any, kind: type) -> Mapping[str, Any] | None:
    dump = getattr(kind, "model_dump", None)
    if dump is None:
        return None
    try:
        dumped = value.model_dump(mode="python", by_alias=True, exclude_none=True, warnings=False)
    except TypeError:
        dumped = value.model_dump()
    return dumped if isinstance(dumped, Mapping) else None


def _dump_dict(value: Any, kind: type) -> Mapping[str, Any] | None:
    names = ["to_dict", "_asdict", *(["dict"] if hasattr(kind, "__fields__") else [])]
    name = next((name for name in names if callable(getattr(kind, name, None))), None)
    dumped = getattr(value, name)() if name else None
    return dumped if isinstance(dumped, Mapping) else None


def _read_dataclass(value: Any, kind: type) -> Mapping[str, Any] | None:
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__struct_fields__", None)
    if names is None:
        return None
    found = {name: getattr(value, name) for name in names if not name.startswith("_")}
    return {name: field for name, field in found.items() if field is not None}


def _read_attributes(value: Any, kind: type) -> Mapping[str, Any] | None:
    names = [*getattr(value, "__dict__", ()), *_list_slots(kind)]
    names += [name for name in _PROPERTIES if isinstance(getattr(kind, name, None), property)]
    if isinstance(value, type) or _KNOWN_FIELDS.isdisjoint(names):
        return None
    found = {name: getattr(value, name) for name in names if not name.startswith("_") and hasattr(value, name)}
    return {name: field for name, field in found.items() if field is not None and not callable(field)}


def _list_slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


# --- what has to be awaited, read or opened first ---------------------------------------------------------------------

_COLLECT = "asides.read(list(stream)), or the client's own final message"


def reject_unread(value: object) -> None:
    """Raise ConfigError for a coroutine, a stream that was not read, a class, an HTTP response and the like."""
    kind, name = type(value), describe_type(value)
    if isinstance(value, type):
        raise ConfigError(f"the class {value.__name__} is not a message. Pass an object of it.")
    if inspect.isawaitable(value):
        raise ConfigError(f"{name} was not awaited, so there is no response yet. Write await before the call.")
    if hasattr(kind, "__aiter__") or hasattr(kind, "__anext__"):
        raise ConfigError(
            f"{name} is a stream that was not read. Collect it, events = [event async for event in stream], and "
            "pass asides.read(events)."
        )
    if is_stream(value) or hasattr(kind, "__next__"):
        raise ConfigError(f"{name} is a stream that was not read. Collect it, {_COLLECT}.")
    if hasattr(kind, "__enter__") and not hasattr(kind, "model_dump") and _has_words(kind, "stream"):
        raise ConfigError(
            f"{name} is a stream that was not opened. Open it, with … as stream, and collect it, {_COLLECT}."
        )
    if hasattr(kind, "parse") and _has(value, "http_response"):
        raise ConfigError(f"{name} is a raw response. Pass what its parse() returns.")
    if all(_has(value, name) for name in ("status_code", "headers", "content")):
        raise ConfigError(
            f"{name} is an HTTP response. Read it with asides.decode(None, response.content, "
            "status=response.status_code)."
        )
    if hasattr(kind, "read") and not hasattr(kind, "model_dump"):
        raise ConfigError(f"{name} is a file or a body. Read it, and pass the bytes to asides.decode(None, …).")


def is_stream(value: object) -> bool:
    """Whether a value is a stream of a client: it can be iterated and closed, and is neither a generator nor a file."""
    kind = type(value)
    if not hasattr(kind, "__iter__") or isinstance(value, (Sequence, Mapping)) or inspect.isgenerator(value):
        return False
    return callable(getattr(kind, "close", None)) and not hasattr(kind, "read") and not hasattr(kind, "model_dump")


def _has(value: object, name: str) -> bool:
    return name in getattr(value, "__dict__", ()) or hasattr(type(value), name)


def _has_words(kind: type, word: str) -> bool:
    return any(word in name.lower() for name in (kind.__name__, *vars(kind)))


# --- names in camelCase ---------------------------------------------------------------------------------------------

_BORDER = re.compile(r"_([a-z0-9])")


def to_camel_case(value: Any) -> Any:
    """Rename the fields of plain values: thought_signature → thoughtSignature. Arguments and results stay."""
    rename: Callable[[str], str] = lambda name: _BORDER.sub(lambda found: found[1].upper(), name)  # noqa: E731
    if isinstance(value, list):
        return [to_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {rename(name): inner if name in _OPAQUE else to_camel_case(inner) for name, inner in value.items()}
