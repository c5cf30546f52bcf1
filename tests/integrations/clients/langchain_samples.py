"""A reply with all that a message has to carry, and how the tests of LangChain read, add up and open things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.tools import tool

from asides import Message, Origin, Reply, Seal, Text, Thought, ToolCall, Usage
from asides.integrations.langchain_messages import read_history
from asides.integrations.langchain_replies import build_message
from asides.langchain import ChatAsides
from asides.values.events import StopReason
from asides.values.notices import Notice
from asides.values.reply import CallContext
from asides_stage import Stage

ORIGIN = Origin("anthropic", "https://api.anthropic.com", "claude-opus-5-5", "a1")
THOUGHT = Thought("The sum is 3.", "summary", "block", ORIGIN, (Seal("signature", "c2VhbA==", ORIGIN),), "thinking")
CALL = ToolCall("call_1", "add", {"a": 1, "b": [2.5, None, "é"]}, None, (Seal("thought_signature", "cw==", ORIGIN),))
REPLY: Reply[Any] = Reply(
    (THOUGHT, Text("Let me add."), CALL, Text("Wait."), ToolCall("call_2", "add", {"a": 1})),
    Usage(30, 9, 4, 10, 39, cache_written=15),
    StopReason("tool_calls", "tool_use"),
    (Notice("effort_mapped", "no xhigh here", "thinking", "xhigh", "high"),),
    "claude-opus-5-5",
    "msg_1",
    ORIGIN,
    call=CallContext(effort="high", prefix="0a1b"),
)
TURN = REPLY.to_message()
MESSAGE = build_message(REPLY)

CLAUDE = "anthropic:claude-opus-5-5"
KEY = "sk-made-up-1234567890"


def read(*messages: BaseMessage) -> tuple[Message, ...]:
    return read_history(messages)[0]


def read_codes(*messages: BaseMessage) -> list[str]:
    return [notice.code for notice in read_history(messages)[1]]


def open_model(stage: Stage, model: Any = CLAUDE, **options: Any) -> ChatAsides:
    return ChatAsides(model, **{"base_url": stage.url, "api_key": KEY, "thinking": "high", **options})


def add_up(pieces: Sequence[BaseMessage]) -> AIMessageChunk:
    chunks = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
    assert len(chunks) == len(pieces)
    return chunks[0] + chunks[1:]


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"It is sunny in {city}."
