"""Makes the messages of a file readable for the importers, which refuse what no server takes; and names faults that the
server alone can be sure of, but that a file shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from asides.dialects.anthropic.rules.words import BLOCK_MODIFIED, TEXT_MISSING
from asides.dialects.gemini.server.read_request import to_camel_case
from asides.dialects.message_encoder import STAND_IN
from asides.dialects.openai_chat.encode_messages import add_signature
from asides.dialects.openai_chat.rules.messages import ARGUMENTS
from asides.dialects.openai_chat.rules.state import MODIFIED
from asides.dialects.openai_responses.rules.items import is_by_model
from asides.dialects.openai_responses.rules.state import MISSING, NOT_PERSISTED
from asides.dialects.rulebook import Rule, Wire
from asides.history.doctor.merge import Node
from asides.intake.detect import HistoryFormat
from asides.providers.provider import Target
from asides.values.parts import is_too_deep, read_arguments
from asides.wire.partial_json import partial

_THOUGHTS = ("thinking", "redacted_thinking")
_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
_LONGEST_ID = 64
_TEXT_FIELDS = {"reasoning.text": "text", "reasoning.summary": "summary", "reasoning.encrypted": "data"}
# openrouter.ai docs reasoning-tokens, 2026-06-25: in this format text is a signed block of the upstream.
_SIGNED_FORMATS = ("anthropic-claude-v1",)


class Fault(msgspec.Struct, frozen=True):
    """A fault that no rule over a request shows for certain."""

    path: str
    detail: str
    rule: Rule


class Circumstances(msgspec.Struct, frozen=True):
    """What decides whether a part of a file is a fault."""

    format: HistoryFormat
    target: Target
    is_request: bool = False
    is_stored: bool = False
    """The provider may have stored items."""
    continues: bool = False
    """The request continues a conversation that the provider has stored."""

    @property
    def is_bound(self) -> bool:
        """Whether ids bind items to the reasoning before them."""
        strict, rule = self.target.quirks.encrypted_reasoning, self.target.rule
        return strict and rule.thinking != "never" and not self.continues

    def has_lost_text(self, block: Node) -> bool:
        """Return whether the text is gone that a signature covers. Where no request is known, "" may be right."""
        text, omits = block.get("thinking"), self.target.rule.display == "omitted"
        if not isinstance(text, str):
            return not omits
        return not text.strip() and (text != "" or (self.is_request and not omits))


def make_readable(items: Sequence[Node], case: Circumstances) -> list[Node]:
    """Return the messages as they can be imported."""
    match case.format:
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


def list_faults(items: Sequence[Node], case: Circumstances) -> Iterator[Fault]:
    """List the faults that a file shows."""
    if case.format in ("openai_chat", "openai_responses"):
        yield from _list_arguments(items)
    if case.format == "openai_chat" and case.target.facts.replay_as == "details":
        yield from _list_details(items)
    if case.format == "anthropic":
        yield from _list_changed(items, case)
    if case.format == "openai_responses" and case.target.quirks.encrypted_reasoning:
        if not case.is_stored:
            yield from _list_bare_ids(items)
        if case.is_bound:
            for place in _find_bound(items, case):
                detail = "its id binds it to a reasoning item that is not there, if the model reasoned before it"
                yield Fault(f"input[{place}].id", detail, MISSING)


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
    restored = _restore_details(details, item.get("reasoning")) if details else None
    if not details or restored == details:
        return item
    lost = () if restored else ("reasoning_details", "reasoning")  # both are the same thinking
    kept = {name: value for name, value in item.items() if name not in lost}
    return {**kept, "reasoning_details": restored} if restored else kept


def _list_details(items: Sequence[Node]) -> Iterator[Fault]:
    for place, item in enumerate(items):
        details = item.get("reasoning_details")
        if details and _restore_details(details, item.get("reasoning")) != details:
            detail = "the details are not whole, once and in their order"
            yield Fault(f"messages[{place}].reasoning_details", detail, MODIFIED)


def _mend_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or _is_object(function.get("arguments")):
        return call
    arguments = msgspec.json.encode(_read_object(function.get("arguments"))).decode()
    mended = {**call, "function": {**function, "arguments": arguments}}
    if isinstance(call.get("extra_content"), dict):  # a signature covers the arguments
        mended["extra_content"] = add_signature(call["extra_content"], STAND_IN)
    return mended


# --- arguments --------------------------------------------------------------------------------------------------------


def _list_arguments(items: Sequence[Node]) -> Iterator[Fault]:
    for place, item in enumerate(items):
        for number, call in enumerate(_as_list(item.get("tool_calls"))):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and not _is_object(function.get("arguments")):
                detail = f"the arguments of {function.get('name')} are not a JSON object"
                yield Fault(f"messages[{place}].tool_calls[{number}]", detail, ARGUMENTS)
        if item.get("type") == "function_call" and not _is_object(item.get("arguments")):
            yield Fault(f"input[{place}]", f"the arguments of {item.get('name')} are not a JSON object", ARGUMENTS)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_object(given: Any) -> bool:
    if not isinstance(given, str):
        return False
    try:
        encoded = given.encode()
        return not is_too_deep(encoded) and isinstance(msgspec.json.decode(encoded), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


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


def _mend_blocks(item: Node, seen: set[str], case: Circumstances) -> Node:
    content = item.get("content")
    if not isinstance(content, list):
        return item
    blocks: list[Any] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            block = {**block, "input": _read_object(block.get("input"))}
        if not isinstance(block, dict) or block.get("type") not in _THOUGHTS:
            blocks.append(block)
            continue
        seal = _read_seal(block)
        if isinstance(block.get("signature"), str) and not seal:
            block = {**block, "signature": ""}
        if item.get("role") != "assistant" or (seal and seal in seen):
            continue
        if seal:
            seen.add(seal)
        if block["type"] == "redacted_thinking":
            blocks += [block] if isinstance(block.get("data"), str) else []
        elif not (seal and case.has_lost_text(block)) and (seal or isinstance(block.get("thinking"), str)):
            blocks.append({**block, "thinking": block.get("thinking") or ""})
    return item if blocks == content else {**item, "content": blocks}


def _read_seal(block: Node) -> str:
    seal = block.get("data" if block.get("type") == "redacted_thinking" else "signature")
    return seal.strip() if isinstance(seal, str) else ""


def _list_changed(items: Sequence[Node], case: Circumstances) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, item in enumerate(items):
        for number, block in enumerate(_as_list(item.get("content"))):
            if not isinstance(block, dict) or block.get("type") not in _THOUGHTS or not (seal := _read_seal(block)):
                continue
            path = f"messages[{place}].content[{number}]"
            if seal in seen:
                yield Fault(path, "the signature of this block is that of an earlier one", BLOCK_MODIFIED)
            elif block["type"] == "thinking" and isinstance(block.get("thinking"), str) and case.has_lost_text(block):
                yield Fault(path, "the block has lost its text, which its signature covers", TEXT_MISSING)
            seen.add(seal)


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


def _mend_items(items: Sequence[Node], case: Circumstances) -> Iterator[Node]:
    bound = set(_find_bound(items, case)) if case.is_bound else set[int]()
    seen: set[str] = set()
    at_place = {str(item.get("id")) for place, item in enumerate(items) if _is_at_place(items, place)}
    for place, item in enumerate(items):
        given, kind = item.get("id"), item.get("type", "message")
        if kind == "reasoning" and given is not None and str(given) in at_place and not _is_at_place(items, place):
            continue  # a copy
        if kind == "function_call" and not _is_object(item.get("arguments")):
            item = {**item, "arguments": msgspec.json.encode(_read_object(item.get("arguments"))).decode()}
        if kind == "reasoning" and not isinstance(item.get("summary"), list):
            item = {**item, "summary": []}
        if place in bound:
            item, given = {name: value for name, value in item.items() if name != "id"}, None
        prefix = _PREFIXES.get(kind) if isinstance(kind, str) else None
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


def _list_bare_ids(items: Sequence[Node]) -> Iterator[Fault]:
    for place, item in enumerate(items):
        is_reference = item.get("type") == "item_reference" or item.keys() == {"id"}
        if is_reference or (item.get("type") == "reasoning" and not item.get("encrypted_content")):
            detail = "it has an id alone, and nothing is stored that it could refer to"
            yield Fault(f"input[{place}]", detail, NOT_PERSISTED)


def _find_bound(items: Sequence[Node], case: Circumstances) -> Iterator[int]:
    """Find the items of a turn with ids that have no reasoning before them: an id binds an item to it."""
    has_reasoning = False
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if item.get("role") in ("user", "system", "developer") or str(kind).endswith("_output"):
            has_reasoning = False
        elif kind == "reasoning":
            has_reasoning = case.is_stored or bool(item.get("encrypted_content"))
        elif not has_reasoning and isinstance(kind, str) and kind in _PREFIXES and item.get("id") is not None:
            yield place


# --- reasoning_details ------------------------------------------------------------------------------------------------


def _restore_details(details: Any, beside: Any = None) -> list[Wire] | None:
    """Return details as the server sent them: fragments of a stream joined, each entry once, in order. None if entries
    are lost or changed. `beside` is the plain text of the same thinking.
    """
    if not isinstance(details, list) or not all(isinstance(entry, dict) for entry in details):
        return None
    ordered = sorted(_join_fragments(details), key=_read_index)
    return None if any(map(_is_broken, ordered)) or _lacks_entries(ordered) or _lacks_text(ordered, beside) else ordered


def _read_index(entry: Wire) -> int:
    index = entry.get("index")
    return index if isinstance(index, int) else 0


def _join_fragments(entries: list[Wire]) -> list[Wire]:
    joined: list[Wire] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if entry in joined:
            continue
        if last is None or not _is_fragment(last, entry):
            joined.append(entry)
            continue
        name = _TEXT_FIELDS.get(str(entry.get("type")), "text")
        filled = {key: value for key, value in entry.items() if value is not None}
        joined[-1] = {**last, **filled, name: f"{last.get(name) or ''}{entry.get(name) or ''}"}
    return joined


def _is_fragment(last: Wire, entry: Wire) -> bool:
    if not isinstance(entry.get("index"), int) or entry.get("type") not in ("reasoning.text", "reasoning.summary"):
        return False
    for name in ("type", "index", "id", "format"):
        here, there = entry.get(name), last.get(name)
        if here != there and None not in (here, there):
            return False
    return not last.get("signature")


def _is_broken(entry: Wire) -> bool:
    kind, signature = entry.get("type"), entry.get("signature")
    if kind == "reasoning.encrypted":
        return not entry.get("data")
    if kind == "reasoning.text" and not signature:
        return entry.get("text") is None or entry.get("format") in _SIGNED_FORMATS
    return not isinstance(kind, str)


def _lacks_entries(entries: list[Wire]) -> bool:
    numbers = [entry["index"] for entry in entries if isinstance(entry.get("index"), int)]
    return len(numbers) == len(entries) and sorted(set(numbers)) != list(range(len(set(numbers))))


def _lacks_text(entries: list[Wire], beside: Any) -> bool:
    texts = [entry.get(name) for entry in entries for name in ("text", "summary") if name in entry]
    has_text = any(isinstance(text, str) and text.strip() for text in texts)
    is_signed = any(entry.get("signature") for entry in entries)
    return is_signed and isinstance(beside, str) and bool(beside.strip()) and not has_text
