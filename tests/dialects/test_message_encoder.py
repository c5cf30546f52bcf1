"""Histories as flat lists and as turns, encoded with minimal functions for the parts."""

from __future__ import annotations

import pytest

import asides
from asides.dialects.message_encoder import Wire, encode_flat, put_system_first, simplify_content
from asides.values.messages import Message, Prompt, system
from asides.values.parts import Part, Text, ToolResult


def flat(prompt: Prompt) -> list[Wire]:
    def encode_user(message: Message, parts: list[Part]) -> Wire:
        return {message.role: len(parts)}

    return encode_flat(
        put_system_first(prompt),
        [],
        user=encode_user,
        assistant=lambda message: [{"assistant": message.text}],
        tool_result=lambda result: {"result": result.call_id},
    )


def test_results_come_before_the_other_parts_of_their_message() -> None:
    mixed = Message("user", (Text("and"), ToolResult("c1"), Text("more")))
    assert flat(Prompt((mixed,), system="be brief")) == [
        {"role": "system", "content": "be brief"},
        {"result": "c1"},
        {"user": 2},
    ]


def test_blank_system_messages_are_left_out_and_an_empty_user_message_is_not() -> None:
    assert flat(Prompt((system(" "), Message("user")), system="\n")) == [{"user": 0}]
    assert flat(Prompt((Message("tool"), Message("tool", (ToolResult("c1"),))))) == [{"result": "c1"}]


def test_a_tool_message_holds_results_only() -> None:
    with pytest.raises(asides.Unsupported, match="holds ToolResult parts"):
        flat(Prompt((Message("tool", (Text("?"),)),)))


def test_values() -> None:
    assert simplify_content([], "text") == ""
    assert simplify_content([{"type": "text", "text": "a"}], "text") == "a"
    assert simplify_content([{"type": "text", "text": "a"}], "input_text") == [{"type": "text", "text": "a"}]
