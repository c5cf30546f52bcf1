"""What the plan of a real request leaves out of a history, told for the file: foreign and unsigned thinking, seals.

The plan decides; this module says which part of the file a decision is about, whether it would be refused, and takes it
out. Not here: the decisions (history/plan).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec

from asides.history.diagnosis.chat_rules import FieldRules
from asides.history.diagnosis.draft import Draft, Piece
from asides.history.diagnosis.findings import Effect, Fact
from asides.history.diagnosis.shape import PlanView
from asides.history.diagnosis.shape_anthropic import BLOCK_DIALECTS
from asides.history.diagnosis.shape_chat import THOUGHT_FIELDS
from asides.history.diagnosis.shape_gemini import SIGNATURES
from asides.history.plan import Decision, Plan
from asides.history.replay import BY_RULE, NOT_REPLAYABLE, NOT_SAVED, OTHER_ACCOUNT, OTHER_DIALECT, OTHER_HOST
from asides.providers.provider import Target
from asides.values.messages import Message
from asides.values.thinking import Thought

ANOTHER = "https://another-account.invalid"
"""The address in the origin of thinking of which the caller says that another account made it."""
# Of these, the plan sends nothing, and a server that gets them refuses nothing.
_NEVER_REFUSED = (NOT_SAVED, NOT_REPLAYABLE, OTHER_DIALECT)

_KINDS = {
    "signature": "thinking_signature_invalid",
    "redacted": "thinking_signature_invalid",
    "reasoning_details": "thinking_signature_invalid",
    "encrypted": "encrypted_reasoning_invalid",
    "item": "item_not_persisted",
    "thought_signature": "thought_signature_invalid",
}
_CONTAINERS = {"openai_chat": ("extra_content", "thought_signature"), "gemini": SIGNATURES}


class PlanRules:
    """The decisions of one plan, applied to the draft."""

    def __init__(self, draft: Draft, target: Target, view: PlanView) -> None:
        self.draft = draft
        self.target = target
        self.view = view
        # A format that is not the model's own is converted by another program, which sends no foreign state.
        blocks = draft.format == "anthropic" and target.dialect in BLOCK_DIALECTS
        self.native = blocks or draft.format in (target.dialect, "asides")

    def apply(self, planned: Plan, thinking: Any) -> None:
        """Report and repair what the plan leaves out."""
        gone: set[tuple[int, int]] = set()
        for decision in planned.decisions:
            if decision.action == "drop" and decision.message < len(self.view.pieces):
                gone.add((decision.message, decision.part))
                pieces = self.view.pieces[decision.message]
                if decision.part < len(pieces):
                    self._apply(decision, pieces[decision.part])
        if self.draft.format == "openai_chat" and self.target.dialect == "openai_chat":
            rules = FieldRules(self.draft, self.target, thinking)
            for number, message in enumerate(self.view.messages):
                if message.role == "assistant":
                    kept = tuple(part for place, part in enumerate(message.parts) if (number, place) not in gone)
                    rules.fix(self.view.turns[number], Message("assistant", kept))

    def _apply(self, decision: Decision, piece: Piece) -> None:
        part = self._find_part(decision)
        if decision.what == "thought" and piece.kind != "thought":
            return  # tags in a text, which is the author's
        if decision.why == OTHER_HOST and _is_of_another_account(part):
            decision = msgspec.structs.replace(decision, why=OTHER_ACCOUNT)
        kind, effect = self._judge(decision, part)
        fact = Fact(decision.since, decision.source)
        if effect == "ignored":
            detail = f"the {decision.what} does not go back: {decision.why}"
            self.draft.report(None, piece.node, detail, "", field=_name_field(piece), effect=effect, fact=fact)
            return
        detail = f"the {decision.what} cannot go back: {decision.why}"
        is_seal = decision.what == "seal"
        repair = "its signature is left out" if is_seal else "it is left out"
        self.draft.report(kind, piece.node, detail, repair, field=_name_field(piece))
        if is_seal:
            self._remove_seals(piece)
        else:
            self.draft.remove_piece(piece)

    def _find_part(self, decision: Decision) -> Any:
        return self.view.messages[decision.message].parts[decision.part]

    def _judge(self, decision: Decision, part: Any) -> tuple[str | None, Effect]:
        seals = [seal for seal in getattr(part, "seals", ()) if seal.value or seal.entry]
        kinds = [_KINDS[seal.kind] for seal in seals if seal.kind in _KINDS]
        kind = kinds[0] if kinds else None
        why = decision.why
        if why in _NEVER_REFUSED or not self.native:
            return None, "ignored"
        if why.startswith(BY_RULE):
            unsigned = isinstance(part, Thought) and self.target.dialect in BLOCK_DIALECTS
            if unsigned and why.endswith("sealed"):
                return "thinking_signature_missing", "refused"
            name = (self.target.family or self.target.model).lower()
            refuses = any(fnmatchcase(name, glob) for glob in self.target.quirks.refuses_thinking)
            return ("reasoning_field_rejected", "refused") if refuses else (None, "ignored")
        if decision.what == "part":
            return None, "ignored"
        if kind == "encrypted_reasoning_invalid" and why == OTHER_ACCOUNT:
            kind = "encrypted_reasoning_wrong_account"
        if kind is None and self.draft.format == "openai_chat":
            return None, "ignored"  # text without a seal, which any host reads
        return kind or "thinking_signature_invalid", "refused"

    def _remove_seals(self, piece: Piece) -> None:
        node = piece.node
        if self.draft.format == "asides":
            node.pop("seals", None)
        elif self.draft.format == "openai_responses":
            node.pop("id", None)
        for name in _CONTAINERS.get(self.draft.format, ()):
            node.pop(name, None)
        self.draft.touch(node)


def _is_of_another_account(part: Any) -> bool:
    origins = (getattr(part, "origin", None), *(seal.origin for seal in getattr(part, "seals", ())))
    return any(origin is not None and origin.endpoint == ANOTHER for origin in origins)


def _name_field(piece: Piece) -> str:
    """The field that a finding is about, where the part is a field of its message."""
    if piece.holder is not None:
        return ""
    return next((name for name in THOUGHT_FIELDS if name in piece.fields), next(iter(piece.fields), ""))
