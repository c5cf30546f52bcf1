"""The messages of a caller without what only its own provider understands: `fit_messages(messages, target_dialect, …)`.

Left out are foreign parts, seals of unknown origin, and the line that one client puts before its system prompt. A
system message after the question is moved before it.
"""

from __future__ import annotations

import re

import msgspec

from asides.dialects import find_facts
from asides.dialects.media import read_text_file
from asides.relay.state.envelope import is_envelope
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import Commentary, File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.values.traits import HAS_MEDIA, HAS_RESULTS, IS_BOUND, find_results, find_traits
from asides.wire.lenient import read_part_json

# Claude Code writes it as the first block of the system prompt; a part of it changes with every request, which spoils
# the prompt caches of all other providers (anthropics/claude-code#68900, 2026-06-16).
_ATTRIBUTION = re.compile(r"x-anthropic-billing-header:[^\n]*(?:\n+|$)")

_TEXT_RESULTS = ("openai_chat", "cohere")
"""The dialects whose results hold only text."""
_HEAD = 80
"""The characters of a result in which the word is looked for."""
_FLAT = ("openai_chat", "openai_responses", "ollama", "cohere")
"""The dialects whose system messages stay at their places."""


def fit_messages(messages: tuple[Message, ...], target_dialect: str, notices: list[Notice]) -> tuple[Message, ...]:
    """Return the messages for another dialect, and add notices of what is left out."""
    messages = _drop_first_attribution(messages)
    traits = find_traits(messages)
    if traits & IS_BOUND:
        messages = _drop_foreign_parts(messages, target_dialect, notices)
    if target_dialect not in _FLAT:
        return messages
    if traits & HAS_RESULTS:
        messages = tuple(_mark_errors(message) for message in messages)
        if target_dialect in _TEXT_RESULTS and traits & HAS_MEDIA:
            messages = _move_result_media(messages, notices)
    return _put_questions_last(messages, notices)


def drop_attribution(system: str | None) -> str | None:
    """Drop the line of a system prompt that changes with every request."""
    return _ATTRIBUTION.sub("", system, count=1) or None if system and _ATTRIBUTION.match(system) else system


