"""The spellings in which servers are asked to think or to stop, for each dialect, and how refusals name them.

Each spelling says what of a row makes our encoders write it. Not here: trying them out (run_probe).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.http_body import merge_fields
from asides.values.thinking import EFFORTS, Effort

Wish: TypeAlias = Literal["on", "off"]
Fields: TypeAlias = dict[str, Any]

UNKNOWN_EFFORT = "asides-probe"
"""An effort that no server knows: one that checks efforts refuses it, and most list those that they know."""


class Spelling(msgspec.Struct, frozen=True, kw_only=True):
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
        """The fields that ask for this; None where this spelling cannot."""
        return self.on if wish == "on" else self.off


_TEMPLATE = "chat_template_kwargs"

# All of these can stand in one request: servers ignore, or name, the fields that they do not know.
_CHAT = (
    Spelling(
        name="thinking.type",
        on={"thinking": {"type": "enabled"}},
        off={"thinking": {"type": "disabled"}},
        quirks={"ask_by": "thinking_toggle"},
        with_effort="thinking_toggle_and_effort",
    ),
    Spelling(
        name="enable_thinking",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
        quirks={"ask_by": "enable_thinking"},
        with_effort="enable_thinking_and_effort",
    ),
    Spelling(
        name=f"{_TEMPLATE}.enable_thinking",
        on={_TEMPLATE: {"enable_thinking": True}},
        off={_TEMPLATE: {"enable_thinking": False}},
        quirks={"ask_by": "template"},
        with_effort="template_and_effort",
    ),
    Spelling(
        name=f"{_TEMPLATE}.thinking",
        on={_TEMPLATE: {"thinking": True}},
        off={_TEMPLATE: {"thinking": False}},
        quirks={"ask_by": "template"},
        rule={"template_key": "thinking"},
        with_effort="template_and_effort",
    ),
    Spelling(
        name="reasoning_effort",
        on={"reasoning_effort": "high"},
        off={"reasoning_effort": "none"},
        quirks={"ask_by": "reasoning_effort"},
    ),
    Spelling(
        name="reasoning.enabled",
        on={"reasoning": {"enabled": True, "effort": "high"}},
        off={"reasoning": {"enabled": False}},
        quirks={"ask_by": "reasoning_object"},
    ),
    Spelling(name="think", on={"think": True}, off={"think": False}, quirks={"ask_by": "think"}),
    Spelling(
        name="include_reasoning",
        on={"include_reasoning": True},
        quirks={"fields": (("include_reasoning", True),)},
    ),
)
# Tried when none of those above changes anything. No row can say them; `extra=` can.
_OTHER_CHAT = tuple(
    Spelling(name=name, on=on, off=off)
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
    Spelling(
        name="thinking.type enabled",
        on={"thinking": {"type": "enabled", "budget_tokens": _BUDGET}},
        off={"thinking": {"type": "disabled"}},
        on_rule={"forms": ("enabled", "disabled"), "budget": (_BUDGET, _ANY_BUDGET)},
        room=_BUDGET,
    ),
    Spelling(
        name="thinking.type adaptive",
        on={"thinking": {"type": "adaptive"}},
        off={"thinking": {"type": "disabled"}},
        on_rule={"forms": ("adaptive", "disabled")},
    ),
)
_RESPONSES = (
    Spelling(
        name="reasoning.effort and summary",
        on={"reasoning": {"effort": "high", "summary": "auto"}},
        off={"reasoning": {"effort": "none"}},
    ),
    Spelling(
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
    Spelling(
        name="thinkingConfig.thinkingBudget",
        on=_make_config(includeThoughts=True, thinkingBudget=_BUDGET),
        off=_make_config(thinkingBudget=0),
        quirks={"ask_by": "thinking_budget"},
        on_rule={"budget": (0, _ANY_BUDGET)},
        room=_BUDGET,
    ),
    Spelling(
        name="thinkingConfig.thinkingLevel",
        on=_make_config(includeThoughts=True, thinkingLevel="HIGH"),
        quirks={"ask_by": "thinking_level"},
    ),
)
_OWN: Mapping[str, tuple[Spelling, ...]] = {
    "openai_chat": _CHAT,
    "openai_responses": _RESPONSES,
    "anthropic": _MESSAGES,
    "gemini": _CONTENTS,
    "ollama": (Spelling(name="think", on={"think": True}, off={"think": False}),),
    "cohere": (
        Spelling(name="thinking.type", on={"thinking": {"type": "enabled"}}, off={"thinking": {"type": "disabled"}}),
    ),
    "bedrock": (
        Spelling(
            name="reasoning_config",
            on={"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": _BUDGET}}},
            room=_BUDGET,
        ),
    ),
}


def list_spellings(dialect: str, wish: Wish) -> list[Spelling]:
    """The spellings of a dialect that can say this, the likeliest first."""
    return [spelling for spelling in _OWN.get(dialect, ()) if spelling.ask(wish) is not None]


def list_other_spellings(dialect: str, wish: Wish) -> list[Spelling]:
    """Spellings that few servers know, and no row can say."""
    others = _OTHER_CHAT if dialect == "openai_chat" else ()
    return [spelling for spelling in others if spelling.ask(wish) is not None]


def can_combine(dialect: str) -> bool:
    """Whether all spellings of a dialect can stand in one request."""
    return dialect == "openai_chat"


def combine(spellings: Iterable[Spelling], wish: Wish) -> Fields:
    """The fields of several spellings in one request."""
    fields: Fields = {}
    for spelling in spellings:
        fields = merge_fields(fields, spelling.ask(wish) or {})
    return fields


# --- refusals ---------------------------------------------------------------------------------------------------------

_QUOTES = "'\"`‘’“”"
_LISTED = re.compile(
    r"(?:support(?:ed|s)|valid|allowed|accept(?:ed|s)|permitted|expected|available|must be|should be|one of|choose|use)"
    r"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
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


def find_named(spellings: Sequence[Spelling], said: str, wish: Wish) -> list[Spelling]:
    """The spellings that a refusal names, by a field or by a value."""
    by_field = [spelling for spelling in spellings if _is_spelling_named(spelling, spellings, said, wish)]
    if by_field:
        return by_field
    by_value = [
        spelling
        for spelling in spellings
        if any(re.search(rf"[{_QUOTES}]{re.escape(value)}[{_QUOTES}]", said) for value in _list_values(spelling, wish))
    ]
    if by_value:
        return by_value
    # At last as a bare word, where only one spelling has it.
    loose = [
        spelling
        for spelling in spellings
        if re.search(rf"\b{re.escape(_list_names(spelling, wish)[0])}\b", said, re.IGNORECASE)
    ]
    return loose if len(loose) == 1 else []


def _is_spelling_named(spelling: Spelling, others: Sequence[Spelling], said: str, wish: Wish) -> bool:
    """Whether a refusal names a spelling by its field, or by the name inside it where several share the field."""
    field, *inner = _list_names(spelling, wish)
    if not is_named(field, said):
        return False
    if not inner:
        # The same name right behind another field is meant inside that.
        for names in (_list_names(other, wish) for other in others if other is not spelling):
            if field in names[1:]:
                said = re.sub(rf"{re.escape(names[0])}\W{{1,6}}{re.escape(field)}\b", names[0], said)
        return is_named(field, said)
    siblings = [names[1:] for other in others if (names := _list_names(other, wish))[0] == field]
    anyone = any(is_named(name, said) for names in siblings for name in names)
    return not anyone or any(is_named(name, said) for name in inner)


def _list_names(spelling: Spelling, wish: Wish) -> list[str]:
    """The field of a spelling, and the names inside it."""
    fields = spelling.ask(wish) or {}
    names = list(fields)
    for value in fields.values():
        if isinstance(value, dict):
            names += [name for name in value if name not in ("type", "enabled", "effort")]
    return names


def _list_values(spelling: Spelling, wish: Wish) -> list[str]:
    values: list[str] = []
    for value in (spelling.ask(wish) or {}).values():
        inner = value.values() if isinstance(value, dict) else [value]
        values += [text for text in inner if isinstance(text, str)]
    return values


def read_efforts(said: str) -> tuple[str, ...]:
    """The efforts that a refusal lists as known, "none" among them, in their usual order; () where it lists none."""
    listed = _LISTED.search(said)
    rest = said if listed is None else listed["rest"]
    words = {word.lower() for word in _EFFORT_WORD.findall(rest)}
    if len(words) < 2 and listed is not None:
        words = {word.lower() for word in _EFFORT_WORD.findall(said)}
    return tuple(effort for effort in ("none", *EFFORTS) if effort in words)


def keep_efforts(names: Iterable[str]) -> tuple[Effort, ...]:
    """Those of the names that are efforts of ours."""
    known = set(names)
    return tuple(effort for effort in EFFORTS if effort in known)
