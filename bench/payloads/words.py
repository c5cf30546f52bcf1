"""The words of every payload, the types of a payload, and how it is written as JSON and server-sent events.

Deterministic: the same on every run. `Expected` counts the characters that a contestant must deliver.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

_TOKENS = 2400
# A shorter stream has no room for a tool call.
_SHORTEST_WITH_TOOLS = 1000
_VOCABULARY = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one"
    " you were all her she there would their we him been has when who will no more if out so up said what its about"
    " than into them can only other time new some could these two may first then do any like my now over such our man"
    " me even most made after also well function return value import class stream token reasoning answer because"
    " therefore however let's check compute derivative"
)
_WORDS = _VOCABULARY.split()
# Escapes, other scripts and line breaks, which make a decoder leave its fast path.
_ODD = ("\n", "\n\n", ' "quoted"', " café", " →", " 你好", " 😀", "\t", " C:\\path", " **bold**")


class Expected(NamedTuple):
    """The numbers of characters that a contestant must deliver."""

    thinking: int
    text: int
    tool_arguments: int


class Stream(NamedTuple):
    events: list[bytes]
    expected: Expected


MARK = "@@"
"""Stands where an event of `Ticks` has its time."""


class Ticks(NamedTuple):
    """A stream of text events whose text is written when they are sent."""

    begin: list[bytes]
    event: bytes
    finish: list[bytes]


class Call(NamedTuple):
    """A tool call in a whole response."""

    id: str
    query: str


def expect(thinking: list[str], text: list[str], arguments: list[str]) -> Expected:
    return Expected(*(len("".join(pieces)) for pieces in (thinking, text, arguments)))


def _token(source: random.Random) -> str:
    draw = source.random()
    if draw < 0.06:
        return source.choice(_ODD)
    word = source.choice(_WORDS)
    return " " + word if draw < 0.9 else word[: max(1, len(word) // 2)]


def _tokens(count: int, seed: int) -> list[str]:
    source = random.Random(seed)
    cycle = [_token(source) for _ in range(_TOKENS)]
    return [cycle[i % _TOKENS] for i in range(count)]


def make_thinking(count: int) -> list[str]:
    return _tokens(count, seed=7)


def make_text(count: int) -> list[str]:
    return _tokens(count, seed=8)


def make_tool_arguments(pieces: int) -> list[str]:
    source = random.Random(9)
    return ['{"q', "uer", 'y":"', *(source.choice(_WORDS) + " " for _ in range(pieces - 4)), '"}']


def write_arguments(call: Call) -> str:
    return dump({"query": call.query}).decode()


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(value: dict[str, Any], *, named: bool = False) -> bytes:
    name = f"event: {value['type']}\n".encode() if named else b""
    return name + b"data: " + dump(value) + b"\n\n"


def share(chunks: int, overhead: int, tool_overhead: int) -> tuple[int, int, int]:
    """Split a stream into thinking, text and tool pieces: 3/8, 3/5 and the rest."""
    thinking = chunks * 3 // 8
    if chunks < _SHORTEST_WITH_TOOLS:
        return thinking, chunks - overhead - thinking, 0
    text = chunks * 3 // 5
    return thinking, text, chunks - overhead - tool_overhead - thinking - text