def _drop_first_attribution(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    first = messages[0] if messages and messages[0].role == "system" else None
    part = first.parts[0] if first is not None and first.parts else None
    if first is None or not isinstance(part, Text) or _ATTRIBUTION.match(part.text) is None:
        return messages
    rest = drop_attribution(part.text)
    kept: tuple[Part, ...] = (msgspec.structs.replace(part, text=rest),) if rest and rest.strip() else ()
    parts = (*kept, *first.parts[1:])
    return (msgspec.structs.replace(first, parts=parts), *messages[1:]) if parts else messages[1:]


def _mark_errors(message: Message) -> Message:
    """Say in its text that a result is an error, for the dialects that have no field for it."""
    if not any(_is_silent_error(result) for result in find_results(message)):
        return message
    parts = [_mark_error(part) if isinstance(part, ToolResult) else part for part in message.parts]
    return msgspec.structs.replace(message, parts=tuple(parts))


def _is_silent_error(result: ToolResult) -> bool:
    return result.is_error and "error" not in result.text[:_HEAD].lower()


def _mark_error(result: ToolResult) -> ToolResult:
    if not _is_silent_error(result):
        return result
    content = result.content
    marked = f"Error: {content}" if isinstance(content, str) else (Text("Error:"), *content)
    return msgspec.structs.replace(result, content=marked)


def _move_result_media(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Put the pictures and files of results into a user message behind them, where a result is only text."""
    moved: list[Message] = []
    waiting: list[Part] = []
    for message in messages:
        if waiting and message.role != "tool":
            moved.append(Message("user", tuple(waiting)))
            waiting = []
        if not find_results(message) or not find_traits((message,)) & HAS_MEDIA:
            moved.append(message)
            continue
        parts = [_take_media(part, waiting) if isinstance(part, ToolResult) else part for part in message.parts]
        moved.append(msgspec.structs.replace(message, parts=tuple(parts)))
    if waiting:
        moved.append(Message("user", tuple(waiting)))
    if len(moved) > len(messages):
        detail = "a tool result is text here; its pictures and files follow it in a message"
        notices.append(Notice("media_moved", detail, "messages"))
    return tuple(moved)


def _take_media(result: ToolResult, waiting: list[Part]) -> ToolResult:
    """Return a result as text; add its pictures and files to those that wait."""
    if isinstance(result.content, str):
        return result
    texts: list[str] = []
    media: list[Image | File] = []
    for part in result.content:
        text = part.text if isinstance(part, Text) else read_text_file(part) if isinstance(part, File) else None
        if text is not None:
            texts.append(text)
        elif not isinstance(part, Text):
            media.append(part)
    if media:
        texts.append("(What this result shows is in the next message of the user.)")
        waiting += [Text(f"From the result of {result.name or 'the tool'}:"), *media]
    return msgspec.structs.replace(result, content="\n".join(texts))


def _put_questions_last(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Put a system message behind a user's before it, in every turn alike: some hosts answer only a user or a tool."""
    moved: list[Message] = []
    changed = False
    for message in messages:
        place = len(moved)
        while message.role == "system" and message.parts and place and moved[place - 1].role == "user":
            place -= 1
        changed = changed or place < len(moved)
        moved.insert(place, message)
    if changed:
        detail = "a system message behind the user's was put before it"
        notices.append(Notice("system_moved", detail, "messages"))
    return tuple(moved) if changed else messages


def _drop_foreign_parts(
    messages: tuple[Message, ...], target_dialect: str, notices: list[Notice]
) -> tuple[Message, ...]:
    """Drop the parts and seals that only the caller's provider understands. Those with an origin stay: the plan
    decides about them.
    """
    left_out: dict[str, None] = {}
    needs_seals = find_facts(target_dialect).thinks_in_blocks
    fitted: list[Message] = []
    for message in messages:
        if not find_traits((message,)) & IS_BOUND:
            fitted.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, UnknownPart) and (said := _read_agent_message(part)) is not None:
                fitted += [msgspec.structs.replace(message, parts=tuple(parts))] if parts else []
                fitted.append(Message("user", (Text(said),)))
                parts = []
            elif not isinstance(part, (ServerTool, UnknownPart)) or part.origin is not None:
                parts.append(_drop_foreign_seals(part, needs_seals=needs_seals))
            elif (known := _translate_part(part)) is not None:
                parts.append(known)
            else:
                left_out[_name_part(part)] = None
        if parts:
            fitted.append(msgspec.structs.replace(message, parts=tuple(parts)))
    notices += [
        Notice("part_not_sent", f"a part that only the caller's provider understands was left out: {name}", "messages")
        for name in left_out
    ]
    return tuple(fitted)


def _read_agent_message(part: UnknownPart) -> str | None:
    """Return what another agent says to the model, as one client sends it; None for other parts."""
    match read_part_json(part.json) if part.origin is None else None:
        case {"type": "agent_message", "content": list() as content, **described}:
            texts = [block.get("text") for block in content if isinstance(block, dict)]
            said = "\n".join(text for text in texts if isinstance(text, str))
            author = described.get("author")
            return f"{author}: {said}" if isinstance(author, str) and said else said or None
        case _:
            return None


def _translate_part(part: ServerTool | UnknownPart) -> Part | None:
    """Return a part of the caller's dialect that others have in another form; None if they have none."""
    match read_part_json(part.json):
        case {"type": "custom", "id": str() as call_id, "custom": {"name": str() as name, "input": str() as text}}:
            return ToolCall(call_id, name, {}, text, custom=True)
        case {"type": "search_result", "content": list() as content, **described}:
            heads = [described.get("title"), described.get("source")]
            texts = [*heads, *(block.get("text") for block in content if isinstance(block, dict))]
            return Text("\n".join(text for text in texts if isinstance(text, str) and text))
        case _:
            return None


def _drop_foreign_seals(part: Part, *, needs_seals: bool) -> Part:
    """Return a part without seals of another dialect and unknown origin. A thought without seals stays: where a model
    takes thinking as text, the text is enough. `needs_seals`: the target requires seals, so the thought is not sent.
    """
    if not isinstance(part, (Thought, Text, Commentary, ToolCall, Image, File)) or not part.seals:
        return part
    kept = tuple(
        seal for seal in part.seals if seal.origin is not None or is_envelope(seal.value) or _names_call(part, seal)
    )
    if len(kept) == len(part.seals):
        return part
    if needs_seals and isinstance(part, Thought) and not any(seal.value for seal in kept):
        return msgspec.structs.replace(part, seals=kept, replayable=False)
    return msgspec.structs.replace(part, seals=kept)


def _names_call(part: Part, seal: Seal) -> bool:
    """Whether a seal holds the namespace of a call, which its name needs."""
    return isinstance(part, ToolCall) and seal.entry is not None and '"namespace"' in seal.entry


def _name_part(part: ServerTool | UnknownPart) -> str:
    if isinstance(part, ServerTool):
        return part.name
    document = read_part_json(part.json)
    if not isinstance(document, dict):
        return "unknown"
    kind = document.get("type")
    return kind if isinstance(kind, str) else next(iter(document), "unknown")
