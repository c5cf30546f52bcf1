"""Computes the target of a call: `settle(found, …) → Target`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from asides.providers.find import find_rule
from asides.providers.learned_rules import DIALECT, LEARNABLE_QUIRKS, LEARNABLE_RULES, REPLAY_WHEN
from asides.providers.provider import ModelRule, Provider, ReplayRule, Target, merge_facts
from asides.providers.quirks import Restrictions
from asides.values.learned import Learned
from asides.wire.inline_tags import DEFAULT_TAGS

# Lists that facts add to; other values replace those of the row.
_ADDED_TO = frozenset({"refused_fields", "message_rules", "forbids", "refuses"})
_S = TypeVar("_S", bound=msgspec.Struct)


def settle(
    found: Target,
    *,
    dialect: str | None = None,
    shows_raw: bool = False,
    overrides: Mapping[str, Any] | None = None,
    account: str = "",
    learned: Iterable[Learned] = (),
) -> Target:
    """Compute the target of a call: row and rule of the model that was found, in the chosen dialect, with the facts
    that the caller overrides and those that refusals taught. Returns `found` if nothing changes.

    After a refusal it is called again with what that taught. Facts about other targets are ignored, and a later fact
    wins over an earlier one.
    """
    changes: dict[str, Any] = {}
    start = found.unlearned or found
    if dialect is not None and dialect != start.dialect:
        changes = _change_dialect(start, dialect)
    if shows_raw:
        changes["shows_raw"] = True
    if overrides:
        changes["overrides"] = (*start.overrides, *overrides.items())
        rule, quirks = changes.get("rule", start.rule), changes.get("provider", start.provider).quirks
        needs_tags = "tags" not in overrides and (overrides.get("starts_inside") or "tag_position" in overrides)
        if needs_tags and not merge_facts(rule, quirks, start.model).tags:
            # The row lists no inline tags for this host, but the caller says that it sends them.
            changes["overrides"] += (("tags", DEFAULT_TAGS),)
    if account:
        changes["account"] = account
    target = msgspec.structs.replace(start, **changes) if changes else start
    facts = (*found.learned, *learned)
    taught = _teach(target, facts) if facts else target
    return found if not changes and taught.learned == found.learned else taught


def _change_dialect(target: Target, dialect: str) -> dict[str, Any]:
    """The changes of a target for another dialect of its row; none if the row does not have it."""
    row = target.provider.with_dialect(dialect)
    if row is None:
        return {}
    rule = find_rule(row, target.family or target.model, foreign=target.foreign)
    return {"provider": row, "rule": rule, "chosen_dialect": dialect}


def _teach(target: Target, facts: tuple[Learned, ...]) -> Target:
    """The target with the facts that fit it. If one of them is another dialect, those about that dialect fit too."""
    fitting = applied = _select_fitting(facts, target, target.dialect)
    if not fitting:
        return target
    changes: dict[str, Any] = {}
    named = next((value for fact in fitting for name, value in fact.changes if name == DIALECT), None)
    if isinstance(named, str) and (changes := _change_dialect(target, named)):
        applied = _select_fitting(facts, target, named)
        fitting = (*fitting, *(fact for fact in applied if fact not in fitting))
    rule: ModelRule = changes.get("rule", target.rule)
    provider: Provider = changes.get("provider", target.provider)
    restrictions = target.restrictions
    for name, value in [change for fact in applied for change in fact.changes]:
        try:
            if name in LEARNABLE_RULES:
                rule = _replace(rule, name, value)
            elif name in LEARNABLE_QUIRKS:
                provider = msgspec.structs.replace(provider, quirks=_replace(provider.quirks, name, value))
            elif name in Restrictions.__struct_fields__:
                restrictions = _replace(restrictions, name, value)
            elif name == REPLAY_WHEN:
                replay = _replace(ReplayRule(source="learned from a refusal"), "when", value)
                provider = msgspec.structs.replace(provider, replay=(replay,))
        except msgspec.ValidationError:
            continue  # the file was edited, or is of a later version
    changes |= {"rule": rule, "provider": provider, "restrictions": restrictions}
    refused = frozenset(digest for fact in fitting for digest in fact.refused)
    return msgspec.structs.replace(target, **changes, learned=fitting, refused=refused, unlearned=target)


def _select_fitting(facts: Iterable[Learned], target: Target, dialect: str) -> tuple[Learned, ...]:
    """Each fact about this target once, in the place where it was learned last."""
    fitting = [
        fact
        for fact in facts
        if fact.endpoint == target.base_url
        and fact.account == target.account
        and fact.dialect in ("", dialect)
        and fact.model in ("", target.model)
    ]
    return tuple(reversed(dict.fromkeys(reversed(fitting))))


def _replace(struct: _S, name: str, value: Any) -> _S:
    """The struct with one field changed. Lists of a file become tuples."""
    new = getattr(msgspec.convert({name: value}, type(struct)), name)
    if name in _ADDED_TO:
        new = tuple(dict.fromkeys((*getattr(struct, name), *new)))
    return msgspec.structs.replace(struct, **{name: new})
