"""Encodes a planned prompt as a Responses request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, items of the history, input parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.dialects.compaction import encode_threshold
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_added,
    report_cache,
    write_sampling,
)
from asides.dialects.media import make_data_url, make_image_url, refuse_sound_and_video
from asides.dialects.message_encoder import (
    ID_UP_TO_64,
    Wire,
    add_notice,
    encode_arguments,
    encode_flat,
    encode_native,
    encode_system,
    fit_call_id,
    leave_out,
    report_field,
    simplify_content,
)
from asides.dialects.openai_chat.encode import encode_tools
from asides.dialects.openai_responses.tool_items import CLIENT_CALLS, encode_output
from asides.dialects.openai_responses.wire import SAMPLING
from asides.dialects.verbatim import WholeFields, write_fields, write_source
from asides.providers.provider import Quirks, Target
from asides.providers.switches.write import write as write_thinking
from asides.values.errors import ConfigError, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.parts import (
    Commentary,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
    read_arguments,
)
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool, select_fields
from asides.values.traits import list_calls
from asides.wire.lenient import read_part_json

ENCRYPTED = "reasoning.encrypted_content"
_TEXT_TYPES = ("input_text", "output_text")
ID_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}
"""How the ids of items begin, by type."""
MAX_ID_LENGTH = 64
_WHOLE = WholeFields(
    ("tools", "tool_choice", "text.format", "conversation"),
    schemas=frozenset({"parameters", "schema"}),
    same=lambda name, ours, theirs: name == "conversation" and theirs == {"id": ours},
    defaults=({"type": "text"},),
)


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    return build_post(target, build_url(target), accept, body), tuple(notices)


def build_url(target: Target) -> str:
    """Build the address. The older address of a deployment has only chat; Responses is beside deployments."""
    own = target.quirks.path
    end = "/responses" if own == Quirks().path else own
    path = urlsplit(target.base_url).path.rstrip("/").partition("/deployments/")[0]
    if not path.endswith(end):
        path += end
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    state = prompt.state
    if state.previous_response_id is not None and state.conversation is not None:
        raise ConfigError("previous_response_id and conversation both set where to continue; give one of them.")
    body: dict[str, Any] = {"model": target.model}
    if prompt.system and prompt.system.strip():
        # The provider does not store instructions, so they are sent each time.
        body["instructions"] = prompt.system
    report_cache(prompt, notices, has_key=target.quirks.cache_key)
    body["input"] = encode_items(prompt, target, notices)
    body |= encode_tools(prompt, notices, tool=_encode_tool, named=_encode_choice)
    if prompt.cache and target.quirks.cache_key:
        from asides.dialects.cache_marks import encode_cache_key

        body |= encode_cache_key(prompt)
    if prompt.output is not None:
        body["text"] = {"format": _encode_output(prompt.output)}
    if prompt.max_tokens is not None:
        body["max_output_tokens"] = prompt.max_tokens
    body |= write_sampling(prompt, SAMPLING, notices)
    if prompt.stop:
        notices.append(Notice("setting_dropped", "stop does not exist in this dialect", "stop", "set", "nothing"))
    if prompt.stream:
        body["stream"] = True
    body |= {name: value for name in ("metadata", "user") if (value := getattr(prompt, name)) is not None}
    body |= _encode_state(prompt, target)
    notices += report_added(prompt, "openai_responses", body, "include", "store")
    if reasoning := _encode_reasoning(prompt, target, notices):
        body["reasoning"] = reasoning
    body = merge_fields(body, dict(target.facts.fields)) if target.rule.thinking != "never" else body
    return write_fields(prompt, merge_fields(body, prompt.extra), "openai_responses", _WHOLE, notices)


def _encode_state(prompt: Prompt, target: Target) -> dict[str, Any]:
    """Encode the state that carries reasoning on: stored by the provider, encrypted and stored by us, or not at all."""
    state, quirks = prompt.state, target.quirks
    encoded: dict[str, Any] = {}
    store = state.store
    if store is None and quirks.encrypted_reasoning and not state.continues:
        store = state.resume
    if store is not None:
        encoded["store"] = store
    if state.previous_response_id is not None:
        encoded["previous_response_id"] = state.previous_response_id
    if state.conversation is not None:
        encoded["conversation"] = state.conversation
    if state.truncation is not None:
        encoded["truncation"] = state.truncation
    encoded |= {} if prompt.compaction is None else encode_threshold(prompt.compaction)
    asks = quirks.encrypted_reasoning and target.may_think(prompt.thinking) and not state.continues
    include = list(dict.fromkeys((*state.include, ENCRYPTED) if asks else state.include))
    if not target.restrictions.includes_reasoning and ENCRYPTED in include:
        include.remove(ENCRYPTED)
    if include:
        encoded["include"] = include
    return encoded


def _encode_reasoning(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    fields, told = write_thinking(prompt.thinking, target, "openai_responses", source=prompt.source)
    notices += told
    if target.rule.thinking == "never":
        return {}
    reasoning: dict[str, Any] = fields.get("reasoning", {})
    if prompt.state.context is not None:
        reasoning["context"] = prompt.state.context
    if prompt.state.mode is not None:
        reasoning["mode"] = prompt.state.mode
    return reasoning


def _encode_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


def _is_own_tool(native: dict[str, Any]) -> bool:
    """Whether a tool may be one of this endpoint or its hosts; types with a version belong to another dialect."""
    kind = native.get("type")
    return isinstance(kind, str) and re.search(r"_\d{8}$|^(?:mcp_toolset|builtin_function)$", kind) is None


def _encode_tool(tool: Tool) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=_is_own_tool(tool.native))
    encoded: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["parameters"] = tool.parameters
    # Unlike in chat, a tool without this field is strict here.
    encoded["strict"] = tool.strict is True
    return encoded | select_fields(tool, "openai_responses")


def _encode_output(output: OutputSchema | str) -> dict[str, Any]:
    if isinstance(output, OutputSchema):
        return {"type": "json_schema", "name": output.name, "schema": output.schema, "strict": output.strict}
    return {"type": "json_object"}


# --- items of the history ---------------------------------------------------------------------------------------------


def encode_items(prompt: Prompt, target: Target, notices: list[Notice]) -> list[Wire]:
    """Encode every message as items, in order; a longer history begins with the same list as a shorter one. The system
    prompt is not among them.
    """
    encoder = _ItemEncoder(prompt, target, notices)
    return encode_flat(
        prompt.messages,
        notices,
        system=encoder.encode_system,
        user=encoder.encode_user,
        assistant=encoder.encode_assistant,
        tool_result=encoder.encode_tool_result,
        restore=encoder.restore,
        has_commentary=True,
    )


class _ItemEncoder:
    """Encodes the items of one history for one endpoint."""

    def __init__(self, prompt: Prompt, target: Target, notices: list[Notice]) -> None:
        self.notices = notices
        self.quirks = target.quirks
        self.takes_ids = target.restrictions.item_ids
        self.rule = target.rule
        self.system_role = target.facts.system_role
        self.refuses_blanks = "content_elements" in target.facts.enforces
        self.stored = prompt.state.store is True or prompt.state.continues
        calls = list_calls(prompt.messages)
        self.custom_calls = {call.id for call in calls if call.custom}
        self.native_calls = {call.id: item for call in calls if (item := _find_item(call.seals, *CLIENT_CALLS))}
        """The items of calls that are sent back unchanged: of the provider's tools."""

    def restore(self, message: Message, encoded: list[Wire]) -> list[Wire]:
        """Return the items that a message was read from, if they say the same."""
        # Only a model that thinks binds the ids of its items to each other.
        is_bound = self.rule.thinking != "never" and any(isinstance(part, Thought) for part in message.parts)
        is_free = message.role != "assistant" or (self.takes_ids and not is_bound)
        accepts = partial(_accepts_field, self.notices) if is_free or self.can_have_ids(encoded) else _is_not_id
        return write_source(message, encoded, "openai_responses", same=_is_same, accepts=accepts)

    # --- system, user and tools -------------------------------------------------------------------------------------

    def encode_system(self, message: Message) -> list[Wire]:
        rule = self.rule
        if message.effort and not message.parts and (rule.effort_updates or rule.thinking == "unknown"):
            return [{"type": "configuration_update", "reasoning": {"effort": message.effort}}]
        return encode_system(message, self.notices, self.system_role)

    def encode_user(self, _: Message, parts: list[Part]) -> Wire:
        encoded = [wire for part in parts for wire in _encode_input_part(part, "user", self.notices)]
        return {"role": "user", "content": simplify_content(encoded, "input_text")}

    def encode_tool_result(self, result: ToolResult) -> Wire:
        if (call := self.native_calls.get(result.call_id)) is not None:
            return encode_output(call, result, self.notices)
        call_id = fit_call_id(result.call_id, ID_UP_TO_64)
        output: str | list[Any] = result.content if isinstance(result.content, str) else []
        if not isinstance(result.content, str):
            output = [wire for part in result.content for wire in _encode_input_part(part, "tool", self.notices)]
        kind = "custom_tool_call_output" if result.call_id in self.custom_calls else "function_call_output"
        return {"type": kind, "call_id": call_id, "output": output}

    # --- assistant --------------------------------------------------------------------------------------------------

    def encode_assistant(self, message: Message) -> list[Wire]:
        items: list[Wire] = []
        for part in message.parts:
            match part:
                case Thought():
                    items += self.encode_thought(part)
                case Text() | Commentary() | Refusal():
                    _add_text(part, items)
                case ToolCall():
                    items.append(_encode_tool_call(part))
                case ServerTool() | UnknownPart():
                    item = read_part_json(part.json)
                    items += [item] if isinstance(item, dict) else []
                case _:
                    leave_out(part, "assistant", self.notices)
        items = [_simplify_message(item) for item in self.drop_last_reasoning(items)]
        if self.refuses_blanks and not any(item.get("type") == "reasoning" for item in items):
            # A reasoning item needs what follows it.
            items = [item for item in items if not _is_blank(item)]
        if self.quirks.call_order == "grouped":
            items.sort(key=lambda item: item.get("type") == "function_call")
        return items if self.can_have_ids(items) else [_drop_id(item) for item in items]

    def encode_thought(self, thought: Thought) -> list[Wire]:
        entry = next((seal.entry for seal in thought.seals if seal.entry is not None), None)
        fields = None if entry is None else msgspec.json.decode(entry)
        if isinstance(fields, dict):
            item: Wire = {name: value for name, value in fields.items() if value is not None}
            if item.get("type") == "reasoning":
                item.setdefault("summary", [])
                if not self.quirks.raw_items:
                    item.pop("content", None)
                return [item] if self.can_go_back(item) else []
        value = next((seal.value for seal in thought.seals if seal.kind == "encrypted" and seal.value), None)
        if value is not None:
            return [{"type": "reasoning", "summary": [], "encrypted_content": value}]
        if thought.kind == "raw" and thought.text and self.quirks.raw_items and not self.quirks.encrypted_reasoning:
            content = [{"type": "reasoning_text", "text": thought.text}]
            return [{"type": "reasoning", "id": "rs_0", "summary": [], "content": content}]
        add_notice(self.notices, "reasoning_not_sent", "a thought has nothing that this endpoint takes back")
        return []

    def can_go_back(self, item: Wire) -> bool:
        is_known = self.takes_ids and (self.stored or not self.quirks.encrypted_reasoning)
        if item.get("encrypted_content") or is_known:
            return True
        # Its id alone means nothing to an endpoint that has stored nothing: "Item with id … not found".
        add_notice(self.notices, "reasoning_not_sent", "a thought has no encrypted content, and nothing is stored")
        return False

    def drop_last_reasoning(self, items: list[Wire]) -> list[Wire]:
        """Drop reasoning that nothing follows: the endpoint refuses it."""
        end = len(items)
        while end and items[end - 1].get("type") == "reasoning":
            end -= 1
        if end < len(items):
            add_notice(self.notices, "reasoning_not_sent", "a trailing thought cannot be sent back")
        return items[:end]

    def can_have_ids(self, items: list[Wire]) -> bool:
        """Whether the items are sent with their ids. An id binds an item to the reasoning before it, so a turn that
        lacks an id or its reasoning is sent without ids.
        """
        if not self.takes_ids or self.stored or not self.quirks.encrypted_reasoning:
            return self.takes_ids
        return any(item.get("type") == "reasoning" for item in items) and all(item.get("id") for item in items)


