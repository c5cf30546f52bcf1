"""Encodes a history as turns of content blocks (`encode_turns`), for the dialects that have them.

A dialect provides functions that encode a part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from asides.dialects.message_encoder import (
    OPENING,
    WORD_ID,
    CallIds,
    TurnHistory,
    Turns,
    Wire,
    add_notice,
    encode_native,
    leave_out,
    leave_out_all_but_text,
    read_system,
    report_effort,
    say_commentary,
)
from asides.dialects.verbatim import Accepts, find_source
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought

SILENT_FAILURE = "The tool failed and said nothing."
"""The content of a failed result that has none: hosts of this kind refuse an empty one."""


class BlockFormat(msgspec.Struct, frozen=True):
    """The content blocks of a dialect: one function for each kind of part."""

    dialect: str
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
    finish_turn: Callable[[str, list[Any]], Wire]
    """Builds a turn. Arguments: its role, its blocks."""
    merges: tuple[str, ...] = ("user",)
    """The roles whose turns in a row become one."""
    system_turn: str = ""
    """The kind of a turn with system text inside the conversation; "" = not supported."""
    own_ids: re.Pattern[str] | None = None
    """More ids of calls that go back where they were read in this dialect."""
    effort_change: Callable[[str], Wire] | None = None
    """Encodes a change of the effort as the only block of a system turn; None: not supported."""


class EncodedTurns(msgspec.Struct):
    """A history as turns of content blocks, and the system prompt as blocks."""

    system: list[Any]
    turns: list[Wire]
    last: str
    """The role of the last turn."""


def encode_turns(
    prompt: Prompt,
    form: BlockFormat,
    notices: list[Notice],
    accepts: Accepts | None = None,
    *,
    model_first: bool = False,
) -> EncodedTurns:
    """Encode every message of a prompt, in order. Assistant turns go back as they came, block for block.

    `accepts`: whether the host accepts an unknown field of a block or a turn (`write_source`). `model_first`: it
    accepts a history that begins with the model.
    """
    encoder = _TurnEncoder(prompt, form, notices, model_first=model_first)
    if (system := read_system(prompt)) is not None:
        encoder.system.append(form.text(system))
    for message in prompt.messages:
        turns = encoder.encode_message(message)
        if message.source is None:
            encoder.history.add(turns)
        else:
            encoder.history.restore(message, turns, form.dialect, accepts=accepts)
    return EncodedTurns(encoder.system, encoder.history.encode(), encoder.history.last)


class _TurnEncoder:
    """The encoder of one message for `encode_turns`."""

    def __init__(self, prompt: Prompt, form: BlockFormat, notices: list[Notice], *, model_first: bool) -> None:
        self.form = form
        self.opens = not (model_first and prompt.is_from(form.dialect))
        """Whether a user message is added before a history that begins with the model."""
        self.is_own = False
        """Whether the message has its source."""
        self.ids = CallIds(prompt.messages, form.dialect, WORD_ID, form.own_ids)
        self.notices = notices
        self.history = TurnHistory(merges=form.merges, finish=form.finish_turn)
        self.system: list[Any] = []

    def encode_message(self, message: Message) -> Turns:
        form, notices = self.form, self.notices
        self.is_own = find_source(message, form.dialect) is not None
        match message.role:
            case "system" if message.effort is not None and not message.parts:
                return self.encode_effort(message.effort)
            case "system" if self.is_own and form.system_turn:
                return [(form.system_turn, [block for part in message.parts for block in self.encode_user_part(part)])]
            case "system":
                if self.history.last:
                    detail = "system messages must come first here; this one was moved to the front"
                    add_notice(notices, "system_moved", detail)
                leave_out_all_but_text(message, notices)
                texts = [part for part in message.parts if isinstance(part, Text)]
                self.system += [block for part in texts for block in self.encode_user_part(part)]
                return []
            case "assistant":
                blocks = self.encode_assistant(message)
                turns: Turns = [("assistant", blocks)] if blocks else []
                if blocks and not self.history.last and self.opens:
                    detail = "conversations must begin with the user here; a short user message was added"
                    add_notice(notices, "turn_added", detail)
                    return [("user", [form.text(OPENING)]), *turns]
                return turns
            case "user" | "tool":
                blocks = [block for part in message.parts for block in self.encode_user_part(part)]
                if not blocks and message.role == "user":
                    add_notice(notices, "message_not_sent", "a message without content was left out")
                return [("user", blocks)] if blocks else []

    def encode_effort(self, effort: str) -> Turns:
        change = self.form.effort_change
        if change is None:
            report_effort(self.notices)
            return []
        return [("system", [change(effort)])]

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
            case ServerTool() if self.is_own:
                return [msgspec.Raw(part.json.encode())]
            case _:
                return leave_out(part, "user", self.notices)
        return self.form.mark_cache(block, part.cache) if part.cache else [block]

    def encode_tool_result(self, result: ToolResult) -> Wire:
        parts = (Text(result.content),) if isinstance(result.content, str) else result.content
        # A breakpoint inside is that of the whole result: two would count twice.
        unmarked = (msgspec.structs.replace(part, cache=False) if part.cache else part for part in parts)
        content = [block for part in unmarked for block in self.encode_user_part(part)]
        if result.is_error and not content:
            # Refused: "content cannot be empty if `is_error` is true" (Messages, 2025; Converse, 2026-06).
            result = msgspec.structs.replace(result, content=SILENT_FAILURE)
            content = [self.form.text(SILENT_FAILURE)]
        return self.form.tool_result(result, self.ids.fit(result.call_id), content)

    def encode_assistant(self, message: Message) -> list[Any]:
        encoded: list[Any] = []
        thoughts: list[Any] = []
        for part in say_commentary(message).parts:
            if isinstance(part, Thought):
                thoughts += self.form.thought(part)  # they wait for the block that follows
            elif blocks := self.encode_assistant_part(part):
                encoded += [*thoughts, *blocks]
                thoughts = []
        if thoughts:
            # A turn that ends with thinking is refused.
            add_notice(self.notices, "reasoning_not_sent", "a trailing thought cannot be sent back")
        return encoded

    def encode_assistant_part(self, part: Part) -> list[Any]:
        match part:
            case Text():
                if not part.text.strip():
                    return []  # some replies hold a block of blanks, which is refused when it comes back
                block = self.form.answer(part)
                return self.form.mark_cache(block, part.cache) if part.cache else [block]
            case ToolCall():
                if part.raw_arguments is not None:
                    detail = "arguments that are not a JSON object were sent back as an empty object"
                    add_notice(self.notices, "arguments_not_sent", detail)
                return [self.form.tool_call(part, self.ids.fit(part.id))]
            case ServerTool() | UnknownPart():
                return [msgspec.Raw(part.json.encode())]
            case Refusal():
                return []  # refusal text is metadata; not sent back
            case _:
                return leave_out(part, "assistant", self.notices)
