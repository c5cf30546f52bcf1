"""Messages of LangChain as ours: `read_history` reads those of any chat model, with all that ours carry.

Every block is read as the standard block that LangChain makes of it. What has no standard form is read as the makers of
models write it. Nothing is left out in silence: it becomes a part, a notice, or a ConfigError.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from asides.intake.detect import find_part_format
from asides.intake.documents import parse_items
from asides.intake.objects.langchain_state import Block, CarriedParts, read_entries, read_facts_of_turn
from asides.values.attachments import split_data_url
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.json_form import to_json_value, write_json
from asides.values.messages import Message, Role
from asides.values.notices import Notice
from asides.values.parts import Commentary, File, Image, Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import read_cache_control

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
_MEDIA_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
_CHANGED = Notice(
    "seal_void", "a block was changed after the model wrote it, so its seal was not sent back", "messages"
)
_UNKNOWN = Notice("thinking_left_out", "thinking without its provider's state was not sent back", "messages")
_LEFT_OUT = Notice(
    "block_left_out", "a tool call that another provider ran cannot be sent back, and was left out", "messages"
)


def read_history(messages: Sequence[BaseMessage], provider: str = "") -> tuple[tuple[Message, ...], tuple[Notice, ...]]:
    """Read the messages of a prompt for a provider; returns them with notices. Raises a ConfigError that names the
    message.
    """
    reader = _Reader(provider)
    for place, message in enumerate(messages):
        try:
            reader.add(message)
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return tuple(reader.messages), tuple(dict.fromkeys(reader.notices))


class _Reader:
    """Reads one history. Calls of the oldest kind have no ids, and are counted."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.messages: list[Message] = []
        self.notices: list[Notice] = []
        self._unnamed = 0

    def add(self, message: BaseMessage) -> None:
        match message:
            case AIMessage():
                self.messages.append(self._read_answer(message))
            case ToolMessage():
                is_error = message.status == "error"
                result = ToolResult(message.tool_call_id, _read_result(message), message.name, is_error)
                self.messages.append(Message("tool", (result,)))
            case FunctionMessage():
                self.messages.append(Message("tool", (ToolResult(self._name_call(message.name), message.text),)))
            case HumanMessage():
                self._add_parts("user", message)
            case SystemMessage():
                self._add_parts("system", message)
            case ChatMessage():
                self._add_parts(_read_role(message.role), message)
            case _:
                raise ConfigError(
                    f"{describe_type(message)} cannot be sent to a model. Leave it out, or write a "
                    "HumanMessage, an AIMessage, a SystemMessage or a ToolMessage."
                )

    def _add_parts(self, role: Role, message: BaseMessage) -> None:
        parts = tuple(part for block in message.content_blocks for part in _read_block(cast(Block, block)))
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        if results:
            self.messages.append(Message("tool", results))
        others = tuple(part for part in parts if not isinstance(part, ToolResult))
        if others or not results:
            self.messages.append(Message(role, others, message.name))

    # --- messages of a model ------------------------------------------------------------------------------------------

    def _read_answer(self, message: AIMessage) -> Message:
        turn = read_facts_of_turn(message.additional_kwargs)
        spare = _Spare(message, self._provider)
        calls: dict[str | None, Block] = {
            call["id"]: {**call} for call in (*message.tool_calls, *message.invalid_tool_calls)
        }
        has_calls = bool(calls)
        parts: list[Part] = []
        for each in message.content_blocks:
            block = _find_call(cast(Block, each))
            if has_calls and block.get("type") in ("tool_call", "invalid_tool_call"):
                # The list of calls counts: users edit it, and remove calls that must not run.
                call = calls.pop(block.get("id"), None)
                if call is None:
                    continue
                block = {**block, **call}
            turn = self._add_answer_part(block, parts, spare) or turn
        for call in calls.values():
            self._add_answer_part(call, parts, spare)
        legacy = message.additional_kwargs.get("function_call")
        if isinstance(legacy, Mapping) and not any(isinstance(part, ToolCall) for part in parts):
            self._unnamed += 1
            name = str(legacy.get("name", ""))
            parts.append(ToolCall(self._name_call(name), name, legacy.get("arguments") or {}))
        return msgspec.structs.replace(turn or Message("assistant", ()), parts=tuple(parts), name=message.name)

    def _add_answer_part(self, block: Block, parts: list[Part], spare: _Spare) -> Message | None:
        """Read a block of a model. Returns the turn that it carries, without parts."""
        carried = spare.carried.find(block)
        part = None if carried is None else carried.fill(block)
        if carried is not None and part is not None:
            parts.append(part)
            return msgspec.structs.replace(carried.message, parts=())
        if carried is not None:
            self.notices.append(_CHANGED)
        if str(block.get("type")).startswith("server_tool"):
            self.notices.append(_LEFT_OUT)
        elif block.get("type") in ("tool_call", "invalid_tool_call", "tool_call_chunk"):
            parts.append(self._read_call(block))
        else:
            found = list(_read_block(block))
            if not spare.is_own and any(isinstance(part, Thought) and not part.seals for part in found):
                # Thinking of unknown origin: without its state a provider may refuse it.
                self.notices.append(_UNKNOWN)
            else:
                parts += found
        return None

    def _read_call(self, block: Block) -> ToolCall:
        call_id, name, given = block.get("id"), str(block.get("name") or ""), block.get("args")
        if not call_id:
            self._unnamed += 1
            call_id = self._name_call(name)
        if isinstance(given, Mapping):
            return ToolCall(str(call_id), name, dict(given))
        return ToolCall(str(call_id), name, {}, str(given or ""))

    def _name_call(self, name: str) -> str:
        return f"call_{name}_{self._unnamed}"


