"""`Shape`: how one format holds turns, calls and results, for rules that serve every format; and `build_messages`.

Not here: the formats (shape_*).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import msgspec

from asides.dialects.gemini.import_contents import PLACEHOLDERS
from asides.history.diagnosis.draft import Draft, Node, Piece, PieceKind, Turn, find_place, write_path
from asides.history.pair import CANCELLED
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Part, ToolCall, ToolResult
from asides.values.thinking import Origin, Thought

__all__ = ["CANCELLED", "PlanView", "Shape", "build_messages"]


class Shape:
    """The turns of a draft in one format. `read` is called again after each round of changes."""

    results_in_user_turns = False
    """Whether results are parts of a user's message."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def read(self) -> list[Turn]:
        """Read the turns as they are now."""
        raise NotImplementedError

    def make_result(self, call: Piece) -> Node:
        """Make the result of a call that has none: an error."""
        raise NotImplementedError

    def place_results(self, turns: Sequence[Turn], place: int, nodes: list[Node]) -> None:
        """Put results behind those that follow the turn at this place, before anything else."""
        at = self.find_item(turns, self.find_zone(turns, place))
        for number, node in enumerate(nodes):
            self.draft.insert(self.draft.items, at + number, node)

    def set_call_id(self, piece: Piece, new: str) -> None:
        """Give a call or a result another id."""
        raise NotImplementedError

    def make_text(self, role: str, text: str) -> Node:
        """Make a message of one text."""
        return {"role": role, "content": text}

    def read_arguments(self, call: Piece) -> Any:
        """The arguments of a call as the file has them."""
        raise NotImplementedError

    def set_arguments(self, call: Piece, arguments: dict[str, Any]) -> None:
        """Replace the arguments of a call."""
        raise NotImplementedError

    def takes_text_arguments(self) -> bool:
        """Whether arguments are JSON text; otherwise they are an object."""
        return False

    # --- for the formats --------------------------------------------------------------------------------------------

    def refuse(self, node: Any, problem: str) -> NoReturn:
        """Raise the error of a file that cannot be read."""
        place = find_place(self.draft.items, node)
        raise ConfigError(f"{write_path((self.draft.list_name, place))}: {problem}")

    def find_zone(self, turns: Sequence[Turn], place: int) -> int:
        """The place behind the turns that hold only results and follow the turn at this place."""
        end = place + 1
        while end < len(turns) and turns[end].role == "tool":
            end += 1
        return end

    def find_item(self, turns: Sequence[Turn], place: int) -> int:
        """The place in the list of the file at which the turn at this place begins."""
        nodes = (node for number in range(place, len(turns)) for node in turns[number].nodes)
        node = next((node for node in nodes if not self.draft.is_removed(node)), None)
        return len(self.draft.items) if node is None else self.draft.find_item(node)


def read_part(read: Callable[[], Sequence[Message]]) -> tuple[tuple[Part, ...], str]:
    """Import a part. Returns what it is, and the problem if it cannot be read."""
    try:
        messages = read()
    except ConfigError as problem:
        return (), str(problem)
    return tuple(part for message in messages for part in message.parts), ""


def make_piece(kind: PieceKind, node: Node, holder: list[Any] | None, parts: tuple[Part, ...], **more: Any) -> Piece:
    """Make a piece; calls and results get the id that our importer read."""
    for part in parts:
        if isinstance(part, ToolCall) and kind == "call":
            more.setdefault("call_id", part.id)
            more.setdefault("name", part.name)
        if isinstance(part, ToolResult) and kind == "result":
            more.setdefault("call_id", part.call_id)
    return Piece(kind, node, holder, parts=parts, **more)


# --- for the plan -----------------------------------------------------------------------------------------------------


class PlanView(msgspec.Struct):
    """A history as messages, and for each of their parts the piece of the file that it came from."""

    messages: list[Message]
    pieces: list[list[Piece]]
    turns: list[Turn]
    """The turn of each message."""


def build_messages(turns: Sequence[Turn], find_origin: Callable[[Turn], Origin | None]) -> PlanView:
    """Build the messages of a history. Thoughts and seals of unknown origin get the one found for their turn."""
    view = PlanView([], [], [])
    for turn in turns:
        origin = find_origin(turn)
        for role, pieces in _split(turn):
            flat = [(piece, part) for piece in pieces for part in piece.parts]
            parts = tuple(part if origin is None else _set_origin(part, origin) for _, part in flat)
            view.messages.append(Message(role, parts))  # type: ignore[arg-type]
            view.pieces.append([piece for piece, _ in flat])
            view.turns.append(turn)
    return view


def _split(turn: Turn) -> Iterator[tuple[str, list[Piece]]]:
    results = turn.list_pieces("result")
    if turn.role != "user" or not results:
        yield turn.role, turn.pieces
        return
    yield "tool", results
    if others := [piece for piece in turn.pieces if piece.kind != "result"]:
        yield "user", others


def _set_origin(part: Part, origin: Origin) -> Part:
    changes: dict[str, Any] = {}
    if seals := getattr(part, "seals", ()):
        changes["seals"] = tuple(
            seal
            if seal.origin is not None or seal.value in PLACEHOLDERS
            else msgspec.structs.replace(seal, origin=origin)
            for seal in seals
        )
    if isinstance(part, Thought) and part.origin is None:
        changes["origin"] = origin
    return msgspec.structs.replace(part, **changes) if changes else part
