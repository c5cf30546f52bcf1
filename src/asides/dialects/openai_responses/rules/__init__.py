"""What hosts of Responses refuse: `check` yields every broken rule.

A row names the rule sets that its host enforces (`Quirks.enforces`); calls and outputs pair everywhere. items: ids,
pairs and form of items. settings: fields, efforts, sampling. state: the words for state that only its holder can check.
saved: what a file shows, and no request.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.dialects.openai_chat.rules.settings import (
    UNKNOWN,
    check_listed_effort,
    check_ranges,
    check_strict_tools,
    thinks_at,
)
from asides.dialects.openai_chat.rules.state import UNDECRYPTED
from asides.dialects.openai_responses.rules import items, settings, state
from asides.dialects.openai_responses.rules.saved import check_saved
from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest
from asides.providers.provider import Target

__all__ = ["RULES", "check", "check_saved"]


def _list_rules() -> Iterator[Rule]:
    for module in (state, items, settings):
        yield from (value for value in vars(module).values() if isinstance(value, Rule))
    yield from (UNKNOWN, UNDECRYPTED)


RULES = tuple(dict.fromkeys(_list_rules()))
"""Every rule, with its words, its date and its source."""


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks: its settings, its items, its length."""
    body, rule, enforced = request.body, target.rule, target.facts.enforces
    if "known_fields" in enforced:
        yield from settings.check_fields(body)
    if "reasoning_settings" in enforced:
        yield from settings.check_reasoning(body, rule)
        yield from settings.check_sampling(body, rule)
        yield from check_ranges(body)
        yield from check_strict_tools(body)
    if "listed_efforts" in enforced:
        yield from check_listed_effort(str(body.get("model")), rule, (body.get("reasoning") or {}).get("effort"))
    yield from settings.check_exclusive(body)
    if isinstance(body.get("input"), list):
        yield from _check_items(body, target)
    if "reasoning_settings" in enforced:
        yield from settings.check_length(body, rule)


def _check_items(body: Wire, target: Target) -> Iterator[BrokenRule]:
    sent: list[Wire] = body["input"]
    enforced = target.facts.enforces
    if "content_elements" in enforced:
        yield from items.check_elements(sent)
    if "item_forms" in enforced:
        yield from items.check_ids(sent)
        # Models of other makers have reasoning that is text.
        yield from items.check_form(sent, holds_text=target.rule.models == "*" or target.rule.kind == "raw")
    effort = (body.get("reasoning") or {}).get("effort")
    if "reasoning_text" in enforced and thinks_at(target.rule, effort):
        yield from items.check_reasoning_text(sent)
    if "paired_items" in enforced:
        yield from items.check_neighbours(sent)
    continues = body.get("previous_response_id") is not None or body.get("conversation") is not None
    yield from items.check_calls(sent, set(), continues=continues)
