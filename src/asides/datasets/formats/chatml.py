"""The text of Qwen's chat template: ChatML with thinking, calls and results in tags (`chatml-qwen`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from asides.datasets.formats.chat import split_tags, tag_text
from asides.datasets.formats.tool_tags import (
    CALL,
    TOOL_TAGS,
    leave_tags,
    read_results,
    read_said,
    write_call,
    write_result,
)
from asides.datasets.formats.turns import CallNumbers, FormatError, Piece, Span, Turn, split_messages
from asides.values.messages import Message
from asides.values.parts import Part, Text

_MESSAGE = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>\n?|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_THOUGHTS = re.compile(r"(?:\s*<think>.*?</think>)+\s*", re.DOTALL)
_MARKS = ("<|im_start|>", "<|im_end|>", *TOOL_TAGS)


def write_chatml(turns: Sequence[Turn]) -> str:
    """Write one text."""
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in _write(turns))


def _write(turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    for turn in turns:
        match turn.role:
            case "assistant":
                for pieces in split_messages(turn, ("thinking", "text", "call", "commentary")):
                    yield "assistant", _write_message(pieces)
            case "tool":
                yield "user", "\n".join(write_result(each.text) for each in turn.results)
            case _:
                yield turn.role, turn.text


def _write_message(pieces: Sequence[Piece]) -> str:
    if any(piece.kind == "commentary" for piece in pieces):
        raise FormatError("it has commentary")
    texts = {piece.kind: piece.text for piece in pieces if piece.kind != "call"}
    if any(mark in text for text in texts.values() for mark in _MARKS):
        raise FormatError("a text looks like the marks of the format")
    calls = [write_call(piece.name, piece.arguments) for piece in pieces if piece.kind == "call"]
    said = tag_text(texts.get("thinking", ""), texts.get("text", ""))
    return "\n".join(part for part in (said, *calls) if part)


def read_chatml(value: object) -> tuple[Message, ...]:
    """Read one text. A text between two messages is not ChatML."""
    return _read_all(value, split_tags)


def read_chatml_texts(value: object) -> tuple[Message, ...]:
    """Read one text, with the tags in what the model says as they are."""
    return _read_all(value, leave_tags)


def _read_all(value: object, split: Callable[[str], list[Part]]) -> tuple[Message, ...]:
    if not isinstance(value, str):
        raise FormatError("ChatML is text")
    return tuple(_read(value, split))


def _read(text: str, split: Callable[[str], list[Part]]) -> Iterator[Message]:
    numbers = CallNumbers()
    place = 0
    while place < len(text):
        found = _MESSAGE.match(text, place)
        if found is None:
            if not text[place:].strip():
                return
            raise FormatError("a part of the text is not a ChatML message")
        place = found.end()
        role, content = found[1], found[2]
        match role:
            case "system":
                yield Message("system", (Text(content),))
            case "user" | "tool":
                yield _read_user(content, numbers)
            case "assistant":
                yield Message("assistant", tuple(_read_said(content, numbers, split)))
            case _:
                raise FormatError("a ChatML message has an unknown role")


def find_spans(text: str) -> Iterator[Span]:
    """The places of what the model says, calls left out; text between messages is skipped."""
    for found in _MESSAGE.finditer(text):
        if found[1] != "assistant":
            continue
        start, end = found.span(2)
        call = CALL.search(text, start, end)
        kept = _THOUGHTS.match(text, start, end)
        if kept is not None:
            yield from (Span("thinking", *each.span(1)) for each in _THOUGHT.finditer(text, start, kept.end()))
            start = kept.end()
        yield Span("text", start, end if call is None else max(start, call.start()))


def _read_user(content: str, numbers: CallNumbers) -> Message:
    results = read_results(content, numbers)
    return Message("tool", results) if results else Message("user", (Text(content),))


def _read_said(content: str, numbers: CallNumbers, split: Callable[[str], list[Part]]) -> Iterator[Part]:
    for part in read_said(content, numbers, split):
        if isinstance(part, Text) and "<tool_call>" in part.text:
            raise FormatError("a call is not JSON")
        yield part
