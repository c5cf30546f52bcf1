"""Replies as any server might give them, made up by hypothesis: the events that every law is tried on."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from asides.values.events import (
    CommentaryDelta,
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.usage import Usage

# Letters of every width, the marks that framing and tags are made of, and white space.
LETTERS = st.text(alphabet='abé日👋<>/[]{}"\\`:, \n\tthink', min_size=1, max_size=12)
WORDS = LETTERS.filter(lambda text: not text.isspace())


def deltas(text: str, sizes: list[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces, start, turn = [], 0, 0
    while start < len(text):
        pieces.append(text[start : start + sizes[turn % len(sizes)]])
        start += sizes[turn % len(sizes)]
        turn += 1
    return pieces


SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=4)
USAGES = st.none() | st.builds(
    lambda inputs, answer, thought: Usage(inputs, answer + thought, thought, 0, inputs + answer + thought),
    st.integers(0, 999),
    st.integers(0, 999),
    st.integers(0, 999),
)
ARGUMENTS = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers() | st.text(max_size=5) | st.booleans(), max_size=3
)


@st.composite
def chat_events(draw: st.DrawFn, *, thought: st.SearchStrategy[str] | None = None) -> list[Event]:
    """Events that a chat completion can carry: one thought, commentary, one text, a refusal or calls, usage, an end."""
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted("made-up", "chatcmpl-1")]
    thinking = draw(
        thought if thought is not None else st.just("") | WORDS | st.builds("".join, st.lists(WORDS, max_size=5))
    )
    field = draw(st.sampled_from(["reasoning_content", "reasoning"]))
    events += [ThinkingDelta(piece, 0, "raw", "field", field) for piece in deltas(thinking, sizes)]
    # Thinking first: how a chat stream orders the two is the server's, and a whole body has no order.
    # Commentary has one field, which comes before the answer.
    events += [CommentaryDelta(piece, 1) for piece in deltas(draw(st.just("") | WORDS), sizes)]
    events += [
        TextDelta(piece, 2)
        for piece in deltas(draw(st.just("") | st.builds("".join, st.lists(LETTERS, max_size=6))), sizes)
    ]
    if draw(st.booleans()):
        events.append(RefusalDelta("I would rather not.", 3))
    reason = "stop"
    for number in range(4, 4 + draw(st.integers(0, 2))):
        reason = "tool_calls"
        raw = msgspec.json.encode(draw(ARGUMENTS)).decode()
        events.append(ToolCallDelta(number, f"call_{number}", "look_up"))
        events += [ToolCallDelta(number, arguments=piece) for piece in deltas(raw, sizes)]
    usage = draw(USAGES)
    if usage is not None:
        events.append(UsageReported(usage))
    stop = draw(st.sampled_from([reason, "length"]))
    events.append(ReplyEnded(StopReason(stop, stop)))  # type: ignore[arg-type]
    return events
