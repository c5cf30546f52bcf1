"""Makes the messages of a file readable for the importers, which refuse what servers refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from asides.dialects.anthropic.rules.history import THOUGHTS
from asides.dialects.anthropic.rules.saved import has_lost_text, read_seal
from asides.dialects.gemini.server.read_request import to_camel_case
from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import add_signature
from asides.dialects.openai_chat.rules.saved import is_object, restore_details
from asides.dialects.openai_responses.rules.items import is_by_model
from asides.dialects.openai_responses.rules.saved import ID_PREFIXES, find_bound
from asides.dialects.rulebook import SavedHistory
from asides.history.doctor.merge import Node
from asides.intake.detect import HistoryFormat
from asides.values.parts import is_too_deep, read_arguments
from asides.wire.partial_json import partial

_LONGEST_ID = 64


def make_readable(items: Sequence[Node], format_name: HistoryFormat, case: SavedHistory) -> list[Node]:
    """Return the messages as they can be imported."""
    match format_name:
        case "openai_chat":
            return [_mend_message(item) for item in _mend_result_ids(items)]
        case "anthropic":
            seen: set[str] = set()
            return [_mend_blocks(item, seen, case) for item in _mend_block_ids(items)]
        case "gemini":
            return [_mend_role(item if _is_camel(item) else to_camel_case(item)) for item in items]
        case "openai_responses":
            return list(_mend_items(list(_mend_output_ids(items)), case))
        case _:
            return list(items)


# --- chat completions -------------------------------------------------------------------------------------------------


def _mend_result_ids(items: Sequence[Node]) -> Iterator[Node]:
    """Give each result without an id that of the first call before it that has no result."""
    open_ids = _OpenIds(item.get("tool_call_id") for item in items if item.get("role") == "tool")
    for item in items:
        if item.get("role") == "assistant":
            open_ids.call(call.get("id") for call in _as_list(item.get("tool_calls")) if isinstance(call, dict))
        yield open_ids.mend(item, "tool_call_id") if item.get("role") == "tool" else item


class _OpenIds:
    """The ids of calls that no result names, in order."""

    def __init__(self, named: Iterable[Any]) -> None:
        self._named = {name for name in named if isinstance(name, str)}
        self._open: list[str] = []

    def call(self, names: Iterable[Any]) -> None:
        """Add the ids of calls."""
        self._open += [name for name in names if isinstance(name, str) and name not in self._named]

    def mend(self, result: Node, field: str) -> Node:
        """Return the result with an id: one that it has, that of the first open call, or one that no call has."""
        if isinstance(result.get(field), str):
            return result
        return {**result, field: self._open.pop(0) if self._open else "missing"}


def _mend_message(item: Node) -> Node:
    has_calls = any(item.get(name) for name in ("tool_calls", "function_call"))
    if item.get("role") in ("assistant", "tool") and "content" not in item and not has_calls:
        item = {**item, "content": ""}
    calls: Any = item.get("tool_calls")
    if isinstance(calls, list):
        mended = [_mend_call(call) for call in calls]
        item = item if mended == calls else {**item, "tool_calls": mended}
    details = item.get("reasoning_details")
    restored = restore_details(details, item.get("reasoning")) if details else None
    if not details or restored == details:
        return item
    lost = () if restored else ("reasoning_details", "reasoning")  # both are the same thinking
    kept = {name: value for name, value in item.items() if name not in lost}
    return {**kept, "reasoning_details": restored} if restored else kept


def _mend_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or is_object(function.get("arguments")):
        return call
    arguments = msgspec.json.encode(_read_object(function.get("arguments"))).decode()
    mended = {**call, "function": {**function, "arguments": arguments}}
    if isinstance(call.get("extra_content"), dict):  # a signature covers the arguments
        mended["extra_content"] = add_signature(call["extra_content"], STAND_IN)
    return mended


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# --- arguments --------------------------------------------------------------------------------------------------------


def _read_object(given: Any) -> dict[str, Any]:
    """Return the arguments as an object: of text that was cut, what is certain."""
    if isinstance(given, dict):
        return given
    if not isinstance(given, str):
        return {}
    found = read_arguments(given)
    if found is None and not is_too_deep(given.encode("utf-8", "replace")):
        found = partial(given)
    return found if isinstance(found, dict) else {}


# --- blocks -----------------------------------------------------------------------------------------------------------


def _mend_block_ids(items: Sequence[Node]) -> Iterator[Node]:
    """Give each result without an id that of the first call before it that has no result."""
    listed = [(item, [block for block in _as_list(item.get("content")) if isinstance(block, dict)]) for item in items]
    open_ids = _OpenIds(
        block.get("tool_use_id") for _, blocks in listed for block in blocks if block.get("type") == "tool_result"
    )
    for item, blocks in listed:
        open_ids.call(block.get("id") for block in blocks if block.get("type") == "tool_use")
        if any(
            block.get("type") == "tool_result" and not isinstance(block.get("tool_use_id"), str) for block in blocks
        ):
            content = [
                open_ids.mend(block, "tool_use_id")
                if isinstance(block, dict) and block.get("type") == "tool_result"
                else block
                for block in item["content"]
            ]
            item = {**item, "content": content}
        yield item


def _mend_blocks(item: Node, seen: set[str], case: SavedHistory) -> Node:
    content = item.get("content")
    if not isinstance(content, list):
        return item
    blocks: list[Any] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            block = {**block, "input": _read_object(block.get("input"))}
        if not isinstance(block, dict) or block.get("type") not in THOUGHTS:
            blocks.append(block)
            continue
        seal = read_seal(block)
        if isinstance(block.get("signature"), str) and not seal:
            block = {**block, "signature": ""}
        if item.get("role") != "assistant" or (seal and seal in seen):
            continue
        if seal:
            seen.add(seal)
        if block["type"] == "redacted_thinking":
            blocks += [block] if isinstance(block.get("data"), str) else []
        elif not (seal and has_lost_text(block, case)) and (seal or isinstance(block.get("thinking"), str)):
            blocks.append({**block, "thinking": block.get("thinking") or ""})
    return item if blocks == content else {**item, "content": blocks}


# --- contents ---------------------------------------------------------------------------------------------------------


def _mend_role(item: Node) -> Node:
    return {**item, "role": "model"} if item.get("role") in ("assistant", "ai") else item


def _is_camel(item: Node) -> bool:
    parts = item.get("parts")
    return not any("_" in name for part in (parts if isinstance(parts, list) else [parts])
                   if isinstance(part, dict) for name in part)  # fmt: skip


# --- items ------------------------------------------------------------------------------------------------------------


def _mend_output_ids(items: Sequence[Node]) -> Iterator[Node]:
    """Give each output without an id that of the first call before it that has no output."""
    outputs = ("function_call_output", "custom_tool_call_output")
    open_ids = _OpenIds(item.get("call_id") for item in items if item.get("type") in outputs)
    for item in items:
        if item.get("type") in ("function_call", "custom_tool_call"):
            open_ids.call([item.get("call_id")])
        yield open_ids.mend(item, "call_id") if item.get("type") in outputs else item


def _mend_items(items: Sequence[Node], case: SavedHistory) -> Iterator[Node]:
    bound = set(find_bound(items, case))
    seen: set[str] = set()
    at_place = {str(item.get("id")) for place, item in enumerate(items) if _is_at_place(items, place)}
    for place, item in enumerate(items):
        given, kind = item.get("id"), item.get("type", "message")
        if kind == "reasoning" and given is not None and str(given) in at_place and not _is_at_place(items, place):
            continue  # a copy
        if kind == "function_call" and not is_object(item.get("arguments")):
            item = {**item, "arguments": msgspec.json.encode(_read_object(item.get("arguments"))).decode()}
        if kind == "reasoning" and not isinstance(item.get("summary"), list):
            item = {**item, "summary": []}
        if place in bound:
            item, given = {name: value for name, value in item.items() if name != "id"}, None
        prefix = ID_PREFIXES.get(kind) if isinstance(kind, str) else None
        if given is None or prefix is None or item.keys() == {"id"}:
            yield item
            continue
        if isinstance(given, str) and given in seen:
            if kind == "reasoning":
                continue
            item = {name: value for name, value in item.items() if name != "id"}
        elif not isinstance(given, str) or not given.startswith(prefix) or len(given) > _LONGEST_ID:
            if kind == "reasoning" and not item.get("encrypted_content"):
                continue
            item = {name: value for name, value in item.items() if name != "id"}
        else:
            seen.add(given)
        yield item


def _is_at_place(items: Sequence[Node], place: int) -> bool:
    """Return whether this is a reasoning item between an item that is not reasoning and one that the model made."""
    before = items[place - 1] if place else {}
    after = items[place + 1] if place + 1 < len(items) else {"role": "user"}
    is_reasoning = [item.get("type") == "reasoning" for item in (before, items[place], after)]
    return is_reasoning == [False, True, False] and is_by_model(after)
