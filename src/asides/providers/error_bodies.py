"""The messages in the body of an error, however wrapped: `list_error_messages(body)`, outermost first.

Routers, relays and SDKs put the body of one server into that of another: JSON in an array, in a string or in Python's
repr, Bedrock's and LiteLLM's prefixes. Only fields for a server's messages are read, never echoes of the request.
Bodies are untrusted: depth, number and length are bounded, and time is linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

DEPTH = 20
"""Maximum nesting of objects and texts: nested wrappers have two or three levels each."""
PAGE = "page"
"""The code of a message without text: a web page, as proxies and load balancers send."""
_MAX_MESSAGES = 16
_MAX_ITEMS = 8
_MAX_OBJECTS = 3
"""Maximum number of objects read from one text."""
_LONGEST_BODY = 64 * 1024
_LONGEST_REPR = 16 * 1024
_LONGEST_TEXT = 5000
_KEPT_END = 1000

# Fields with the words of a server, and fields with an error inside. All others may quote the request.
_WORDS = (
    *("message", "msg", "detail", "error", "error_message", "errormessage", "raw", "upstream_error", "originalmessage"),
    *("status_msg", "title", "reason", "error_msg", "error_description", "description"),
)
_INNER = (
    *("errors", "metadata", "details", "cause", "innererror", "inner_error", "provider_error", "original_error"),
    *("originalerror", "response", "data", "body", "base_resp", "issues", "exception", "error_details", "choices"),
)
_CODES = ("code", "type", "error_code", "errorcode", "status", "reason", "provider_error_code", "error_type")


class ErrorMessage(msgspec.Struct, frozen=True):
    """One message of a server, with its neighbouring fields. Its repr shows no text: a server may quote the request."""

    text: str
    code: str = ""
    """Its codes and types, joined by spaces."""
    param: str = ""
    depth: int = 0

    def __repr__(self) -> str:
        return f"ErrorMessage(<{len(self.text)} characters>, code={self.code!r}, depth={self.depth})"


def list_error_messages(body: bytes | str, message: str = "", code: str = "") -> list[ErrorMessage]:
    """List what the body of an error says, outermost first. `message` and `code`: what is known already."""
    found: list[ErrorMessage] = []
    if isinstance(body, bytes):
        body = body[:_LONGEST_BODY].decode("utf-8", "replace")
    for text, its_code in ((body, ""), (message, code)):
        _read_text(drop_reply_events(text[:_LONGEST_BODY]), its_code, "", 0, found)
    unique: dict[str, ErrorMessage] = {}
    for each in found:
        known = unique.get(each.text)
        # The same text again, but with its code.
        if known is None or (each.code and not known.code):
            unique[each.text] = each
    return list(unique.values())


def find_innermost(messages: list[ErrorMessage]) -> ErrorMessage | None:
    """The message with the most wrappers around it, the first of them; None without any."""
    return max((message for message in messages if message.text), key=lambda message: message.depth, default=None)


# --- streams ------------------------------------------------------------------------------------------------------

_EVENT_LINE = r"\s*(?:data|event|id|retry)?:"
_EMPTY_EVENT = r"\s*(?:(?:event|id|retry)?:.*|data:\s*(?:\[DONE\])?\s*)?\Z"


def drop_reply_events(text: str) -> str:
    """The body of an error without the events of a reply, if it is a stream: no error may quote what a model thinks."""
    if "\0" in text:  # frames of AWS
        return ""
    lines = text.splitlines()
    if len(lines) < 2 and re.match(_EVENT_LINE, text) is None:
        return text
    kept = [line for line in lines if not _is_reply_event(line)]
    if len(kept) == len(lines):
        return text
    return "" if all(re.match(_EMPTY_EVENT, line) for line in kept) else "\n".join(kept)


def _is_reply_event(line: str) -> bool:
    """Whether a line is a document without the words of a server. That of an event may be cut off."""
    data = re.sub(_EVENT_LINE, "", line, count=1).strip()
    if not data.startswith("{") or (len(data) == len(line.strip()) and _parse(data) is None):
        return False
    found: list[ErrorMessage] = []
    _read_text(data, "", "", 1, found)
    return not found


# --- documents ----------------------------------------------------------------------------------------------------


def _read(value: Any, code: str, param: str, depth: int, found: list[ErrorMessage]) -> None:
    if len(found) >= _MAX_MESSAGES or depth > DEPTH:
        return
    if isinstance(value, str):
        _read_text(value, code, param, depth, found)
    elif isinstance(value, (list, tuple)):
        for item in value[:_MAX_ITEMS]:
            _read(item, code, param, depth, found)
    elif isinstance(value, dict):
        _read_object({str(name).lower(): inner for name, inner in value.items()}, code, param, depth, found)


def _read_object(fields: Mapping[str, Any], code: str, param: str, depth: int, found: list[ErrorMessage]) -> None:
    code = _read_codes(fields) or code
    place = _read_place(fields)
    named = fields.get("param")
    if isinstance(named, str) and named:
        if named.count(" ") >= 2:
            _read_text(named, code, "", depth + 1, found)  # MiMo describes the problem there
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
        is_upstream = name.startswith("upstream") and not name.endswith(("status", "statustext", "status_text"))
        is_inner = is_upstream or name in _INNER or name.endswith("exception")
        if is_inner and name not in _WORDS and isinstance(value, (dict, list, str) if is_upstream else (dict, list)):
            _read(value, code, param, depth + 1, found)


def _read_codes(fields: Mapping[str, Any]) -> str:
    """The codes and types of an object, and of its details."""
    sources = [fields, *(fields[name] for name in ("details", "innererror") if isinstance(fields.get(name), dict))]
    values = [source.get(name) for source in sources for name in _CODES]
    codes = dict.fromkeys(str(value) for value in values if isinstance(value, (str, int)))
    return " ".join(code for code in codes if code and " " not in code)[:200]


def _read_place(fields: Mapping[str, Any]) -> str:
    """The path that pydantic (`loc`) and zod (`path`) give beside a message."""
    place = fields.get("loc") or fields.get("path")
    if not isinstance(place, (list, tuple)):
        return ""
    names = [str(name) for name in place[:_MAX_ITEMS] if isinstance(name, (str, int))]
    return ".".join(names[1:] if names[:1] == ["body"] else names)[:200]


# --- texts --------------------------------------------------------------------------------------------------------

_BEDROCK = "the model returned the following errors:"
_PAGE = r"(?i)\s*<(?:!doctype|html|head|\?xml)"
# A string behind what programs write before one: `data: "…"`, `Error code: 400 - '…'`, `OpenAIException - b'…'`.
_STRING = r"(?is)(?:[^\"']{0,200}(?:data:|\d{3}\W{1,4}|exception ?-)\s{0,4})?b?([\"'])(.{8,})\1\.?\Z"
_OBJECT = r"\{\s{0,8}\\{0,8}[\"']"
_MARK = r"\\.|[\"'{}\[\]]"
_DEEPEST = 40
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|(.))"
_PLAIN_ESCAPES = {"n": "\n", "r": " ", "t": " "}
_MAX_ESCAPED = 3
"""Maximum levels of escaping: JSON in JSON, and Python's repr."""
# In an object that was cut off.
_FIELD = (
    r"[\"'](?:message|msg|raw|detail|error)[\"']\s{0,4}:\s{0,4}"
    r"(?:\"((?:[^\"\\]|\\.){1,8000})(?:\"|\Z)|'((?:[^'\\]|\\.){1,8000})(?:'|\Z))"
)
_NAME_FIELD = r"[\"'](code|param)[\"']\s{0,4}:\s{0,4}[\"']([\w.\[\]*-]{1,80})[\"']"


