"""Conversations and recorded responses of a row: read in any known format, and separated turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.datasets.formats import FormatError, find_format, list_turns, read_text_format
from asides.datasets.formats.sharegpt import is_sharegpt, read_sharegpt
from asides.datasets.separation import (
    Separation,
    TagSettings,
    Verdict,
    collapse,
    find_copy,
    judge,
    merge_verdicts,
    separate_text,
)
from asides.intake.read import read
from asides.values.errors import AsidesError, split_advice
from asides.values.messages import Message, user
from asides.values.parts import Commentary, Part, Text, join_commentary
from asides.values.thinking import Thought, join_thoughts
from asides.wire.inline_tags import Channel, Piece, join_pieces

FIELD = "field"
"""The grammar of thinking that has a field, a block or a channel of its own."""


def separate_conversation(
    value: object, settings: TagSettings, *, to: str | None = None, is_text: bool = False, prompt: object = None
) -> Separation:
    """Separate every turn of the model in a conversation, and write it in the format `to`.

    With `is_text`, the value is one text of the model, and `prompt` the question before it.
    """
    if is_text:
        found = separate_text(value, settings)
        if not isinstance(value, str):
            return found
        before = (user(prompt),) if isinstance(prompt, str) and prompt else ()
        messages: tuple[Message, ...] = (*before, Message("assistant", (Text(value),) if value else ()))
        separated = tuple(_separate_message(each, settings)[0] for each in messages)
    else:
        try:
            messages = read_conversation(value)
        except (AsidesError, FormatError) as problem:
            return Separation("unreadable", reason=describe_problem(problem))
        separated, found = separate_messages(messages, settings)
    if to is not None and found.verdict != "unreadable":
        try:
            if not is_text:
                _refuse_tools(value)
            chosen = find_format(to)
            found.turns = chosen.write(separated)
            notes: list[str] = []
            if "signatures" not in chosen.keeps and any(turn.features for turn in list_turns(separated)):
                notes.append(f"the format {to} has no place for signatures of thoughts")
            if not is_text and _has_developer(value):
                notes.append("the role developer became system")
            found.note = "; ".join(notes)
        except FormatError as problem:
            found.verdict, found.reason = "unreadable", f"the format {to} cannot hold the conversation: {problem}"
    return found


def _has_developer(value: object) -> bool:
    """Whether a message is a developer's, which is read as that of the system."""
    value = _parse(value)
    if isinstance(value, str):
        return _DEVELOPER_TURN in value
    messages = value.get("messages") if isinstance(value, Mapping) else value
    return isinstance(messages, list) and any(
        isinstance(each, Mapping) and each.get("role") == "developer" for each in messages
    )


_DEVELOPER_TURN = "<|start|>developer"


def _refuse_tools(value: object) -> None:
    """Raise FormatError for definitions of tools beside the messages: they would be lost."""
    value = _parse(value)
    if isinstance(value, Mapping) and value.get("tools") not in (None, "", "[]", [], {}):
        raise FormatError("it has definitions of tools")


def describe_problem(problem: Exception) -> str:
    """The problem of a row."""
    # Drop the advice, which is meant for a single document.
    return split_advice(str(problem))[0][:200]


# --- reading ----------------------------------------------------------------------------------------------------------


def read_conversation(value: object) -> tuple[Message, ...]:
    """The messages of a conversation in any known format; the texts of the model still have their tags.

    Raises FormatError or ConfigError if it cannot be read.
    """
    value = _parse(value)
    if isinstance(value, str):
        return read_text_format(value)
    value = _drop_nulls(value)
    if is_sharegpt(value):
        return read_sharegpt(value)
    return read(_read_variants(value))


def _parse(value: object) -> object:
    """The JSON in a text; other texts unchanged. Raises FormatError."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        raise FormatError("the conversation is text, and not JSON") from None


def _drop_nulls(value: Any) -> Any:
    """The same without fields that are null: tables have every field in every message."""
    if isinstance(value, Mapping):
        return {name: _drop_nulls(part) for name, part in value.items() if part is not None}
    return [_drop_nulls(part) for part in value] if isinstance(value, list) else value


_ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "ai": "assistant", "bot": "assistant"}


def _read_variants(value: object) -> object:
    """The messages as readers know them: without the other fields of a request, and with common roles."""
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        known = {name: part for name, part in value.items() if name in ("messages", "system")}
        return {**known, "messages": _read_variants(value["messages"])}
    if not isinstance(value, list):
        return value
    return [_read_message(item) if isinstance(item, dict) and "content" in item else item for item in value]


def _read_message(message: dict[str, Any]) -> dict[str, Any]:
    role = _ROLES.get(str(message.get("role")), message.get("role"))
    changes: dict[str, Any] = {"role": role} if role != message.get("role") else {}
    if role == "assistant":
        if _is_text(message["content"]):
            # Readers of chat messages leave tags in lists alone.
            changes["content"] = [{"type": "text", "text": message["content"]}]
        thinking = message.get("thinking")
        if isinstance(thinking, str):  # as Ollama has it
            message = {name: part for name, part in message.items() if name != "thinking"}
            changes |= {"reasoning_content": thinking} if thinking else {}
    return {**message, **changes}


def _is_text(content: object) -> bool:
    return isinstance(content, str) and bool(content)


# --- separating -------------------------------------------------------------------------------------------------------


def separate_messages(messages: tuple[Message, ...], settings: TagSettings) -> tuple[tuple[Message, ...], Separation]:
    """The messages with their texts separated, and what was found in all."""
    separated: list[Message] = []
    turns: list[Separation] = []
    for message in _join_turns(messages):
        changed, found = _separate_message(message, settings)
        separated.append(changed)
        if found is not None:
            turns.append(found)
    if not turns:
        return tuple(separated), Separation("unreadable", reason="the conversation has no turn of a model")
    verdict = merge_verdicts(turn.verdict for turn in turns)
    return tuple(separated), Separation(
        verdict,
        next((turn.grammar for turn in turns if turn.grammar), ""),
        [turn.answer or "" for turn in turns],  # type: ignore[misc]
        [turn.thinking for turn in turns],  # type: ignore[misc]
        [turn.commentary or "" for turn in turns],  # type: ignore[misc]
        next((turn.reason for turn in turns if turn.verdict == verdict), ""),
    )


def _join_turns(messages: Sequence[Message]) -> list[Message]:
    """The messages, with consecutive assistant messages joined."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == "assistant" == joined[-1].role:
            parts = (*joined[-1].parts, *message.parts)
            joined[-1] = msgspec.structs.replace(joined[-1], parts=parts)
        else:
            joined.append(message)
    return joined


