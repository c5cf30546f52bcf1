"""What a server said in the body of an error, however it is wrapped: `list_sayings(body)`, outermost first.

Routers, relays and SDKs put the body of one server into that of another: JSON in an array, in a string or in Python's
repr, Bedrock's and LiteLLM's prefixes. Only fields that hold a server's words are read, never echoes of the request.
Bodies are untrusted: depth, number and length are bounded, and time is linear. Not here: what it means (rejections).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

DEPTH = 12
"""So many levels are opened, objects and texts alike: four wrappers inside each other."""
_MOST_SAYINGS = 16
_MOST_ITEMS = 8
_MOST_OBJECTS = 3
"""Of one text so many objects are read."""
_LONGEST_BODY = 64 * 1024
_LONGEST_TEXT = 5000
_KEPT_END = 1000

# Fields with the words of a server, and fields with an error inside. All others may quote the request.
_WORDS = (
    *("message", "msg", "detail", "error", "error_message", "errormessage", "raw", "upstream_error", "originalmessage"),
    *("status_msg", "title", "reason", "error_msg", "error_description", "description"),
)
_INNER = (
    *("errors", "metadata", "details", "cause", "innererror", "inner_error", "provider_error", "original_error"),
    *("originalerror", "response", "data", "body", "base_resp", "issues", "exception", "error_details"),
)
_CODES = ("code", "type", "error_code", "errorcode", "status", "reason", "provider_error_code", "error_type")


class Saying(msgspec.Struct, frozen=True):
    """One message of a server, with what stands beside it. Its repr shows no text: a server may quote the request."""

    text: str
    code: str = ""
    """Its codes and types, joined by spaces."""
    param: str = ""
    depth: int = 0

    def __repr__(self) -> str:
        return f"Saying(<{len(self.text)} characters>, code={self.code!r}, depth={self.depth})"


def list_sayings(body: bytes | str, message: str = "", code: str = "", param: str = "") -> list[Saying]:
    """List what the body of an error says, outermost first. `message`, `code` and `param`: what is known already."""
    found: list[Saying] = []
    if isinstance(body, bytes):
        body = body[:_LONGEST_BODY].decode("utf-8", "replace")
    _read_text(body[:_LONGEST_BODY], "", "", 0, found)
    if message:
        _read_text(message[:_LONGEST_BODY], code, param, 0, found)
    unique: dict[str, Saying] = {}
    for saying in found:
        known = unique.get(saying.text)
        # The same text once more, with its code this time.
        if known is None or (saying.code and not known.code):
            unique[saying.text] = saying
    return list(unique.values())


def is_page(body: bytes | str) -> bool:
    """Whether the body is a web page, as proxies and load balancers send."""
    start = body[:1000]
    return re.match(_PAGE, start.decode("utf-8", "replace") if isinstance(start, bytes) else start) is not None


def find_innermost(sayings: list[Saying]) -> Saying | None:
    """The saying with the most wrappers around it, the first of them; None without any."""
    return max(sayings, key=lambda saying: saying.depth, default=None)


# --- documents ----------------------------------------------------------------------------------------------------


def _read(value: Any, code: str, param: str, depth: int, found: list[Saying]) -> None:
    if len(found) >= _MOST_SAYINGS or depth > DEPTH:
        return
    if isinstance(value, str):
        _read_text(value, code, param, depth, found)
    elif isinstance(value, list):
        for item in value[:_MOST_ITEMS]:
            _read(item, code, param, depth, found)
    elif isinstance(value, dict):
        _read_object({str(name).lower(): inner for name, inner in value.items()}, code, param, depth, found)


def _read_object(fields: Mapping[str, Any], code: str, param: str, depth: int, found: list[Saying]) -> None:
    codes = dict.fromkeys(str(fields[name]) for name in _CODES if isinstance(fields.get(name), (str, int)))
    code = " ".join(name for name in codes if " " not in name)[:200] or code
    place = _read_place(fields)
    named = fields.get("param")
    if isinstance(named, str) and named:
        if named.count(" ") >= 2:
            _read_text(named, code, "", depth + 1, found)  # MiMo says there what is wrong
        else:
            param = named[:200]
    for name in _WORDS:
        value = fields.get(name)
        if isinstance(value, str):
            if name in ("reason", "title", "description") and " " not in value.strip():
                continue
            _read_text(f"{place}: {value}" if place else value, code, param or place, depth, found)
        elif value is not None:
            _read(value, code, param, depth + 1, found)
    for name, value in fields.items():
        if isinstance(value, (dict, list)) and (name in _INNER or name.endswith("exception")):
            _read(value, code, param, depth + 1, found)


def _read_place(fields: Mapping[str, Any]) -> str:
    """The path that pydantic (`loc`) and zod (`path`) give beside a message."""
    place = fields.get("loc") or fields.get("path")
    if not isinstance(place, list):
        return ""
    names = [str(name) for name in place[:_MOST_ITEMS] if isinstance(name, (str, int))]
    return ".".join(names[1:] if names[:1] == ["body"] else names)[:200]


# --- texts --------------------------------------------------------------------------------------------------------

_BEDROCK = "the model returned the following errors:"
_OBJECT = r"\{\s{0,8}\\{0,8}[\"']"
_FIELD = (
    r"[\"'](?:message|msg|raw|detail|error)[\"']\s{0,4}:\s{0,4}"
    r"(?:\"((?:[^\"\\]|\\.){1,8000})(?:\"|\Z)|'((?:[^'\\]|\\.){1,8000})(?:'|\Z))"
)
_NAME_FIELD = r"[\"'](code|param)[\"']\s{0,4}:\s{0,4}[\"']([\w.\[\]*-]{1,80})[\"']"
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|(.))"
_PLAIN_ESCAPES = {"n": "\n", "r": " ", "t": " "}
_PAGE = r"(?i)\s*<(?:!doctype|html|head|\?xml)"


def _read_text(text: str, code: str, param: str, depth: int, found: list[Saying]) -> None:
    text = text.strip()
    if not text or len(found) >= _MOST_SAYINGS:
        return
    inner = _parse(text) if depth < DEPTH else None
    if isinstance(inner, (dict, list, str)):
        _read(inner, code, param, depth + 1, found)
        return
    if re.match(_PAGE, text):
        return
    after = text.lower().find(_BEDROCK) + len(_BEDROCK)
    if depth < DEPTH and after >= len(_BEDROCK) and text[after:].strip():
        _read_text(text[after:], code, param, depth + 1, found)
        return
    rest = _read_objects(text, code, param, depth, found) if depth < DEPTH and "{" in text else text
    if rest := _shorten(rest):
        found.append(Saying(rest, code, param, depth))


def _parse(text: str) -> Any:
    """Parse JSON, or a string of JSON; None if it is none."""
    if text[0] not in '{["':
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _read_objects(text: str, code: str, param: str, depth: int, found: list[Saying]) -> str:
    """Read the objects inside a text. Returns the text without them."""
    rest: list[str] = []
    end = 0
    for _ in range(_MOST_OBJECTS):
        start = re.compile(_OBJECT).search(text, end)
        if start is None:
            break
        rest.append(text[end : start.start()])
        before = len(found)
        end = _read_one_object(text, start.start(), code, param, depth, found)
        if len(found) == before:
            # Nothing in it is known: the sentence around it needs it, such as `send {"type": "adaptive"} instead`.
            rest.append(text[start.start() : end])
        else:
            rest.append(" ")
    rest.append(text[end:])
    return "".join(rest)


def _read_one_object(text: str, start: int, code: str, param: str, depth: int, found: list[Saying]) -> int:
    """Read the object that begins here. Returns where it ends."""
    for source in (text, None):
        if source is None:
            # Python's repr of bytes escapes once more, and some relays do it too.
            source = text[:start] + _unescape(text[start:])
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(source, start)
        except (ValueError, RecursionError):
            continue
        _read(value, code, param, depth + 1, found)
        return end if source is text else len(text)
    # Python's repr of a dict, or an object that was cut off.
    named = {match[1]: match[2] for match in re.finditer(_NAME_FIELD, text[start:])}
    code, param = named.get("code", code), named.get("param", param)
    for number, match in enumerate(re.finditer(_FIELD, text[start:])):
        if number == _MOST_OBJECTS:
            break
        _read_text(_unescape(match[1] or match[2]), code, param, depth + 1, found)
    return len(text) if re.search(_FIELD, text[start:]) else start + 1


def _unescape(text: str) -> str:
    return re.sub(_ESCAPE, lambda found: chr(int(found[1], 16)) if found[1] else _unescape_one(found[2]), text)


def _unescape_one(character: str) -> str:
    return _PLAIN_ESCAPES.get(character, character)


def _shorten(text: str) -> str:
    """Cut the middle of a long text."""
    text = text.strip()
    if len(text) > _LONGEST_TEXT + _KEPT_END:
        text = f"{text[:_LONGEST_TEXT]} … {text[-_KEPT_END:]}"
    return text
