"""Reads JSON that almost fits its type: values of another type are removed and reported, the others are read.

Only a document that is not JSON at all raises.
"""

from __future__ import annotations

import json
import math
import re
from binascii import Error as NotBase64
from binascii import a2b_base64
from typing import Any, TypeVar

import msgspec

from asides.values.errors import ProtocolError
from asides.values.parts import MAX_DEPTH, is_too_deep

Read = TypeVar("Read")

_PATH = re.compile(r" - at `\$\.(.+)`$")
_ITEM = re.compile(r"\[(\d+|\.\.\.)\]")
_KIND = re.compile(r"got `(\w+)`")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "bool": bool,
    "int": int,
    "float": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}
_MAX_REMOVALS = 64
# Python reads no integer of more digits.
_MAX_DIGITS = 4300
_TO_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_WHITE_SPACE = str.maketrans("", "", " \t\r\n")
INVALID_TEXT = ("invalid_text", "invalid characters were replaced by U+FFFD")
"""The code and the detail of the notice about replaced characters."""
# As a number: to search for it takes a tenth of the time of searching for bytes.
_BACKSLASH = 0x5C
_SURROGATE = re.compile(rb"\\u[dD]")
# An escape: a pair of surrogates, half a pair, or any other.
_ESCAPE = re.compile(r"\\(?:(ud[89ab]..\\ud[c-f]..)|(ud[89a-f]..)|.)", re.IGNORECASE | re.DOTALL)


def replace_invalid_text(payload: bytes) -> bytes:
    """Replace characters that are cut in two, as bytes or as escapes, by U+FFFD; return `payload` itself if none are.

    Types with raw JSON fields need this first, since decoding does not check raw JSON.
    """
    readable = payload
    if not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            readable = payload.decode("utf-8", "replace").encode()
    # Most deltas have no escape at all. Searching backwards takes half of the time of searching forwards.
    if _BACKSLASH in readable and readable.rfind(b"\\u") >= 0 and _SURROGATE.search(readable):
        repaired = _replace_lone_surrogates(readable.decode()).encode()
        return payload if repaired == payload else repaired
    return readable


def _replace_lone_surrogates(text: str) -> str:
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[2] else found[0], text)


def read_document(payload: bytes) -> tuple[Any, bool]:
    """Read a document; the second value says whether invalid characters were replaced in it.

    Some servers cut a character in two between two deltas. Raises `ProtocolError` when the document is not JSON.
    """
    if is_too_deep(payload):
        raise ProtocolError(f"a document is nested deeper than {MAX_DEPTH} levels.", payload=payload)
    try:
        return read_any(payload), False
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        try:
            return read_any(_replace_lone_surrogates(payload.decode("utf-8", "replace"))), True
        except msgspec.DecodeError:
            raise ProtocolError(f"a document is not JSON ({problem}).", payload=payload) from None


def read_any(document: bytes | str | msgspec.Raw) -> Any:
    """Read any JSON. A number that is too large to be one becomes its text.

    Raises `msgspec.DecodeError` when it is not JSON, or nested too deeply.
    """
    data = document.encode("utf-8", "replace") if isinstance(document, str) else bytes(document)
    if is_too_deep(data):
        raise msgspec.DecodeError("nested too deeply")
    try:
        return msgspec.json.decode(data)
    except msgspec.ValidationError:
        import json  # only here, since almost no document needs it

        try:
            return json.loads(data, parse_float=_read_float, parse_int=_read_integer)
        except ValueError as problem:
            raise msgspec.DecodeError(str(problem)) from None


