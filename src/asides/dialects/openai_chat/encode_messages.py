"""Encodes a history as a list of chat messages: `encode_messages(prompt, target, notices)`.

history/plan has removed the thoughts that do not go back.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.http_body import report_cache
from asides.dialects.media import find_media_type, make_data_url, make_image_url, split_data_url
from asides.dialects.message_encoder import (
    ANY_ID,
    ID_UP_TO_40,
    NINE_ALPHANUMERICS,
    STAND_IN,
    CallIds,
    Wire,
    add_notice,
    encode_arguments,
    encode_flat,
    encode_native,
    encode_system,
    leave_out,
    leave_out_all_but_text,
    put_system_first,
    report_field,
    simplify_content,
)
from asides.dialects.openai_chat.wire import Signed
from asides.dialects.verbatim import read_source, write_source
from asides.providers.provider import Quirks, ReplayAs, Target
from asides.providers.quirks import THINKING_FIELDS
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.wire.lenient import read_part_json

DIALECT = "openai_chat"
# Each seal of this kind holds one whole entry of the array.
DETAILS = "reasoning_details"
DETAILS_TEXT_FIELD = "reasoning"
_SIGNATURE = "thought_signature"

# developers.openai.com guides/prompt-caching, 2026-11-16. Without the field some minutes, an hour at most.

_BRIDGE = "Noted."

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
# Notices about additions follow those about omissions.
_LAST_NOTICES = {"signature_stand_in": 1, "turn_added": 2}


def encode_messages(prompt: Prompt, target: Target, notices: list[Notice]) -> list[Wire]:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    encoder = _MessageEncoder(prompt, target, notices)
    if not target.quirks.cache_control:
        report_cache(prompt, notices, has_key=target.quirks.cache_key)
    messages = encode_flat(
        put_system_first(prompt),
        notices,
        system=encoder.encode_system,
        user=encoder.encode_user,
        assistant=encoder.encode_assistant,
        tool_result=encoder.encode_tool_result,
        restore=encoder.restore,
    )
    if target.quirks.after_results != "anyone":
        messages = encoder.add_bridges(messages)
    notices.sort(key=lambda notice: _LAST_NOTICES.get(notice.code, 0))
    return messages


class _MessageEncoder:
    """Encodes the messages of one history for one host."""

    def __init__(self, prompt: Prompt, target: Target, notices: list[Notice]) -> None:
        quirks = target.quirks
        self.notices = notices
        self.target = target
        self.quirks = quirks
        self.ids = _read_ids(prompt, quirks)
        self.system_role = target.facts.system_role
        self.takes_cache_control = target.quirks.cache_control
        # A request has few breakpoints. With `cache=` the rest is ours: those that were not read are dropped.
        self.keeps_cache_marks = self.takes_cache_control and not prompt.cache
        self.replay_as: ReplayAs = target.facts.replay_as
        self.thinking_in = target.facts.thinking_in
        # The text for thinking that is gone, in turns with calls or in all turns; None: the field is left out.
        self.lost_in_calls = self.lost_elsewhere = target.restrictions.missing_thinking
        empty = target.facts.empty_thinking
        if empty and self.lost_in_calls is None:
            self.lost_in_calls = "" if empty is True else empty
        if self.lost_in_calls is not None:
            takes_field = self.replay_as in ("field", "details") and _wants_thinking_back(prompt, target)
            if not takes_field:
                self.lost_in_calls = self.lost_elsewhere = None
        self.lost_field = quirks.replay_field or THINKING_FIELDS[0]
        if self.replay_as == "details":
            self.lost_field = DETAILS_TEXT_FIELD
        is_unknown = quirks.replay_field is None and quirks.thinking_in == THINKING_FIELDS
        self.keeps_details = self.replay_as == "field" and is_unknown and self.accepts_field({"role": ""}, DETAILS)
        """Whether details go back as they came: the host is not known, and thinking that stays keeps its fields."""
        self.signs_calls = target.rule.signed_calls
        """Whether the first call of a message must have a signature, for models that sign. Only the current turn is
        checked, but its calls stay as they were sent when it has ended: the provider's cache compares them."""

    def restore(self, message: Message, encoded: list[Wire]) -> list[Wire]:
        """Return the JSON that a message was read from, if it says the same."""
        if message.role == "tool" and len(encoded) == 1 and read_source(message, DIALECT).get("role") == "function":
            result = message.parts[0]
            if isinstance(result, ToolResult) and self.is_legacy(result.call_id):
                encoded = [{"role": "function", "name": result.name, "content": encoded[0]["content"]}]
        return write_source(message, encoded, DIALECT, same=_is_same, accepts=self.accepts_field)

    def is_legacy(self, call_id: str) -> bool:
        """Whether a call and its result can go back in the form that calls had before `tool_calls`."""
        return not self.quirks.message_fields and self.ids.is_kept(call_id)

    def accepts_field(self, holder: Mapping[str, Any], name: str) -> bool:
        """Whether the host accepts an unknown field of a message or of an object in it."""
        if name == "content":
            return self.quirks.blank_content
        known = self.quirks.message_fields
        if known and "role" in holder and name not in known:
            if name not in THINKING_FIELDS:
                report_field(self.notices, name)
            return False
        if name in THINKING_FIELDS and "assistant_fields" in self.target.facts.enforces:
            return False  # it refuses thinking under any name but its own
        return name != "cache_control" or self.keeps_cache_marks

    # --- hosts that refuse a user message after results -------------------------------------------------------------

    def make_bridge(self, role: str, following: str) -> list[Wire]:
        """Make the assistant message that must separate tool results from a user message."""
        if (role, following) != ("tool", "user"):
            return []
        detail = "only the assistant may follow tool results here; a short assistant message was added"
        add_notice(self.notices, "turn_added", detail)
        return [{"role": "assistant", "content": _BRIDGE}]

    def add_bridges(self, messages: list[Wire]) -> list[Wire]:
        bridged: list[Wire] = []
        for message in messages:
            bridged += [*self.make_bridge(bridged[-1]["role"] if bridged else "", message["role"]), message]
        return bridged

    # --- system, user and tools -------------------------------------------------------------------------------------

    def encode_system(self, message: Message) -> list[Wire]:
        if self.takes_cache_control and any(isinstance(part, Text) and part.cache for part in message.parts):
            leave_out_all_but_text(message, self.notices)
            return [{**self.encode_user(message, list(message.parts)), "role": self.system_role}]
        return [_add_name(message, encoded) for encoded in encode_system(message, self.notices, self.system_role)]

    def encode_tool_result(self, result: ToolResult) -> Wire:
        content: str | list[Any] = _encode_result_text(result, self.notices)
        if result.cache and self.takes_cache_control:
            content = [{"type": "text", "text": content, "cache_control": encode_cache(result.cache)}]
        return {"role": "tool", "tool_call_id": self.ids.fit(result.call_id), "content": content}

    def encode_user(self, message: Message, parts: list[Part]) -> Wire:
        encoded = [wire for part in parts for wire in self.encode_user_part(part)]
        is_plain = not any("cache_control" in wire for wire in encoded if isinstance(wire, dict))
        content = simplify_content(encoded, "text") if is_plain else encoded
        return _add_name(message, {"role": "user", "content": content})

    def encode_user_part(self, part: Part) -> list[Any]:
        encoded = _encode_user_part(part, self.notices)
        cache = getattr(part, "cache", False)
        if not cache or not self.takes_cache_control or not encoded:
            return encoded
        return [*encoded[:-1], {**encoded[-1], "cache_control": encode_cache(cache)}]

    # --- assistant --------------------------------------------------------------------------------------------------

    def encode_assistant(self, message: Message) -> list[Wire]:
        own = self.read_own(message)
        is_list = isinstance(own.get("content"), list)
        refusals = [part.text for part in message.parts if isinstance(part, Refusal)]
        refusal = "" if is_list and own.get("refusal") not in refusals else "".join(refusals[-1 if is_list else 0 :])
        images = self.find_images(message, own)
        calls = [self.encode_tool_call(call) for call in message.tool_calls]
        if any(isinstance(part, UnknownPart) for part in message.parts):
            calls = self.add_unknown_calls(message, own, calls)
        for part in message.parts:
            is_sent = isinstance(part, (Thought, Text, ToolCall, Refusal)) or part in images
            if not is_sent and not self.is_in(part, own):
                leave_out(part, "assistant", self.notices)
        if calls and self.signs_calls and "extra_content" not in calls[0]:
            calls[0]["extra_content"] = add_signature({}, STAND_IN)
            detail = "a call has no signature of this model; the documented stand-in was sent"
            add_notice(self.notices, "signature_stand_in", detail)
        fields = self.encode_thoughts(message, calls=bool(calls))
        content = self.encode_own_content(message, own, images) if is_list else self.encode_content(message)
        if content and calls and fields and "one_channel" in self.target.facts.enforces:
            add_notice(self.notices, "reasoning_not_sent", "a turn with calls can have text or thinking here, not both")
            fields = {}
        if not content and not calls and not refusal and not fields and not images:
            add_notice(self.notices, "message_not_sent", "an assistant message without content was left out")
            return []
        encoded: Wire = {"role": "assistant"}
        if content:
            encoded["content"] = content
        elif not calls:
            # A turn with calls has no empty content, since some hosts refuse it. Other turns must have the field.
            encoded["content"] = None if refusal else ""
        encoded |= fields
        if images:
            encoded["images"] = [_encode_image(image) for image in images]
        if refusal:
            encoded["refusal"] = refusal
        if calls and own.get("function_call") and "tool_calls" not in own and self.is_legacy(message.tool_calls[0].id):
            encoded["function_call"] = calls[0]["function"]
        elif calls:
            encoded["tool_calls"] = calls
        return [_add_name(message, encoded)]

    # --- what only some hosts have, where the caller wrote it -------------------------------------------------------

    def read_own(self, message: Message) -> Wire:
        """Return the JSON that a message was read from, if it has parts that have several places in it; else {}."""
        source = message.source
        if source is None:
            return {}
        has_odd = any(isinstance(part, (Refusal, Image, File, UnknownPart)) for part in message.parts)
        return read_source(message, DIALECT) if has_odd or "function_call" in source.json else {}

    def find_images(self, message: Message, own: Wire) -> list[Image]:
        """Find the pictures that were beside the content."""
        known = self.quirks.message_fields
        if not isinstance(own.get("images"), list) or (known and "images" not in known):
            return []
        images = [part for part in message.parts if isinstance(part, Image)]
        return images[-len(own["images"]) :]

    def is_in(self, part: Part, own: Wire) -> bool:
        """Whether a part of the model's was in the content or among the calls of its message."""
        if isinstance(part, UnknownPart):
            places = (own.get("content"), own.get("tool_calls"))
            found = [each for place in places if isinstance(place, list) for each in place]
            return part.origin is None and read_part_json(part.json) in found
        return isinstance(part, (Image, File)) and isinstance(own.get("content"), list) and "images" not in own

    def encode_own_content(self, message: Message, own: Wire, images: list[Image]) -> list[Any]:
        """Encode the content of a message whose content was a list."""
        refusals = [part for part in message.parts if isinstance(part, Refusal)]
        beside = refusals[-1:] if refusals and own.get("refusal") == refusals[-1].text else []
        calls = own.get("tool_calls") or []
        encoded: list[Any] = []
        for part in message.parts:
            match part:
                case Refusal() if part not in beside:
                    encoded.append({"type": "refusal", "refusal": part.text})
                case UnknownPart() if self.is_in(part, own) and read_part_json(part.json) not in calls:
                    encoded.append(read_part_json(part.json))
                case Text():
                    encoded += self.encode_user_part(part)
                case Image() | File() if self.is_in(part, own) and part not in images:
                    encoded += self.encode_user_part(part)
                case Thought() if self.replay_as == "content_list" and (chunk := _encode_chunk(part)) is not None:
                    encoded.append(chunk)
                case _:
                    pass
        return encoded

    def add_unknown_calls(self, message: Message, own: Wire, calls: list[Wire]) -> list[Wire]:
        """Return the calls, including those of an unknown kind, in order."""
        known, found = iter(calls), own.get("tool_calls")
        if not isinstance(found, list):
            return calls
        merged: list[Wire] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                merged.append(next(known))
            elif isinstance(part, UnknownPart) and (raw := read_part_json(part.json)) in found:
                merged.append(raw)
        return merged

    def encode_content(self, message: Message) -> str | list[Wire]:
        inline = self.replay_as in ("content_list", "tags") and any(isinstance(part, Thought) for part in message.parts)
        texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
        if not inline and self.takes_cache_control and any(text.cache for text in texts):
            return [wire for text in texts for wire in self.encode_user_part(text)]
        if not inline:
            # Replies that call tools often have a blank line for content, which some hosts refuse when it comes back.
            return message.text if message.text.strip() else ""
        if self.replay_as == "tags":
            return "".join(self.encode_tagged(part) for part in message.parts)
        return [wire for part in message.parts if (wire := _encode_chunk(part)) is not None]

    def encode_tagged(self, part: Part) -> str:
        match part:
            case Text():
                return part.text
            case Thought() if part.text:
                pairs = [tag for tag in self.target.facts.tags if isinstance(tag, tuple)]
                opening, closing = pairs[0] if pairs else ("<think>", "</think>")
                return f"{opening}{part.text}{closing}"
            case _:
                return ""

    def encode_thoughts(self, message: Message, *, calls: bool) -> Wire:
        """Encode thinking and its seals as fields beside the content."""
        thoughts = [part for part in message.parts if isinstance(part, Thought)]
        seals = [seal for thought in thoughts for seal in thought.seals]
        fields: Wire = {}
        entries = [msgspec.Raw(seal.entry.encode()) for seal in seals if _is_detail(seal) and seal.entry]
        match self.replay_as:
            case "details":
                if entries:
                    fields[DETAILS] = entries
                elif text := _join_texts(thoughts):
                    fields[DETAILS_TEXT_FIELD] = text
            case "field":
                if entries and self.keeps_details:
                    fields[DETAILS] = entries
                    # Their words are in them.
                    thoughts = [thought for thought in thoughts if thought.via != DETAILS]
                for name in dict.fromkeys(map(self.choose_field, thoughts)):
                    if text := _join_texts([thought for thought in thoughts if self.choose_field(thought) == name]):
                        fields[name] = text
            case "content_list" | "tags":
                pass
        lost = self.lost_in_calls if calls else self.lost_elsewhere
        if lost is not None and not fields:
            fields[self.lost_field] = lost
        signature = next((seal for seal in seals if seal.kind == _SIGNATURE), None)
        if signature is not None:
            fields |= _encode_carrier(signature) or {_SIGNATURE: signature.value}
        return fields

    def choose_field(self, thought: Thought) -> str:
        """The field in which the thought arrived. A host that names its only field gets an imported thought there."""
        via, own = thought.via, self.quirks.replay_field
        if via is None or via not in self.thinking_in or (own and thought.origin is None):
            return own or THINKING_FIELDS[0]
        return via

    def encode_tool_call(self, call: ToolCall) -> Wire:
        encoded: Wire = {"id": self.ids.fit(call.id)}
        if call.custom:
            encoded |= {"type": "custom", "custom": {"name": call.name, "input": call.raw_arguments or ""}}
        else:
            encoded |= {"type": "function", "function": {"name": call.name, "arguments": encode_arguments(call)}}
        for seal in call.seals:
            encoded |= _encode_carrier(seal)
        return encoded


