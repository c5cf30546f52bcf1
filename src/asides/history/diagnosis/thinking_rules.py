"""Rules about thinking as it is on the wire, where our encoders would repair it in silence: blocks, items, signatures.

Not here: the thinking of chat completions (chat_rules), and which thoughts go back (plan_rules).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

import msgspec

from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import add_signature
from asides.dialects.openai_chat.wire import read_signature
from asides.history.diagnosis.draft import Node, Piece, Turn
from asides.history.diagnosis.findings import FACTS, Fact
from asides.history.diagnosis.shape import Shape
from asides.history.diagnosis.shape_anthropic import BLOCK_DIALECTS
from asides.history.diagnosis.shape_gemini import SIGNATURES, set_placeholder
from asides.providers.provider import Target

_LONGEST_ID = 64
_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}


def fix_thinking(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Repair the thinking of this format."""
    match shape.draft.format:
        case "anthropic" if target.dialect in BLOCK_DIALECTS:
            _fix_blocks(shape, turns, target)
        case "openai_responses" if target.dialect == "openai_responses":
            _ItemRules(shape, target).fix(turns)
        case "gemini" | "openai_chat" if target.rule.signed_calls:
            _sign_calls(shape, turns, target)
        case _:
            pass


# --- blocks -----------------------------------------------------------------------------------------------------------


