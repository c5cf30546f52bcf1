"""The replies that the laws are tried on: thoughts, answers and calls, as any server might give them.

Made the same way each time. Not here: replies of a real host, which the author of a provider brings (`Example`).
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import ToolCall
from asides.values.thinking import ThoughtKind
from asides.values.usage import Usage

CANARY = "canary-7f3a"
"""What every thought of the suite holds and nothing else does."""
THOUGHT = f'Let me see: {CANARY}, it says "so", \u00e9\u65e5\U0001f44b.\nA second line of it.'
ANSWER = 'Forty-two \u2014 "as said": {"a": [1]} and a < b,\n\u65e5\u672c \U0001f44b.'
USAGE = Usage(input=11, output=31, thinking=20, cached=3, total=42)
CALLS = (
    ToolCall("call_a1", "look_up", {"what": 'the "sky" \u65e5', "times": 2}),
    ToolCall("call_b2", "look_up", {"what": "the sea", "deep": {"very": True}}),
)
_LETTERS = 'ab\u00e9\u65e5\U0001f44b{}"\\`:,. \n\tthink'
_BLOCKS = ("thought", "text")


class Sample(msgspec.Struct, frozen=True):
    """One reply, in our words."""

    name: str
    thought: str = THOUGHT
    text: str = ANSWER
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = USAGE
    pieces: tuple[int, ...] = (7, 4)
    """The characters of its deltas, over and over."""

    @property
    def stop(self) -> StopReason:
        """Why it ends."""
        return StopReason("tool_calls" if self.calls else "stop")

    def events(self, target: Target) -> list[Event]:
        """The reply as events, its thinking of the kind and in the field that the target's row names."""
        kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        via = target.facts.thinking_in[0]
        events: list[Event] = [ReplyStarted(target.model, "reply-1")]
        events += [ThinkingDelta(piece, 0, kind, "field", via) for piece in _cut(self.thought, self.pieces)]
        events += [TextDelta(piece, 1) for piece in _cut(self.text, self.pieces)]
        for block, call in enumerate(self.calls, 2):
            raw = msgspec.json.encode(call.arguments).decode()
            events.append(ToolCallDelta(block, call.id, call.name))
            events += [ToolCallDelta(block, arguments=piece) for piece in _cut(raw, self.pieces)]
        if self.usage is not None:
            events.append(UsageReported(self.usage))
        return [*events, ReplyEnded(self.stop)]


PLAIN = Sample("a thought and an answer")
CALLING = Sample("a thought and two calls", text="", calls=CALLS)
UNCOUNTED = Sample("a reply without counts", usage=None)
FIXED = (PLAIN, CALLING, Sample("a thought, an answer and a call", calls=CALLS[:1]), UNCOUNTED)


def samples(made_up: int) -> tuple[Sample, ...]:
    """The fixed ones, and so many made up of odd letters in odd pieces."""
    return (*FIXED, *(_made_up(number) for number in range(made_up)))


def _made_up(number: int) -> Sample:
    # The same sample each time.
    chance = random.Random(number)
    thought, text = (_words(chance) for _ in _BLOCKS)
    calls: tuple[ToolCall, ...] = ()
    if chance.random() < 0.4:
        arguments: dict[str, Any] = {_words(chance): chance.choice([1, True, None, _words(chance)])}
        calls = (ToolCall(f"call_{number}", "look_up", arguments),)
    pieces = tuple(chance.randint(1, 5) for _ in range(chance.randint(1, 4)))
    return Sample(f"made-up reply {number}", f"{CANARY} {thought}", text, calls, pieces=pieces)


def _words(chance: random.Random) -> str:
    # It neither begins nor ends with white space: that a server cuts those off is not what is looked at.
    return "x" + "".join(chance.choice(_LETTERS) for _ in range(chance.randint(0, 24))) + "x"


def _cut(text: str, sizes: tuple[int, ...]) -> list[str]:
    pieces: list[str] = []
    start = turn = 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[start : start + size])
        start, turn = start + size, turn + 1
    return pieces
