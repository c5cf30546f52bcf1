"""Rules about the settings beside a history: thinking, sampling, the choice of tools, who speaks last.

The plan checks them as it checks a real request; each notice becomes a finding, and the setting gets the value that our
request would have. Not here: the checks (history/check).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides import dialects
from asides.history.diagnosis.draft import Draft, Node, Turn
from asides.history.diagnosis.findings import FACTS, Fact
from asides.history.diagnosis.order_rules import CONTINUE
from asides.history.diagnosis.shape import Shape
from asides.history.plan import Plan
from asides.providers.provider import Quirks, Target
from asides.values.errors import ConfigError, InvalidThinking
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Text

# Where each format has a setting. Hosts of chat completions have many fields for one thing.
_PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "openai_chat": {
        "thinking": ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget"),
        "max_tokens": ("max_completion_tokens", "max_tokens"),
        "tool_choice": ("tool_choice",),
    },
    "anthropic": {
        "thinking": ("thinking", "output_config.effort"),
        "max_tokens": ("max_tokens",),
        "tool_choice": ("tool_choice",),
        "stop": ("stop_sequences",),
    },
    "openai_responses": {
        "thinking": ("reasoning.effort",),
        "max_tokens": ("max_output_tokens",),
        "tool_choice": ("tool_choice",),
    },
    "gemini": {
        "thinking": ("generationConfig.thinkingConfig",),
        "max_tokens": ("generationConfig.maxOutputTokens",),
        "tool_choice": ("toolConfig",),
        "stop": ("generationConfig.stopSequences",),
        "temperature": ("generationConfig.temperature",),
        "top_p": ("generationConfig.topP",),
        "top_k": ("generationConfig.topK",),
        "presence_penalty": ("generationConfig.presencePenalty",),
        "frequency_penalty": ("generationConfig.frequencyPenalty",),
    },
}
_KINDS = {
    "thinking_unsupported": "thinking_unsupported_model",
    "thinking_cannot_stop": "thinking_cannot_disable",
    "form_adjusted": "between_tools_unsupported",
    "budget_mapped": "thinking_mode_unsupported",
    "budget_chosen": "adaptive_unsupported",
    "thinking_paused": "thinking_must_lead",
    "tool_choice_adjusted": "tool_choice_with_thinking",
    "prefill_adjusted": "prefill_unsupported",
}
# Notices that are no faults: values that we choose where the caller chose none.
_NO_FAULTS = frozenset({"max_tokens_chosen", "unknown_model"})
# What a program that converts the format of the file translates, too.
_TRANSLATED = frozenset({"effort_mapped", "budget_chosen", "budget_mapped", "form_adjusted"})

# Of OpenRouter's settings, these exclude each other: the first stays.
_EXCLUDING = (
    ("reasoning", "reasoning_effort"),
    ("reasoning", "include_reasoning"),
    ("reasoning.effort", "reasoning.max_tokens"),
)
_NO_TOOLS = "the history has tool calls, and the request defines no tools"
_TOOLS_DECLARED = "the tools of the history are declared"


def read_settings(draft: Draft, target: Target) -> Prompt | None:
    """The settings of a request as a prompt without messages; None if there are none, or they cannot be read.

    An amount of thinking that no model knows is a finding, and left out.
    """
    if not draft.is_request or draft.fields is None:
        return None
    _drop_second_amount(draft, target)
    body = {name: value for name, value in draft.fields.items() if name != draft.list_name}
    body.setdefault("model", "model")
    match draft.format:
        case "gemini":
            body.pop("model")
            body["contents"] = [{"role": "user", "parts": [{"text": "?"}]}]
        case "openai_responses":
            body["input"] = "?"
        case _:
            body["messages"] = [{"role": "user", "content": "?"}]
    try:
        dialect = dialects.find_dialect(draft.format)
        served = dialect.read(msgspec.json.encode(body), "/v1beta/models/model:generateContent")
    except ConfigError as problem:
        if isinstance(problem, InvalidThinking) and _mend_thinking(draft, target, str(problem)):
            return read_settings(draft, target)
        note = f"the settings beside the history were not checked: {problem}"
        if note not in draft.notes:
            draft.notes.append(note)
        return None
    return served.prompt


def _find_place(draft: Draft, setting: str) -> str:
    """The place of a setting in the file."""
    places = _PLACES.get(draft.format, {}).get(setting, (setting,))
    return next((place for place in places if _read(draft.fields or {}, place) is not None), setting)


def _mend_thinking(draft: Draft, target: Target, problem: str) -> bool:
    """Report an amount of thinking that nobody can read, and leave it out: of two amounts, all but one.

    Returns whether that changed anything. Where no efforts and no budgets are known, the words may be the host's own.
    """
    fields, rule = draft.fields or {}, target.rule
    given = [place for place in _list_amounts(draft, target) if _read(fields, place) is not None]
    if not given or not (rule.efforts or rule.budget):
        return False
    fact = Fact(rule.since, rule.source)
    if len(given) > 1:
        repair = f"{given[0]} stays alone"
        draft.report_setting("reasoning_params_conflict", given[1], problem, repair, fact)
        given = given[1:]
    else:
        is_budget = isinstance(_read(fields, given[0]), int)
        kind = "budget_out_of_range" if is_budget else "effort_unsupported_value"
        draft.report_setting(kind, given[0], problem, "it is left out, and the default of the model applies", fact)
    for place in given:
        _write(fields, place, None)
    draft.changes += 1
    return True


def _drop_second_amount(draft: Draft, target: Target) -> None:
    """Leave one amount of thinking where a gateway refuses two spellings of it, or an effort beside a budget."""
    fields = draft.fields or {}
    if draft.format != target.dialect or target.facts.ask_by != "reasoning_object":
        return
    for stays, goes in _EXCLUDING:
        if _read(fields, stays) is not None and _read(fields, goes) is not None:
            detail = f"{stays} and {goes} both set the amount of thinking"
            draft.report_setting("reasoning_params_conflict", goes, detail, f"{stays} stays alone")
            _write(fields, goes, None)
            draft.changes += 1


def _list_amounts(draft: Draft, target: Target) -> tuple[str, ...]:
    """Where a file of this format may say how much to think. The first is what stays of two."""
    if draft.format != "gemini":
        return _PLACES.get(draft.format, {}).get("thinking", ())
    names = ("thinkingBudget", "thinkingLevel") if target.rule.budget else ("thinkingLevel", "thinkingBudget")
    return tuple(f"generationConfig.thinkingConfig.{name}" for name in names)


def fix_settings(shape: Shape, turns: Sequence[Turn], given: Prompt, planned: Plan, target: Target) -> None:
    """Report the notices of the plan, and give each setting the value that a request of ours would have."""
    draft = shape.draft
    if draft.fields is None:
        return
    body = _encode(planned, target, draft)
    for notice in planned.notices:
        if notice.code in _NO_FAULTS or not notice.setting:
            continue
        if notice.code in _TRANSLATED and target.dialect != draft.format:
            continue
        kind = _find_kind(notice, target, given)
        fact = Fact(target.rule.since, target.rule.source)
        if notice.code == "prefill_adjusted" or kind == "prefill_with_thinking":
            repair = f"a message of the user follows: {CONTINUE!r}"
            draft.report(kind, turns[-1].nodes[-1], notice.detail, repair, fact=fact)
            draft.insert(draft.items, len(draft.items), shape.make_text("user", CONTINUE))
            continue
        if notice.setting == "messages":
            continue
        place = _find_place(draft, notice.setting)
        held = _read(draft.fields, place)
        if _replace(draft.fields, draft.format, notice.setting, body):
            detail, repair = notice.detail, _describe(notice, place, held, _read(draft.fields, place))
            if notice.code == "tools_added":
                detail, repair, fact = _NO_TOOLS, _TOOLS_DECLARED, FACTS["tools_undefined"]
            elif kind == "budget_exceeds_max_tokens" and given.tools and target.rule.interleaves == "by_beta":
                detail += (
                    "; beside tools it is accepted with the header anthropic-beta: interleaved-thinking-2025-05-14"
                )
            draft.report_setting(kind, place, detail, repair, fact)
            draft.changes += 1
    if given.max_tokens != planned.prompt.max_tokens and given.max_tokens is not None:
        _replace(draft.fields, draft.format, "max_tokens", body)
    _drop_context_edits(draft, planned, target)


def _describe(notice: Notice, place: str, held: Any, new: Any) -> str:
    """The repair of a setting, with the name and the values of the file where they are plain ones."""
    if new is None and held is not None:
        return f"{place} is left out"
    name, asked, sent = notice.setting, notice.asked, notice.sent
    if not isinstance(held, (dict, list)) and not isinstance(new, (dict, list)):
        name, asked, sent = place, held, new
    unlike = f", not {asked}" if asked not in (None, "", "set") else ""
    return f"{name} is {sent}{unlike}" if sent else f"{name} is changed"


def _drop_context_edits(draft: Draft, planned: Plan, target: Target) -> None:
    """Drop the edits that clear earlier thinking from a request that does not think."""
    management = (draft.fields or {}).get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    if (
        draft.format != "anthropic"
        or not isinstance(edits, list)
        or target.thinks(planned.prompt.thinking) is not False
    ):
        return
    for place, edit in reversed(list(enumerate(edits))):
        if isinstance(edit, dict) and str(edit.get("type")).startswith("clear_thinking"):
            detail = "earlier thinking is cleared only while thinking is on"
            path = f"context_management.edits[{place}]"
            draft.report_setting("context_edit_needs_thinking", path, detail, "the edit is left out")
            draft.remove(edits, edit)
    if not edits and draft.fields is not None:
        draft.fields.pop("context_management")


def _find_kind(notice: Notice, target: Target, given: Prompt) -> str | None:
    match notice.code:
        case "effort_mapped":
            if "between" in notice.detail:
                return "effort_thinking_conflict"
            return "effort_unsupported_param" if not target.rule.efforts else "effort_unsupported_value"
        case "budget_adjusted":
            if "leaves nothing" in notice.detail:
                return "budget_exceeds_max_tokens"
            least, _ = target.rule.budget or (1, None)
            is_small = given.thinking.budget is not None and given.thinking.budget < least
            return "budget_too_small" if is_small else "budget_out_of_range"
        case "setting_dropped" | "setting_adjusted":
            return "sampling_unsupported" if notice.setting in target.rule.refuses else "sampling_with_thinking"
        case "thinking_dropped":
            return "effort_tools_endpoint" if "tools" in notice.detail else "prefill_with_thinking"
        case "tool_choice_adjusted" if target.rule.thinking == "always":
            return "tool_choice_unsupported"
        case code:
            return _KINDS.get(code)


def _encode(planned: Plan, target: Target, draft: Draft) -> Node:
    """The settings as a request of ours would have them, in the format of the file."""
    if target.dialect != draft.format:
        row = dialects.plain_row(draft.format)
        plain = msgspec.structs.replace(row, quirks=Quirks(), models=(), replay=())
        target = Target(plain, target.model, row.base_url)
    question = (Message("user", (Text("?"),)),)
    prompt = msgspec.structs.replace(planned.prompt, messages=question, output=None)
    request, _ = dialects.find_dialect(draft.format).encode(prompt, target)
    body: Node = msgspec.json.decode(request.body)
    return body


def _replace(fields: Node, format_name: str, setting: str, body: Node) -> bool:
    """Give a setting of the file its value in the encoded request. Returns whether that changes anything."""
    places = _PLACES.get(format_name, {}).get(setting, (setting,))
    before = msgspec.json.encode(fields)
    if setting == "max_tokens":
        # One of several names; the file keeps its own.
        value = next((found for place in places if (found := _read(body, place)) is not None), None)
        held = next((place for place in places if _read(fields, place) is not None), places[0])
        _write(fields, held, value)
        return msgspec.json.encode(fields) != before
    for place in places:
        old, new = _read(fields, place), _read(body, place)
        if isinstance(old, dict) and isinstance(new, dict):
            known = {"type", "budget_tokens", "thinkingBudget", "thinkingLevel", "effort", "max_tokens", "enabled"}
            shown = {"display", "includeThoughts", "summary"} - old.keys()  # what is shown is the caller's choice
            new = {name: value for name, value in new.items() if name not in shown}
            new = {**{name: value for name, value in old.items() if name not in known}, **new}
        _write(fields, place, new)
    return msgspec.json.encode(fields) != before


def _read(fields: Node, place: str) -> Any:
    value: Any = fields
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _write(fields: Node, place: str, value: Any) -> None:
    *outer, last = place.split(".")
    holder: Any = fields
    for name in outer:
        if not isinstance(holder.get(name), dict):
            if value is None:
                return
            holder[name] = {}
        holder = holder[name]
    if value is None:
        holder.pop(last, None)
        if outer and not holder:
            _write(fields, ".".join(outer), None)
    else:
        holder[last] = value


# --- tools ------------------------------------------------------------------------------------------------------------


def add_tools(draft: Draft, turns: Sequence[Turn], target: Target) -> None:
    """Declare the tools that the history calls, where the request declares none and the model refuses that."""
    fields = draft.fields
    names = list(dict.fromkeys(call.name for turn in turns for call in turn.list_pieces("call")))
    refuses = bool(dialects.find_facts(target.dialect).tools_field) and draft.is_request
    if not refuses or not names or fields is None or fields.get("tools"):
        return
    draft.report_setting(None, "tools", _NO_TOOLS, _TOOLS_DECLARED, FACTS["tools_undefined"])
    schema: Node = {"type": "object"}
    match draft.format:
        case "anthropic":
            fields["tools"] = [{"name": name, "input_schema": schema} for name in names]
        case "openai_responses":
            fields["tools"] = [{"type": "function", "name": name, "parameters": schema} for name in names]
        case "gemini":
            fields["tools"] = [{"functionDeclarations": [{"name": name, "parameters": schema} for name in names]}]
        case _:
            functions = [{"name": name, "parameters": schema} for name in names]
            fields["tools"] = [{"type": "function", "function": function} for function in functions]
    draft.changes += 1
    draft.changed |= {id(item) for item in draft.items}