def _fix_blocks(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    draft = shape.draft
    rule = target.provider.replay_rule(target.family or target.model)
    asked: Any = (draft.fields or {}).get("thinking")
    shown = asked.get("display") if isinstance(asked, dict) else None
    omits = (shown or target.rule.display) == "omitted"
    seen: set[str] = set()
    for turn in turns:
        kept: list[Piece] = []
        for piece in turn.pieces:
            if piece.kind != "thought":
                kept.append(piece)
                continue
            fault = _find_fault(
                piece.node, turn, seen, sealed=rule.when == "sealed", omits=omits, strict=draft.is_request
            )
            if fault is not None:
                draft.report(fault[0], piece.node, fault[1], "the block is left out")
                draft.remove_piece(piece)
                continue
            if piece.node["type"] == "thinking" and not isinstance(piece.node.get("thinking"), str):
                draft.report("thinking_text_missing", piece.node, "a thinking block has no text field", "it is empty")
                piece.node["thinking"] = ""
                draft.touch(piece.node)
            kept.append(piece)
        if turn.role != "assistant":
            continue
        while kept and kept[-1].kind == "thought":
            detail = "a message ends with thinking, as after a reply that broke off"
            draft.report("thinking_final_block", kept[-1].node, detail, "the block is left out")
            draft.remove_piece(kept.pop())
        if target.rule.begins_with_thinking:
            _lead_with_thinking(shape, kept)
    if draft.is_request and _is_off(asked, target):
        for piece in _list_open_thoughts(turns):
            if not draft.is_removed(piece.node):
                detail = "the current turn has thinking, and the request turns thinking off"
                draft.report("thinking_present_while_disabled", piece.node, detail, "the block is left out")
                draft.remove_piece(piece)


def _list_open_thoughts(turns: Sequence[Turn]) -> list[Piece]:
    """The thoughts of the turn that the model goes on with: of its last message, and of those before it that called
    tools.
    """
    found: list[Piece] = []
    for turn in reversed(turns):
        if _begins_turn(turn):
            break
        found += turn.list_pieces("thought")
    return found


def _is_off(asked: Any, target: Target) -> bool:
    kind = asked.get("type") if isinstance(asked, dict) else None
    return kind == "disabled" or (kind is None and target.rule.thinking != "always" and target.rule.default == "off")


def _find_fault(
    block: Node, turn: Turn, seen: set[str], *, sealed: bool, omits: bool, strict: bool
) -> tuple[str, str] | None:
    """Why a block cannot stay. `omits`: the model's thinking has no text, so a block that lost it can get it back."""
    if turn.role != "assistant":
        return "reasoning_field_rejected", "thinking belongs to messages of the model"
    redacted = block["type"] == "redacted_thinking"
    seal = block.get("data" if redacted else "signature")
    if not isinstance(seal, str) or not seal.strip():
        if redacted:
            return "thinking_signature_missing", "a redacted thinking block has no data"
        if sealed or not isinstance(block.get("thinking"), str):
            return "thinking_signature_missing", "a thinking block has no signature, as after a reply that broke off"
        return None
    if not redacted and _has_lost_text(block.get("thinking"), omits=omits, strict=strict):
        return "thinking_text_missing", "a thinking block has lost its text, which its signature covers"
    if seal in seen:
        return "thinking_block_modified", "the signature of this block is that of an earlier one"
    seen.add(seal)
    return None


def _has_lost_text(text: Any, *, omits: bool, strict: bool) -> bool:
    """Whether the text is gone that a signature covers. An empty one may be right where requests are not known."""
    if not isinstance(text, str):
        return not omits
    return (text == "" and strict and not omits) or (text != "" and not text.strip())


def _lead_with_thinking(shape: Shape, pieces: list[Piece]) -> None:
    first = next((number for number, piece in enumerate(pieces) if piece.kind == "thought"), 0)
    if not first:
        return
    end = first
    while end < len(pieces) and pieces[end].kind == "thought":
        end += 1
    holder = pieces[first].holder
    if holder is None or pieces[0].holder is not holder:
        return
    detail = "a message with thinking does not begin with it"
    shape.draft.report("thinking_order", pieces[first].node, detail, "the block is first")
    moved = {id(piece.node) for piece in pieces[first:end]}
    holder.sort(key=lambda node: id(node) not in moved)
    shape.draft.touch(holder)


# --- items ------------------------------------------------------------------------------------------------------------


class _ItemRules:
    """The rules of items. An endpoint that encrypts reasoning checks more than its clones do."""

    def __init__(self, shape: Shape, target: Target) -> None:
        self.draft = shape.draft
        fields = shape.draft.fields or {}
        self.strict = target.quirks.encrypted_reasoning
        self.may_think = target.rule.thinking != "never"
        self.continues = fields.get("previous_response_id") is not None or fields.get("conversation") is not None
        self.may_be_stored = self.continues or (shape.draft.is_request and fields.get("store") is not False)
        self.seen: set[str] = set()
        self.items: dict[str, Node] = {}
        """The items so far that have an id, by that."""
        self.followed: set[str] = set()
        """The ids of reasoning items that have a follower somewhere in the file."""

    def fix(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            before = ""
            for piece, after in pairwise(turn.pieces):
                # Between two reasoning items, one is not at its place.
                if piece.kind == "thought" and after.kind != "thought" and before != "thought":
                    self.followed.add(str(piece.node.get("id")))
                before = piece.kind
        for turn in turns:
            self._drop_lost_copies(turn)
            kept = [piece for piece in turn.pieces if self._keep(piece)]
            if turn.role != "assistant":
                continue
            while kept and kept[-1].kind == "thought":
                detail = "nothing of the model follows a reasoning item"
                self.draft.report("reasoning_item_orphaned", kept[-1].node, detail, "the item is left out")
                self.draft.remove_piece(kept.pop())
            if self.strict and self.may_think and not self.continues:
                self._free_followers(kept)

    def _drop_lost_copies(self, turn: Turn) -> None:
        """Of a reasoning item that is there twice, drop the copy that is not at its place."""
        for before, piece, after in zip([None, *turn.pieces], turn.pieces, [*turn.pieces[1:], None], strict=False):
            given = piece.node.get("id")
            follows = before is not None and before.kind == "thought"
            if piece.kind != "thought" or (after is not None and after.kind != "thought" and not follows):
                continue
            if self.strict and given is not None and str(given) in self.followed:
                detail = "the item is elsewhere too, with what follows it"
                self.draft.report("reasoning_item_duplicate", piece.node, detail, "this copy is left out")
                self.draft.remove_piece(piece)
        turn.pieces = [piece for piece in turn.pieces if not self.draft.is_removed(piece.node)]

    def _keep(self, piece: Piece) -> bool:
        """Repair an item; whether it stays."""
        item, draft = piece.node, self.draft
        kind = item.get("type", "item_reference" if item.keys() == {"id"} else "message")
        if kind == "item_reference":
            if self.may_be_stored or not self.strict:
                return True
            draft.report("item_not_persisted", item, "nothing is stored that this could refer to", "it is left out")
            draft.remove_piece(piece)
            return False
        if not self._check_id(item, str(kind)):
            draft.remove_piece(piece)
            return False
        if kind == "reasoning":
            return self._keep_reasoning(piece)
        return True

    def _check_id(self, item: Node, kind: str) -> bool:
        given = item.get("id")
        if given is None or not self.strict:
            return True
        prefix = _PREFIXES.get(kind)
        is_named = isinstance(given, str) and (prefix is None or given.startswith(prefix))
        has_state = kind != "reasoning" or bool(item.get("encrypted_content"))
        if not is_named or len(str(given)) > _LONGEST_ID:
            detail = f"its id must begin with {prefix} and have at most {_LONGEST_ID} characters"
            self.draft.report("reasoning_item_id_invalid", item, detail, _describe(has_state))
        elif given in self.seen:
            if kind == "reasoning":
                self.draft.report("reasoning_item_duplicate", item, "an earlier item has its id", "it is left out")
                return False
            if item == self.items.get(str(given)):
                self.draft.report("reasoning_item_duplicate", item, "the item is there twice", "it is left out")
                return False
            self.draft.report("reasoning_item_duplicate", item, "an earlier item has its id", "it has no id")
        else:
            self.seen.add(str(given))
            self.items[str(given)] = dict(item)
            return True
        if has_state:
            del item["id"]
            self.draft.touch(item)
        return has_state

    def _keep_reasoning(self, piece: Piece) -> bool:
        item, draft = piece.node, self.draft
        if not isinstance(item.get("summary"), list):
            fact = FACTS["summary_missing"]
            draft.report(None, item, "a reasoning item must have a summary", "its summary is empty", fact=fact)
            item["summary"] = []
            draft.touch(item)
        if self.strict and item.get("content"):
            detail = "the text of reasoning is not taken back"
            draft.report("reasoning_content_nonempty", item, detail, "its content is empty", field="content")
            item["content"] = []
            draft.touch(item)
        if self.strict and not item.get("encrypted_content") and not self.may_be_stored:
            detail = "a reasoning item has an id alone, and nothing is stored that it could refer to"
            draft.report("item_not_persisted", item, detail, "the item is left out")
            draft.remove_piece(piece)
            return False
        return True

    def _free_followers(self, kept: list[Piece]) -> None:
        """Remove the ids of items that have no reasoning before them: an id binds an item to it."""
        for piece in takewhile(lambda piece: piece.kind != "thought", kept):
            kind = str(piece.node.get("type", "message"))
            if kind in _PREFIXES and piece.node.get("id") is not None:
                detail = "its id binds it to a reasoning item that is not there, if the model reasoned before it"
                self.draft.report("reasoning_item_missing", piece.node, detail, "it has no id", field="id")
                del piece.node["id"]
                self.draft.touch(piece.node)


def _describe(has_state: bool) -> str:
    return "it has no id" if has_state else "the item is left out"


# --- signatures on calls ----------------------------------------------------------------------------------------------


def _sign_calls(shape: Shape, turns: Sequence[Turn], target: Target) -> None:
    """Put the documented placeholder on the first call of each step of the current turn, where it has no signature."""
    draft = shape.draft
    if turns and turns[-1].role == "assistant" and not draft.is_request:
        return  # the next question ends this turn
    start = max((number for number, turn in enumerate(turns) if _begins_turn(turn)), default=-1)
    for turn in turns[start + 1 :]:
        call = next(iter(turn.list_pieces("call")), None) if turn.role == "assistant" else None
        if call is None or _has_signature(call.node, draft.format):
            continue
        fact = Fact(target.rule.since, target.rule.source)
        detail = f"the call of {call.name} in the current turn has no signature"
        draft.report("thought_signature_missing", call.node, detail, "the documented placeholder is there", fact=fact)
        if draft.format == "gemini":
            set_placeholder(call.node)
        else:
            call.node["extra_content"] = add_signature(call.node.get("extra_content"), STAND_IN)
        draft.touch(call.node)


def _begins_turn(turn: Turn) -> bool:
    return turn.role == "user" and any(piece.kind != "result" for piece in turn.pieces)


def _has_signature(node: Node, format_name: str) -> bool:
    if format_name == "gemini":
        return any(isinstance(node.get(name), str) and node[name] for name in SIGNATURES)
    if node.get("thought_signature"):
        return True
    carrier = node.get("extra_content")
    return carrier is not None and bool(read_signature(msgspec.json.encode(carrier)))
