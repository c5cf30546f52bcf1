"""How tests translate a ReAct text: whole, and in every small chunking, which must all give the same reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asides.agents.react.translator import Translator
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta
from asides.values.fold import fold
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.tools import Tool

WEATHER = Tool(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ADD = Tool(
    "add",
    "The sum of two numbers.",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
)
NOW = Tool("now", "The time.", {"type": "object", "properties": {}})
TOOLS = (WEATHER, ADD, NOW)


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, again and again."""
    pieces: list[str] = []
    start = turn = 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[start : start + size])
        start, turn = start + size, turn + 1
    return pieces


def told(pieces: Iterable[str], tools: Sequence[Tool] = TOOLS, stop: StopReason | None = None) -> list[list[Event]]:
    """What the translator says to each piece of a text, and to the end."""
    translator = Translator(tools)
    first = translator.feed([ReplyStarted("made-up", "r1")])
    said = [translator.feed([TextDelta(piece, 1)]) for piece in pieces]
    return [first, *said, translator.feed([ReplyEnded(stop or StopReason("stop", "stop"))])]


def in_pieces(pieces: Iterable[str], tools: Sequence[Tool] = TOOLS, stop: StopReason | None = None) -> Reply:
    """The reply that these pieces of a text are."""
    return fold(event for events in told(pieces, tools, stop) for event in events)


def translated(text: str, tools: Sequence[Tool] = TOOLS, stop: StopReason | None = None) -> Reply:
    """The reply that a text is, in any chunking."""
    reply = in_pieces([text] if text else [], tools, stop)
    for size in (1, 2, 3, 7):
        assert in_pieces(cut(text, [size]), tools, stop) == reply, f"pieces of {size} made a difference"
    for place in range(1, len(text)):
        assert in_pieces([text[:place], text[place:]], tools, stop) == reply, f"the cut at {place} made a difference"
    return reply


def shown(reply: Reply) -> list[tuple[str, object]]:
    """The parts of a reply, short enough to be compared with a drawing."""
    parts: list[tuple[str, object]] = []
    for part in reply.parts:
        match part:
            case Thought():
                parts.append(("thought", part.text))
            case Text(text=""):
                pass  # it only carries a seal
            case Text():
                parts.append(("text", part.text))
            case ToolCall():
                given: object = part.arguments if part.raw_arguments is None else part.raw_arguments
                parts.append((part.name or "?", given))
            case _:
                parts.append((type(part).__name__, None))
    return parts


def codes(reply: Reply) -> list[str]:
    """The codes of what was noticed."""
    return [notice.code for notice in reply.warnings]
