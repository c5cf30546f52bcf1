"""Histories in the formats of other libraries: `import_messages(value)`, `export_messages(messages, format_name)`.

A format has the name of its dialect. The dialects do the work: their server halves parse, their client halves encode.
Not here: our own format (document).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides import dialects
from asides.history.pair import make_ids_unique
from asides.history.redact import is_thinking
from asides.providers.find import find_provider
from asides.providers.provider import THINKING_FIELDS, Provider, Quirks, ReplayAs, Target
from asides.values.errors import ConfigError, UnknownProvider
from asides.values.messages import Message, Prompt
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought

MessageFormat: TypeAlias = Literal["openai_chat", "anthropic", "openai_responses"]
"""A list of chat completions' messages, of Anthropic's turns of blocks, or of the items of Responses."""

ImportFormat: TypeAlias = Literal[
    "openai_chat", "anthropic", "openai_responses", "gemini", "bedrock", "cohere", "ollama"
]
"""A format that is read: also Gemini's contents, and the messages of Converse, of Cohere and of Ollama."""

# The fields of requests and responses that may hold the list.
_LISTS = ("messages", "input", "output")


# --- import -------------------------------------------------------------------------------------------------------


def import_messages(value: object, format_name: str = "auto") -> tuple[Message, ...]:
    """Import the messages in a list of another library, or in a request or response that holds one.

    `format_name` is "openai" (chat completions), "anthropic" (turns of blocks) or "responses" (items). "auto" detects
    it, and raises ConfigError where messages contradict each other. A system prompt beside the list becomes the first
    message. Thoughts keep their seals and get no origin; the caller answers for them.
    """
    items, system_prompt, list_name = _find_list(value)
    chosen = _choose_format(items, system_prompt, list_name) if format_name == "auto" else parse_format(format_name)
    with refuse_unwritable():
        return (*_parse_system(system_prompt), *parse_items(items, chosen))


@contextmanager
def refuse_unwritable() -> Generator[None]:
    """Raise a ConfigError where the messages of another library hold a value that no request can."""
    try:
        yield
    except (UnicodeEncodeError, RecursionError, TypeError) as problem:
        if isinstance(problem, TypeError) and not str(problem).startswith(_UNWRITABLE):
            raise
        raise ConfigError(
            "the messages cannot be written as JSON. To do: look for a value of a type that JSON does not have, for "
            "text with half a character (a lone surrogate), or for objects nested without end."
        ) from None


# How `msgspec` begins: "Encoding objects of type X is unsupported", "Only dicts with str-like or number-like keys".
_UNWRITABLE = ("Encoding objects", "Only dicts")


def parse_format(name: object) -> MessageFormat:
    """The format with this name: "openai", "anthropic", "responses", or the name of its dialect."""
    known: tuple[MessageFormat, ...] = get_args(MessageFormat)
    for each in known:
        if isinstance(name, str) and name.lower() in (each, *each.split("_")):
            return each
    raise ConfigError(f"the format {name!r} is not known. To do: use openai, anthropic or responses.")


def _find_list(value: object) -> tuple[list[Any], object, str | None]:
    """The list, the system prompt beside it, and the name of the field that held the list."""
    if isinstance(value, Mapping):
        list_name = next((name for name in _LISTS if isinstance(value.get(name), (list, tuple))), None)
        if list_name is not None:
            return list(value[list_name]), value.get("system", value.get("instructions")), list_name
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


def _choose_format(items: list[Any], system_prompt: object, list_name: str | None) -> MessageFormat:
    if (found := detect_format(items)) is not None:
        return found
    # Plain text looks the same in every format. The object around it may reveal the format.
    if list_name in ("input", "output"):
        return "openai_responses"
    return "openai_chat" if system_prompt is None else "anthropic"


def _parse_system(system_prompt: object) -> tuple[Message, ...]:
    if system_prompt is None:
        return ()
    from asides.dialects.anthropic.import_messages import import_texts

    texts = import_texts(system_prompt)
    return (Message("system", texts),) if texts else ()


def parse_items(items: list[Any], chosen: ImportFormat) -> tuple[Message, ...]:
    """Parse a list in this format."""
    match chosen:
        case "openai_chat":
            from asides.dialects.openai_chat.import_messages import import_messages as parse_chat

            return tuple(parse_chat(items))
        case "anthropic":
            from asides.dialects.anthropic.import_messages import import_messages as parse_turns

            return tuple(parse_turns(items))
        case "openai_responses":
            from asides.dialects.openai_responses.import_items import import_items

            return tuple(import_items(items))
        case "gemini":
            from asides.dialects.gemini.import_contents import import_contents

            return tuple(import_contents(items))
        case "bedrock" | "cohere" | "ollama":
            return _parse_request(items, chosen)


