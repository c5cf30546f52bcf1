"""The text of gpt-oss: messages with a role, a channel and a recipient in their headers (`harmony`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from asides.datasets.formats.turns import CallNumbers, FormatError, Piece, Turn, make_call
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolResult
from asides.values.thinking import Thought

_MESSAGE = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?(?:<\|channel\|>(?P<channel>[^<]*))?(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<text>.*?)(?P<end><\|end\|>|<\|return\|>|<\|call\|>|\Z|(?=<\|start\|>))",
    re.DOTALL,
)
_TOKEN = re.compile(r"<\|(?:start|end|message|channel|constrain|return|call)\|>")
_RECIPIENT = re.compile(r"to=functions\.(\S+)")
_FUNCTIONS = "functions."
_CHANNELS = {"thinking": "analysis", "commentary": "commentary", "text": "final"}


def write_harmony(turns: Sequence[Turn]) -> str:
    """Write one text. The last answer ends with <|return|>, as in training."""
    text = "".join(_write(turn) for turn in turns)
    last = turns[-1].pieces if turns else ()
    if last and last[-1].kind == "text":
        text = text.removesuffix("<|end|>") + "<|return|>"
    return text


def _write(turn: Turn) -> str:
    match turn.role:
        case "assistant":
            return "".join(_write_piece(piece) for piece in turn.pieces)
        case "tool":
            return "".join(
                f"<|start|>{_FUNCTIONS}{each.name} to=assistant<|channel|>commentary<|message|>{each.text}<|end|>"
                for each in turn.results
            )
        case _:
            return f"<|start|>{turn.role}<|message|>{turn.text}<|end|>"


def _write_piece(piece: Piece) -> str:
    if piece.kind == "call":
        header = f"<|channel|>commentary to={_FUNCTIONS}{piece.name} <|constrain|>json"
        return f"<|start|>assistant{header}<|message|>{piece.text}<|call|>"
    return f"<|start|>assistant<|channel|>{_CHANNELS[piece.kind]}<|message|>{piece.text}<|end|>"


def read_harmony(value: object) -> tuple[Message, ...]:
    """Read one text. A text between two messages is not harmony."""
    if not isinstance(value, str):
        raise FormatError("harmony is text")
    return tuple(_read(value))


def _read(text: str) -> Iterator[Message]:
    numbers = CallNumbers()
    place = 0
    while place < len(text):
        found = _MESSAGE.match(text, place)
        if found is None:
            if not text[place:].strip():
                return
            raise FormatError("a part of the text is not a harmony message")
        place = found.end()
        if _TOKEN.search(found["text"]):
            raise FormatError("a harmony message has a token of another inside")
        role = (found["role"] or "assistant").split()
        yield _make_message(role[0] if role else "assistant", found, numbers)


def _make_message(role: str, found: re.Match[str], numbers: CallNumbers) -> Message:
    text = found["text"]
    match role:
        case "system" | "developer":
            return Message("system", (Text(text),))
        case "user":
            return Message("user", (Text(text),))
        case "assistant":
            return Message("assistant", (_make_part(found, text, numbers),))
        case _ if role.startswith(_FUNCTIONS):
            return Message("tool", (ToolResult(numbers.take(role.removeprefix(_FUNCTIONS)), text),))
        case _:
            raise FormatError("a harmony message has an unknown role")


def _make_part(found: re.Match[str], text: str, numbers: CallNumbers) -> Part:
    channel = (found["channel"] or "final").split()
    recipient = _RECIPIENT.search(f"{found['role'] or ''} {found['channel'] or ''}")
    if recipient is not None:
        return make_call(recipient[1], text, numbers.add(recipient[1]))
    match channel[0] if channel else "final":
        case "final":
            return Text(text)
        case "commentary":
            return Commentary(text)
        case _:  # an unknown channel is thinking: a leak would be worse
            return Thought(text)
