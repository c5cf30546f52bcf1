"""Conversations made up by hypothesis: replies with everything in them, and what people do to a history meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from asides.values.messages import Message, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from tests.laws.theatre import HOUSES, TOOLS, Chat, Manner, Target

REDACTED = "redacted"
# The ids that providers give: their own, with characters that others refuse, and the same one in every reply.
ID_STYLES = ("call_{number}_{place}", "functions.look:{number}.{place}", "call_{place}")


class Planned(NamedTuple):
    """A reply that is to be given. Its thoughts hold marks that occur nowhere else."""

    parts: tuple[Part, ...]
    marks: tuple[str, ...]
    piece: int


@st.composite
def replies(draw: st.DrawFn, number: int, *, redacts: bool) -> Planned:
    """Thoughts, redacted ones where the house has them, words and calls in parallel, in any order."""
    kinds = ["thought", "text", "thought", "redacted" if redacts else "text"]
    shape = draw(st.lists(st.sampled_from(kinds), max_size=4))
    parts: list[Part] = []
    marks: list[str] = []
    for place, kind in enumerate(shape):
        if kind == "redacted":
            parts.append(Thought("", "hidden", "block", seals=(Seal(REDACTED, f"cmVkYWN0ZWQ{number:04d}{place:02d}"),)))
        elif kind == "thought":
            mark = f"mull-{number}-{place}-mull"
            marks.append(mark)
            parts.append(Thought(draw(st.sampled_from([f"{mark}", f" {mark} é\n", f"{mark}\n\n  so <b> & 日 "]))))
        else:
            parts.append(Text(draw(st.sampled_from([f"words {number}.{place}", f" said {number} \n", "\n\n"]))))
    style = draw(st.sampled_from(ID_STYLES))
    for place in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        name = draw(st.sampled_from(["look", "feel"]))
        parts.append(ToolCall(style.format(number=number, place=place), name, {"at": number * 10 + place}))
    return Planned(tuple(parts), tuple(marks), draw(st.integers(1, 30)))


MANNERS = st.builds(
    Manner,
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.none() | st.none() | st.integers(1, 25),
    st.none() | st.none() | st.none() | st.integers(1, 1500),
)
CHANGES = ("nothing", "nothing", "nothing", "prune", "trim", "fork", "rewrite", "unthink")


class Turn(NamedTuple):
    """One turn, planned before anything is known of what comes: numbers are taken as far as the history goes."""

    change: str
    place: int
    """Which message is changed."""
    answers: tuple[bool, bool, bool]
    """Which calls of the last turn get a result."""
    result: str
    failed: bool
    together: bool
    """All results in one message, or one message for each."""
    loops: bool
    """Nobody speaks behind results: the model goes on."""
    target: Target
    reply: Planned
    manner: Manner


@st.composite
def conversations(draw: st.DrawFn) -> list[Turn]:
    """A few turns over two or three houses, some of them the same on another stage, or another on the same one."""
    houses = draw(st.lists(st.sampled_from(sorted(HOUSES)), min_size=1, max_size=3))
    cast = [Target(house, draw(st.integers(0, 2))) for house in houses for _ in range(2 if len(houses) == 1 else 1)]
    turns: list[Turn] = []
    for number in range(draw(st.integers(2, 6))):
        target = draw(st.sampled_from(cast))
        turns.append(
            Turn(
                draw(st.sampled_from(CHANGES)),
                draw(st.integers(0, 20)),
                draw(st.tuples(*[st.sampled_from([True, True, True, False])] * 3)),
                draw(st.sampled_from(["fine", "", "{}"])),
                draw(st.booleans()),
                draw(st.booleans()),
                draw(st.booleans()),
                target,
                draw(replies(number, redacts=HOUSES[target.house].redacts)),
                draw(MANNERS),
            )
        )
    return turns


def continued(history: tuple[Message, ...], turn: Turn, number: int) -> tuple[Message, ...]:
    """The history with what comes between two turns of the model: all results, some, or none, and a person's words."""
    calls = history[-1].tool_calls if history and history[-1].role == "assistant" else ()
    results = [
        ToolResult(call.id, turn.result, call.name, turn.failed)
        for call, is_answered in zip(calls, turn.answers, strict=False)
        if is_answered
    ]
    added = [Message("tool", tuple(results))] if turn.together else [Message("tool", (result,)) for result in results]
    if not results:
        added = []
    if not results or not turn.loops:
        added.append(user(f"question {number}"))
    return (*history, *added)


def changed(history: tuple[Message, ...], turn: Turn) -> tuple[Message, ...]:
    """What a person does to a history: nothing, or take out, forget, go back, rewrite, or take thoughts out."""
    if not history or turn.change == "nothing":
        return history
    place = turn.place % len(history)
    match turn.change:
        case "prune":
            return history[:place] + history[place + 1 :]
        case "trim":
            return history[place:]
        case "fork":
            return history[:place]
        case "rewrite":
            edited = _rewritten(history[place])
        case _:
            edited = _without_thoughts(history[place])
    return (*history[:place], edited, *history[place + 1 :])


def reshaped(chat: Chat, turn: Turn) -> Chat:
    """The same, with a conversation's own means; and saved and loaded, with and without readable thinking."""
    place = turn.place % (len(chat) + 1)
    match turn.change:
        case "prune":
            chat.trim_to(40 + 15 * turn.place, model="anthropic:claude-sonnet-4-5")
        case "trim":
            chat = chat.from_json(chat.to_json(keep_thinking=turn.failed), client=chat._client, tools=TOOLS)
        case "fork" if turn.together:
            chat.truncate(place)
        case "fork":
            chat = chat.fork(place)
        case "rewrite" if place < len(chat) and _results_in(chat.messages[place]) <= 1:
            chat.edit(place, "rewritten")
        case "unthink" if turn.together:
            chat.system = f"You look around, {turn.place}."
        case "unthink" if place < len(chat):
            chat.edit(place, _without_thoughts(chat.messages[place]))
        case _:
            pass
    return chat


def _rewritten(message: Message) -> Message:
    # Somebody else's words, and so without the seals of those that stood there.
    parts = tuple(Text("rewritten") if isinstance(part, Text) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _without_thoughts(message: Message) -> Message:
    kept = tuple(part for part in message.parts if not isinstance(part, Thought))
    return msgspec.structs.replace(message, parts=kept)


def _results_in(message: Message) -> int:
    return sum(isinstance(part, ToolResult) for part in message.parts)
