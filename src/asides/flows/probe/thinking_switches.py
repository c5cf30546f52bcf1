"""The fields with which servers are asked to think or to stop, for each dialect, and how refusals name them.

Each switch says what of a row makes our encoders write it. Not here: trying them out (run_probe).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.http_body import merge_fields
from asides.values.refusal_details import find_efforts
from asides.values.thinking import EFFORTS, Effort

Wish: TypeAlias = Literal["on", "off"]
Fields: TypeAlias = dict[str, Any]

UNKNOWN_EFFORT = "asides-probe"
"""An effort that no server knows: one that checks efforts refuses it, and most list those that they know."""


class ThinkingSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask for thinking or for none."""

    name: str
    on: Fields | None = None
    off: Fields | None = None
    quirks: Fields = {}
    """The quirks of a row that asks like this."""
    rule: Fields = {}
    """The facts of a model's rule that asks like this."""
    on_rule: Fields = {}
    """More of them, which only an effective "on" shows."""
    with_effort: str | None = None
    """The `ask_by` that sends an effort beside it."""
    room: int = 0
    """Tokens that the request must allow beside the answer."""

    def ask(self, wish: Wish) -> Fields | None:
        """The fields that ask for this; None where this switch cannot."""
        return self.on if wish == "on" else self.off


_TEMPLATE = "chat_template_kwargs"

# All of these can stand in one request: servers ignore, or name, the fields that they do not know.
_CHAT = (
    ThinkingSwitch(
        name="thinking.type",
        on={"thinking": {"type": "enabled"}},
        off={"thinking": {"type": "disabled"}},
        quirks={"ask_by": "thinking_toggle"},
        with_effort="thinking_toggle_and_effort",
    ),
    ThinkingSwitch(
        name="enable_thinking",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
        quirks={"ask_by": "enable_thinking"},
        with_effort="enable_thinking_and_effort",
    ),
    ThinkingSwitch(
        name=f"{_TEMPLATE}.enable_thinking",
        on={_TEMPLATE: {"enable_thinking": True}},
        off={_TEMPLATE: {"enable_thinking": False}},
        quirks={"ask_by": "template"},
        with_effort="template_and_effort",
    ),
    ThinkingSwitch(
        name=f"{_TEMPLATE}.thinking",
        on={_TEMPLATE: {"thinking": True}},
        off={_TEMPLATE: {"thinking": False}},
        quirks={"ask_by": "template"},
        rule={"template_key": "thinking"},
        with_effort="template_and_effort",
    ),
    ThinkingSwitch(
        name="reasoning_effort",
        on={"reasoning_effort": "high"},
        off={"reasoning_effort": "none"},
        quirks={"ask_by": "reasoning_effort"},
    ),
    ThinkingSwitch(
        name="reasoning.enabled",
        on={"reasoning": {"enabled": True, "effort": "high"}},
        off={"reasoning": {"enabled": False}},
        quirks={"ask_by": "reasoning_object"},
    ),
    ThinkingSwitch(name="think", on={"think": True}, off={"think": False}, quirks={"ask_by": "think"}),
    ThinkingSwitch(
        name="include_reasoning",
        on={"include_reasoning": True},
        quirks={"fields": (("include_reasoning", True),)},
    ),
)
# Tried when none of those above changes anything. No row can say them; `extra=` can.
_OTHER_CHAT = tuple(
    ThinkingSwitch(name=name, on=on, off=off)
    for name, on, off in (
        ("thinking (true or false)", {"thinking": True}, {"thinking": False}),
        ("reasoning (true or false)", {"reasoning": True}, {"reasoning": False}),
        ("enable_reasoning", {"enable_reasoning": True}, {"enable_reasoning": False}),
        (
            f"{_TEMPLATE}.enable_reasoning",
            {_TEMPLATE: {"enable_reasoning": True}},
            {_TEMPLATE: {"enable_reasoning": False}},
        ),
        (f"{_TEMPLATE}.reasoning", {_TEMPLATE: {"reasoning": True}}, {_TEMPLATE: {"reasoning": False}}),
    )
)
_BUDGET = 1024
# No limit is known, and a settings file cannot say that.
_ANY_BUDGET = 1_000_000
_MESSAGES = (
    ThinkingSwitch(
        name="thinking.type enabled",
        on={"thinking": {"type": "enabled", "budget_tokens": _BUDGET}},
        off={"thinking": {"type": "disabled"}},
        on_rule={"forms": ("enabled", "disabled"), "budget": (_BUDGET, _ANY_BUDGET)},
        room=_BUDGET,
    ),
    ThinkingSwitch(
        name="thinking.type adaptive",
        on={"thinking": {"type": "adaptive"}},
        off={"thinking": {"type": "disabled"}},
        on_rule={"forms": ("adaptive", "disabled")},
    ),
)
_RESPONSES = (
    ThinkingSwitch(
        name="reasoning.effort and summary",
        on={"reasoning": {"effort": "high", "summary": "auto"}},
        off={"reasoning": {"effort": "none"}},
    ),
    ThinkingSwitch(
        name="reasoning.effort",
        on={"reasoning": {"effort": "high"}},
        off={"reasoning": {"effort": "minimal"}},
        rule={"off_as_effort": False},
    ),
)
_THINKING_CONFIG = "thinkingConfig"


def _make_config(**config: Any) -> Fields:
    return {"generationConfig": {_THINKING_CONFIG: config}}


