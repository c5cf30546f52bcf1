"""Encodes a history for every dialect: walks over its messages, and adds notices for parts that cannot be sent.

A dialect provides functions that encode a part or a message. `encode_flat` is for dialects with a flat list of
messages, `encode_turns` for those with turns of content blocks. Not here: the fields of a dialect (its encode.py).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

import msgspec

from asides.values.errors import Unsupported
from asides.values.messages import (
    File,
    Image,
    Message,
    Part,
    Prompt,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought

Wire: TypeAlias = dict[str, Any]

STAND_IN = "skip_thought_signature_validator"
"""The documented signature for a call that this model did not sign, where its provider requires one."""

OPENING = "(The conversation begins here.)"
"""The user message that is added before a history that begins with the model, where a user must begin."""

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


# --- notices --------------------------------------------------------------------------------------------------------


def add_notice(notices: list[Notice], code: str, detail: str) -> None:
    """Add a notice about the messages, once."""
    notice = Notice(code, detail, "messages")
    if notice not in notices:
        notices.append(notice)


def leave_out(part: Part, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part that the dialect cannot send: nothing, and a notice."""
    kind = type(part).__name__
    add_notice(notices, "part_not_sent", f"this dialect cannot send {kind} parts of the role {role!r}")
    return []


def report_cache(prompt: Prompt, notices: list[Notice]) -> None:
    """Add a notice if a part or a tool has a cache breakpoint, for dialects and hosts that have none."""
    parts = (part for message in prompt.messages for part in message.parts)
    if any(getattr(each, "cache", False) for each in (*parts, *prompt.tools)):
        add_notice(notices, "cache_not_sent", "cache breakpoints (cache_control) do not exist here")


def leave_out_all_but_text(message: Message, notices: list[Notice]) -> None:
    """Add a notice for each part of a message that only takes text."""
    for part in message.parts:
        if not isinstance(part, Text):
            leave_out(part, message.role, notices)


def encode_native(part: UnknownPart, role: str, notices: list[Notice]) -> list[Any]:
    """Encode a part of unknown form: verbatim if the caller wrote it for this dialect; else leave it out."""
    return [msgspec.Raw(part.json.encode())] if part.origin is None else leave_out(part, role, notices)


# --- a flat list of messages ----------------------------------------------------------------------------------------


def read_system(prompt: Prompt) -> str | None:
    """Return the system prompt; None if it is blank."""
    return prompt.system if prompt.system and prompt.system.strip() else None


