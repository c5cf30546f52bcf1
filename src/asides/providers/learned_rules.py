"""What refusals taught about targets: `remember(learned)`, and `recall(target, messages) → Target`, its rule changed.

The process remembers for each address and account; messages carry what their own requests taught, so that a saved
conversation knows it too. Not here: what is learned from a refusal (flows/heal).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.providers.provider import ModelRule, ReplayRule, Target
from asides.providers.quirks import Quirks
from asides.values.learned import Learned
from asides.values.messages import Message

LEARNABLE_RULES = frozenset(
    {
        *("thinking", "default", "efforts", "off_as_effort", "budget", "budget_excludes_effort", "forbids", "refuses"),
        *("forced_tools", "forced_tools_with_budget", "tools_while_thinking", "forms", "temperature", "top_p"),
        *("begins_with_thinking", "prefix_bound", "account_bound", "prefill", "display", "max_output", "signed_calls"),
        *("structured_output", "output_limit", "system_role", "replay_as", "ask_by"),
    }
)
"""The fields of a model's rule that a refusal can teach. A saved conversation is a file of others: it changes no
address, no header and no key."""
LEARNABLE_QUIRKS = frozenset({"stream_usage", "empty_thinking", "call_order", "after_results", "encrypted_reasoning"})
"""The quirks of a host that a refusal can teach."""
REPLAY_WHEN = "replay"
"""The name of a change of the replay rule."""

_MOST_PLACES = 1024
_MOST_FACTS = 64
_MOST_TARGETS = 256

_MEMORY: OrderedDict[tuple[str, str], tuple[Learned, ...]] = OrderedDict()
_TARGETS: dict[tuple[int, tuple[Learned, ...]], tuple[Target, Target]] = {}


def remember(learned: Learned) -> None:
    """Remember a fact for the rest of the process."""
    place = (learned.endpoint, learned.account)
    known = tuple(fact for fact in _MEMORY.get(place, ()) if fact != learned)
    _MEMORY[place] = (*known, learned)[-_MOST_FACTS:]
    _MEMORY.move_to_end(place)
    while len(_MEMORY) > _MOST_PLACES:
        _MEMORY.popitem(last=False)


def forget() -> None:
    """Forget everything that the process has learned."""
    _MEMORY.clear()


def recall(target: Target, messages: Sequence[Message] = ()) -> Target:
    """The target with all that is known from refusals, in this process or in these messages: the same one if there is
    nothing.
    """
    facts: Iterable[Learned] = [fact for message in messages for fact in message.learned]
    if _MEMORY:
        facts = (*_MEMORY.get((target.base_url, target.account), ()), *facts)
    fitting = tuple(dict.fromkeys(fact for fact in facts if _fits(fact, target))) if facts else ()
    return learn(target, fitting) if fitting else target


def learn(target: Target, learned: tuple[Learned, ...]) -> Target:
    """The target changed by facts: the same object each time, since messages are encoded once for each target."""
    new = tuple(fact for fact in learned if fact not in target.learned)
    if not new:
        return target
    key = (id(target), new)
    known = _TARGETS.get(key)
    if known is None or known[0] is not target:
        if len(_TARGETS) >= _MOST_TARGETS:
            _TARGETS.clear()
        # Stored with its target, so that no other one can take that id.
        known = _TARGETS[key] = (target, _change(target, new))
    return known[1]


def _fits(fact: Learned, target: Target) -> bool:
    return (
        fact.endpoint == target.base_url
        and fact.account == target.account
        and fact.dialect in ("", target.dialect)
        and fact.model in ("", target.model)
    )


def _change(target: Target, learned: tuple[Learned, ...]) -> Target:
    rule, provider = target.rule, target.provider
    for name, value in (change for fact in learned for change in fact.changes):
        try:
            if name in LEARNABLE_RULES:
                rule = msgspec.structs.replace(rule, **{name: _convert(ModelRule, name, value)})
            elif name in LEARNABLE_QUIRKS:
                quirks = msgspec.structs.replace(provider.quirks, **{name: _convert(Quirks, name, value)})
                provider = msgspec.structs.replace(provider, quirks=quirks)
            elif name == REPLAY_WHEN:
                replay = ReplayRule(when=_convert(ReplayRule, "when", value), source="refused before")
                provider = msgspec.structs.replace(provider, replay=(replay,))
        except msgspec.ValidationError:
            continue  # a file that somebody edited, or of a later version
    refused = target.refused.union(*(fact.refused for fact in learned))
    return msgspec.structs.replace(
        target, rule=rule, provider=provider, learned=(*target.learned, *learned), refused=refused
    )


def _convert(kind: type[msgspec.Struct], name: str, value: Any) -> Any:
    """A value as the field of a struct has it: lists of a file become tuples."""
    return getattr(msgspec.convert({name: value}, kind), name)
