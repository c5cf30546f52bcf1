"""The turns of a conversation, as every format writes them: who says what, and nothing about how it was stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall, ToolResult
from asides.values.thinking import Thought


class FormatError(ValueError):
    """A conversation that a format does not have, or a value that is not in the format."""


Said: TypeAlias = Literal["thinking", "redacted", "commentary", "text", "call"]
Feature: TypeAlias = Literal["signatures", "redacted", "errors", "names"]
"""What only some formats have: signatures of thoughts, redacted thoughts, marks of failed calls, names of users."""
FEATURES: dict[Feature, str] = {
    "signatures": "signatures of thoughts",
    "redacted": "redacted thinking",
    "errors": "a result that is marked as an error",
    "names": "the name of a user",
}


class Piece(msgspec.Struct, frozen=True):
    """One piece of a model's turn."""

    kind: Said
    text: str
    """For a call: its arguments as JSON."""
    name: str = ""
    call_id: str = ""
    signature: str = ""
    """Of a thought; for a redacted one: its data."""

    @property
    def arguments(self) -> Any:
        """The arguments of a call."""
        return json.loads(self.text)


class Result(msgspec.Struct, frozen=True):
    """The result of a call."""

    name: str
    text: str
    call_id: str
    is_error: bool = False


class Span(NamedTuple):
    """The place of something that a model says, in a conversation that is one text."""

    kind: Said
    start: int
    end: int


class Turn(msgspec.Struct, frozen=True):
    """A turn of one speaker."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    """Of the system and of users."""
    pieces: tuple[Piece, ...] = ()
    results: tuple[Result, ...] = ()
    name: str = ""
    """Of a user."""

    @property
    def features(self) -> set[Feature]:
        """Its features that only some formats have."""
        kinds = {piece.kind for piece in self.pieces}
        found: dict[Feature, bool] = {
            "signatures": any(piece.signature for piece in self.pieces if piece.kind == "thinking"),
            "redacted": "redacted" in kinds,
            "errors": any(result.is_error for result in self.results),
            "names": bool(self.name),
        }
        return {name for name, is_there in found.items() if is_there}

    def drop_signatures(self) -> Turn:
        """The same turn without signatures of thoughts."""
        pieces = (
            msgspec.structs.replace(piece, signature="") if piece.kind == "thinking" else piece for piece in self.pieces
        )
        return msgspec.structs.replace(self, pieces=tuple(pieces))


def list_turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """The turns of a conversation: messages of the model in a row are one, and calls are numbered.

    Raises FormatError for pictures, files and other parts that no format has, and for results without a call.
    """
    turns: list[Turn] = []
    calls: dict[str, Piece] = {}
    for message in messages:
        match message.role:
            case "assistant":
                pieces = list(_list_pieces(message.parts, calls))
                if turns and turns[-1].role == "assistant":
                    turns[-1] = Turn("assistant", pieces=_join((*turns[-1].pieces, *pieces)))
                elif pieces:
                    turns.append(Turn("assistant", pieces=_join(pieces)))
            case "tool":
                found = tuple(_read_result(part, calls) for part in message.parts)
                if turns and turns[-1].role == "tool":
                    turns[-1] = Turn("tool", results=(*turns[-1].results, *found))
                else:
                    turns.append(Turn("tool", results=found))
            case "system" | "user":
                text = "".join(_read_text(part) for part in message.parts)
                turns.append(Turn(message.role, text, name=message.name or "" if message.role == "user" else ""))
    return tuple(_sort_results(turns))


def _list_pieces(parts: Iterable[Part], calls: dict[str, Piece]) -> Iterator[Piece]:
    for part in parts:
        match part:
            case Thought() if part.seals:
                yield from _list_sealed(part)
            case Thought() | Commentary() | Text():
                kind: Said = "text"
                if not isinstance(part, Text):
                    kind = "thinking" if isinstance(part, Thought) else "commentary"
                if text := part.text.strip():
                    yield Piece(kind, text)
            case ToolCall():
                if part.raw_arguments is not None:
                    raise FormatError("a call has arguments that are not a JSON object")
                arguments = json.dumps(part.arguments, ensure_ascii=False, sort_keys=True)
                calls[part.id] = call = Piece("call", arguments, part.name, f"call_{len(calls) + 1}")
                yield call
            case _:
                raise FormatError(f"it has a part of the type {type(part).__name__}")


def _list_sealed(thought: Thought) -> Iterator[Piece]:
    """A thought with its signature, or one that only the provider can read."""
    seals = {seal.kind: seal.value for seal in thought.seals}
    if "redacted" in seals:
        yield Piece("redacted", "", signature=seals["redacted"])
    elif set(seals) != {"signature"}:
        raise FormatError("it has a thought with a token of its provider")
    elif text := thought.text.strip():
        yield Piece("thinking", text, signature=seals["signature"])


def _join(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Join texts in a row: no format shows where one ends and the next begins."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.kind == joined[-1].kind in ("text", "commentary"):
            joined[-1] = Piece(piece.kind, f"{joined[-1].text}\n\n{piece.text}")
        else:
            joined.append(piece)
    return tuple(joined)


def _read_result(part: Part, calls: dict[str, Piece]) -> Result:
    if not isinstance(part, ToolResult) or not isinstance(part.content, str):
        raise FormatError("a result is not text")
    call = calls.get(part.call_id)
    if call is None:
        raise FormatError("a result has no call")
    return Result(call.name, part.content, call.call_id, bool(part.is_error))


def _read_text(part: Part) -> str:
    if not isinstance(part, Text):
        raise FormatError(f"it has a part of the type {type(part).__name__}")
    return part.text


def _sort_results(turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns with results in the order of their calls: some formats have no ids."""
    for turn in turns:
        if turn.role != "tool":
            yield turn
            continue
        yield Turn("tool", results=tuple(sorted(turn.results, key=lambda each: int(each.call_id[5:]))))


def split_messages(turn: Turn, order: Sequence[Said]) -> Iterator[tuple[Piece, ...]]:
    """The pieces of a turn as messages in which they have this order, and one text of each kind but calls."""
    held: list[Piece] = []
    for piece in turn.pieces:
        if held:
            place, last = order.index(piece.kind), order.index(held[-1].kind)
            if place < last or (place == last and piece.kind != "call"):
                yield tuple(held)
                held = []
        held.append(piece)
    if held:
        yield tuple(held)


def make_call(name: object, arguments: object, call_id: str) -> ToolCall:
    """Read a call. Raises FormatError if it is not one."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            raise FormatError("the arguments of a call are not JSON") from None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise FormatError("a call has no name, or its arguments are not an object")
    return ToolCall(call_id, name, arguments)


class CallNumbers:
    """Gives calls ids, and results the ids of their calls, for formats that have none."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def add(self, name: str) -> str:
        """The id of the next call."""
        self._count += 1
        call_id = f"call_{self._count}"
        self._open.append((call_id, name))
        return call_id

    def take(self, name: str | None = None) -> str:
        """The id of the call that the next result, of a tool with this name, belongs to. Raises FormatError if none."""
        for place, (call_id, called) in enumerate(self._open):
            if name is None or name == called:
                del self._open[place]
                return call_id
        raise FormatError("a result has no call")