_CONTENTS = (
    ThinkingSwitch(
        name="thinkingConfig.thinkingBudget",
        on=_make_config(includeThoughts=True, thinkingBudget=_BUDGET),
        off=_make_config(thinkingBudget=0),
        quirks={"ask_by": "thinking_budget"},
        on_rule={"budget": (0, _ANY_BUDGET)},
        room=_BUDGET,
    ),
    ThinkingSwitch(
        name="thinkingConfig.thinkingLevel",
        on=_make_config(includeThoughts=True, thinkingLevel="HIGH"),
        quirks={"ask_by": "thinking_level"},
    ),
)
_OWN: Mapping[str, tuple[ThinkingSwitch, ...]] = {
    "openai_chat": _CHAT,
    "openai_responses": _RESPONSES,
    "anthropic": _MESSAGES,
    "gemini": _CONTENTS,
    "ollama": (ThinkingSwitch(name="think", on={"think": True}, off={"think": False}),),
    "cohere": (
        ThinkingSwitch(
            name="thinking.type", on={"thinking": {"type": "enabled"}}, off={"thinking": {"type": "disabled"}}
        ),
    ),
    "bedrock": (
        ThinkingSwitch(
            name="reasoning_config",
            on={"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": _BUDGET}}},
            room=_BUDGET,
        ),
    ),
}


def list_switches(dialect: str, wish: Wish) -> list[ThinkingSwitch]:
    """The switches of a dialect that can say this, the likeliest first."""
    return [switch for switch in _OWN.get(dialect, ()) if switch.ask(wish) is not None]


def list_other_switches(dialect: str, wish: Wish) -> list[ThinkingSwitch]:
    """Switches that few servers know, and no row can say."""
    others = _OTHER_CHAT if dialect == "openai_chat" else ()
    return [switch for switch in others if switch.ask(wish) is not None]


def can_combine(dialect: str) -> bool:
    """Whether all switches of a dialect can stand in one request."""
    return dialect == "openai_chat"


def combine(switches: Iterable[ThinkingSwitch], wish: Wish) -> Fields:
    """The fields of several switches in one request."""
    fields: Fields = {}
    for switch in switches:
        fields = merge_fields(fields, switch.ask(wish) or {})
    return fields


# --- refusals ---------------------------------------------------------------------------------------------------------

_QUOTES = "'\"`‘’“”"
_EFFORT_WORD = re.compile(rf"(?<![\w-])(?:none|{'|'.join(EFFORTS)})(?![\w-])", re.IGNORECASE)


def is_named(name: str, said: str) -> bool:
    """Whether a refusal names a field: quoted, as a path, or as a word that is no word of prose."""
    written = re.escape(name)
    path = rf"[{_QUOTES}\\][^{_QUOTES}\s\\]*\b{written}\b[^{_QUOTES}\s\\]*[\\{_QUOTES}]"
    if re.search(path, said):
        return True
    if "_" in name or "." in name:
        return re.search(rf"(?<![\w]){written}(?![\w])", said, re.IGNORECASE) is not None
    bare = rf"(?<!\w){written}\.\w|\w\.{written}\b|\b(?:parameter|field|argument|param):?\s+{written}\b"
    return re.search(bare, said) is not None


def find_named(switches: Sequence[ThinkingSwitch], said: str, wish: Wish) -> list[ThinkingSwitch]:
    """The switches that a refusal names, by a field or by a value."""
    by_field = [switch for switch in switches if _is_switch_named(switch, switches, said, wish)]
    if by_field:
        return by_field
    by_value = [
        switch
        for switch in switches
        if any(re.search(rf"[{_QUOTES}]{re.escape(value)}[{_QUOTES}]", said) for value in _list_values(switch, wish))
    ]
    if by_value:
        return by_value
    # At last as a bare word, where only one switch has it.
    loose = [
        switch
        for switch in switches
        if re.search(rf"\b{re.escape(_list_names(switch, wish)[0])}\b", said, re.IGNORECASE)
    ]
    return loose if len(loose) == 1 else []


def _is_switch_named(switch: ThinkingSwitch, others: Sequence[ThinkingSwitch], said: str, wish: Wish) -> bool:
    """Whether a refusal names a switch by its field, or by the name inside it where several share the field."""
    field, *inner = _list_names(switch, wish)
    if not is_named(field, said):
        return False
    if not inner:
        # The same name right behind another field is meant inside that.
        for names in (_list_names(other, wish) for other in others if other is not switch):
            if field in names[1:]:
                said = re.sub(rf"{re.escape(names[0])}\W{{1,6}}{re.escape(field)}\b", names[0], said)
        return is_named(field, said)
    siblings = [names[1:] for other in others if (names := _list_names(other, wish))[0] == field]
    anyone = any(is_named(name, said) for names in siblings for name in names)
    return not anyone or any(is_named(name, said) for name in inner)


def _list_names(switch: ThinkingSwitch, wish: Wish) -> list[str]:
    """The field of a switch, and the names inside it."""
    fields = switch.ask(wish) or {}
    names = list(fields)
    for value in fields.values():
        if isinstance(value, dict):
            names += [name for name in value if name not in ("type", "enabled", "effort")]
    return names


def _list_values(switch: ThinkingSwitch, wish: Wish) -> list[str]:
    values: list[str] = []
    for value in (switch.ask(wish) or {}).values():
        inner = value.values() if isinstance(value, dict) else [value]
        values += [text for text in inner if isinstance(text, str)]
    return values


def read_efforts(said: str) -> tuple[str, ...]:
    """The efforts that a refusal lists as known, "none" among them, in their usual order; () where it lists none."""
    listed = find_efforts(said)
    if len(listed) > 1:
        return listed
    # No list, or one that cannot be told from its sentence: every effort that is named.
    words = {word.lower() for word in _EFFORT_WORD.findall(said)}
    return tuple(effort for effort in ("none", *EFFORTS) if effort in words)


def keep_efforts(names: Iterable[str]) -> tuple[Effort, ...]:
    """Those of the names that are efforts of ours."""
    known = set(names)
    return tuple(effort for effort in EFFORTS if effort in known)
