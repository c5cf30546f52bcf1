"""What saved items show and a request does not: arguments that are not objects, and ids that refer to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asides.dialects.openai_chat.rules.messages import ARGUMENTS
from asides.dialects.openai_chat.rules.saved import is_object
from asides.dialects.openai_responses.rules.state import MISSING, NOT_PERSISTED
from asides.dialects.rulebook import BrokenRule, SavedHistory, Wire

ID_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids of items begin, by their type."""


def check_saved(items: Sequence[Wire], history: SavedHistory) -> Iterator[BrokenRule]:
    """Yield the rules that the items break for certain, though a request alone does not show it."""
    for place, item in enumerate(items):
        if item.get("type") == "function_call" and not is_object(item.get("arguments")):
            detail = f"the arguments of {item.get('name')} are not a JSON object"
            yield ARGUMENTS.shown(f"input[{place}]", detail)
    if not history.target.quirks.encrypted_reasoning:
        return
    for place, item in enumerate(items):
        is_reference = item.get("type") == "item_reference" or item.keys() == {"id"}
        is_bare = is_reference or (item.get("type") == "reasoning" and not item.get("encrypted_content"))
        if is_bare and not history.is_stored:
            detail = "it has an id alone, and nothing is stored that it could refer to"
            yield NOT_PERSISTED.shown(f"input[{place}]", detail)
    for place in find_bound(items, history):
        detail = "its id binds it to a reasoning item that is not there, if the model reasoned before it"
        yield MISSING.shown(f"input[{place}].id", detail)


def find_bound(items: Sequence[Wire], history: SavedHistory) -> Iterator[int]:
    """Find the items of a turn with ids that have no reasoning before them: an id binds an item to it."""
    strict, rule = history.target.quirks.encrypted_reasoning, history.target.rule
    if not strict or rule.thinking == "never" or history.continues:
        return
    has_reasoning = False
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if item.get("role") in ("user", "system", "developer") or str(kind).endswith("_output"):
            has_reasoning = False
        elif kind == "reasoning":
            has_reasoning = history.is_stored or bool(item.get("encrypted_content"))
        elif not has_reasoning and isinstance(kind, str) and kind in ID_PREFIXES and item.get("id") is not None:
            yield place