def _read_float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _read_integer(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_DIGITS else text


def compact_json(document: bytes | msgspec.Raw) -> bytes:
    """Re-encode JSON without white space. A number that is too large to parse stays as it is."""
    try:
        return msgspec.json.encode(msgspec.json.decode(document))
    except msgspec.ValidationError:
        return msgspec.json.format(bytes(document), indent=-1)


def parse_or_none(body: bytes) -> Any:
    """Parse the body of an error; None when it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def find_mismatch(problem: msgspec.ValidationError) -> tuple[str, ...] | None:
    """Return the path of the value that has the wrong type, "*" for every item of a list; None when it has no path."""
    found = _PATH.search(str(problem))
    if not found:
        return None
    return tuple(_ITEM.sub(".*", found.group(1)).split("."))


def remove_path(document: Any, path: tuple[str, ...], kind: str | None = None) -> Any:
    """Return the document without the value at the path; of several, without those of this kind ("int", "array" …)."""
    if not path:
        return None
    step, rest = path[0], path[1:]
    if step == "*":
        if not isinstance(document, list):
            return document
        if not rest:
            return [item for item in document if not _is_kind(item, kind)]
        return [remove_path(item, rest, kind) for item in document]
    if not isinstance(document, dict) or step not in document:
        return document
    if rest:
        return {**document, step: remove_path(document[step], rest, kind)}
    if not _is_kind(document[step], kind):
        return document
    return {name: value for name, value in document.items() if name != step}


def _is_kind(value: Any, kind: str | None) -> bool:
    types = object if kind is None else _KINDS.get(kind, object)
    return isinstance(value, types) and (kind == "bool" or not isinstance(value, bool) or types is object)


def remove_mismatch(document: Any, path: tuple[str, ...], problem: msgspec.ValidationError) -> Any:
    """Remove the values that have the wrong type. The path says "every item" where only some are wrong."""
    found = _KIND.search(str(problem))
    removed = remove_path(document, path, found.group(1) if found else None)
    return remove_path(document, path) if removed == document else removed


def read_leniently(
    payload: bytes, decoder: msgspec.json.Decoder[Read], problem: msgspec.ValidationError
) -> tuple[Read, list[str]]:
    """Read a document that made `decoder` raise `problem`, without the values that do not fit; return their paths too.

    Raises `ProtocolError` when it does not fit even then.
    """
    try:
        document = read_any(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as invalid:
        raise ProtocolError(f"a document is not JSON ({invalid}).", payload=payload) from None
    removed: list[str] = []
    for _ in range(_MAX_REMOVALS):
        path = find_mismatch(problem)
        if path is None:
            break
        removed.append(".".join(path))
        document = remove_mismatch(document, path, problem)
        try:
            return decoder.decode(msgspec.json.encode(document)), removed
        except msgspec.ValidationError as next_problem:
            problem = next_problem
    raise ProtocolError(f"a document has an unknown form ({problem}).", payload=payload)


def read_part_json(text: str) -> Any:
    """Decode the JSON of a part; None if it is not JSON. A number beyond all limits is read as infinite, and so written
    as null.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        try:
            return json.loads(text)
        except ValueError:
            return None


def to_json_text(value: Any) -> str:
    """Return a value as JSON text. A string already is JSON text; None is "".

    Servers send the arguments of calls in either form.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# --- thinking of an unexpected type -----------------------------------------------------------------------------------

THOUGHT_FIELDS = ("thinking", "reasoning", "text", "summary", "content")
_THINKING_TYPE = re.compile("think|thought|reason", re.IGNORECASE)
_FALSE_WORDS = frozenset({"", "false", "0", "no", "off", "none", "null"})


def is_marked(value: Any) -> bool:
    """Whether a mark of thinking is set: any value sets it that is not plainly false, whatever its type."""
    if value is None or value is True or value is False:
        return value is True
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_WORDS
    return not isinstance(value, (int, float)) or value != 0


def names_thinking(kind: Any) -> bool:
    """Whether the type of a part is one of thinking, in any spelling."""
    return isinstance(kind, str) and _THINKING_TYPE.search(kind) is not None


def read_thought_text(value: Any, depth: int = 8) -> str:
    """Return the text of thinking: a string, a list of pieces, or the same up to `depth` levels deeper."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and depth:
        return "".join(read_thought_text(item, depth - 1) for item in value)
    if isinstance(value, dict) and depth:
        return next((text for name in THOUGHT_FIELDS if (text := read_thought_text(value.get(name), depth - 1))), "")
    return ""


def raw_to_json_text(raw: bytes | msgspec.Raw) -> str:
    """Return raw JSON as JSON text without white space: the content of a string, "" for null."""
    compact = compact_json(raw)
    return to_json_text(msgspec.json.decode(compact)) if compact[:1] in (b'"', b"n") else compact.decode()


def unify_base64(text: str) -> str:
    """Return base64 in its standard alphabet and without padding: clients write the same bytes in two alphabets."""
    return text.translate(_TO_STANDARD_ALPHABET).rstrip("=")


def read_base64(text: str) -> bytes | None:
    """Decode base64 in its standard or its URL-safe alphabet, with or without padding; None when it is neither."""
    standard = unify_base64(text.translate(_WHITE_SPACE))
    try:
        return a2b_base64(standard + "=" * (-len(standard) % 4), strict_mode=True)
    except (NotBase64, ValueError):
        return None
