"""Replies as messages of LangChain: `build_message` writes a whole one, `ChunkWriter` one that arrives in events.

The pieces add up to the message that a whole reply makes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import ToolCallChunk, invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from asides.intake.objects.langchain_state import CUSTOM_ARGUMENT, NAME, Block
from asides.integrations.langchain_blocks import build_block, carry
from asides.values.events import (
    CommentaryDelta,
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import Part, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage

_METADATA = {"model_provider": NAME}
"""Every piece has it: LangChain finds by it how to read `content_blocks`."""


def build_result(reply: Reply[Any], notices: Iterable[Notice] = ()) -> ChatResult:
    """The result that a chat model returns for a whole reply."""
    message = build_message(reply, notices)
    return ChatResult(generations=[ChatGeneration(message=message)])


def build_message(reply: Reply[Any], notices: Iterable[Notice] = ()) -> AIMessage:
    """The message of a whole reply. `notices` are those about the messages that were sent."""
    name = _make_name()
    entries = [_build_entry(part, place, f"{name}_{place}", _get_turn(reply)) for place, part in enumerate(reply.parts)]
    for entry, part in zip(entries, reply.parts, strict=True):
        if isinstance(part, Thought):
            entry["reasoning"] = part.text
    blocks = [build_block(part) for part in reply.tool_calls]
    return AIMessage(
        content=reply.text,
        tool_calls=[
            tool_call(name=block["name"], args=block["args"], id=block["id"])
            for block in blocks
            if block["type"] == "tool_call"
        ],
        invalid_tool_calls=[
            invalid_tool_call(name=block["name"], args=block["args"], id=block["id"], error=None)
            for block in blocks
            if block["type"] == "invalid_tool_call"
        ],
        additional_kwargs=_build_carried(entries, reply) | _build_refusal(reply.refusal),
        response_metadata=_METADATA | describe_reply(reply, notices),
        usage_metadata=count_tokens(reply.usage),
    )


def _make_name() -> str:
    """The beginning of the indexes of one reply. No two are equal, so that LangChain never merges blocks of two."""
    return f"lc_{secrets.token_hex(4)}"


def _get_turn(reply: Reply[Any]) -> Message:
    return reply.to_message() or Message("assistant", ())


def _build_entry(part: Part, place: int, index: str, turn: Message) -> Block:
    """What a message carries of a part: not its text, and not the arguments of a call, which the message has."""
    extras = carry(part, turn)
    match part:
        case Thought():
            entry: Block = {"type": "reasoning", "reasoning": ""}
        case Text() if part.text:
            entry = {"type": "text", "length": len(part.text)}
        case ToolCall():
            entry = {"type": "tool_call", "id": part.id}
        case _:
            entry = build_block(part)
    return entry | {"index": index, "place": place} | ({"extras": extras} if extras else {})


def _build_carried(entries: list[Block], reply: Reply[Any]) -> dict[str, Any]:
    carried: dict[str, Any] = {"blocks": entries} if entries else {}
    turn = msgspec.structs.replace(_get_turn(reply), parts=())
    if turn != Message("assistant", ()):
        from asides.history.document import write_message

        carried["turn"] = write_message(turn).decode()
    return {NAME: carried} if carried else {}


def _build_refusal(text: str | None) -> dict[str, Any]:
    return {"refusal": text} if text else {}


def describe_reply(reply: Reply[Any], notices: Iterable[Notice] = ()) -> dict[str, Any]:
    """The `response_metadata` of a reply: no content, no thinking, no seals."""
    described: dict[str, Any] = {
        "model_name": reply.model or ("" if reply.origin is None else reply.origin.model),
        "finish_reason": reply.stop.reason,
        "outcome": reply.outcome,
    }
    if reply.origin is not None:
        described["provider"] = reply.origin.provider
    if reply.stop.raw is not None:
        described["stop_reason"] = reply.stop.raw
    if reply.id:
        described["id"] = reply.id
    if every := [*notices, *reply.warnings]:
        described["notices"] = [
            {name: value for name, value in notice.to_dict().items() if value is not None} for notice in every
        ]
    return described


def count_tokens(usage: Usage) -> UsageMetadata | None:
    """The tokens as LangChain has them; None when the provider reported none."""
    if usage.input is None and usage.output is None:
        return None
    given, made = usage.input or 0, usage.output or 0
    counted = UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
    details = InputTokenDetails()
    if usage.cached is not None:
        details["cache_read"] = usage.cached
    if usage.cache_written is not None:
        details["cache_creation"] = usage.cache_written
    if details:
        counted["input_token_details"] = details
    if usage.thinking is not None:
        counted["output_token_details"] = OutputTokenDetails(reasoning=usage.thinking)
    return counted


# --- pieces -----------------------------------------------------------------------------------------------------------


class _Block:
    """A block while it arrives."""

    def __init__(self, kind: str, index: str) -> None:
        self.kind = kind
        self.index = index
        self.has_content = False
        """Whether the reply has a part for it."""
        self.held = ""
        """Blank text, which is dropped unless more follows."""
        self.number = 0
        """For a call: its number among the calls."""
        self.is_custom = False


class ChunkWriter:
    """Writes the events of one reply as pieces of a message. Text comes as `content`, thinking beside it."""

    def __init__(self) -> None:
        self._name = _make_name()
        self._blocks: dict[int, _Block] = {}
        self._last_text = -1
        self._calls = 0
        self._is_text_in_order = True

    def write(self, event: Event) -> ChatGenerationChunk | None:
        """The piece of an event; None for one that shows nothing yet."""
        match event:
            case TextDelta():
                return self._write_text(event)
            case TextReclassified():
                return self._move_text(event)
            case ThinkingDelta():
                return self._write_thinking(event)
            case ToolCallDelta():
                return self._write_call(event)
            case RefusalDelta(text=text):
                self._find(event.block, "refusal").has_content |= bool(text)
                return _build_chunk(more=_build_refusal(text)) if text else None
            case CommentaryDelta(text=text):
                # Its words come with the last piece, as a block of their own: LangChain takes all text for the answer.
                self._find(event.block, "commentary").has_content |= bool(text)
                return None
            case ThoughtSealed():
                block = self._find(event.block, "reasoning")
                if block.kind in ("reasoning", "text", "commentary"):
                    block.has_content |= bool(event.seal.value) or block.kind != "reasoning"
                return None
            case ReplyStarted() | UsageReported() | Warned() | ReplyEnded():
                return None
            case _:
                self._find(event.block, "part").has_content = True
                return None

    def finish(self, reply: Reply[Any], notices: Iterable[Notice] = ()) -> Iterator[ChatGenerationChunk]:
        """The last pieces: what closes the blocks, with their seals; then the figures of the reply."""
        calls = [block for block in self._blocks.values() if block.is_custom]
        if calls:
            yield _build_chunk(calls=[_build_call_piece(block, arguments='"}') for block in calls])
        numbers = [number for number, block in sorted(self._blocks.items()) if block.has_content]
        turn = _get_turn(reply)
        entries: list[Block] = []
        for place, (number, part) in enumerate(zip(numbers, reply.parts, strict=True)):
            block = self._blocks[number]
            entry = _build_entry(part, place, block.index, turn)
            if isinstance(part, ToolCall):
                entry["call"] = block.number
            if isinstance(part, Thought):
                entry["reasoning"] = block.held
            if not self._is_text_in_order:
                entry.pop("length", None)
            entries.append(entry)
        if carried := _build_carried(entries, reply):
            yield _build_chunk(more=carried)
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                response_metadata=_METADATA | describe_reply(reply, notices),
                usage_metadata=count_tokens(reply.usage),
                chunk_position="last",
            )
        )

    def _find(self, number: int, kind: str) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block(kind, f"{self._name}_{number}")
        return block

    def _write_text(self, event: TextDelta) -> ChatGenerationChunk | None:
        block = self._find(event.block, "text")
        if not event.text:
            return None
        if event.block < self._last_text:
            self._is_text_in_order = False
        self._last_text = max(self._last_text, event.block)
        block.has_content = True
        return _build_chunk(event.text, entry={"type": "text", "index": block.index})

    def _move_text(self, event: TextReclassified) -> ChatGenerationChunk | None:
        """Write a text as the thought or the commentary that it is. What was sent as content stays: chunks can only
        be added.
        """
        self._is_text_in_order = False
        if event.channel == "commentary":
            # Its words come with the last piece, as those of all commentary.
            self._blocks[event.block] = _Block("commentary", f"{self._name}_{event.block}_moved")
            self._blocks[event.block].has_content = bool(event.text)
            return None
        self._blocks[event.block] = _Block("reasoning", f"{self._name}_{event.block}_moved")
        return self._write_thinking(ThinkingDelta(event.text, event.block, event.kind, event.source))

    def _write_thinking(self, event: ThinkingDelta) -> ChatGenerationChunk | None:
        block = self._find(event.block, "reasoning")
        block.held += event.text
        if not block.held or (block.held.isspace() and not block.has_content):
            return None
        text, block.held = block.held, ""
        block.has_content = True
        return _build_chunk(entry={"type": "reasoning", "reasoning": text, "index": block.index})

    def _write_call(self, event: ToolCallDelta) -> ChatGenerationChunk:
        block = self._blocks.get(event.block)
        is_new = block is None
        if block is None:
            block = self._find(event.block, "tool_call")
            block.has_content, block.number, block.is_custom = True, self._calls, event.custom
            self._calls += 1
        text = event.arguments
        if block.is_custom:
            text = json.dumps(text, ensure_ascii=False)[1:-1]
            text = f'{{"{CUSTOM_ARGUMENT}": "{text}' if is_new else text
        piece = _build_call_piece(block, event.name, event.id, text)
        entry = {"type": "tool_call", "index": block.index, "call": block.number}
        return _build_chunk(entry=entry if is_new else None, calls=[piece])


def _build_call_piece(
    block: _Block, name: str | None = None, call_id: str | None = None, arguments: str = ""
) -> ToolCallChunk:
    return tool_call_chunk(name=name, args=arguments, id=call_id, index=block.number)


def _build_chunk(
    text: str = "",
    *,
    entry: Block | None = None,
    calls: Iterable[ToolCallChunk] = (),
    more: dict[str, Any] | None = None,
) -> ChatGenerationChunk:
    carried = {} if entry is None else {NAME: {"blocks": [entry]}}
    return ChatGenerationChunk(
        message=AIMessageChunk(
            content=text,
            tool_call_chunks=list(calls),
            additional_kwargs=carried | (more or {}),
            response_metadata=dict(_METADATA),
        )
    )
