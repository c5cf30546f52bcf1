"""Documents of other libraries: detected, and imported with everything in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.export import export_messages
from asides.intake.detect import detect_history
from asides.intake.documents import parse_history
from asides.intake.read import read
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought

SHAPES = ("openai", "anthropic", "responses")

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "http://x"}}],
    },
    {
        "role": "assistant",
        "reasoning_content": "a plan",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n":1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "It is 42."},
]
TURNS: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AP8="}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a plan", "signature": "sig"},
                {"type": "redacted_thinking", "data": "cipher"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"n": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42", "is_error": True}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 42."}]},
    ],
}
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a plan"}],
        "encrypted_content": "gAAA",
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"n":1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "42"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It is 42.", "annotations": []}],
    },
]
GIVEN = {"openai": CHAT, "anthropic": TURNS, "responses": ITEMS}


# --- in -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("H6", "pain C1")
@pytest.mark.parametrize("shape", SHAPES)
def test_H6_a_format_is_detected_and_its_thoughts_have_no_origin(shape: str) -> None:
    messages = read(GIVEN[shape])
    assert messages == read(GIVEN[shape], format_name=shape)
    thoughts = [part for message in messages for part in message.parts if isinstance(part, Thought)]
    assert [thought.text for thought in thoughts if thought.text] == ["a plan"]
    assert all(thought.origin is None and thought.complete for thought in thoughts)
    assert all(seal.origin is None for thought in thoughts for seal in thought.seals)
    [call] = [call for message in messages for call in message.tool_calls]
    [result] = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    assert (call.id, call.name, call.arguments, result.call_id, result.text) == ("c1", "f", {"n": 1}, "c1", "42")
    assert messages[-1].text == "It is 42."


def test_what_is_in_turns_of_blocks_is_there() -> None:
    assert read(TURNS) == (
        Message("system", (Text("Be brief.", cache=True),)),
        user("?", Image(data=b"\x00\xff")),
        assistant(
            Thought("a plan", "summary", "block", None, (Seal("signature", "sig"),), "thinking"),
            Thought("", "hidden", "block", None, (Seal("redacted", "cipher"),)),
            "I look.",
            ToolCall("c1", "f", {"n": 1}),
        ),
        Message("tool", (ToolResult("c1", "42", is_error=True),)),
        assistant("It is 42."),
    )


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"messages": CHAT}, "openai"),
        ({"input": ITEMS, "instructions": "x"}, "responses"),
        ({"id": "resp_1", "output": ITEMS[1:3]}, "responses"),
        ({"input": "hi", "instructions": "be brief"}, "responses"),
        ({"system": "be brief", "messages": [{"role": "user", "content": "hi"}]}, "anthropic"),
        ({"system": "be brief", "messages": CHAT[1:]}, "openai"),
        (TURNS["messages"], "anthropic"),
        ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}], "openai"),
        (
            [{"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]}],
            "openai",
        ),
        ({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}, "anthropic"),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}, "responses"),
        ({"role": "assistant", "content": "hi", "refusal": "no"}, "openai"),
    ],
)
def test_lists_objects_and_single_messages_are_read(value: Any, shape: str) -> None:
    assert read(value) == read(value, format_name=shape)


def test_system_words_beside_the_list_stand_in_front() -> None:
    hi = {"role": "user", "content": "hi"}
    for value in ({"system": "be brief", "messages": [hi]}, {"instructions": "be brief", "input": [hi]}):
        assert read(value) == (system("be brief"), user("hi"))


@pytest.mark.parametrize("messages", [[CHAT[2], TURNS["messages"][1]], [ITEMS[1], CHAT[3]]])
def test_a_history_of_two_formats_is_ambiguous_and_a_prompt_is_split(messages: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"not of one format: messages\[0\] of .* and messages\[1\] of "):
        detect_history(messages, {}, "messages", "openai_chat")
    assert len(read(messages)) == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("canary", "no messages in str"),
        ({"canary": 1}, "no messages in dict"),
        (None, "no messages in NoneType"),
        ([{"role": "canary-role", "content": "x"}], "role"),
        ([3], r"messages\[0\]"),
    ],
)
def test_what_is_no_list_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read(value, format_name="openai")
    with pytest.raises(ConfigError, match=r"'gemini' is not known. Use openai, anthropic or responses"):
        read([], format_name="gemini")


# --- there and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_what_came_in_goes_out_as_it_came(shape: str) -> None:
    assert export_messages(read(GIVEN[shape]), shape, thinking=True) == GIVEN[shape]


WORDS = st.text("abé日 ", min_size=1, max_size=8).map(lambda text: f"w{text}w")
ARGUMENTS = st.dictionaries(WORDS, st.integers(-9, 9) | WORDS | st.none(), max_size=2)


def thought_in(shape: str, words: str, number: int) -> Thought:
    match shape:
        case "openai":
            return Thought(words, via="reasoning_content")
        case "anthropic":
            return Thought(words, "summary", "block", None, (Seal("signature", f"s{number}"),), "thinking")
        case _:
            entry = {"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": words}]}
            seal = Seal("encrypted", f"e{number}", None, _json({**entry, "encrypted_content": f"e{number}"}))
            return Thought(words, "summary", "responses_summary", seals=(seal,), via="summary")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@st.composite
def carried(draw: st.DrawFn, shape: str) -> tuple[Message, ...]:
    """Messages of which the shape can carry every field."""
    messages: list[Message] = [system(draw(WORDS))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 3))):
        shown = (
            [Image(data=b"\x00" + draw(st.binary(max_size=4)), media_type="image/png")] if draw(st.booleans()) else []
        )
        messages.append(user(draw(WORDS), *shown))
        for step in range(draw(st.integers(0, 2))):
            names = [f"c{number}{step}{each}" for each in range(draw(st.integers(1, 2)))]
            thoughts = [thought_in(shape, draw(WORDS), 10 * number + step)] if draw(st.booleans()) else []
            words = [Text(draw(WORDS))] if draw(st.booleans()) else []
            calls = [ToolCall(name, draw(WORDS), draw(ARGUMENTS)) for name in names]
            messages.append(Message("assistant", (*thoughts, *words, *calls)))
            results = [ToolResult(name, draw(WORDS)) for name in names]
            if shape == "openai":
                messages += [Message("tool", (result,)) for result in results]
            else:
                messages.append(Message("tool", tuple(results)))
        thoughts = [thought_in(shape, draw(WORDS), 10 * number + 9)] if draw(st.booleans()) else []
        messages.append(Message("assistant", (*thoughts, Text(draw(WORDS)))))
    return tuple(messages)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_what_a_shape_can_carry_comes_back_as_it_went(shape: str, data: st.DataObject) -> None:
    messages = data.draw(carried(shape))
    exported = export_messages(messages, shape, thinking=True)
    assert read(json.loads(json.dumps(exported)), format_name=shape) == messages
    marked = any(part for message in messages for part in message.parts if isinstance(part, (Thought, ToolCall, Image)))
    if marked:
        assert read(exported) == messages


# --- files ------------------------------------------------------------------------------------------------------------


def test_lines_are_read_and_the_broken_one_is_named() -> None:
    assert parse_history(b'\xef\xbb\xbf{"a": 1}\n\n{"b": 2}\n') == ([{"a": 1}, {"b": 2}], True)
    with pytest.raises(ConfigError, match="line 2 is not"):
        parse_history(b'{"a": 1}\n{"b": \n')
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_history(b"[" * 500 + b"]" * 500)


def test_a_file_in_utf_16_is_read_and_another_encoding_is_named() -> None:
    assert parse_history('[{"role": "user", "content": "é"}]'.encode("utf-16")) == (
        [{"role": "user", "content": "é"}],
        False,
    )
    with pytest.raises(ConfigError, match="not UTF-8"):
        parse_history('["é"]'.encode("latin-1"))
