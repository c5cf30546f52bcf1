"""`diagnose(history, model) → Diagnosis`: what a model would refuse of a history, and the repaired history. Pure.

The rules run over a copy of the document until nothing changes any more, so a repaired history is sound. What goes back
is decided by the plan of a real request. Not here: the rules, and the files (cli/doctor).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from asides.history.diagnosis import order_rules, tool_rules
from asides.history.diagnosis.chat_rules import fix_details, fix_messages
from asides.history.diagnosis.draft import Draft, Turn
from asides.history.diagnosis.findings import Diagnosis, Finding
from asides.history.diagnosis.open_history import open_draft
from asides.history.diagnosis.plan_rules import ANOTHER, PlanRules
from asides.history.diagnosis.setting_rules import add_tools, fix_settings, read_settings
from asides.history.diagnosis.shape import Shape, build_messages
from asides.history.diagnosis.thinking_rules import fix_thinking
from asides.history.objects.read_objects import open_history
from asides.history.plan import plan
from asides.providers.endpoint import CHAT, RESPONSES, EndpointRequest, choose_endpoint
from asides.providers.find import find_provider, find_rule, find_target
from asides.providers.learned_rules import recall
from asides.providers.provider import Provider, Target
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider
from asides.values.messages import Message, Prompt
from asides.values.parts import Text
from asides.values.thinking import Origin, Thinking, ThinkingSetting, read_thinking

__all__ = ["Diagnosis", "Finding", "diagnose"]

_MOST_ROUNDS = 20
_SHORTEST_DATE = 6


def diagnose(
    history: Any,
    model: str,
    *,
    origin: str | None = None,
    other_account: bool = False,
    format_name: str | None = None,
    thinking: ThinkingSetting = None,
    base_url: str | None = None,
    providers: Sequence[Provider] = (),
) -> Diagnosis:
    """Find what a model would refuse of a history, part by part, and repair it. Sends nothing and needs no key.

    `history` is a list of messages as OpenAI, Anthropic, Responses or Gemini have them, a whole request (then its
    settings are checked too), a saved conversation, our own messages, or objects of other libraries. `model` is
    provider:model. `origin` names the model that made the thinking, where the history does not; `other_account`: it
    was made in another account.
    `thinking` is how the next request thinks, where the history has no settings. `format_name` wins over detection.
    """
    found = _find_model(model, base_url, providers)
    draft = open_draft(open_history(history, is_named=format_name is not None), format_name, found.provider.dialect)
    target = _choose_dialect(found, draft.format)
    made_by = _read_origin(origin, target, providers, other_account=other_account)
    _Examination(draft, target, made_by, read_thinking(thinking)[0]).run()
    name = f"{target.provider.name}:{target.model}"
    repaired = draft.finish()
    # In the order of the file, with the settings at the end. Findings about one message stay in the order of the rules.
    findings = sorted(draft.findings, key=lambda found: (found.message is None, found.message or 0))
    return Diagnosis(name, draft.format, tuple(findings), repaired, tuple(draft.notes))


# --- the model --------------------------------------------------------------------------------------------------------


def _find_model(model: str, base_url: str | None, rows: Sequence[Provider]) -> Target:
    try:
        return find_target(model, base_url=base_url, rows=rows)
    except (UnknownModel, UnknownProvider):
        raise
    except ConfigError:
        # Only the address is missing, and nothing is sent there.
        provider, _, name = model.strip().partition(":")
        row = find_provider(provider, rows)
        return Target(row, name, row.base_url, find_rule(row, name, foreign=False))


def _choose_dialect(found: Target, format_name: str) -> Target:
    """The target in the dialect of the file, if the provider speaks it; else in the one that a call would use."""
    row = found.provider.with_dialect(format_name)
    chosen = format_name
    if row is None:
        spoken = found.provider.dialect
        if found.provider.chooses:
            spoken = choose_endpoint(found, EndpointRequest()).dialect
        row, chosen = found.provider.with_dialect(spoken), spoken
    if row is None or chosen not in (CHAT, RESPONSES, row.dialect):
        return found
    rule = find_rule(row, found.family or found.model, foreign=found.foreign)
    return msgspec.structs.replace(found, provider=row, rule=rule, chosen_dialect=chosen)


def _read_origin(origin: str | None, target: Target, rows: Sequence[Provider], *, other_account: bool) -> Origin | None:
    if origin is not None:
        made_by = _find_model(origin, None, rows).origin
    elif other_account:
        made_by = target.origin
    else:
        return None
    return msgspec.structs.replace(made_by, endpoint=ANOTHER) if other_account else made_by


def _make_shape(draft: Draft) -> Shape:
    match draft.format:
        case "openai_chat":
            from asides.history.diagnosis.shape_chat import ChatShape

            return ChatShape(draft)
        case "anthropic":
            from asides.history.diagnosis.shape_anthropic import AnthropicShape

            return AnthropicShape(draft)
        case "openai_responses":
            from asides.history.diagnosis.shape_responses import ResponsesShape

            return ResponsesShape(draft)
        case "gemini":
            from asides.history.diagnosis.shape_gemini import GeminiShape

            return GeminiShape(draft)
        case "asides":
            from asides.history.diagnosis.shape_saved import SavedShape

            shape = SavedShape(draft)
            shape.check()
            return shape


# --- the rules, round after round -------------------------------------------------------------------------------------


class _Examination:
    """Runs all rules over a draft until a round changes nothing."""

    def __init__(self, draft: Draft, target: Target, made_by: Origin | None, thinking: Thinking) -> None:
        self.draft = draft
        self.made_by = made_by
        self.thinking = thinking
        self.shape = _make_shape(draft)
        learned = getattr(self.shape, "find_learned", None)
        self.target = target if learned is None else recall(target, learned())
        fields = draft.fields or {}
        self.continues = fields.get("previous_response_id") is not None or fields.get("conversation") is not None

    def run(self) -> None:
        """Repair the draft."""
        for _ in range(_MOST_ROUNDS):
            before = self.draft.changes
            turns = self.shape.read()
            for rule in self._list_rules():
                count = self.draft.changes
                rule(turns)
                if self.draft.changes != count:
                    turns = self.shape.read()
            if self.draft.changes == before:
                self._add_notes(turns)
                return
        raise ConfigError("the history cannot be repaired: each repair makes another one necessary. To do: report it.")

    def _add_notes(self, turns: list[Turn]) -> None:
        """Say what no file can show."""
        if self.continues:
            self.draft.notes.append(
                "previous_response_id or conversation continues what the server has stored, and no file shows whether "
                "it still has that. If it is refused: leave the field out and send the whole history"
            )
        thinks = any(turn.list_pieces("thought") for turn in turns)
        if thinks and self.target.rule.prefix_bound and self.draft.format == "anthropic":
            self.draft.notes.append(
                "this model binds its thinking to everything before it, and no file shows whether the past was "
                "changed. If it is refused: --other-account (other_account=True) leaves all thinking out"
            )

    def _list_rules(self) -> list[Callable[[list[Turn]], None]]:
        shape, target = self.shape, self.target
        is_ours = self.draft.format == "asides"

        def fix_pairs(turns: list[Turn]) -> None:
            tool_rules.fix_pairs(shape, turns, continues=self.continues)

        rules: list[Callable[[list[Turn]], None]] = [
            lambda turns: tool_rules.fix_arguments(shape, turns),
            lambda turns: fix_thinking(shape, turns, target),
            fix_pairs,
            lambda turns: tool_rules.put_results_first(shape, turns),
            lambda turns: order_rules.drop_blanks(shape, turns, target),
            lambda turns: order_rules.move_system(shape, turns, target),
            lambda turns: order_rules.begin_with_user(shape, turns, target),
            lambda turns: order_rules.add_bridges(shape, turns, target),
            self._follow_plan,
            lambda turns: add_tools(self.draft, turns, target),
            self._drop_bound_thoughts,
        ]
        if self.draft.format == "openai_chat":
            rules.insert(0, lambda turns: fix_details(self.draft, turns))
        if self.draft.format == target.dialect == CHAT:
            rules.insert(0, lambda turns: fix_messages(self.draft, turns, target))
        if not is_ours:
            rules.insert(rules.index(fix_pairs), lambda turns: tool_rules.fix_ids(shape, turns, target))
        return rules

    def _follow_plan(self, turns: list[Turn]) -> None:
        given = read_settings(self.draft, self.target)
        view = build_messages(turns, self._find_origin)
        messages = tuple(view.messages)
        prompt = given if given is not None else Prompt((), thinking=self._assume_thinking())
        if given is None and messages and messages[-1].role == "assistant":
            messages = (*messages, Message("user", (Text(order_rules.CONTINUE),)))  # the next question
        prompt = msgspec.structs.replace(prompt, messages=messages)
        planned = plan(prompt, self._without_headers(), on_conflict="adjust")
        PlanRules(self.draft, self.target, view).apply(planned, planned.prompt.thinking)
        if given is not None:
            fix_settings(self.shape, turns, prompt, planned, self.target)
        elif any(notice.code == "thinking_paused" for notice in planned.notices):
            self._close_turn(turns)

    def _without_headers(self) -> Target:
        """The target, less what only a header allows: asides sends it, and no file shows whether others do."""
        if self.target.rule.interleaves != "by_beta":
            return self.target
        rule = msgspec.structs.replace(self.target.rule, interleaves="never")
        return msgspec.structs.replace(self.target, rule=rule)

    def _find_origin(self, turn: Turn) -> Origin | None:
        if self.made_by is not None or turn.role != "assistant":
            return self.made_by
        named = turn.model or str((self.draft.fields or {}).get("model") or "")
        own = self.target.origin
        if not named or self.draft.format == "asides" or named in (self.target.model, self.target.family):
            return None
        if _is_alias(named, self.target.model):
            return None
        return Origin(own.provider, own.endpoint, named.rpartition(":")[2] or named)

    def _assume_thinking(self) -> Thinking:
        """A history without settings goes with any of them, so it is checked for those that demand the most."""
        rule = self.target.rule
        if self.thinking.asked or rule.budget is None or not rule.begins_with_thinking:
            return self.thinking
        return Thinking(budget=rule.budget[0])

    def _close_turn(self, turns: list[Turn]) -> None:
        """End a turn of tool calls that has lost its thinking, so that the next one can think."""
        draft, shape = self.draft, self.shape
        last = next((turn for turn in reversed(turns) if turn.role == "assistant"), turns[-1])
        detail = "the current turn calls tools and does not begin with its thinking, which a thinking budget demands"
        if turns[-1].role == "user" and not turns[-1].list_pieces("result"):
            repair = "the turn is closed: a short message of the model is before the question"
            draft.report("thinking_must_lead", last.nodes[0], detail, repair)
            place = shape.find_item(turns, len(turns) - 1)
            draft.insert(draft.items, place, shape.make_text("assistant", order_rules.BRIDGE))
            return
        repair = "the turn is closed: a short message of the model and one of the user follow it"
        draft.report("thinking_must_lead", last.nodes[0], detail, repair)
        draft.insert(draft.items, len(draft.items), shape.make_text("assistant", order_rules.BRIDGE))
        draft.insert(draft.items, len(draft.items), shape.make_text("user", order_rules.CONTINUE))

    def _drop_bound_thoughts(self, turns: list[Turn]) -> None:
        """Drop the thinking behind a repair, for models that bind it to everything before it."""
        draft = self.draft
        if not self.target.rule.prefix_bound or draft.format == "asides" or not draft.changed:
            return
        is_changed = False
        for turn in turns:
            for piece in turn.list_pieces("thought"):
                if is_changed and turn.role == "assistant":
                    detail = "it is bound to the messages before it, which the repair changes"
                    draft.report("thinking_prefix_mismatch", piece.node, detail, "it is left out")
                    draft.remove_piece(piece)
            is_changed = is_changed or any(self._has_changed(node) for node in turn.nodes)

    def _has_changed(self, node: Any) -> bool:
        if id(node) in self.draft.changed:
            return True
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return any(self._has_changed(each) for each in inner if isinstance(each, (dict, list)))


def _is_alias(named: str, model: str) -> bool:
    """Whether two names differ only in a date or a maker before it: claude-opus-4-5 and claude-opus-4-5-20251101."""
    one, other = named.rpartition("/")[2].rpartition(":")[2], model.rpartition("/")[2]
    longer, shorter = sorted((one, other), key=len, reverse=True)
    rest = longer.removeprefix(shorter)
    date = rest.lstrip("-@")
    return one == other or (rest != longer and date.isdecimal() and len(date) >= _SHORTEST_DATE)
