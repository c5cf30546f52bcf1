"""Replies with a canary in their thinking, in every way in which a server can send it: fields, tags, blocks, summaries,
lists, details. What the law that nothing leaks is tried on; the law itself is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.testing.stage import Raw, Say, Scene
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from tests.decoding import stream, whole
from tests.laws.theatre import HOUSES, scene_of

CANARY = "canary-9d41-thought"
ANSWER = "It is 42."
CALL = ToolCall("call_1", "look", {"at": 1})

_CHAT = "openai-compatible:made-up"
_MISTRAL_THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": CANARY}]}
_DETAIL = {"type": "reasoning.text", "text": CANARY, "index": 0, "format": "unknown"}


class Planted(NamedTuple):
    """A model whose replies think the canary."""

    model: str
    play: Callable[[ServedRequest], Scene]
    thinking: Any = None
    base: str = "/v1"
    shown: bool = True
    """Whether the provider shows it."""


def planted() -> Iterator[tuple[str, Planted]]:
    """Every way, by name."""
    for name, house in HOUSES.items():
        # A gateway to a model that hides its thoughts mirrors them nowhere but here; the field is what counts.
        yield name, Planted(house.model, _spoken, house.thinking, house.base)
    for name, message in _CHAT_MESSAGES.items():
        yield f"chat: {name}", Planted(_CHAT, _written(message))
    yield "a list of chunks", Planted("mistral:magistral-medium-latest", _written(_MISTRAL_LIST))
    for name, content in _INLINE.items():
        yield f"inline: {name}", Planted(_CHAT, _written({"content": content}))
        yield f"chat lines, inline: {name}", Planted("ollama:made-up", _lines(content))
    yield "raw reasoning, shown", Planted("openai-responses:gpt-5", _raw, {"effort": "low", "show": "raw"})
    yield "raw reasoning, left out", Planted("openai-responses:gpt-5", _raw, "low", shown=False)


_CHAT_MESSAGES: dict[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": CANARY, "content": ANSWER},
    "reasoning": {"reasoning": CANARY, "content": ANSWER},
    "thinking": {"thinking": CANARY, "content": ANSWER},
    "a field that nobody knows": {"chain_of_thought": CANARY, "content": ANSWER},
    "two fields": {"reasoning_content": CANARY, "reasoning": CANARY, "content": ANSWER},
    "a field and tags": {"reasoning_content": CANARY, "content": f"<think>{CANARY}</think>{ANSWER}"},
    "details": {"reasoning_details": [_DETAIL], "content": ANSWER},
    "details and a field": {"reasoning_details": [_DETAIL], "reasoning": CANARY, "content": ANSWER},
    "commentary": {"reasoning_content": CANARY, "commentary": "I look.", "content": ANSWER},
    "nothing but a thought": {"reasoning_content": CANARY, "content": ""},
}
_MISTRAL_LIST: dict[str, Any] = {"content": [_MISTRAL_THOUGHT, {"type": "text", "text": ANSWER}]}
_INLINE = {
    "tags": f"<think>{CANARY}</think>{ANSWER}",
    "capitals": f"<THINK>\n{CANARY}\n</THINK>\n\n{ANSWER}",
    "brackets": f"[THINK]{CANARY}[/THINK]{ANSWER}",
    "channels": f"<|channel|>analysis<|message|>{CANARY}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    "never closed": f"<think>{CANARY}",
    "channels, with commentary": (
        f"<|channel|>analysis<|message|>{CANARY}<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        f"<|start|>assistant<|channel|>analysis<|message|>again {CANARY}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{ANSWER}"
    ),
    "two blocks": f"<think>{CANARY}</think><think>again {CANARY}</think>{ANSWER}",
}


def _heard_results(request: ServedRequest) -> bool:
    last = request.prompt.messages[-1]
    return any(isinstance(part, ToolResult) for part in last.parts)


def _spoken(request: ServedRequest) -> Scene:
    """A call when there are tools, and an answer behind its result; a thought before each."""
    calls = bool(request.prompt.tools) and not _heard_results(request)
    said: tuple[Part, ...] = (Text("Let me look."), Thought(f"{CANARY} once more"), CALL) if calls else (Text(ANSWER),)
    return scene_of((Thought(CANARY), *said), 7)


def _raw(request: ServedRequest) -> Scene:
    del request
    thought = ThinkingDelta(CANARY, 0, "raw", "responses_raw", "reasoning_text")
    events = (ReplyStarted(None, "resp_raw"), thought, TextDelta(ANSWER, 1), ReplyEnded(StopReason("stop")))
    return Say(events=events)


def _written(message: dict[str, Any]) -> Callable[[ServedRequest], Scene]:
    def play(request: ServedRequest) -> Scene:
        if request.stream:
            return Raw(body=stream(*({name: value} for name, value in message.items())))
        return Raw(body=whole(message), content_type="application/json")

    return play


def _lines(content: str) -> Callable[[ServedRequest], Scene]:
    def play(request: ServedRequest) -> Scene:
        pieces = [content[start : start + 5] for start in range(0, len(content), 5)] if request.stream else [content]
        lines = [
            {"model": "made-up", "message": {"role": "assistant", "content": piece}, "done": place == len(pieces) - 1}
            for place, piece in enumerate(pieces)
        ]
        kind = "application/x-ndjson" if request.stream else "application/json"
        return Raw(body=b"\n".join(map(msgspec.json.encode, lines)) + b"\n", content_type=kind)

    return play


PLANTED = dict(planted())
