"""What refusals taught about targets: `remember(learned)`, and `recall(target, messages) → Target`, its rule changed.

The process remembers for each address and account; messages carry what their own requests taught, so that a saved
conversation knows it too. Not here: what is learned from a refusal (flows/heal).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from asides.providers.find import find_rule
from asides.providers.provider import ReplayRule, Target
from asides.values.learned import Learned
from asides.values.messages import Message

LEARNABLE_RULES = frozenset(
    {
        *("thinking", "default", "efforts", "off_as_effort", "budget", "budget_excludes_effort", "forbids", "refuses"),
        *("forced_tools", "forced_tools_with_budget", "tools_while_thinking", "forms", "temperature", "top_p"),
        *("begins_with_thinking", "prefix_bound", "account_bound", "prefill", "display", "max_output", "signed_calls"),
        *("structured_output", "output_limit", "system_role", "replay_as", "ask_by", "interleaves", "effort_updates"),
    }
)
"""The fields of a model's rule that a refusal can teach. A saved conversation is a file of others: it changes no
address, no header and no key."""
LEARNABLE_QUIRKS = frozenset(
    {
        *("stream_usage", "empty_thinking", "call_order", "after_results", "encrypted_reasoning", "toggle_on"),
        *("summaries", "includes_reasoning", "stores", "item_ids", "raw_items", "thoughts_while_off", "stream_only"),
        *("missing_thinking", "message_rules", "refused_fields", "calls_need_tools"),
    }
)
"""The quirks of a host that a refusal can teach."""
REPLAY_WHEN = "replay"
"""The name of a change of the replay rule."""
DIALECT = "dialect"
"""The name of a change to another dialect of the same row."""

_MOST_PLACES = 1024
_MOST_FACTS = 64
_MOST_REFUSED = 1024
_MOST_TARGETS = 256

MEMORY: OrderedDict[tuple[str, str], tuple[Learned, ...]] = OrderedDict()
"""The facts of the process, for each address and account."""
# Lists that facts add to; other values replace those of the row.
_ADDED_TO = frozenset({"refused_fields", "message_rules", "forbids", "refuses"})
_S = TypeVar("_S", bound=msgspec.Struct)
_TARGETS: dict[tuple[int, tuple[Learned, ...]], tuple[Target, Target]] = {}


def remember(learned: Learned) -> None:
    """Remember a fact for the rest of the process."""
    place = (learned.endpoint, learned.account)
    known = [fact for fact in MEMORY.get(place, ()) if fact != learned]
    if learned.refused and not learned.changes:
        # Many histories give many digests: they share one fact, so that they do not push out others.
        same = [fact for fact in known if not fact.changes and _is_about_same(fact, learned)]
        digests = dict.fromkeys(digest for fact in (*same, learned) for digest in fact.refused)
        learned = msgspec.structs.replace(learned, refused=tuple(digests)[-_MOST_REFUSED:])
        known = [fact for fact in known if fact not in same]
    MEMORY[place] = (*known, learned)[-_MOST_FACTS:]
    MEMORY.move_to_end(place)
    while len(MEMORY) > _MOST_PLACES:
        MEMORY.popitem(last=False)


def _is_about_same(one: Learned, other: Learned) -> bool:
    return (one.kind, one.dialect, one.model) == (other.kind, other.dialect, other.model)


def forget() -> None:
    """Forget everything that the process has learned."""
    MEMORY.clear()


def recall(target: Target, messages: Sequence[Message] = ()) -> Target:
    """The target with all that is known from refusals, in this process or in these messages: the same one if there is
    nothing.
    """
    facts: Iterable[Learned] = [fact for message in messages for fact in message.learned]
    if MEMORY:
        # What the process learned is newer than what a message tells, and the latest fact counts.
        facts = (*facts, *MEMORY.get((target.base_url, target.account), ()))
    fitting = _select_fitting(facts, target) if facts else ()
    if not fitting:
        return target
    changed = learn(target, fitting)
    # In another dialect, other facts fit.
    return changed if changed.dialect == target.dialect else learn(changed, _select_fitting(facts, changed))


def learn(target: Target, learned: tuple[Learned, ...], *, again: bool = False) -> Target:
    """The target changed by facts: the same object each time, since messages are encoded once for each target.

    `again`: also by facts that it knows, which others may have changed since: a relay asks now one server, now another.
    """
    new = tuple(fact for fact in learned if again or fact not in target.learned)
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


def _select_fitting(facts: Iterable[Learned], target: Target) -> tuple[Learned, ...]:
    """Each fact once, in the place where it was learned last."""
    fitting = [fact for fact in facts if _fits(fact, target)]
    return tuple(reversed(dict.fromkeys(reversed(fitting))))


def _fits(fact: Learned, target: Target) -> bool:
    return (
        fact.endpoint == target.base_url
        and fact.account == target.account
        and fact.dialect in ("", target.dialect)
        and fact.model in ("", target.model)
    )


def _change(target: Target, learned: tuple[Learned, ...]) -> Target:
    changes = [change for fact in learned for change in fact.changes]
    dialect = next((value for name, value in changes if name == DIALECT and isinstance(value, str)), None)
    if dialect is not None and (row := target.provider.with_dialect(dialect)) is not None:
        rule = find_rule(row, target.family or target.model, foreign=target.foreign)
        target = msgspec.structs.replace(target, provider=row, rule=rule, chosen_dialect=dialect)
    rule, provider = target.rule, target.provider
    for name, value in changes:
        try:
            if name in LEARNABLE_RULES:
                rule = _replace(rule, name, value)
            elif name in LEARNABLE_QUIRKS:
                provider = msgspec.structs.replace(provider, quirks=_replace(provider.quirks, name, value))
            elif name == REPLAY_WHEN:
                replay = _replace(ReplayRule(source="learned from a refusal"), "when", value)
                provider = msgspec.structs.replace(provider, replay=(replay,))
        except msgspec.ValidationError:
            continue  # a file that somebody edited, or of a later version
    refused = target.refused.union(*(fact.refused for fact in learned))
    known = tuple(fact for fact in target.learned if fact not in learned)
    return msgspec.structs.replace(target, rule=rule, provider=provider, learned=(*known, *learned), refused=refused)


def _replace(struct: _S, name: str, value: Any) -> _S:
    """The struct with one field changed. Lists of a file become tuples."""
    new = getattr(msgspec.convert({name: value}, type(struct)), name)
    if name in _ADDED_TO:
        new = tuple(dict.fromkeys((*getattr(struct, name), *new)))
    return msgspec.structs.replace(struct, **{name: new})
