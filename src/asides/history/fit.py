"""Fit messages to what a model or host takes: no pictures or files that it refuses, roles that take turns, one system
message, nothing blank, and tools beside the calls of a history. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_

import msgspec

from asides.dialects.dialect import DialectFacts
from asides.dialects.http_body import encode_json
from asides.dialects.media import find_media_type
from asides.dialects.message_encoder import OPENING
from asides.history.check import OnConflict, drop_tools
from asides.history.turns import count_system_head, find_question
from asides.providers.provider import Facts, Target
from asides.providers.quirks import MessageRule
from asides.values.errors import Unsupported
from asides.values.media_types import MediaKind, find_kind
from asides.values.messages import Message, Prompt, join_system_texts
from asides.values.notices import Notice
from asides.values.parts import Commentary, File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides.values.traits import HAS_CALLS, HAS_RESULTS, IS_BLANK, find_traits, list_calls

SYSTEM_JOINED = "system messages must come first here; they were joined at the front"
BLANKS_FILLED = "blank messages were left out, or filled with a word"
SYSTEM_IN_USER = "this model takes no system message; instructions are in front of the first message of the user"
NEIGHBOURS_JOINED = "messages of one role in a row were joined"
CALLS_TOLD = "this model has no tools; earlier calls and their results were sent as text"
ARGUMENTS_EMPTIED = "arguments that are not a JSON object were sent as an empty one"
BLANK = "(empty)"
"""The replacement for blank text, for hosts that refuse it."""

_SERVER_CALL = "server_tool_use"
_PICTURE_NOTE = Text("[a picture was here; it cannot be shown]")
_FILE_NOTE = Text("[a file was here; it cannot be shown]")
_WORDS: dict[MediaKind, str] = {"picture": "pictures", "audio": "sound", "video": "video", "pdf": "PDF files"}


# --- messages ---------------------------------------------------------------------------------------------------------


def drop_blank_messages(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Drop empty user messages, which some hosts refuse. The last one stays, since it is the question."""
    filled = tuple(m for m in messages[:-1] if not find_traits((m,)) & IS_BLANK) + messages[-1:]
    if len(filled) == len(messages):
        return messages
    notices.append(Notice("blank_message_dropped", "empty messages were left out", "messages"))
    return filled


