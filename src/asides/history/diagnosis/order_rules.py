"""Rules about messages as a whole: none is empty, the user begins, the system prompt has its place, and who ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asides.dialects.message_encoder import OPENING
from asides.history.diagnosis.draft import Node, Turn
from asides.history.diagnosis.findings import Fact
from asides.history.diagnosis.shape import Shape
from asides.history.diagnosis.shape_anthropic import BLOCK_DIALECTS
from asides.providers.provider import Target

BRIDGE = "Noted."
CONTINUE = "Continue."


def drop_blanks(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Drop blank texts where they are refused, and messages that have nothing."""
    draft = shape.draft
    for number, turn in enumerate(turns):
        is_last = number == len(turns) - 1
        if draft.format == "anthropic" and target.dialect in BLOCK_DIALECTS:
            for piece in turn.list_pieces("text"):
                if piece.holder is not None and not str(piece.node.get("text") or "").strip():
                    draft.report("empty_content", piece.node, "a text block is blank", "it is left out")
                    draft.remove_piece(piece)
                    turn.pieces.remove(piece)
        if (
            turn.role == "system"
            or (turn.role == "tool" and turn.pieces)
            or not _is_blank(turn, thoughts_count=draft.format != "openai_chat")
        ):
            continue
        if turn.role == "user" and is_last and (draft.is_request or len(turns) == 1):
            if _needs_content(turn, shape, target):
                draft.report("empty_content", turn.nodes[0], "the last message is empty", f"it says {CONTINUE!r}")
                draft.insert(draft.items, len(draft.items), shape.make_text("user", CONTINUE))
                draft.remove(draft.items, turn.nodes[0])
            continue
        if turn.role == "user" and is_last and turn.pieces:
            continue  # the next question
        what = "an empty message"
        if turn.list_pieces("thought"):
            what = "a message with thinking and nothing else"
        if not any(id(value) in draft.changed for value in turn.nodes[0].values()):  # else its last part was left out
            draft.report("empty_content", turn.nodes[0], f"{what} is refused", "it is left out")
        for node in turn.nodes:
            draft.remove(draft.items, node)
    if not draft.items:
        draft.insert(draft.items, 0, shape.make_text("user", CONTINUE))


def _needs_content(turn: Turn, shape: Shape, target: Target) -> bool:
    """Whether even the last message must say something."""
    return not turn.pieces or (shape.draft.format == "anthropic" and target.dialect in BLOCK_DIALECTS)


def _is_blank(turn: Turn, *, thoughts_count: bool) -> bool:
    """Whether a turn says nothing. Signed text counts, and thinking where it is a part of its own."""
    if any(piece.kind in ("call", "result", "other") for piece in turn.pieces):
        return False
    for piece in turn.list_pieces("text"):
        for part in piece.parts:
            if getattr(part, "seals", ()) or str(getattr(part, "text", "x")).strip():
                return False
    return not (thoughts_count and turn.list_pieces("thought"))


def begin_with_user(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Add a short message of the user before a conversation that begins with the model, where that is refused."""
    first = next((turn for turn in turns if turn.role != "system"), None)
    native = {"anthropic": BLOCK_DIALECTS, "gemini": ("gemini",)}.get(shape.draft.format, ())
    if first is None or first.role != "assistant" or target.dialect not in native:
        return
    detail = "a conversation begins with the user here"
    shape.draft.report("role_alternation", first.nodes[0], detail, "a short message of the user is before it")
    place = shape.find_item(turns, next(number for number, turn in enumerate(turns) if turn is first))
    shape.draft.insert(shape.draft.items, place, shape.make_text("user", OPENING))


def add_bridges(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Add a short message of the model between results and the user, for hosts that allow only the model there."""
    if shape.draft.format != "openai_chat" or target.quirks.after_results != "assistant":
        return
    if _ends_with_model(shape, turns):
        detail = "the last message is the model's, and this host does not continue it without prefix"
        repair = f"a message of the user follows: {CONTINUE!r}"
        shape.draft.report("prefill_unsupported", turns[-1].nodes[0], detail, repair)
        shape.draft.insert(shape.draft.items, len(shape.draft.items), shape.make_text("user", CONTINUE))
    for number in range(len(turns) - 1, 0, -1):
        if (turns[number - 1].role, turns[number].role) == ("tool", "user"):
            fact = Fact(target.provider.since, target.provider.docs)
            detail = "only the model may follow tool results here"
            repair = "a short message of the model is before it"
            shape.draft.report("role_alternation", turns[number].nodes[0], detail, repair, fact=fact)
            place = shape.find_item(turns, number)
            shape.draft.insert(shape.draft.items, place, shape.make_text("assistant", BRIDGE))


def _ends_with_model(shape: Shape, turns: Sequence[Turn]) -> bool:
    last = turns[-1]
    return shape.draft.is_request and last.role == "assistant" and not last.nodes[-1].get("prefix")


def move_system(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Move system messages out of a list that takes none: into the field of the request, or to the user."""
    draft = shape.draft
    if draft.format != "anthropic" or target.dialect not in BLOCK_DIALECTS:
        return
    for turn in turns:
        if turn.role != "system":
            continue
        node = turn.nodes[0]
        detail = "the list has no system messages; the system prompt is a field of its own"
        if draft.fields is None:
            draft.report("system_position", node, detail, "it is a message of the user")
            node["role"] = "user"
            draft.touch(node)
            continue
        draft.report("system_position", node, detail, "it is in the field system")
        _add_system(draft.fields, node.get("content"))
        draft.remove(draft.items, node)
        draft.changed |= {id(item) for item in draft.items}


def _add_system(fields: Node, content: Any) -> None:
    blocks = [
        {"type": "text", "text": text} if isinstance(text, str) else text
        for given in (fields.get("system"), content)
        for text in (given if isinstance(given, list) else [given])
        if text
    ]
    texts = [block.get("text") for block in blocks if block.keys() == {"type", "text"}]
    fields["system"] = "\n\n".join(map(str, texts)) if len(texts) == len(blocks) else blocks