def _read_ids(prompt: Prompt, quirks: Quirks) -> CallIds:
    match quirks.tool_call_ids:
        case "any":
            return CallIds(prompt.messages, DIALECT, ID_UP_TO_40, ANY_ID)
        case "up_to_40":
            return CallIds(prompt.messages, DIALECT, ID_UP_TO_40)
        case "nine_alphanumerics":
            return CallIds(prompt.messages, DIALECT, NINE_ALPHANUMERICS)


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: an address needs no object, and a cache mark may be beside the content."""
    if name == "content" and isinstance(theirs, str) and isinstance(ours, list) and len(ours) == 1:
        return bool(ours[0].get("text") == theirs and ours[0].keys() <= {"type", "text", "cache_control"})
    if name == "arguments" and isinstance(theirs, str) and isinstance(ours, str):
        return theirs == "null" and ours == "{}"
    return name == "image_url" and isinstance(theirs, str) and ours == {"url": theirs}


def _wants_thinking_back(prompt: Prompt, target: Target) -> bool:
    """Whether the model will think, as far as is known, and accepts earlier thinking. A host that refused a history
    without it thinks even with thinking turned off.
    """
    if target.thinks(prompt.thinking) is False and target.restrictions.missing_thinking is None:
        return False
    return target.provider.replay_rule(target.family or target.model).when != "never"


def _add_name(message: Message, encoded: Wire) -> Wire:
    return encoded if message.name is None else {"role": encoded.pop("role"), "name": message.name, **encoded}


def _join_texts(thoughts: list[Thought]) -> str:
    return "\n\n".join(thought.text for thought in thoughts if thought.text)


def _is_detail(seal: Seal) -> bool:
    return seal.kind.startswith(DETAILS)


def add_signature(extra_content: Any, signature: str) -> dict[str, Any]:
    """Return an `extra_content` object with this thought signature; all else in it stays."""
    (name,) = Signed.__struct_fields__  # that of the only host that signs calls of this dialect
    outer: dict[str, Any] = extra_content if isinstance(extra_content, dict) else {}
    inner = outer.get(name)
    return {**outer, name: {**(inner if isinstance(inner, dict) else {}), _SIGNATURE: signature}}


def _encode_carrier(seal: Seal) -> Wire:
    """Return the object beside a message or a call that carried its signature, verbatim."""
    if seal.kind != _SIGNATURE or seal.entry is None:
        return {}
    return {"extra_content": msgspec.Raw(seal.entry.encode())}


def _encode_chunk(part: Part) -> Wire | None:
    """Encode a part for a content list that holds thinking beside text; None for other parts."""
    match part:
        case Text() if part.text:
            return {"type": "text", "text": part.text}
        case Thought() if part.text or part.seals:
            chunk: Wire = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}] if part.text else []}
            for seal in part.seals:
                if seal.kind == "signature":
                    chunk["signature"] = seal.value
            return chunk
        case _:
            return None


def encode_cache(lifetime: bool | str) -> Wire:
    """Encode a cache breakpoint, for hosts that take them."""
    return {"type": "ephemeral", "ttl": lifetime} if isinstance(lifetime, str) else {"type": "ephemeral"}


def _encode_result_text(result: ToolResult, notices: list[Notice]) -> str:
    if isinstance(result.content, str):
        return result.content
    texts: list[str] = []
    for part in result.content:
        if isinstance(part, Text):
            texts.append(part.text)
            continue
        detail = "a tool result is text here; a note replaced an image or a file"
        add_notice(notices, "result_part_not_sent", detail)
        texts.append(f"[{'image' if isinstance(part, Image) else 'file'}, {part.media_type}: not shown]")
    return "\n".join(texts)


def _encode_user_part(part: Part, notices: list[Notice]) -> list[Any]:
    match part:
        case Text():
            return [{"type": "text", "text": part.text}]
        case Image():
            return [_encode_image(part)]
        case File():
            return [_encode_file(part)]
        case UnknownPart():
            return encode_native(part, "user", notices)
        case _:
            return leave_out(part, "user", notices)


def _encode_image(image: Image) -> Wire:
    url = make_image_url(image)
    described = {"url": url} if image.detail is None else {"url": url, "detail": image.detail}
    return {"type": "image_url", "image_url": described}


def _encode_file(file: File) -> Wire:
    if file.id is not None:
        return {"type": "file", "file": {"file_id": file.id}}
    kind, inline = find_media_type(file), split_data_url(file.url) if file.url is not None else None
    if kind.startswith("video/") and (file.data is not None or file.url is not None):
        url = file.url if file.data is None else make_data_url(kind, file.data)
        return {"type": "video_url", "video_url": {"url": url}}
    if kind.startswith("audio/") and (file.data is not None or inline is not None):
        data = b64encode(file.data).decode() if file.data is not None else inline and inline[1]
        form = _AUDIO_FORMATS.get(kind) or kind.partition("/")[2].partition(";")[0].removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    if file.data is not None:
        return {"type": "file", "file": {"filename": file.name, "file_data": make_data_url(file.media_type, file.data)}}
    if file.url is not None and file.url.startswith("data:"):
        return {"type": "file", "file": {"filename": file.name, "file_data": file.url}}
    if file.url is not None:
        raise Unsupported("chat completions take a file by its bytes or its id, not by address; give File(data=…).")
    raise Unsupported("a file has neither data nor an id; give File(data=…) or File(id=…).")
