"""The text of gpt-oss: messages with a role, a channel and a recipient in their headers (`harmony`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from asides.datasets.formats.turns import CallNumbers, FormatError, Piece, Said, Span, Turn, make_call
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
_CHANNELS: dict[Said, str] = {"thinking": "analysis", "commentary": "commentary", "text": "final"}
_KINDS: dict[str, Said] = {channel: kind for kind, channel in _CHANNELS.items()}


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
        yield _make_message(_read_role(found), found, numbers)


def find_spans(text: str) -> Iterator[Span]:
    """The places of what the model says; text between messages is skipped."""
    for found in _MESSAGE.finditer(text):
        if _read_role(found) == "assistant":
            yield Span(_read_kind(found), *found.span("text"))


def _read_role(found: re.Match[str]) -> str:
    return next(iter((found["role"] or "").split()), "assistant")


def _find_recipient(found: re.Match[str]) -> str | None:
    recipient = _RECIPIENT.search(f"{found['role'] or ''} {found['channel'] or ''}")
    return None if recipient is None else recipient[1]


def _read_kind(found: re.Match[str]) -> Said:
    if _find_recipient(found) is not None:
        return "call"
    channel = next(iter((found["channel"] or "").split()), "final")
    return _KINDS.get(channel, "thinking")  # an unknown channel is thinking: a leak would be worse


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
    match _read_kind(found):
        case "call":
            name = _find_recipient(found) or ""
            return make_call(name, text, numbers.add(name))
        case "text":
            return Text(text)
        case "commentary":
            return Commentary(text)
        case _:
            return Thought(text)