def drop_unpaired_server_tools(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """Drop calls of the provider's tools that never got their results, and results without their calls. A call may wait
    for its result until the user asks something else.
    """
    tools = [part for message in messages for part in message.parts if isinstance(part, ServerTool)]
    called = {part.id for part in tools if part.name == _SERVER_CALL}
    answered = {part.id for part in tools if part.name.endswith("_tool_result")}
    if called == answered:
        return messages
    question = find_question(messages)
    kept: list[Message] = []
    for place, message in enumerate(messages):
        parts = tuple(
            part
            for part in message.parts
            if not isinstance(part, ServerTool)
            or not (
                (part.name == _SERVER_CALL and part.id not in answered and place < question)
                or (part.name.endswith("_tool_result") and part.name != "mcp_tool_result" and part.id not in called)
            )
        )
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(msgspec.structs.replace(message, parts=parts, source=None))
    if len(kept) == len(messages) and all(map(is_, kept, messages)):
        return messages
    _report(notices, "server_tool_dropped", "calls of the provider's tools go back only with their results")
    return tuple(kept)


def add_called_tools(prompt: Prompt, facts: DialectFacts, notices: list[Notice]) -> Prompt:
    """Add the tools that the history calls, by name, to a request without tools: the host refuses it otherwise."""
    names = dict.fromkeys(call.name for call in list_calls(prompt.messages))
    if not names:
        return prompt
    detail = "a history with calls needs its tools; only their names were sent"
    notices.append(Notice("tools_added", detail, "tools"))
    choice = "none" if facts.forbids_calls else None
    if prompt.tool_choice not in (None, "auto", "none"):
        notices.append(Notice("setting_dropped", "tool_choice has no effect without tools", "tool_choice"))
    tools = tuple(Tool(name) for name in names)
    return msgspec.structs.replace(prompt, tools=tools, tool_choice=choice, parallel_tool_calls=None)


def tell_calls(prompt: Prompt, target: Target, notices: list[Notice]) -> Prompt:
    """Replace calls and their results by the user's words about them, and leave the tools out, for a model that has no
    tools.

    They are not put into the mouth of the model: it would imitate them. A turn that only called is left out.
    """
    told: list[Message] = []
    calls: dict[str, ToolCall] = {}
    for message in prompt.messages:
        calls.update((call.id, call) for call in message.tool_calls)
        if not find_traits((message,)) & (HAS_CALLS | HAS_RESULTS):
            told.append(message)
            continue
        parts = tuple(new for part in message.parts for new in _tell(part, calls))
        if message.role != "assistant":
            told.append(msgspec.structs.replace(message, role="user", parts=parts, source=None))
        elif any(isinstance(part, Text) and part.text.strip() for part in parts):
            told.append(msgspec.structs.replace(message, parts=parts, source=None))
    _report(notices, "calls_as_text", CALLS_TOLD)
    return drop_tools(msgspec.structs.replace(prompt, messages=tuple(told)), target, notices)


def _tell(part: Part, calls: Mapping[str, ToolCall]) -> Sequence[Part]:
    match part:
        case ToolCall():
            return ()
        case ToolResult():
            call = calls.get(part.call_id)
            asked = "" if call is None else f" with {call.raw_arguments or encode_json(call.arguments).decode()}"
            name = part.name or (call.name if call is not None else "a tool")
            what = "It failed" if part.is_error else "It returned"
            opening = f"[The assistant called {name}{asked}. {what}:]"
            if isinstance(part.content, str):
                return (Text(f"{opening}\n{part.content}".rstrip()),)
            return (Text(opening), *part.content)
        case Text() if part.seals:
            return (msgspec.structs.replace(part, seals=()),)
        case _:
            return (part,)


def apply_rules(prompt: Prompt, rules: Sequence[MessageRule], notices: list[Notice]) -> Prompt:
    """Adapt the messages to the form that a host demands, with a notice for each kind of change."""
    system, messages = prompt.system, prompt.messages
    if "system_first" in rules and any(message.role == "system" for message in messages):
        texts = [system, *(join_system_texts(message) for message in messages if message.role == "system")]
        system = "\n\n".join(text for text in texts if text and text.strip())
        messages = tuple(message for message in messages if message.role != "system")
        _report(notices, "system_moved", SYSTEM_JOINED)
    if "object_arguments" in rules:
        emptied = tuple(map(_empty_arguments, messages))
        if any(new is not old for new, old in zip(emptied, messages, strict=True)):
            messages = emptied
            _report(notices, "arguments_not_sent", ARGUMENTS_EMPTIED)
    if "filled" in rules:
        last = len(messages) - 1
        filled = tuple(new for place, message in enumerate(messages) for new in _fill(message, is_last=place == last))
        if filled != messages:
            messages = filled
            _report(notices, "blank_message_dropped", BLANKS_FILLED)
    if "system_in_user" in rules and system and system.strip():
        place = next((number for number, message in enumerate(messages) if message.role == "user"), len(messages))
        before = messages[place].parts if place < len(messages) else ()
        first = Message("user", (Text(system), *before))
        system, messages = None, (*messages[:place], first, *messages[place + 1 :])
        _report(notices, "system_moved", SYSTEM_IN_USER)
    if "alternate" in rules:
        merged = _merge_neighbours(messages)
        if len(merged) < len(messages):
            messages = merged
            _report(notices, "messages_merged", NEIGHBOURS_JOINED)
    if "user_query" in rules and not any(map(_is_query, messages)):
        head = count_system_head(messages)
        messages = (*messages[:head], Message("user", (Text(OPENING),)), *messages[head:])
        _report(notices, "turn_added", "a user message is required here; a short one was added")
    if messages is prompt.messages and system == prompt.system:
        return prompt
    return msgspec.structs.replace(prompt, system=system, messages=messages)


def _is_query(message: Message) -> bool:
    return message.role == "user" and any(not isinstance(part, ToolResult) for part in message.parts)


def _report(notices: list[Notice], code: str, detail: str) -> None:
    notices.append(Notice(code, detail, "messages"))


def _empty_arguments(message: Message) -> Message:
    """Send the arguments of each call as an object. Without this, text that does not parse goes back as it came."""
    if any(call.raw_arguments is not None and not call.custom for call in message.tool_calls):
        return msgspec.structs.replace(message, parts=tuple(map(_empty_call, message.parts)), source=None)
    # Arguments that were the word null are read as none, and an unchanged message is written as it came.
    is_null = message.source is not None and '"null"' in message.source.json
    if is_null and any(not call.arguments and not call.custom for call in message.tool_calls):
        return msgspec.structs.replace(message, source=None)
    return message


def _empty_call(part: Part) -> Part:
    if isinstance(part, ToolCall) and part.raw_arguments is not None and not part.custom:
        return msgspec.structs.replace(part, arguments={}, raw_arguments=None)
    return part


def _fill(message: Message, *, is_last: bool) -> list[Message]:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and _is_blank_result(part):
            parts.append(msgspec.structs.replace(part, content=BLANK))
        elif not (isinstance(part, (Text, Commentary)) and not part.text.strip()):
            parts.append(part)
    if message.role == "assistant" and not any(isinstance(part, (Text, ToolCall)) for part in parts):
        # A refusal does not count as content here, nor does a turn with only thinking. The last one may be continued.
        parts = [Text(part.text) if isinstance(part, Refusal) and part.text.strip() else part for part in parts]
        if not is_last and all(isinstance(part, (Thought, Refusal)) for part in parts):
            return []
    if parts:
        return [message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts))]
    # A blank assistant turn has no meaning. A blank user turn may be the question.
    return [] if message.role == "assistant" else [msgspec.structs.replace(message, parts=(Text(BLANK),))]


