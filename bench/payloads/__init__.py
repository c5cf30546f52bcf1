"""The bytes that every contestant gets: seven dialects, streamed and whole, the same on every run. No I/O.

A dialect has a module with `make_stream` and `make_body`, shaped as its real wire. The words are in `words`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from bench.payloads import bedrock, chat, cohere, gemini, messages, ollama, responses
from bench.payloads.words import MARK, Call, Expected, Stream, Ticks, dump, make_text, make_thinking

__all__ = [
    "BODY_SIZES",
    "CHUNKS",
    "CONTENT_TYPES",
    "DIALECTS",
    "MARK",
    "QUESTION",
    "Expected",
    "Stream",
    "Ticks",
    "body",
    "calls",
    "count_expected",
    "read_profile",
    "stream",
    "ticks",
]

CHUNKS = 4000
BODY_SIZES = {"2 KB": 2 * 1024, "20 KB": 20 * 1024, "200 KB": 200 * 1024}
QUESTION = "Explain how streams work, in detail, with one worked example please."

_MODULES: dict[str, Any] = {
    "chat": chat,
    "messages": messages,
    "responses": responses,
    "gemini": gemini,
    "cohere": cohere,
    "ollama": ollama,
    "bedrock": bedrock,
}
DIALECTS = tuple(_MODULES)
CONTENT_TYPES = {"ollama": "application/x-ndjson", "bedrock": "application/vnd.amazon.eventstream"}
# An event that ends the stream and carries nothing.
_END_MARKS = ("chat", "cohere")


@cache
def stream(dialect: str, chunks: int = CHUNKS, *, inline_tags: bool = False) -> Stream:
    """A stream of exactly `chunks` events; chat and Cohere add `[DONE]`."""
    made = chat.make_stream(chunks, inline_tags=True) if inline_tags else _MODULES[dialect].make_stream(chunks)
    assert len(made.events) == chunks + (dialect in _END_MARKS), (dialect, chunks, len(made.events))
    return made


@cache
def ticks(dialect: str) -> Ticks:
    """A stream whose events tell the time: of chat, messages, responses and gemini."""
    made: Ticks = _MODULES[dialect].make_ticks()
    return made


@cache
def body(dialect: str, size: int) -> tuple[bytes, Expected]:
    """A whole response of about `size` bytes: 3/8 thinking, 5/8 answer. A small one has a few words at least."""
    make = _MODULES[dialect].make_body
    room = max(64, size - len(dump(make("", ""))))

    def grow(tokens: list[str], target: int) -> str:
        taken, length = [], 0
        for token in tokens:
            if length >= target:
                break
            taken.append(token)
            length += len(json.dumps(token, ensure_ascii=False).encode()) - 2
        return "".join(taken)

    thinking, text = grow(make_thinking(size), room * 3 // 8), grow(make_text(size), room * 5 // 8)
    return dump(make(thinking, text)), Expected(len(thinking), len(text), 0)


@cache
def calls(dialect: str, step: int, count: int) -> bytes:
    """A whole response with a thought and tool calls, whose ids are those of this step only."""
    made = [Call(f"call_{step}_{number}", f"the words of step {step}") for number in range(count)]
    return dump(_MODULES[dialect].make_body("".join(make_thinking(40)), "Let me look that up.", made))


def read_profile(profile: str) -> tuple[str, int, bool]:
    """Read `<pace>-<number>[-tags]`: how the server answers, how long the answer is, whether thinking is inline."""
    pace, number, *rest = profile.split("-")
    return pace, int(number), rest == ["tags"]


def count_expected(dialect: str, profile: str) -> Expected:
    pace, number, inline_tags = read_profile(profile)
    if pace == "body":
        return body(dialect, number)[1]
    return stream(dialect, number, inline_tags=inline_tags).expected