def put_system_first(prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages, with the system prompt as the first of them."""
    system = read_system(prompt)
    return prompt.messages if system is None else (Message("system", (Text(system),)), *prompt.messages)


def encode_system(message: Message, role: str = "system") -> list[Wire]:
    """Encode a system message as a role and its text."""
    return [{"role": role, "content": message.text}] if message.text.strip() else []


def encode_flat(
    messages: Iterable[Message],
    *,
    user: Callable[[Message, list[Part]], Wire],
    assistant: Callable[[Message], list[Wire]],
    tool_result: Callable[[ToolResult], Wire],
    system: Callable[[Message], list[Wire]] = encode_system,
) -> list[Wire]:
    """Encode a history as a flat list, in order. Tool results come before the other parts of their message.

    `user` is called with a message and its parts without results.
    """
    encoded: list[Wire] = []
    for message in messages:
        match message.role:
            case "system":
                encoded += system(message)
            case "assistant":
                encoded += assistant(message)
            case "user" | "tool":
                encoded += [tool_result(part) for part in message.parts if isinstance(part, ToolResult)]
                parts: list[Part] = [part for part in message.parts if not isinstance(part, ToolResult)]
                if not parts and (message.parts or message.role == "tool"):
                    continue
                if message.role == "tool":
                    raise Unsupported(
                        "a message of role 'tool' holds ToolResult parts; put other parts into a user message."
                    )
                encoded.append(user(message, parts))
    return encoded


# --- turns of content blocks ----------------------------------------------------------------------------------------


class BlockFormat(msgspec.Struct, frozen=True):
    """The content blocks of a dialect: one function for each kind of part."""

    text: Callable[[str], Wire]
    image: Callable[[Image], Wire]
    file: Callable[[File], Wire]
    tool_result: Callable[[ToolResult, str, list[Any]], Wire]
    """Arguments: the result, the id of its call, its content as blocks."""
    thought: Callable[[Thought], list[Wire]]
    """Returns the blocks that the thought came as."""
    answer: Callable[[Text], Wire]
    """Encodes text of the model, with its citations."""
    tool_call: Callable[[ToolCall, str], Wire]
    """Arguments: the call, its id."""
    mark_cache: Callable[[Wire, bool | str], list[Any]]
    """Returns the block with a cache breakpoint after it, which may have a lifetime."""
    add_turn: Callable[[list[Wire], str, list[Any]], None]
    """Arguments: the turns, a role, its blocks. Adds a turn, or adds the blocks to the last one."""


class EncodedTurns(msgspec.Struct):
    """A history as turns of content blocks, and the system prompt as blocks."""

    system: list[Any]
    turns: list[Wire]


def encode_turns(prompt: Prompt, form: BlockFormat, notices: list[Notice]) -> EncodedTurns:
    """Encode every message of a prompt, in order. Assistant turns go back as they came, block for block."""
    return _TurnEncoder(form, notices).encode(prompt)


class _TurnEncoder:
    """The walk of `encode_turns`, with the ids of the calls so far."""

    def __init__(self, form: BlockFormat, notices: list[Notice]) -> None:
        self.form = form
        self.notices = notices
        self.call_ids = _CallIds()

    def encode(self, prompt: Prompt) -> EncodedTurns:
        form, notices = self.form, self.notices
        system = read_system(prompt)
        encoded = EncodedTurns([] if system is None else [form.text(system)], [])
        for message in prompt.messages:
            match message.role:
                case "system":
                    if encoded.turns:
                        detail = "system messages have one place here; this one was moved to the front"
                        add_notice(notices, "system_moved", detail)
                    leave_out_all_but_text(message, notices)
                    texts = [part for part in message.parts if isinstance(part, Text)]
                    encoded.system += [block for part in texts for block in self.encode_user_part(part)]
                case "assistant":
                    blocks = self.encode_assistant(message)
                    if blocks and not encoded.turns:
                        detail = "a conversation begins with the user here; a short user message was added"
                        add_notice(notices, "turn_added", detail)
                        form.add_turn(encoded.turns, "user", [form.text(OPENING)])
                    if blocks:
                        form.add_turn(encoded.turns, "assistant", blocks)
                case "user" | "tool":
                    blocks = [block for part in message.parts for block in self.encode_user_part(part)]
                    if blocks:
                        form.add_turn(encoded.turns, "user", blocks)
                    elif message.role == "user":
                        add_notice(notices, "message_not_sent", "a message without content was left out")
        return encoded

    def encode_user_part(self, part: Part) -> list[Any]:
        match part:
            case Text():
                if not part.text.strip():
                    return []  # blank text is refused
                block = self.form.text(part.text)
            case Image():
                block = self.form.image(part)
            case File():
                block = self.form.file(part)
            case ToolResult():
                block = self.encode_tool_result(part)
            case UnknownPart():
                return encode_native(part, "user", self.notices)
            case Thought() | ToolCall() | Refusal() | ServerTool():
                return leave_out(part, "user", self.notices)
            case _:
                assert_never(part)
        return self.form.mark_cache(block, part.cache) if part.cache else [block]

    def encode_tool_result(self, result: ToolResult) -> Wire:
        parts = (Text(result.content),) if isinstance(result.content, str) else result.content
        content = [block for part in parts for block in self.encode_user_part(part)]
        return self.form.tool_result(result, self.call_ids.find(result.call_id), content)

    def encode_assistant(self, message: Message) -> list[Any]:
        encoded: list[Any] = []
        thoughts: list[Any] = []
        for part in message.parts:
            if isinstance(part, Thought):
                thoughts += self.form.thought(part)  # they wait for the block that follows
            elif blocks := self.encode_assistant_part(part):
                encoded += [*thoughts, *blocks]
                thoughts = []
        if thoughts:
            # A turn that ends with thinking is refused.
            add_notice(self.notices, "reasoning_not_sent", "a thought that nothing followed cannot go back")
        return encoded

    def encode_assistant_part(
        self, part: Text | ToolCall | ToolResult | Image | File | Refusal | ServerTool | UnknownPart
    ) -> list[Any]:
        match part:
            case Text():
                if not part.text.strip():
                    return []  # some replies hold a block of blanks, which is refused when it comes back
                block = self.form.answer(part)
                return self.form.mark_cache(block, part.cache) if part.cache else [block]
            case ToolCall():
                if part.raw_arguments is not None:
                    detail = "arguments that are no JSON object were sent back as an empty object"
                    add_notice(self.notices, "arguments_not_sent", detail)
                return [self.form.tool_call(part, self.call_ids.add(part.id))]
            case ServerTool() | UnknownPart():
                return [msgspec.Raw(part.json.encode())]
            case Refusal():
                return []  # the provider wrote it about the reply; it is not a part of it
            case Image() | File() | ToolResult():
                return leave_out(part, "assistant", self.notices)
            case _:
                assert_never(part)


class _CallIds:
    """The ids of calls as they are sent. Hosts that count their calls from zero use the same ids in every reply, and
    these dialects refuse an id that an earlier turn has.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._used: set[str] = set()

    def add(self, call_id: str) -> str:
        """Return the id to send for a call."""
        accepted, times = make_call_id(call_id), 1
        sent = accepted
        while sent in self._used:
            times += 1
            sent = f"{accepted[:56]}_{times}"
        self._used.add(sent)
        self._sent[call_id] = sent
        return sent

    def find(self, call_id: str) -> str:
        """Return the id to send for a result: that of the latest call with this id."""
        return self._sent.get(call_id) or make_call_id(call_id)


def make_call_id(call_id: str) -> str:
    """Return the id, or one derived from it if it holds characters that are not accepted."""
    if _CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"


# --- values -------------------------------------------------------------------------------------------------------


def simplify_content(encoded: list[Any], text_type: str) -> str | list[Any]:
    """Return content that is only one text as a string, other content as the list of its parts."""
    match encoded:
        case []:
            return ""
        case [{"type": kind, "text": str() as text}] if kind == text_type:
            return text
        case _:
            return encoded


def encode_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as JSON text, or the text as it came if that was no JSON object."""
    raw = call.raw_arguments
    return msgspec.json.encode(call.arguments).decode() if raw is None else raw


def find_entry(seals: tuple[Seal, ...], kind: str) -> msgspec.Raw | None:
    """Return the verbatim entry of the first seal of this kind that has one."""
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    return None if entry is None else msgspec.Raw(entry.encode())


def find_media_type(media: Image | File) -> str:
    """Return the media type: that of a data: address, else the given one."""
    inline = split_data_url(media.url) if media.url is not None else None
    return (media.media_type if inline is None else inline[0]).lower()


def refuse_sound_and_video(file: File) -> None:
    """Raise Unsupported for a file that is sound or video, for dialects that have no form for them."""
    kind = find_media_type(file)
    if kind.startswith(("audio/", "video/")):
        raise Unsupported(f"{kind} cannot be sent here; leave the file out, or ask a model of another provider.")


def make_data_url(media_type: str, data: bytes) -> str:
    """Encode the bytes as a data: address."""
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 of a data: address; None for other addresses."""
    inline = _DATA_URL.fullmatch(url)
    return None if inline is None else (inline[1], inline[2])


def make_image_url(image: Image) -> str:
    """Return the address of an image: its url, or a data: address with its bytes."""
    if image.data is not None:
        return make_data_url(image.media_type, image.data)
    if image.url is not None:
        return image.url
    raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
