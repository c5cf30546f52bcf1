"""Find where a request no longer begins like the request before it: there the provider's prompt cache ends. Pure.

`explain` shows it as `cache_break_at`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects import find_dialect, find_facts
from asides.history.effort_changes import can_change
from asides.history.plan import Decision, Plan, encode_plan, plan
from asides.history.replay import is_same_host
from asides.history.turns import find_last
from asides.providers.provider import Target
from asides.providers.switches.table import list_switch_fields
from asides.values.errors import AsidesError
from asides.values.messages import Message, Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.thinking import Origin, Thought

BreakReason: TypeAlias = Literal["model", "tools", "system", "output", "tool_choice", "thinking", "replay", "history"]
"""What changed: the model or the host that is asked · a setting · what goes back of a thought or a seal, by its rule ·
the messages themselves, or their form.
"""


class CacheBreak(msgspec.Struct, frozen=True):
    """The first place where a request differs from the one before it. From there on the cache does not apply."""

    reason: BreakReason
    why: str
    path: str
    """The place in the request: "tools", "messages[3].content[0]"."""
    message: int | None = None
    """The message of the history; None: before all messages."""
    part: int | None = None
    """Its part, where one is known to be the cause."""
    since: str = ""
    source: str = ""


class SentBefore(msgspec.Struct, frozen=True):
    """The previous request of a conversation, and its target."""

    prompt: Prompt
    target: Target

    def __repr__(self) -> str:
        return f"SentBefore({self.target.provider.name}:{self.target.model}, {self.prompt!r})"


_NO_STATE = ProviderState()
_LISTS = ("messages", "contents", "input")

# The fields that providers put before the messages or use to build the prompt, and their names for a caller. A change
# of any other field, such as a limit or a temperature, leaves the cache as it is.
_FIELDS: dict[str, BreakReason] = {
    "tools": "tools",
    "toolConfig": "tools",
    "system": "system",
    "systemInstruction": "system",
    "instructions": "system",
    "response_format": "output",
    "format": "output",
    "text": "output",
    "outputConfig": "output",
    "tool_choice": "tool_choice",
    **dict.fromkeys(list_switch_fields(), "thinking"),
}
_CONFIG_FIELDS = ("thinkingConfig", "responseJsonSchema", "responseSchema", "responseMimeType")
_WHY: dict[BreakReason, str] = {
    "tools": "the tools, or their order, changed; they precede the messages",
    "system": "the system prompt changed; it precedes the messages",
    "output": "the requested output format changed",
    "tool_choice": "tool_choice changed",
    "thinking": "the thinking settings changed",
}


def find_cache_break(
    prompt: Prompt,
    target: Target,
    *,
    before: SentBefore | None = None,
    on_conflict: Literal["raise", "adjust"] = "raise",
) -> CacheBreak | None:
    """Compare a request with the one before it; None if the whole of that one is its beginning, or if there was none.

    Without `before`, the request before is the one that the last turn of the model answered: the messages up to it,
    with the same settings and the effort that the turn remembers. Cache breakpoints do not count as a difference. If
    the provider stores the conversation, there is nothing to compare.
    """
    if prompt.state != _NO_STATE:
        return None
    if before is None:
        before = _find_before(prompt, target)
        if before is None:
            return None
        maker = _find_maker(prompt.messages[len(before.prompt.messages)])
        if maker is not None and not _is_same_model(maker, target):
            return _report_model(f"{maker.provider}:{maker.model}", target)
    elif not _is_same_model(before.target.origin, target) or before.target.dialect != target.dialect:
        return _report_model(f"{before.target.provider.name}:{before.target.model}", target)
    comparison = _Comparison(prompt, target, before, on_conflict)
    return comparison.find()


def _find_before(prompt: Prompt, target: Target) -> SentBefore | None:
    messages = prompt.messages
    last = find_last(messages, "assistant")
    if last <= 0:
        return None
    thinking, effort = prompt.thinking, messages[last].effort
    # Where messages change the effort, a turn without one was asked without one. Elsewhere it may not be known.
    is_known = effort is not None or can_change(prompt, target)
    if is_known and thinking.mode != "off" and thinking.budget is None:
        thinking = msgspec.structs.replace(thinking, effort=effort)
    return SentBefore(msgspec.structs.replace(prompt, messages=messages[:last], thinking=thinking), target)


def _find_maker(message: Message) -> Origin | None:
    """The origin of a turn, from its thoughts and seals."""
    for part in message.parts:
        if isinstance(part, Thought) and part.origin is not None:
            return part.origin
        for seal in part.seals:
            if seal.origin is not None:
                return seal.origin
    return None


def _is_same_model(origin: Origin, target: Target) -> bool:
    return origin.model in ("", target.model) and is_same_host(origin, target)


def _report_model(earlier: str, target: Target) -> CacheBreak:
    why = f"{earlier} was asked before; {target.provider.name}:{target.model} has nothing of it in its cache"
    return CacheBreak("model", why, "model", 0)


class _Encoded(msgspec.Struct, frozen=True):
    plan: Plan
    notices: tuple[Notice, ...]
    fields: dict[str, Any]
    name: str
    """The field that holds the messages."""
    items: list[Any]


class _Comparison:
    """Two requests to one model, side by side."""

    def __init__(
        self, prompt: Prompt, target: Target, before: SentBefore, on_conflict: Literal["raise", "adjust"]
    ) -> None:
        self._prompt = prompt
        self._target = target
        self._before = before.prompt
        self._on_conflict: Literal["raise", "adjust"] = on_conflict
        self._facts = find_facts(target.dialect)

    def find(self) -> CacheBreak | None:
        try:
            now = self._encode(self._prompt, self._on_conflict)
            earlier = self._encode(msgspec.structs.replace(self._before, stream=self._prompt.stream), "adjust")
        except AsidesError:
            return None  # one of them cannot be sent
        if (found := self._compare_fields(earlier, now)) is not None:
            return found
        for place, (old, new) in enumerate(_pair_items(earlier.items, now.items)):
            inner = find_difference(old, new, may_grow=place == len(earlier.items) - 1)
            if inner is not None:
                return self._explain(earlier, now, place, f"{now.name}[{place}]{inner}")
        return None

    def _encode(self, prompt: Prompt, on_conflict: Literal["raise", "adjust"]) -> _Encoded:
        planned = plan(prompt, self._target, on_conflict=on_conflict)
        dialect = find_dialect(self._target.dialect)
        request, notices = encode_plan(planned, self._target, dialect, on_conflict=on_conflict)
        body: dict[str, Any] = drop_marks(msgspec.json.decode(request.body))
        name = next((name for name in _LISTS if isinstance(body.get(name), list)), _LISTS[0])
        return _Encoded(planned, (*planned.notices, *notices), body, name, body.get(name, []))

    def _compare_fields(self, earlier: _Encoded, now: _Encoded) -> CacheBreak | None:
        for name, reason in _FIELDS.items():
            old, new = (_select_prompt_fields(name, each.fields.get(name)) for each in (earlier, now))
            if old != new:
                why = _WHY[reason]
                if detail := _find_notice(earlier.notices, now.notices, reason):
                    why = f"{why} ({detail})"
                return CacheBreak(reason, why, name, None, None, self._facts.cache_since, self._facts.cache_source)
        return None

    def _explain(self, earlier: _Encoded, now: _Encoded, place: int, path: str) -> CacheBreak:
        if place == 0 and self._prompt.system != self._before.system:  # in this dialect it is the first message
            facts = self._facts
            return CacheBreak("system", _WHY["system"], path, None, None, facts.cache_since, facts.cache_source)
        number = self._find_message(place)
        if number >= len(self._before.messages) or self._prompt.messages[number] != self._before.messages[number]:
            why = "the messages before were changed, left out or replaced"
            return CacheBreak("history", why, path, number)
        changed = _find_changed_decision(earlier.plan.decisions, now.plan.decisions, number)
        if changed is not None:
            why = f"{changed.action} the {changed.what}: {changed.why}"
            return CacheBreak("replay", why, path, number, changed.part, changed.since, changed.source)
        if self._before.messages[-1].role == "assistant":
            why = "the model continued this message, which has another form where it is the last one"
        else:
            why = _find_notice(earlier.notices, now.notices, "") or "its form depends on the messages after it"
        return CacheBreak("history", why, path, number)

    def _find_message(self, place: int) -> int:
        """The first message that has a part in this element of the list."""
        first, last = 0, len(self._before.messages) - 1
        while first < last:
            middle = (first + last) // 2
            if self._count_items(middle + 1) > place:
                last = middle
            else:
                first = middle + 1
        return first

    def _count_items(self, messages: int) -> int:
        shorter = msgspec.structs.replace(self._before, messages=self._before.messages[:messages])
        try:
            return len(self._encode(shorter, "adjust").items)
        except AsidesError:
            return 0


def _pair_items(old: list[Any], new: list[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(old, [*new, *[None] * (len(old) - len(new))], strict=False)


def _select_prompt_fields(name: str, value: Any) -> Any:
    """The part of a field that belongs to the prompt."""
    if name == "generationConfig" and isinstance(value, dict):
        return {inner: value[inner] for inner in _CONFIG_FIELDS if inner in value} or None
    return value


def _find_changed_decision(old: Sequence[Decision], new: Sequence[Decision], number: int) -> Decision | None:
    """The first decision about this message or an earlier one that changed."""
    known = {(each.message, each.part, each.what): each.action for each in old}
    for decision in new:
        if (
            decision.message <= number
            and known.get((decision.message, decision.part, decision.what)) != decision.action
        ):
            return decision
    return None


_TELLS: Mapping[str, tuple[str, ...]] = {
    "tools": ("tools_added", "tools_dropped"),
    "system": ("system_moved",),
    "thinking": ("thinking_paused", "thinking_dropped", "effort_kept", "thinking_kept"),
    "": ("blank_message_dropped", "prefill_adjusted", "turn_added", "orphan_tool_result", "message_not_sent"),
}


def _find_notice(old: Sequence[Notice], new: Sequence[Notice], reason: str) -> str:
    """The detail of a notice that only one of the requests has."""
    codes = _TELLS.get(reason, ())
    only = [notice for notice in (*new, *old) if notice.code in codes and not (notice in old and notice in new)]
    return only[0].detail if only else ""


# --- bodies -----------------------------------------------------------------------------------------------------------

_MARK = "cache_control"
_POINT = "cachePoint"


def drop_marks(value: Any) -> Any:
    """Remove cache breakpoints, and write content that is one text as that text: caches ignore these differences."""
    if isinstance(value, dict):
        fields = {name: drop_marks(inner) for name, inner in value.items() if name != _MARK}
        match fields.get("content"):
            case [{"type": "text", "text": str() as text, **more}] if not more:
                fields["content"] = text
            case _:
                pass
        return fields
    if isinstance(value, list):
        return [drop_marks(inner) for inner in value if not (isinstance(inner, dict) and _POINT in inner)]
    return value


def find_difference(old: Any, new: Any, *, may_grow: bool = False) -> str | None:
    """The path of the first difference, or None. With `may_grow`, lists may have more items at their end."""
    if old == new:
        return None
    if may_grow and isinstance(old, dict) and isinstance(new, dict) and isinstance(old.get("content"), str):
        old, new = ({**each, "content": _as_blocks(each.get("content"))} for each in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in old or name not in new:
                return f".{name}"
            inner = find_difference(old[name], new[name], may_grow=may_grow)
            if inner is not None:
                return f".{name}{inner}"
        return None
    if isinstance(old, list) and isinstance(new, list):
        for place, each in enumerate(old):
            if place >= len(new):
                return f"[{place}]"
            inner = find_difference(each, new[place], may_grow=may_grow and place == len(old) - 1)
            if inner is not None:
                return f"[{place}]{inner}"
        return None if may_grow else f"[{len(old)}]"
    return ""


def _as_blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