def _accepts_field(notices: list[Notice], item: Mapping[str, Any], name: str) -> bool:
    """Whether a host accepts a field of an item: ids that clients made up are refused."""
    if name != "id":
        return True
    own, prefix = str(item["id"]), ID_PREFIXES.get(str(item.get("type", "message")), "")
    is_own = own.startswith(prefix) and len(own) <= MAX_ID_LENGTH
    if not is_own:
        report_field(notices, name)
    return is_own


def _is_not_id(_: Mapping[str, Any], name: str) -> bool:
    return name != "id"


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether the type of an item or a text means the same: some may be left out, or have a shorter name."""
    return name == "type" and (theirs is None if ours == "message" else theirs == "text" and ours in _TEXT_TYPES)


def _add_text(part: Text | Commentary | Refusal, items: list[Wire]) -> None:
    """Add a text to the message that is the last item, or to a new one. A text with an entry begins its message, and
    commentary shares none with the answer. Its phase is in its entry, and goes only to the provider that gave it.

    `annotated` holds the annotations of the message until `_simplify_message`, and `says` the type of its parts.
    """
    entry = None if isinstance(part, Refusal) else _find_item(part.seals, "message")
    says = Commentary if isinstance(part, Commentary) else Text
    if not items or items[-1].get("type") != "message" or items[-1].get("says") is not says or entry is not None:
        fields: Wire = entry or {}
        message: Wire = {"type": "message", "role": "assistant", **fields, "content": []}
        items.append({**message, "annotated": fields.get("content") or [], "says": says})
    content: list[Wire] = items[-1]["content"]
    annotated: list[Wire] = items[-1]["annotated"]
    if isinstance(part, Refusal):
        content.append({"type": "refusal", "refusal": part.text})
        return
    shape = annotated[len(content)] if len(content) < len(annotated) else {}
    beside = shape if shape.get("type") in ("output_text", "text") else {}
    content.append({**beside, "type": "output_text", "text": part.text})


def _encode_tool_call(call: ToolCall) -> Wire:
    if (item := _find_item(call.seals, *CLIENT_CALLS)) is not None:
        return {**item, "call_id": call.id}
    entry = _find_item(call.seals, "function_call", "custom_tool_call")
    call_id = fit_call_id(call.id, ID_UP_TO_64)
    if call.custom:
        item = {"type": "custom_tool_call", "call_id": call_id, "name": call.name, "input": call.raw_arguments or ""}
        return {**(entry or {}), **item}
    if entry is not None:
        text = entry.get("arguments")
        is_same = isinstance(text, str) and (call.raw_arguments == text or read_arguments(text) == call.arguments)
        if is_same and entry.get("name") == call.name:
            return {**entry, "call_id": call_id}
    arguments = encode_arguments(call) or "{}"
    return {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": arguments}


def _find_item(seals: tuple[Seal, ...], *kinds: str) -> Wire | None:
    for seal in seals:
        if seal.entry is None or not ("\\" in seal.entry or any(kind in seal.entry for kind in kinds)):
            continue
        item = msgspec.json.decode(seal.entry)
        if isinstance(item, dict) and item.get("type") in kinds:
            return {name: value for name, value in item.items() if value is not None}
    return None


def _simplify_message(item: Wire) -> Wire:
    """Return a message that has only text in its plain form; other items unchanged."""
    if "annotated" not in item:
        return item
    item = {name: value for name, value in item.items() if name not in ("annotated", "says")}
    match item:
        case {"content": [{"type": "output_text", "text": str() as text}], **beside} if len(beside) == 2:
            return {"role": "assistant", "content": text}
        case _:
            return item


def _is_blank(item: Wire) -> bool:
    return item.keys() == {"role", "content"} and isinstance(item["content"], str) and not item["content"].strip()


def _drop_id(item: Wire) -> Wire:
    return {name: value for name, value in item.items() if name != "id" or item.get("type") == "compaction"}


# --- what a user says ------------------------------------------------------------------------------------------------


def _encode_input_part(part: Part, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part of a user message, or of a result."""
    match part:
        case Text():
            return [{"type": "input_text", "text": part.text}]
        case Image():
            return [_encode_image(part)]
        case File():
            return [_encode_file(part)]
        case UnknownPart():
            return encode_native(part, role, notices)
        case _:
            return leave_out(part, role, notices)


def _encode_image(image: Image) -> Wire:
    encoded = {"type": "input_image", "image_url": make_image_url(image)}
    return encoded if image.detail is None else {**encoded, "detail": image.detail}


def _encode_file(file: File) -> Wire:
    refuse_sound_and_video(file)
    if file.id is not None:
        return {"type": "input_file", "file_id": file.id}
    if file.data is not None:
        return {"type": "input_file", "filename": file.name, "file_data": make_data_url(file.media_type, file.data)}
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    raise Unsupported("a file has neither data, an address nor an id; give File(data=…), File(url=…) or File(id=…).")
