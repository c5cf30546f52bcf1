"""Other people's forms of a history, in and out: `import_messages(value)`, `export_messages(messages, shape)`.

Both take the ways of the dialects: what a server half reads is imported, what a client half spells is exported. Not
here: our own form (document), and which shape a list has (recognising).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides import dialects
from asides.history.detect_format import Shape, shape_named, shape_of
from asides.history.redact import came_as_thought
from asides.providers.find import find_provider
from asides.providers.provider import Provider, Quirks, ReplayAs, Target
from asides.values.errors import ConfigError, UnknownProvider
from asides.values.messages import Message, Part, Prompt, Refusal, ServerTool, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought

_DETAILS = "reasoning_details"
# Seals that are of a thought, wherever they sit: tokens of calls and texts, and the ids that bind items together.
_OF_THINKING = frozenset(
    {"signature", "redacted", "item", "encrypted", _DETAILS, "thought_signature", "reasoning_opaque"}
)
# Where the list is in what people have in their hands: a request, or a response.
_LISTS = ("messages", "input", "output")


def import_messages(value: object, shape: str = "auto") -> tuple[Message, ...]:
    """The messages in a list of another library's, or in an object that holds one beside its system prompt.

    `shape` is "openai" (chat completions), "anthropic" (turns of blocks) or "responses" (items). "auto" tells it by the
    marks that only one of them has, and raises ConfigError where they contradict each other. System words become
    messages in front. Thoughts keep their seals and have no origin: whoever brings them answers for them.
    """
    items, system_words, held = _parts_of(value)
    wanted = _recognised(items, system_words, held) if shape == "auto" else shape_named(shape)
    try:
        return (*_system(system_words), *_read(items, wanted))
    except (UnicodeEncodeError, RecursionError):
        raise ConfigError(
            "the messages cannot be written as JSON. To do: look for text with half a character (a lone surrogate), or "
            "for objects nested without end."
        ) from None


def _read(items: list[Any], shape: Shape) -> tuple[Message, ...]:
    match shape:
        case "openai_chat":
            from asides.dialects.openai_chat.import_messages import import_messages as import_chat

            return tuple(import_chat(items))
        case "anthropic":
            from asides.dialects.anthropic.import_messages import import_messages as import_turns

            return tuple(import_turns(items))
        case "openai_responses":
            from asides.dialects.openai_responses.import_items import import_items

            return tuple(import_items(items))


def _recognised(items: list[Any], system_words: object, held: str | None) -> Shape:
    if (shape := shape_of(items)) is not None:
        return shape
    # Plain words have no shape of their own; the object around them may have.
    if held in ("input", "output"):
        return "openai_responses"
    return "openai_chat" if system_words is None else "anthropic"


def _parts_of(value: object) -> tuple[list[Any], object, str | None]:
    """The list, the system prompt beside it, and the name under which the list was held."""
    if isinstance(value, Mapping):
        held = next((name for name in _LISTS if isinstance(value.get(name), (list, tuple))), None)
        if held is not None:
            return list(value[held]), value.get("system", value.get("instructions")), held
        if isinstance(value.get("input"), str):
            return [{"role": "user", "content": value["input"]}], value.get("instructions"), "input"
        if "role" in value or "type" in value:
            return [value], None, None
    if isinstance(value, (list, tuple)):
        return list(value), None, None
    raise ConfigError(
        f"there are no messages in {type(value).__name__}. To do: pass a list of messages, or an object with messages, "
        "input or output."
    )


def _system(words: object) -> tuple[Message, ...]:
    if words is None:
        return ()
    from asides.dialects.anthropic.import_messages import import_texts

    texts = import_texts(words)
    return (Message("system", texts),) if texts else ()


# --- out ----------------------------------------------------------------------------------------------------------


def export_messages(
    messages: Sequence[Message], shape: str, *, thinking: bool = False, rows: Sequence[Provider] = ()
) -> Any:
    """The messages in another library's form: for "openai" and "responses" a list, for "anthropic" an object with
    `messages` and, where there is one, `system`.

    Thinking is left out with all its seals. With `thinking=True` it goes where the shape has a place for it: thoughts
    that came in another way and those that broke off stay behind, and none is ever made into text. So do parts that are
    a provider's own (a tool that it ran itself) and have no form here. `rows` are the caller's own and win over ours.
    """
    wanted = shape_named(shape)
    spoken = [_without_strangers(message, wanted, rows) for message in messages]
    chosen = [_chosen(message, wanted, thinking=thinking) for message in spoken]
    kept = tuple(message for message, before in zip(chosen, messages, strict=True) if message.parts or not before.parts)
    match wanted:
        case "openai_chat":
            return [wire for message in kept for wire in _chat(message)]
        case "anthropic":
            from asides.dialects.anthropic.encode_messages import encode_messages as encode_turns

            spelled = encode_turns(Prompt(kept), [])
            beside = {} if spelled.system is None else {"system": spelled.system}
            return _plain({**beside, "messages": spelled.messages})
        case "openai_responses":
            from asides.dialects.openai_responses.encode_items import encode_items

            return _plain(encode_items(Prompt(kept), _anybody("openai_responses"), []))


def _without_strangers(message: Message, shape: Shape, rows: Sequence[Provider]) -> Message:
    """A message without what is as it came from somebody who does not speak this dialect."""
    parts = tuple(
        part
        for part in message.parts
        if not isinstance(part, (ServerTool, UnknownPart)) or _is_spoken(part.json, part.origin, shape, rows)
    )
    return message if len(parts) == len(message.parts) else msgspec.structs.replace(message, parts=parts)


def _is_spoken(told: str, origin: Origin | None, shape: Shape, rows: Sequence[Provider]) -> bool:
    if origin is None:
        return True  # the caller wrote it, and means it
    try:
        row = find_provider(origin.provider, rows)
    except UnknownProvider:
        return False
    # Some hosts speak two dialects, and an origin does not say which; in all of these, what is known by a type has one.
    fields = msgspec.json.decode(told)
    typed = isinstance(fields, dict) and isinstance(fields.get("type"), str)
    return typed and shape in (row.dialect, *(variant.dialect for variant in row.also))


def _chosen(message: Message, shape: Shape, *, thinking: bool) -> Message:
    parts = tuple(kept for part in message.parts if (kept := _kept(part, shape, thinking=thinking)) is not None)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _kept(part: Part, shape: Shape, *, thinking: bool) -> Part | None:
    if isinstance(part, Thought):
        return part if thinking and part.complete and not part.withheld and _has_place(part, shape) else None
    if thinking or isinstance(part, (ToolResult, Refusal)):
        return part
    if isinstance(part, UnknownPart) and came_as_thought(part):
        return None
    seals = tuple(seal for seal in part.seals if seal.kind not in _OF_THINKING)
    return part if len(seals) == len(part.seals) else msgspec.structs.replace(part, seals=seals)


def _has_place(thought: Thought, shape: Shape) -> bool:
    kinds = {seal.kind for seal in thought.seals}
    match shape:
        case "openai_chat":
            return bool(thought.text) or bool(kinds & {_DETAILS, "thought_signature"})
        case "anthropic":
            # Unsigned ones only where they came as such blocks, from makers that sign nothing.
            return bool(kinds & {"signature", "redacted"}) or (thought.source == "block" and thought.via == "thinking")
        case "openai_responses":
            return bool(kinds & {"item", "encrypted"})


def _chat(message: Message) -> list[Any]:
    from asides.dialects.openai_chat.encode_messages import encode_messages as encode_chat

    thoughts = [part for part in message.parts if isinstance(part, Thought)]
    inside = any(thought.via == "content" for thought in thoughts)
    spelled = encode_chat(Prompt((message,)), _anybody("openai_chat", "content_list" if inside else "field"), [])
    details = [seal.entry for thought in thoughts for seal in thought.seals if _is_detail(seal)]
    if details and spelled:
        told = {thought.via for thought in thoughts}
        if told == {_DETAILS}:
            # The text is in the entries, and came nowhere else.
            spelled[0].pop(Quirks().replay_field, None)
        spelled[0][_DETAILS] = [msgspec.Raw(entry.encode()) for entry in details if entry is not None]
    return list(_plain(spelled))


def _is_detail(seal: Seal) -> bool:
    return seal.kind == _DETAILS and seal.entry is not None


def _anybody(dialect: str, replay_as: ReplayAs = "field") -> Target:
    """A target without habits of its own."""
    row = dialects.plain_row(dialect)
    plain = msgspec.structs.replace(row, quirks=Quirks(replay_as=replay_as), models=(), replay=())
    return Target(plain, "", row.base_url)


def _plain(value: Any) -> Any:
    """Plain lists and dicts, also where something stood verbatim."""
    return msgspec.json.decode(msgspec.json.encode(value))
