"""Google's Gemini: whole documents as server-sent events, without names and without an end mark.

A call comes whole, and the signature with it. Real chunks carry more words each than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.payloads.words import (
    MARK,
    Call,
    Stream,
    Ticks,
    expect,
    make_text,
    make_thinking,
    make_tool_arguments,
    share,
    sse,
    write_arguments,
)

_SIGNATURE = "bmV2ZXIgYSByZWFsIHNpZ25hdHVyZSwgb25seSBhYm91dCBhcyBsb25nIGFzIG9u"


def _document(parts: list[dict[str, Any]], tokens: int, finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {
        "promptTokenCount": 120,
        "candidatesTokenCount": tokens,
        "totalTokenCount": 1620 + tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 120}],
        "thoughtsTokenCount": 1500,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-2.5-flash",
        "responseId": "k3kYadmXJ5mZ1PIP0uLx4Ao",
    }


def _call_part(call: Call) -> dict[str, Any]:
    return {"functionCall": {"name": "search", "args": {"query": call.query}, "id": call.id}}


def make_stream(chunks: int) -> Stream:
    thinking_count, text_count, tool_count = share(chunks, overhead=1, tool_overhead=1)
    # A call is one chunk, so its pieces become text.
    thinking, text = make_thinking(thinking_count), make_text(text_count + tool_count)
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in thinking]
    parts += [{"text": piece} for piece in text]
    arguments: list[str] = []
    if tool_count:
        call = Call("call_Zr81b0AqVsk2", "".join(make_tool_arguments(tool_count)[3:-1]))
        arguments = [write_arguments(call)]
        parts.append({**_call_part(call), "thoughtSignature": _SIGNATURE * 6})
    events = [sse(_document([part], number)) for number, part in enumerate(parts)]
    events.append(sse(_document([{"text": "", "thoughtSignature": _SIGNATURE * 6}], len(parts), "STOP")))
    return Stream(events, expect(thinking, text, arguments))


def make_ticks() -> Ticks:
    return Ticks([], sse(_document([{"text": MARK}], 1)), [sse(_document([{"text": ""}], 2, "STOP"))])


def make_body(thinking: str, text: str, calls: Sequence[Call] = ()) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": thinking, "thought": True}]
    if not calls:
        return _document([*parts, {"text": text, "thoughtSignature": _SIGNATURE * 2}], 2496, "STOP")
    first, *others = [_call_part(call) for call in calls]
    signed = {**first, "thoughtSignature": _SIGNATURE * 2}
    return _document([*parts, {"text": text}, signed, *others], 2496, "STOP")