class _Spare:
    """What a message has beside its blocks: seals for blocks that lost their own, and its origin."""

    def __init__(self, message: AIMessage, provider: str) -> None:
        self.is_own = message.response_metadata.get("model_provider") == provider
        """Whether it is of the same provider, asked through another chat model."""
        self.carried = CarriedParts([] if isinstance(message.content, str) else read_entries(message.additional_kwargs))


def _read_role(role: str) -> Role:
    found = _ROLES.get(role.lower())
    if found is None:
        raise ConfigError(f"the role {role[:40]!r} is not known. Use one of {', '.join(_ROLES)}.")
    return found


def _find_call(block: Block) -> Block:
    """A call in the form of Anthropic as a standard block; others unchanged."""
    value = block.get("value") if block.get("type") == "non_standard" else None
    if isinstance(value, Mapping) and value.get("type") == "tool_use" and isinstance(value.get("input"), Mapping):
        return {"type": "tool_call", "id": value.get("id"), "name": value.get("name"), "args": dict(value["input"])}
    return block


# --- blocks -----------------------------------------------------------------------------------------------------------


def _read_block(block: Block) -> Iterator[Part]:
    match block.get("type"):
        case "text":
            yield Text(str(block.get("text", "")), cache=_read_cache(block))
        case "reasoning":
            yield from _read_reasoning(block)
        case "image" if not block.get("file_id"):
            yield _read_image(block)
        case "image" | "audio" | "video" | "file" | "text-plain":
            yield _read_file(block)
        case "non_standard":
            yield from _read_foreign(block.get("value"))
        case kind:
            raise ConfigError(f"a block of type {str(kind)[:40]!r} cannot be sent. Leave it out.")


def _read_cache(block: Block) -> bool | str:
    return read_cache_control(block) or read_cache_control(_get_extras(block))


def _get_extras(block: Block) -> Mapping[str, Any]:
    extras = block.get("extras")
    return extras if isinstance(extras, Mapping) else {}


def _read_reasoning(block: Block) -> Iterator[Part]:
    """Thinking of another chat model, or of ours without what it carried. A signature may still be Claude's."""
    text = str(block.get("reasoning") or "")
    signature = _get_extras(block).get("signature") or block.get("signature")
    if isinstance(signature, str) and signature:
        seals = (Seal("signature", signature),)
        yield Thought(text, "summary" if text.strip() else "hidden", "block", None, seals, "thinking")
    elif text.strip():
        yield Thought(text)