def _parse_request(items: list[Any], chosen: str) -> tuple[Message, ...]:
    """Parse a list as the server half of its dialect reads it in a request."""
    if chosen == "bedrock":
        items = [_to_blocks(item) for item in items]
    body = msgspec.json.encode({"model": "any", "messages": items})
    prompt = dialects.find_dialect(chosen).read(body, "/model/any/converse").prompt
    return prompt.messages if prompt.system is None else (Message("system", (Text(prompt.system),)), *prompt.messages)


def _to_blocks(item: Any) -> Any:
    """A message of Converse; text alone, which it has in a block, looks the same in every format."""
    if isinstance(item, Mapping) and isinstance(text := item.get("content"), str):
        return {**item, "content": [{"text": text}]}
    return item


# --- detection: marks that only one format has --------------------------------------------------------------------

_CHAT_ROLES = frozenset({"tool", "function"})
_CHAT_FIELDS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "reasoning_details", "refusal"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "video_url"})
_BLOCKS = frozenset({"redacted_thinking", "tool_use", "tool_result", "server_tool_use"})
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"})


def detect_format(items: Sequence[object]) -> MessageFormat | None:
    """Detect the format of messages; None when they hold only text, which looks the same in every format.

    Raises ConfigError when two messages have the marks of two formats.
    """
    found: dict[MessageFormat, int] = {}
    for place, item in enumerate(items):
        for each in detect_in_item(item):
            found.setdefault(each, place)
    if len(found) > 1:
        marked = " and ".join(f"messages[{place}] of the format {each!r}" for each, place in found.items())
        raise ConfigError(
            f"the messages are not of one format: {marked}. To do: name it with format_name=, or correct the list."
        )
    return next(iter(found), None)


def detect_in_item(item: object) -> Iterator[MessageFormat]:
    """The formats whose marks one message has."""
    if not isinstance(item, Mapping):
        return
    if isinstance(item.get("type"), str) and item["type"] != "" and _is_item(item):
        yield "openai_responses"
        return
    # Anything can be in such a list, also where a name belongs.
    if _read_name(item, "role") in _CHAT_ROLES or any(item.get(name) is not None for name in _CHAT_FIELDS):
        yield "openai_chat"
    content = item.get("content")
    for part in content if isinstance(content, (list, tuple)) else ():
        if isinstance(part, Mapping) and (found := _detect_in_part(part)) is not None:
            yield found


def _is_item(item: Mapping[str, Any]) -> bool:
    # A response of Messages has a type and a role, too.
    return "role" not in item or (item["type"] == "message" and not _has_blocks(item.get("content")))


def _has_blocks(content: object) -> bool:
    parts = content if isinstance(content, (list, tuple)) else ()
    found = {_detect_in_part(part) for part in parts if isinstance(part, Mapping)}
    return "anthropic" in found or ("openai_responses" not in found and bool(found))


def _detect_in_part(part: Mapping[str, Any]) -> MessageFormat | None:
    kind = _read_name(part, "type")
    if kind in _ITEM_PARTS:
        return "openai_responses"
    if kind in _CHAT_PARTS:
        return "openai_chat"
    if kind in _BLOCKS or "cache_control" in part or isinstance(part.get("source"), Mapping):
        return "anthropic"
    if kind == "thinking":
        # One provider of chat completions puts a list of texts there.
        return "anthropic" if isinstance(part.get("thinking"), str) else "openai_chat"
    return None


def _read_name(item: Mapping[str, Any], field: str) -> str | None:
    return value if isinstance(value := item.get(field), str) else None


# --- export -------------------------------------------------------------------------------------------------------

_DETAILS = "reasoning_details"
# Seals that belong to thinking, on whatever part they are: tokens of calls and texts, and ids that tie items together.
_THINKING_SEALS = frozenset(
    {"signature", "redacted", "item", "encrypted", _DETAILS, "thought_signature", "reasoning_opaque"}
)


def export_messages(
    messages: Sequence[Message], format_name: str, *, thinking: bool = False, rows: Sequence[Provider] = ()
) -> Any:
    """Export the messages in another library's format: for "openai" and "responses" a list, for "anthropic" an object
    with `messages` and, if there is one, `system`.

    Thinking is left out with all its seals. With `thinking=True` a thought goes where the format has a place for it;
    thoughts without a place and incomplete thoughts stay out, and none becomes text. Parts that only their provider
    understands stay out of other formats. `rows` are providers of the caller and win over the built-in ones.
    """
    chosen = parse_format(format_name)
    exported: list[Message] = []
    for message in make_ids_unique(messages):
        parts = tuple(_select_parts(message, chosen, rows, thinking=thinking))
        if parts or not message.parts:
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
    """The parts to export, without the seals that stay out."""
    for part in message.parts:
        if isinstance(part, (ServerTool, UnknownPart)) and not _is_native(part.json, part.origin, chosen, rows):
            continue
        if isinstance(part, Thought):
            if thinking and part.can_replay and _has_place(part, chosen):
                yield part
        elif thinking or isinstance(part, (ToolResult, Refusal)):
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
