"""Rules for the items of a Responses request: ids, pairs of reasoning and what follows it, stored items, tool results.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.dialects.openai_chat.rules.messages import NO_ELEMENT
from asides.dialects.openai_responses.encode import ID_PREFIXES, MAX_ID_LENGTH
from asides.dialects.rulebook import BrokenRule, Rule, Wire

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
# Items that a client puts into a conversation: the model did not make them.
_BY_CLIENT = (*OUTPUTS, "configuration_update", "item_reference")

ORPHANED = Rule(
    kind="reasoning_item_orphaned",
    text="Item '{name}' of type 'reasoning' was provided without its required following item.",
    param="input",
    since="2025-05",
    source="continuedev/continue#8933",
)
_NO_SUMMARY = Rule(
    kind=None,
    text="Missing required parameter: 'input[{place}].summary'.",
    param="input[{place}].summary",
    code="missing_required_parameter",
    since="2025-05",
    source="newo-ether/Agora#141",
)
_CONTENT = Rule(
    kind="reasoning_content_nonempty",
    text="Invalid 'input[{place}].content': array too long. Expected an array with maximum length 0, but got an array "
    "with length {length} instead.",
    param="input[{place}].content",
    code="array_above_max_length",
    since="2026-09-10",
    source="musistudio/claude-code-router#1783",
)
_ID_PREFIX = Rule(
    kind="reasoning_item_id_invalid",
    text="Invalid 'input[{place}].id': '{name}'. Expected an ID that begins with '{prefix}'.",
    param="input[{place}].id",
    code="invalid_value",
    since="2026-03-06",
    source="diegosouzapw/OmniRoute#224; langchain-ai/langchainjs#11045",
)
_ID_LENGTH = Rule(
    kind="reasoning_item_id_invalid",
    text="Invalid 'input[{place}].id': string too long. Expected a string with maximum length 64, but got a string "
    "with length {length} instead.",
    param="input[{place}].id",
    code="string_above_max_length",
    since="2026-09-08",
    source="mweinbach/open-grok#23",
)
DUPLICATE = Rule(
    kind="reasoning_item_duplicate",
    text="Duplicate item found with id {name}. Remove duplicate items from your input and try again.",
    param="input",
    since="2026-04-11",
    source="NousResearch/hermes-agent#7939; microsoft/vscode#321977",
)
_NO_OUTPUT = Rule(
    kind="tool_result_missing",
    text="No tool output found for function call {call}.",
    param="input",
    since="2026-03-12",
    source="symgraph/GhidrAssist#78",
)
_NO_CALL = Rule(
    kind="tool_result_orphaned",
    text="No tool call found for function call output with call_id {call}.",
    param="input",
    since="2026-02-01",
    source="continuedev/continue#10092",
)
_REASONING_TEXT = Rule(
    kind="reasoning_content_required",
    text="The `reasoning_text` in the thinking mode must be passed back to the API.",
    since="2026-08-11",
    source="rikkahub/rikkahub#1690",
)
_COMPACTION = Rule(
    kind="encrypted_reasoning_invalid",
    text="Could not decode the compaction blob. Ensure it is unmodified from the compact response.",
    code="invalid-argument",
    since="2026-07-18",
    source="chenyme/grok2api#689: an item with encrypted_content and no summary",
)


def check_ids(items: list[Wire]) -> Iterator[BrokenRule]:
    """Check that ids have the prefix of their kind, are not too long, and are unique."""
    seen: set[str] = set()
    for place, item in enumerate(items):
        name, path = item.get("id"), f"input[{place}].id"
        if name is None:
            continue
        # An id alone is a reference to an item of any kind.
        prefix = None if item.keys() == {"id"} else ID_PREFIXES.get(item.get("type", "message"))
        if prefix is not None and not str(name).startswith(prefix):
            yield _ID_PREFIX.broken(path, place=place, name=name, prefix=prefix)
        if len(str(name)) > MAX_ID_LENGTH:
            yield _ID_LENGTH.broken(path, place=place, length=len(str(name)))
        # The output of a tool of the provider has the id of its call.
        if item.get("type", "message") in ID_PREFIXES:
            if str(name) in seen:
                yield DUPLICATE.broken(path, quoted=name, name=name)
            seen.add(str(name))


def check_form(items: list[Wire], *, holds_text: bool) -> Iterator[BrokenRule]:
    """Check that reasoning has a summary, and no content unless the model's reasoning is text."""
    for place, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if not isinstance(item.get("summary"), list):
            yield _NO_SUMMARY.broken(f"input[{place}].summary", place=place)
        content = item.get("content")
        if content and not holds_text:
            yield _CONTENT.broken(f"input[{place}].content", place=place, length=len(content))


def check_neighbours(items: list[Wire]) -> Iterator[BrokenRule]:
    """Check that an item of the model follows its reasoning."""
    for place, item in enumerate(items):
        follows = place + 1 < len(items) and is_by_model(items[place + 1])
        if item.get("type") == "reasoning" and not follows:
            yield ORPHANED.broken(f"input[{place}]", name=item.get("id"))


def check_calls(items: list[Wire], waiting: set[str], *, continues: bool = False) -> Iterator[BrokenRule]:
    """Check that each call has an output and each output a call.

    `waiting`: the calls before these items. `continues`: there may be others that are not known.
    """
    places: dict[str, int] = {}
    by_provider: set[str] = set()
    """Calls of tools of the provider that the client may run."""
    for place, item in enumerate(items):
        call = str(item.get("call_id"))
        if item.get("type") in CALLS:
            waiting.add(call)
            places[call] = place
        elif str(item.get("type")).endswith("_call"):
            by_provider.add(call)
        elif item.get("type") in OUTPUTS:
            if call not in waiting and call not in by_provider and not continues:
                yield _NO_CALL.broken(f"input[{place}]", call=call)
            waiting.discard(call)
    for call in sorted(waiting):
        yield _NO_OUTPUT.broken(f"input[{places[call]}]" if call in places else "input", call=call)


def check_reasoning_text(items: list[Wire]) -> Iterator[BrokenRule]:
    """Check that a turn has the text of its thinking before its calls."""
    has_text = False
    for place, item in enumerate(items):
        if item.get("type") == "reasoning":
            has_text = has_text or bool(item.get("content"))
        elif item.get("type") in CALLS:
            if not has_text:
                yield _REASONING_TEXT.broken(f"input[{place}]")
        elif not is_by_model(item):
            has_text = False


def check_elements(items: list[Wire]) -> Iterator[BrokenRule]:
    """Check that no message is empty, and no state lacks a summary, without which it counts as something else."""
    for place, item in enumerate(items):
        if item.get("type", "message") == "message" and item.get("content") in (None, "", []):
            yield NO_ELEMENT.broken(f"input[{place}]")
        if item.get("type") == "reasoning" and item.get("encrypted_content") and "summary" not in item:
            yield _COMPACTION.broken(f"input[{place}]")


def is_by_model(item: Wire) -> bool:
    """Return whether the model produced this item."""
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return item.get("type") not in _BY_CLIENT