def _read_foreign(value: object) -> Iterator[Part]:
    """A block in the form of a maker of models."""
    match value:
        case {"type": "refusal", "refusal": str() as text}:
            yield Refusal(text)
            return
        case {"type": "commentary", "commentary": str() as text}:
            yield Commentary(text)
            return
        case {"type": "seal"}:
            return  # without what it carried, it is nothing
        case _:
            pass
    form = find_part_format(value)
    field = "parts" if form == "gemini" else "content"
    try:
        found = parse_items([{"role": "user", field: [value]}], form)
    except ConfigError as problem:
        kind = value.get("type") if isinstance(value, Mapping) else type(value).__name__
        raise ConfigError(f"a block of type {str(kind)[:40]!r} cannot be read: {problem}") from None
    for message in found:
        yield from message.parts


def _read_image(block: Block) -> Image:
    data, url, found = _read_source(block)
    detail = _get_extras(block).get("detail") or block.get("detail")
    more: dict[str, Any] = {"detail": detail} if isinstance(detail, str) else {}
    if data is None:
        return Image(url=url, cache=_read_cache(block), **more)
    media_type = str(block.get("mime_type") or found or _MEDIA_TYPES["image"])
    return Image(data=data, media_type=media_type, cache=_read_cache(block), **more)


def _read_file(block: Block) -> File:
    kind = str(block["type"])
    extras = _get_extras(block)
    names = [holder.get(key) for holder in (block, extras) for key in ("filename", "title", "name")]
    name = next((each for each in names if isinstance(each, str) and each), "file")
    if kind == "text-plain" and isinstance(block.get("text"), str):
        return File(data=block["text"].encode(), name=name, media_type="text/plain", cache=_read_cache(block))
    given = block.get("mime_type")
    if file_id := block.get("file_id") or (None if block.get("url") or block.get("base64") else block.get("id")):
        more: dict[str, Any] = {"media_type": str(given)} if given else {}
        return File(id=str(file_id), name=name, cache=_read_cache(block), **more)
    data, url, found = _read_source(block)
    media_type = str(given or found or _MEDIA_TYPES.get(kind, "text/plain"))
    if data is None:
        return File(url=url, name=name, media_type=media_type, cache=_read_cache(block))
    return File(data=data, name=name, media_type=media_type, cache=_read_cache(block))


def _read_source(block: Block) -> tuple[bytes | None, str | None, str | None]:
    """The bytes, or the address, and the media type that an address names. Never a path of this machine."""
    kind, encoded, url = block.get("type"), block.get("base64"), block.get("url")
    if isinstance(encoded, str) and encoded:
        try:
            return b64decode(encoded, validate=True), None, None
        except (NotBase64, ValueError):
            raise ConfigError(f"the base64 of the {kind} cannot be decoded. Encode its bytes again.") from None
    if not isinstance(url, str) or not url:
        raise ConfigError(f"the {kind} has no content. Give it base64 and mime_type, url or file_id.")
    if url[:5].lower() != "data:":
        return None, url, None
    if (source := split_data_url(url)) is None or source.data is None:
        raise ConfigError(f"the data: URL of the {kind} cannot be decoded. Write data:image/png;base64,… .")
    return source.data, None, source.media_type or None


def _read_result(message: ToolMessage) -> str | tuple[Text | Image | File, ...]:
    if isinstance(message.content, str):
        return message.content
    parts: list[Text | Image | File] = []
    for each in message.content_blocks:
        block = cast(Block, each)
        if block.get("type") == "non_standard":
            parts.append(_read_result_value(block.get("value")))
            continue
        read = _read_block(block)
        parts += [part if isinstance(part, (Text, Image, File)) else _write_text(block) for part in read]
    return tuple(parts) if parts else ""


def _read_result_value(value: object) -> Text | Image | File:
    """A value in the result of a tool: a block in the form of a maker of models, or else any JSON."""
    try:
        found = [part for part in _read_foreign(value) if isinstance(part, (Text, Image, File))]
    except ConfigError:
        found = []
    return found[0] if found else _write_text(value)


def _write_text(value: object) -> Text:
    return Text(write_json(to_json_value(value)))
