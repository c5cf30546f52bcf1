"""Reads documents: lists of messages, requests and responses in a format with a name, and files with a history.

A format has the name of its dialect, whose importer or server half parses it.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from asides import dialects
from asides.history.export import parse_format
from asides.intake.detect import ImportFormat
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Text, is_too_deep

# The fields of requests and responses that may hold the list.
_LISTS = ("messages", "input", "output")


# --- messages ---------------------------------------------------------------------------------------------------------


def import_messages(value: object, format_name: str) -> tuple[Message, ...]:
    """Import a list of messages, or a request or response that contains one.

    `format_name` is "openai" (chat completions), "anthropic" (turns of blocks) or "responses" (items). A system prompt
    beside the list becomes the first message. Thoughts keep their seals and have no origin: they are trusted.
    """
    items, system_prompt = _find_list(value)
    chosen = parse_format(format_name)
    with refuse_unwritable():
        return (*_parse_system(system_prompt), *parse_items(items, chosen))


@contextmanager
def refuse_unwritable() -> Generator[None]:
    """Raise a ConfigError for values that JSON cannot represent."""
    try:
        yield
    except (UnicodeEncodeError, RecursionError, TypeError) as problem:
        if isinstance(problem, TypeError) and not str(problem).startswith(_UNWRITABLE):
            raise
        raise ConfigError(
            "the messages cannot be written as JSON. Look for a value of a type that JSON does not have, for "
            "text with a lone surrogate (half a character), or for objects nested without end."
        ) from None


# Errors of `msgspec`: "Encoding objects of type X is unsupported", "Only dicts with str-like or number-like keys".
_UNWRITABLE = ("Encoding objects", "Only dicts")


def _find_list(value: object) -> tuple[list[Any], object]:
    """The list, and the system prompt beside it."""
    if isinstance(value, Mapping):
        list_name = next((name for name in _LISTS if isinstance(value.get(name), (list, tuple))), None)
        if list_name is not None:
            return list(value[list_name]), value.get("system", value.get("instructions"))
        if isinstance(value.get("input"), str):
            return [{"role": "user", "content": value["input"]}], value.get("instructions")
        if "role" in value or "type" in value:
            return [value], None
    if isinstance(value, (list, tuple)):
        return list(value), None
    raise ConfigError(
        f"there are no messages in {type(value).__name__}. Pass a list of messages, or an object with messages, "
        "input or output."
    )


def _parse_system(system_prompt: object) -> tuple[Message, ...]:
    if system_prompt is None:
        return ()
    from asides.dialects.anthropic.import_messages import import_texts

    texts = import_texts(system_prompt)
    return (Message("system", texts),) if texts else ()


def parse_items(items: list[Any], chosen: ImportFormat) -> tuple[Message, ...]:
    """Parse a list in this format."""
    read = getattr(dialects.find_dialect(chosen), "import_history", None)
    return _parse_request(items, chosen) if read is None else tuple(read(items))


def _parse_request(items: list[Any], chosen: str) -> tuple[Message, ...]:
    """Parse a list with the server half of its dialect, as the messages of a request."""
    if chosen == "bedrock":
        items = [_to_blocks(item) for item in items]
    body = msgspec.json.encode({"model": "any", "messages": items})
    prompt = dialects.find_dialect(chosen).read(body, "/model/any/converse").prompt
    return prompt.messages if prompt.system is None else (Message("system", (Text(prompt.system),)), *prompt.messages)


def _to_blocks(item: Any) -> Any:
    """A message of Converse, with plain text put into a block."""
    if isinstance(item, Mapping) and isinstance(text := item.get("content"), str):
        return {**item, "content": [{"text": text}]}
    return item


# --- files ------------------------------------------------------------------------------------------------------------

# The escape of a lone surrogate, as after a cut between two UTF-16 units.
_HALF_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_history(data: bytes) -> tuple[Any, bool]:
    """Parse a file: JSON or JSON lines. Returns the value, and True for lines."""
    text = decode_history(data).strip()
    if not text:
        raise ConfigError("the file is empty. Name a file with a conversation.")
    if is_too_deep(text):
        raise ConfigError("the file is nested too deeply for a conversation.")
    with suppress(ValueError, RecursionError):
        return _parse(text), False
    lines: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines.append(_parse(line))
        except (ValueError, RecursionError):
            raise ConfigError(
                f"the file is neither JSON nor one JSON object in each line (line {number} is not). Check "
                "whether it was cut."
            ) from None
    return lines, True


def decode_history(data: bytes) -> bytes:
    """The text of a file as UTF-8. PowerShell writes UTF-16."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16").encode()
    text = data.removeprefix(BOM_UTF8)
    try:
        text.decode()
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the file is not UTF-8 text (byte {problem.start} is not). Save it as UTF-8.") from None
    return text


def _parse(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if not _HALF_ESCAPE.search(text):
            raise
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
