"""Conversations and recorded responses of a row: read in any known format, and separated turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from asides.datasets.formats import FormatError, find_format, read_text_format
from asides.datasets.formats.sharegpt import is_sharegpt, read_sharegpt
from asides.datasets.rows import encode_row
from asides.datasets.separation import Separation, TagSettings, Verdict, judge, merge_verdicts, separate_text
from asides.flows.offline import decode
from asides.intake.read import read
from asides.values.errors import AsidesError
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
            return Separation("unreadable", reason=_describe(problem))
        separated, found = _separate_messages(messages, settings)
    if to is not None and found.verdict != "unreadable":
        try:
            found.turns = find_format(to).write(separated)
        except FormatError as problem:
            found.verdict, found.reason = "unreadable", f"the format {to} cannot hold the conversation: {problem}"
    return found


def separate_response(value: object, settings: TagSettings) -> Separation:
    """Separate a recorded response: a body as text, or as an object."""
    if isinstance(value, Mapping):
        # Fields of a row may be raw JSON.
        value = encode_row(value)
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    if not isinstance(value, bytes):
        return Separation("unreadable", reason=f"a response is text or an object, not {type(value).__name__}")
    try:
        reply = decode(None, value)
    except AsidesError as problem:
        return Separation("unreadable", reason=_describe(problem))
    _, found = _separate_messages((Message("assistant", reply.parts),), settings)
    if found.answer is not None:
        found.answer, found.thinking = found.answer[0], found.thinking[0]  # type: ignore[index]
        found.commentary = found.commentary[0] or None  # type: ignore[index]
    if reply.tool_calls and found.verdict == "empty_answer":
        found.verdict, found.reason = "closed" if found.thinking else "none", ""
    if any(isinstance(part, Thought) and part.source == "tags" and not part.complete for part in reply.parts):
        found.verdict, found.reason = "unclosed", "the text ends inside the thinking; the answer may be in it"
    return found


def _describe(problem: Exception) -> str:
    # The advice is for a person with one document, not for a list of rows.
    return str(problem).partition(" To do: ")[0][:200]


# --- reading ----------------------------------------------------------------------------------------------------------


def read_conversation(value: object) -> tuple[Message, ...]:
    """The messages of a conversation in any known format; the texts of the model still have their tags.

    Raises FormatError or ConfigError if it cannot be read.
    """
    if isinstance(value, str):
        text = value.lstrip()
        if text.startswith(("[", "{")):
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                raise FormatError("the conversation is text, and not JSON") from None
        else:
            return read_text_format(value)
    if is_sharegpt(value):
        return read_sharegpt(value)
    return read(_protect_texts(value))


def _protect_texts(value: object) -> object:
    """The same messages, with texts of the model in lists: readers of chat messages leave tags in those alone."""
    if isinstance(value, Mapping):
        return {name: _protect_texts(part) if name == "messages" else part for name, part in value.items()}
    if not isinstance(value, list):
        return value
    return [
        {**item, "content": [{"type": "text", "text": item["content"]}]}
        if isinstance(item, dict) and item.get("role") == "assistant" and _is_text(item.get("content"))
        else item
        for item in value
    ]


def _is_text(content: object) -> bool:
    return isinstance(content, str) and bool(content)


# --- separating -------------------------------------------------------------------------------------------------------


def _separate_messages(messages: tuple[Message, ...], settings: TagSettings) -> tuple[tuple[Message, ...], Separation]:
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
    """The messages, with those of the model in a row as one."""
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
        if not isinstance(part, Text):
            parts.append(part)
            grammar = grammar or (FIELD if isinstance(part, Thought) and part else "")
            continue
        # The template opens a thought only at the beginning of a reply.
        is_first = not parts
        chosen = settings if is_first else msgspec.structs.replace(settings, starts_inside=False)
        splitter = chosen.make_splitter()
        pieces = splitter.feed(part.text) + splitter.finish()
        verdicts.append(judge(splitter, join_pieces(pieces, truncated=splitter.truncated), settings.tags))
        grammar = grammar or splitter.grammar
        parts += _make_parts(pieces)
    answer = "".join(part.text for part in parts if isinstance(part, Text))
    thinking = join_thoughts([part.text for part in parts if isinstance(part, Thought)])
    commentary = join_commentary(part.text for part in parts if isinstance(part, Commentary))
    verdict, reason = max(verdicts, key=lambda each: _rank(each[0]), default=("none", ""))
    if verdict in ("none", "empty_answer"):
        if not answer.strip() and not message.tool_calls:
            verdict, reason = "empty_answer", "there is no answer"
        else:
            verdict, reason = "closed" if thinking is not None else "none", ""
    changed = message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))
    return changed, Separation(verdict, grammar, answer, thinking, commentary or None, reason)


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