def _read_text(text: str, code: str, param: str, depth: int, found: list[ErrorMessage]) -> None:
    text = text.strip()
    if not text or len(found) >= _MAX_MESSAGES:
        return
    if re.match(_PAGE, text):
        found.append(ErrorMessage("", PAGE, "", depth))
    elif depth >= DEPTH:
        found.append(ErrorMessage(_shorten(text), code, param, depth))
    elif isinstance(inner := _parse(text), (dict, list, str)):
        _read(inner, code, param, depth + 1, found)
    elif string := re.match(_STRING, text):
        # Quoted JSON that was not escaped is parsed as it is: the escapes are its own.
        inside = string[2].strip()
        _read_text(inside if _parse(inside) is not None else _unescape(inside), code, param, depth + 1, found)
    else:
        first = re.search(_OBJECT, text)
        after = text.lower().find(_BEDROCK)
        if after >= 0 and (first is None or first.start() > after) and text[after + len(_BEDROCK) :].strip():
            _read_text(text[after + len(_BEDROCK) :], code, param, depth + 1, found)
        else:
            rest = _shorten(text if first is None else _read_objects(text, code, param, depth, found))
            # A document that was cut off and has no message may be a reply.
            if rest and rest[0] != "{":
                found.append(ErrorMessage(rest, code, param, depth))


def _parse(text: str) -> Any:
    """Parse JSON; None if it is invalid."""
    if text[0] not in '{["':
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _read_objects(text: str, code: str, param: str, depth: int, found: list[ErrorMessage]) -> str:
    """Read the objects inside a text. Returns the text without them."""
    rest: list[str] = []
    end = 0
    for _ in range(_MAX_OBJECTS):
        start = re.compile(_OBJECT).search(text, end)
        if start is None:
            break
        rest.append(text[end : start.start()])
        before = len(found)
        end = _read_one_object(text, start.start(), code, param, depth, found)
        # Without words in it, it belongs to the sentence around it, such as `send {"type": "adaptive"} instead`.
        rest.append(text[start.start() : end] if len(found) == before else " ")
    rest.append(text[end:])
    return "".join(rest)


def _read_one_object(text: str, start: int, code: str, param: str, depth: int, found: list[ErrorMessage]) -> int:
    """Read the object that begins here. Returns where it ends."""
    source = text[start:]
    for level in range(_MAX_ESCAPED + 1):
        end = _find_end(source)
        value = _parse_object(source[:end])
        if value is not None:
            _read(value, code, param, depth + 1, found)
            return start + end if level == 0 else len(text)
        if "\\" not in source:
            break
        source = _unescape(source)
    source = text[start:]
    named = {match[1]: match[2] for match in re.finditer(_NAME_FIELD, source)}
    fields = [match[1] or match[2] for match, _ in zip(re.finditer(_FIELD, source), range(_MAX_OBJECTS), strict=False)]
    for field in fields:
        _read_text(_unescape(field), named.get("code", code), named.get("param", param), depth + 1, found)
    return len(text) if fields else start + 1


def _find_end(text: str) -> int:
    """Where the object at the beginning of a text ends; 0 if it does not, or is nested too deeply."""
    quote, depth = "", 0
    for mark in re.finditer(_MARK, text, re.DOTALL):
        character = mark[0]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "{[":
            depth += 1
            if depth > _DEEPEST:
                return 0
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return mark.end()
    return 0


def _parse_object(text: str) -> Any:
    """Parse JSON, or a dict as Python shows it; None if it is neither."""
    if not text:
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    if len(text) > _LONGEST_REPR or "'" not in text:
        return None
    import warnings
    from ast import literal_eval

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes
        try:
            return literal_eval(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return None


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
