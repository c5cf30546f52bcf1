"""Builds the tool result for the model: a value as text, JSON or pictures, or an error that it can act on."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

import msgspec

from asides.agents.tools.executor import BadArguments, JobOutcome, Raised, Returned, TimedOut
from asides.agents.tools.type_readers import encode_custom
from asides.values.error_words import find_near_names
from asides.values.errors import redact_keys
from asides.values.messages import Message
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.result import Result

NOTHING = "Done; there is nothing to report."
"""The text for the model if a function returns None."""

_MAX_ERROR_LENGTH = 1000
_MAX_NAMES = 40
_MAX_GROUPED_ERRORS = 3


def build_result(call: ToolCall, outcome: JobOutcome) -> ToolResult:
    """Build the result of a call that was run. Never raises, and shows no traceback."""
    match outcome:
        case Returned(value=value):
            return _build_from_value(call, value)
        case Raised(error=BadArguments() as error):
            return _build_error(call, str(error))
        case Raised(error=error):
            return _build_error(call, _describe_error(error))
        case TimedOut(seconds=seconds):
            after = f" after {seconds:g} s" if seconds else ""
            return _build_error(call, f"{call.name} was given up{after}: it took too long. Ask for less.")


def deny_call(call: ToolCall, reason: str = "") -> ToolResult:
    """Build the result of a call that may not be run."""
    why = f": {redact_keys(reason.strip().rstrip('.'))}" if reason.strip() else ""
    return _build_error(call, f"The call of {call.name} was not allowed{why}. Go on without it.")


def reject_unknown_tool(call: ToolCall, names: Iterable[str]) -> ToolResult:
    """Build the result of a call of an unknown tool; it suggests the existing tools with similar names."""
    known = sorted(names)
    text = f"There is no tool named {call.name[:80]!r}."
    if close := find_near_names(call.name, known, most=3):
        text += f" Did you mean {' or '.join(close)}?"
    elif known:
        text += f" The tools are {', '.join(known[:_MAX_NAMES])}{' and more' if len(known) > _MAX_NAMES else ''}."
    else:
        text += " There are no tools. Answer without one."
    return _build_error(call, text)


def _build_error(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call.id, _make_sendable(text), call.name, is_error=True)


def _make_sendable(text: str) -> str:
    """Return the text as a plain str without lone surrogates, which names of files can have.

    A result that cannot be encoded would end the run, and also every later turn of its conversation.
    """
    plain = str.__str__(text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode(errors="replace").decode()
    return plain


def _describe_error(error: BaseException) -> str:
    """Return the type and the message of an error; of a group, those of its first few errors."""
    if isinstance(error, BaseExceptionGroup):
        inner = [_describe_error(each) for each in error.exceptions[:_MAX_GROUPED_ERRORS]]
        return "; ".join(inner)[:_MAX_ERROR_LENGTH]
    try:
        message = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception may compute its message with any code
        message = ""
    name = type(error).__name__
    # Redact before the cut: half a key does not look like a key.
    text = redact_keys(f"{name}: {message}" if message else f"{name}, without a reason.")
    return text if len(text) <= _MAX_ERROR_LENGTH else f"{text[:_MAX_ERROR_LENGTH]}…"


def _build_from_value(call: ToolCall, value: Any) -> ToolResult:
    match value:
        case ToolResult(content=content):
            # Its content is not checked yet, so it is built like any other value.
            result = _build_from_value(call, "" if content == () else content)
            return msgspec.structs.replace(
                result, name=value.name or call.name, is_error=value.is_error or result.is_error, cache=value.cache
            )
        case Result():
            return _build_from_value(call, value.output)
        case bytes() | bytearray() | memoryview():
            return _build_unsupported(call, value, "return asides.Image(data=…) or asides.File(data=…)")
        case Awaitable():
            if callable(close := getattr(value, "close", None)):
                close()  # Prevents Python's warning that it was never awaited.
            return _build_unsupported(call, value, "make the function async")
        case _:
            pass
    try:
        return ToolResult(call.id, _encode_content(value), call.name)
    except Exception:  # noqa: BLE001 - encoding a value may run any code
        return _build_unsupported(call, value, "return text, or a value that JSON can hold")


def _encode_content(value: Any) -> str | tuple[Text | Image | File, ...]:
    match value:
        case str():
            return _make_sendable(value)
        case None:
            return NOTHING
        case Text() | Image() | File():
            return (_encode_part(value),)
        case Reply() | Message():
            return _make_sendable(value.text)  # Another model's answer, without its thinking and its seals.
        case list() | tuple() if any(isinstance(item, (Text, Image, File)) for item in value):
            return tuple(_encode_part(item) for item in value)
        case _:
            return _encode_json(value)


def _encode_part(value: Any) -> Text | Image | File:
    match value:
        case Text():
            return msgspec.structs.replace(value, text=_make_sendable(value.text))
        case Image() | File():
            return value
        case str():
            return Text(_make_sendable(value))
        case _:
            return Text(_encode_json(value))


def _encode_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=encode_custom).decode()


def _build_unsupported(call: ToolCall, value: Any, advice: str) -> ToolResult:
    kind = type(value).__name__
    return _build_error(call, f"{call.name} ran, but its value ({kind}) cannot be sent. For its author: {advice}.")