def _is_blank_result(result: ToolResult) -> bool:
    if isinstance(result.content, str):
        return not result.content.strip()
    return all(isinstance(part, Text) and not part.text.strip() for part in result.content)


def _merge_neighbours(messages: Sequence[Message]) -> tuple[Message, ...]:
    merged: list[Message] = []
    for message in messages:
        before = merged[-1] if merged else None
        is_blank = all(isinstance(part, (Text, Commentary)) and not part.text.strip() for part in message.parts)
        if is_blank and message.role == "assistant":
            continue  # it is not sent, so its neighbours become adjacent
        if before is None or before.role != message.role or message.role not in ("user", "assistant"):
            merged.append(message)
            continue
        parts = list(before.parts)
        for part in message.parts:
            last = parts[-1] if parts else None
            if isinstance(part, Text) and isinstance(last, Text) and not part.seals and not last.seals:
                parts[-1] = msgspec.structs.replace(part, text=f"{last.text}\n\n{part.text}")
            else:
                parts.append(part)
        merged[-1] = msgspec.structs.replace(before, parts=tuple(parts))
    return tuple(merged)


# --- pictures and files -----------------------------------------------------------------------------------------------


def replace_refused(
    messages: tuple[Message, ...], target: Target, on_conflict: OnConflict, notices: list[Notice]
) -> tuple[Message, ...]:
    """Replace each picture and file of a kind that the model's row refuses by a note.

    One in the latest user message raises `Unsupported`. An earlier one, or one in a tool's result, was fine when it was
    sent, perhaps to another model, and must not end the conversation.
    """
    facts, model_name = target.facts, f"{target.provider.name}:{target.model}"
    found: set[MediaKind | None] = {_find_refused(part, facts) for message in messages for part in _list_media(message)}
    refused: list[MediaKind] = [kind for kind in found if kind is not None]
    if not refused:
        return messages
    question = find_question(messages)
    for part in messages[question].parts if on_conflict == "raise" else ():
        kind = _find_refused(part, facts) if isinstance(part, (Image, File)) else None
        if kind is not None:
            raise Unsupported(
                f"{model_name} takes no {_WORDS[kind]}, and the question has one. Leave it out, ask one that "
                f"{'sees' if kind == 'picture' else 'takes it'}, or pass on_conflict='adjust'."
            )
    for each in sorted(refused, key=list(_WORDS).index):
        code = "pictures_dropped" if each == "picture" else "files_dropped"
        notices.append(Notice(code, f"{model_name} takes no {_WORDS[each]}; a note replaces them", "messages"))
    return tuple(replace_media(message, lambda part: _find_refused(part, facts) is not None) for message in messages)


def _find_refused(part: Image | File, facts: Facts) -> MediaKind | None:
    """The kind of a picture or file that the model refuses; None for one that it may accept."""
    kind = "picture" if isinstance(part, Image) else find_kind(find_media_type(part))
    if kind == "picture":
        return None if facts.pictures else kind
    # Files referenced by id are not checked.
    is_stored = isinstance(part, File) and part.id is not None
    return kind if kind in facts.refuses_files and not is_stored else None


def _list_media(message: Message) -> Iterator[Image | File]:
    for part in message.parts:
        inner = part.content if isinstance(part, ToolResult) and not isinstance(part.content, str) else (part,)
        yield from (each for each in inner if isinstance(each, (Image, File)))


def replace_media(message: Message, is_unfit: Callable[[Image | File], bool]) -> Message:
    """Replace every unsupported picture and file by a note; return the message itself if nothing changes."""

    def replace(part: Text | Image | File) -> Text | Image | File:
        if isinstance(part, Text) or not is_unfit(part):
            return part
        return _PICTURE_NOTE if isinstance(part, Image) else _FILE_NOTE

    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, (Image, File)):
            parts.append(replace(part))
        elif isinstance(part, ToolResult) and not isinstance(part.content, str):
            parts.append(msgspec.structs.replace(part, content=tuple(map(replace, part.content))))
        else:
            parts.append(part)
    return message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))
