"""Histories in the formats of other libraries: `export_messages(messages, format_name)`.

A format has the name of its dialect, whose client half encodes the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides import dialects
from asides.history.redact import drop_model_source, is_thinking
from asides.history.turns import make_ids_unique
from asides.providers.find import find_provider
from asides.providers.provider import THINKING_FIELDS, Provider, Quirks, ReplayAs, Target
from asides.values.errors import ConfigError, UnknownProvider
from asides.values.messages import Message, Prompt
from asides.values.parts import Part, ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, Thought

MessageFormat: TypeAlias = Literal["openai_chat", "anthropic", "openai_responses"]
"""A list of chat completions' messages, of Anthropic's turns of blocks, or of the items of Responses."""

_DETAILS = "reasoning_details"
# Seals that belong to thinking, on whatever part they are: tokens of calls and texts, and ids that tie items together.
_THINKING_SEALS = frozenset(
    {"signature", "redacted", "item", "encrypted", _DETAILS, "thought_signature", "reasoning_opaque"}
)


def parse_format(name: object) -> MessageFormat:
    """The format with this name: "openai", "anthropic", "responses", or the name of its dialect."""
    known: tuple[MessageFormat, ...] = get_args(MessageFormat)
    for each in known:
        if isinstance(name, str) and name.lower() in (each, *each.split("_")):
            return each
    raise ConfigError(f"the format {name!r} is not known. Use openai, anthropic or responses.")


def export_messages(
    messages: Sequence[Message], format_name: str, *, thinking: bool = False, rows: Sequence[Provider] = ()
) -> Any:
    """Export the messages in another library's format: for "openai" and "responses" a list, for "anthropic" an object
    with `messages` and, if there is one, `system`.

    Thinking is left out with all its seals. With `thinking=True` a thought goes where the format has a place for it;
    thoughts without a place and incomplete thoughts are dropped, and none becomes text. Parts that only their provider
    understands are dropped from other formats. `rows` are providers of the caller and win over the built-in ones.
    """
    chosen = parse_format(format_name)
    exported: list[Message] = []
    for message in make_ids_unique(messages):
        parts = tuple(_select_parts(message, chosen, rows, thinking=thinking))
        if parts or not message.parts:
            message = message if thinking else drop_model_source(message)
            exported.append(message if parts == message.parts else msgspec.structs.replace(message, parts=parts))
    match chosen:
        case "openai_chat":
            return [wire for message in exported for wire in _export_chat(message)]
        case "anthropic":
            from asides.dialects.anthropic.encode_messages import encode_messages as encode_turns

            encoded = encode_turns(Prompt(tuple(exported)), [])
            system = {} if encoded.system is None else {"system": encoded.system}
            return _to_plain({**system, "messages": encoded.messages})
        case "openai_responses":
            from asides.dialects.openai_responses.encode import encode_items

            return _to_plain(encode_items(Prompt(tuple(exported)), _build_plain_target("openai_responses"), []))


def _select_parts(
    message: Message, chosen: MessageFormat, rows: Sequence[Provider], *, thinking: bool
) -> Iterator[Part]:
    """The parts to export, without dropped seals."""
    for part in message.parts:
        if isinstance(part, (ServerTool, UnknownPart)) and not _is_native(part.json, part.origin, chosen, rows):
            continue
        if isinstance(part, Thought):
            if thinking and part.can_replay and _has_place(part, chosen):
                yield part
        elif thinking:
            yield part
        elif not (isinstance(part, UnknownPart) and is_thinking(part)):
            seals = tuple(seal for seal in part.seals if seal.kind not in _THINKING_SEALS)
            yield part if len(seals) == len(part.seals) else msgspec.structs.replace(part, seals=seals)


def _is_native(raw: str, origin: Origin | None, chosen: MessageFormat, rows: Sequence[Provider]) -> bool:
    """Whether a raw part came from a provider of this dialect."""
    if origin is None:
        return True  # the caller wrote it
    try:
        row = find_provider(origin.provider, rows)
    except UnknownProvider:
        return False
    # Some providers have two dialects, and an origin does not say which. In all three formats such a part has a type.
    fields = msgspec.json.decode(raw)
    typed = isinstance(fields, dict) and isinstance(fields.get("type"), str)
    return typed and chosen in (row.dialect, *(variant.dialect for variant in row.also))


def _has_place(thought: Thought, chosen: MessageFormat) -> bool:
    kinds = {seal.kind for seal in thought.seals}
    match chosen:
        case "openai_chat":
            return bool(thought.text) or bool(kinds & {_DETAILS, "thought_signature"})
        case "anthropic":
            # Without a signature only if it came as a thinking block, from a provider that signs nothing.
            return bool(kinds & {"signature", "redacted"}) or (thought.source == "block" and thought.via == "thinking")
        case "openai_responses":
            return bool(kinds & {"item", "encrypted"})


def _export_chat(message: Message) -> list[Any]:
    from asides.dialects.openai_chat.encode_messages import encode_messages as encode_chat

    thoughts = [part for part in message.parts if isinstance(part, Thought)]
    in_content = any(thought.via == "content" for thought in thoughts)
    target = _build_plain_target("openai_chat", "content_list" if in_content else "field")
    encoded = encode_chat(Prompt((message,)), target, [])
    details = [seal.entry for thought in thoughts for seal in thought.seals if _is_detail(seal)]
    if details and encoded:
        if {thought.via for thought in thoughts} == {_DETAILS}:
            # The text is already in the entries.
            encoded[0].pop(THINKING_FIELDS[0], None)
        encoded[0][_DETAILS] = [msgspec.Raw(entry.encode()) for entry in details if entry is not None]
    return list(_to_plain(encoded))


def _is_detail(seal: Seal) -> bool:
    return seal.kind == _DETAILS and seal.entry is not None


def _build_plain_target(dialect: str, replay_as: ReplayAs = "field") -> Target:
    """A target of the dialect without any quirks."""
    row = dialects.plain_row(dialect)
    plain = msgspec.structs.replace(row, quirks=Quirks(replay_as=replay_as), models=(), replay=())
    return Target(plain, "", row.base_url)


def _to_plain(value: Any) -> Any:
    """Convert the value to plain lists and dicts, raw JSON included."""
    return msgspec.json.decode(msgspec.json.encode(value))
