"""Rules for the items of a Responses request: ids, pairs of reasoning and what follows it, stored items, tool results.

Written from the documented rules and from reported errors. Not here: settings (response_settings), and whose the state
is (the package's own module).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from asides.testing.stage.rules import Wire
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
# Items that a client puts into a conversation: the model did not make them.
_BY_CLIENT = (*OUTPUTS, "configuration_update", "item_reference")
_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}
_LONGEST_ID = 64

_ORPHANED = HostRule(
    kind="reasoning_item_orphaned",
    text="Item '{name}' of type 'reasoning' was provided without its required following item.",
    param="input",
    since="2025-05",
    source="continuedev/continue#8933",
)
_MISSING = HostRule(
    kind="reasoning_item_missing",
    text="Item '{name}' of type '{type}' was provided without its required 'reasoning' item: '{leader}'.",
    param="input",
    since="2025-10-11",
    source="mastra-ai/mastra#8738; continuedev/continue#12620",
)
_NO_SUMMARY = HostRule(
    kind="",
    text="Missing required parameter: 'input[{place}].summary'.",
    param="input[{place}].summary",
    code="missing_required_parameter",
    since="2025-05",
    source="newo-ether/Agora#141",
)
_CONTENT = HostRule(
    kind="reasoning_content_nonempty",
    text="Invalid 'input[{place}].content': array too long. Expected an array with maximum length 0, but got an array "
    "with length {length} instead.",
    param="input[{place}].content",
    code="array_above_max_length",
    since="2026-09-10",
    source="musistudio/claude-code-router#1783",
)
_ID_PREFIX = HostRule(
    kind="reasoning_item_id_invalid",
    text="Invalid 'input[{place}].id': '{name}'. Expected an ID that begins with '{prefix}'.",
    param="input[{place}].id",
    code="invalid_value",
    since="2026-03-06",
    source="diegosouzapw/OmniRoute#224; langchain-ai/langchainjs#11045",
)
_ID_LENGTH = HostRule(
    kind="reasoning_item_id_invalid",
    text="Invalid 'input[{place}].id': string too long. Expected a string with maximum length 64, but got a string "
    "with length {length} instead.",
    param="input[{place}].id",
    code="string_above_max_length",
    since="2026-09-08",
    source="mweinbach/open-grok#23",
)
_DUPLICATE = HostRule(
    kind="reasoning_item_duplicate",
    text="Duplicate item found with id {name}. Remove duplicate items from your input and try again.",
    param="input",
    since="2026-04-11",
    source="NousResearch/hermes-agent#7939; microsoft/vscode#321977",
)
_NOT_PERSISTED = HostRule(
    kind="item_not_persisted",
    text="Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try again with "
    "`store` set to true, or remove this item from your input.",
    status=404,
    param="input",
    since="2025-07",
    source="can1357/oh-my-pi#41",
)
_NOT_RETAINED = HostRule(
    kind="item_not_persisted",
    text="Item with id '{name}' not found. Items are not persisted for Zero Data Retention organizations. Remove this "
    "item from your input and try again.",
    status=404,
    param="input",
    since="2025-04-25",
    source="openai/openai-agents-python#605",
)
_NO_OUTPUT = HostRule(
    kind="tool_result_missing",
    text="No tool output found for function call {call}.",
    param="input",
    since="2026-03-12",
    source="symgraph/GhidrAssist#78",
)
_NO_CALL = HostRule(
    kind="tool_result_orphaned",
    text="No tool call found for function call output with call_id {call}.",
    param="input",
    since="2026-02-01",
    source="continuedev/continue#10092",
)
_REASONING_TEXT = HostRule(
    kind="reasoning_content_required",
    text="The `reasoning_text` in the thinking mode must be passed back to the API.",
    since="2026-08-11",
    source="rikkahub/rikkahub#1690",
)


def check_ids(items: list[Wire], repeated: Container[str]) -> Iterator[Fault]:
    """Check that ids begin as those of their kind, are not too long, and are not there twice.

    `repeated`: ids that a script gave to several items.
    """
    seen: set[str] = set()
    for place, item in enumerate(items):
        name = item.get("id")
        if name is None:
            continue
        # An id alone is a reference to an item of any kind.
        prefix = None if item.keys() == {"id"} else _PREFIXES.get(item.get("type", "message"))
        if prefix is not None and not str(name).startswith(prefix):
            yield _ID_PREFIX.fault(place=place, name=name, prefix=prefix)
        if len(str(name)) > _LONGEST_ID:
            yield _ID_LENGTH.fault(place=place, length=len(str(name)))
        # The output of a tool of the provider has the id of its call.
        if item.get("type", "message") in _PREFIXES:
            if str(name) in seen and name not in repeated:
                yield _DUPLICATE.fault(name=name)
            seen.add(str(name))


def check_form(items: list[Wire], *, holds_text: bool) -> Iterator[Fault]:
    """Check that reasoning has a summary, and no content unless the model's reasoning is text."""
    for place, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if not isinstance(item.get("summary"), list):
            yield _NO_SUMMARY.fault(place=place)
        content = item.get("content")
        if content and not holds_text:
            yield _CONTENT.fault(place=place, length=len(content))


def check_stored(items: list[Wire], stored: Mapping[str, Wire], *, retains: bool) -> Iterator[Fault]:
    """Check that an item that brings nothing of its own is stored."""
    rule = _NOT_PERSISTED if retains else _NOT_RETAINED
    for item in items:
        is_reference = item.get("type") == "item_reference"
        is_empty = item.get("type") == "reasoning" and not item.get("encrypted_content")
        if (is_reference or is_empty) and item.get("id") not in stored:
            yield rule.fault(name=item.get("id"))


def check_neighbours(items: list[Wire], followers: Mapping[str, str], leaders: Mapping[str, str]) -> Iterator[Fault]:
    """Check that reasoning and the item after it come back together. `followers` and `leaders`: who had whom."""
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else None
        before = items[place - 1] if place else None
        name = item.get("id")
        if item.get("type") == "reasoning":
            expected = followers.get(str(name))
            follows = following is not None and is_by_model(following)
            if following is not None and expected is not None and following.get("id") not in (None, expected):
                follows = False
            if not follows:
                yield _ORPHANED.fault(name=name)
            continue
        leader = leaders.get(str(name))
        led = before is not None and before.get("type") == "reasoning" and before.get("id") in (None, leader)
        if leader is not None and not led:
            yield _MISSING.fault(name=name, type=item.get("type"), leader=leader)


def check_calls(items: list[Wire], waiting: set[str]) -> Iterator[Fault]:
    """Check that each call has an output and each output a call. `waiting`: the calls before these items."""
    for item in items:
        if item.get("type") in CALLS:
            waiting.add(str(item.get("call_id")))
        elif item.get("type") in OUTPUTS:
            call = str(item.get("call_id"))
            if call not in waiting:
                yield _NO_CALL.fault(call=call)
            waiting.discard(call)
    yield from (_NO_OUTPUT.fault(call=call) for call in sorted(waiting))


def check_reasoning_text(items: list[Wire]) -> Iterator[Fault]:
    """Check that the text of the thinking stands before the calls that it led to."""
    has_text = False
    for item in items:
        if item.get("type") == "reasoning":
            has_text = bool(item.get("content"))
        elif item.get("type") in CALLS:
            if not has_text:
                yield _REASONING_TEXT.fault()
        else:
            has_text = False


def is_by_model(item: Wire) -> bool:
    """Return whether the model produced this item."""
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return item.get("type") not in _BY_CLIENT