def _separate_message(message: Message, settings: TagSettings) -> tuple[Message, Separation | None]:
    """The message with its texts separated, and what was found; None for messages that are not a model's."""
    if message.role != "assistant":
        return message, None
    parts: list[Part] = []
    verdicts: list[tuple[Verdict, str]] = []
    grammar = ""
    for part in message.parts:
        if isinstance(part, Thought):
            part, problem = _separate_thought(part, settings)
            verdicts += problem
        if not isinstance(part, Text):
            parts.append(part)
            grammar = grammar or (FIELD if isinstance(part, Thought) and part else "")
            continue
        # The template opens a thought only at the beginning of a reply.
        is_first = not parts
        chosen = settings if is_first else msgspec.structs.replace(settings, starts_inside=False)
        splitter = chosen.make_splitter()
        pieces = splitter.feed(part.text) + splitter.finish()
        found = join_pieces(pieces, truncated=splitter.truncated)
        verdicts.append(judge(splitter, found, part.text, settings))
        grammar = grammar or splitter.grammar
        made = _make_parts(pieces)
        if (stored := _list_last_thoughts(parts)) and (
            tagged := [each.text for each in made if isinstance(each, Thought)]
        ):
            if collapse(" ".join(stored)) == collapse(" ".join(tagged)):
                made = [each for each in made if not isinstance(each, Thought)]
            else:
                verdicts.append(("stray_tag", "the thinking in tags differs from that in its field"))
        parts += made
    answer = "".join(part.text for part in parts if isinstance(part, Text))
    thinking = join_thoughts([part.text for part in parts if isinstance(part, Thought)])
    commentary = join_commentary(part.text for part in parts if isinstance(part, Commentary))
    verdict, reason = max(verdicts, key=lambda each: _rank(each[0]), default=("none", ""))
    if verdict in ("none", "empty_answer"):
        if not answer.strip() and not message.tool_calls:
            verdict, reason = "empty_answer", "there is no answer"
        else:
            verdict, reason = "closed" if thinking is not None else "none", ""
    if any(isinstance(part, Thought) and find_copy(part.text, answer) for part in message.parts):
        verdict, reason = "stray_tag", "the answer repeats the thinking word for word"
    changed = message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))
    return changed, Separation(verdict, grammar, answer, thinking, commentary or None, reason)


def _list_last_thoughts(parts: Sequence[Part]) -> list[str]:
    """The thoughts at the end of the parts so far that had a field, a block or a channel of their own."""
    thoughts: list[str] = []
    for part in reversed(parts):
        if not isinstance(part, Thought) or part.source == "tags":
            break
        thoughts.insert(0, part.text)
    return thoughts


def _separate_thought(part: Thought, settings: TagSettings) -> tuple[Thought, list[tuple[Verdict, str]]]:
    """A thought from a field without the tags around it, and the verdict if it holds more than a thought."""
    if part.seals:
        return part, []
    found = separate_text(part.text, msgspec.structs.replace(settings, position="leading"))
    if found.thinking is None or not isinstance(found.thinking, str):
        return part, []
    if found.answer and not str(found.answer).isspace():
        return part, [("stray_tag", "the field of the thinking has text behind a closing tag")]
    return msgspec.structs.replace(part, text=found.thinking), []


def _rank(verdict: Verdict) -> int:
    return ("none", "empty_answer", "closed", "lone_close", "unclosed", "stray_tag", "unreadable").index(verdict)


def _make_parts(pieces: list[Piece]) -> list[Part]:
    """The parts that the pieces of a text are: one for each segment."""
    segments: dict[int, tuple[Channel, list[str]]] = {}
    for segment, channel, text in pieces:
        segments.setdefault(segment, (channel, []))[1].append(text)
    made: list[Part] = []
    for channel, texts in segments.values():
        text = "".join(texts)
        match channel:
            case Channel.THINKING:
                made.append(Thought(text, source="tags"))
            case Channel.COMMENTARY:
                made.append(Commentary(text))
            case _:
                made.append(Text(text))
    return made
