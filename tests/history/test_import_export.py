"""Formats of other libraries: detected, imported with everything in them, exported without thinking by default."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.import_export import export_messages, import_messages
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.history.any_messages import MESSAGES
from tests.history.strict_stages import CANARY, MODELS, Model, StrictRules

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
    messages = import_messages(GIVEN[shape])
    assert messages == import_messages(GIVEN[shape], shape)
    thoughts = [part for message in messages for part in message.parts if isinstance(part, Thought)]
    assert [thought.text for thought in thoughts if thought.text] == ["a plan"]
    assert all(thought.origin is None and thought.complete for thought in thoughts)
    assert all(seal.origin is None for thought in thoughts for seal in thought.seals)
    [call] = [call for message in messages for call in message.tool_calls]
    [result] = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    assert (call.id, call.name, call.arguments, result.call_id, result.text) == ("c1", "f", {"n": 1}, "c1", "42")
    assert messages[-1].text == "It is 42."


def test_what_is_in_turns_of_blocks_is_there() -> None:
    assert import_messages(TURNS) == (
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
        ([], "openai"),
    ],
)
def test_lists_objects_and_single_messages_are_read(value: Any, shape: str) -> None:
    assert import_messages(value) == import_messages(value, shape)


def test_system_words_beside_the_list_stand_in_front() -> None:
    hi = {"role": "user", "content": "hi"}
    for value in ({"system": "be brief", "messages": [hi]}, {"instructions": "be brief", "input": [hi]}):
        assert import_messages(value) == (system("be brief"), user("hi"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            [CHAT[2], TURNS["messages"][1]],
            r"messages\[0\] of the format 'openai_chat' and messages\[1\] of the format 'anth",
        ),
        ([ITEMS[1], CHAT[3]], "not of one format"),
        ("canary", "no messages in str"),
        ({"canary": 1}, "no messages in dict"),
        (None, "no messages in NoneType"),
        ([{"role": "canary-role", "content": "x"}], "role"),
        ([3], r"messages\[0\]"),
    ],
)
def test_what_is_ambiguous_or_no_list_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        import_messages(value)
    with pytest.raises(ConfigError, match=r"'gemini' is not known. To do: use openai, anthropic or responses"):
        import_messages([], "gemini")
    with pytest.raises(ConfigError, match="is not known"):
        export_messages((), "gemini")


# --- out ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_what_came_in_goes_out_as_it_came(shape: str) -> None:
    assert export_messages(import_messages(GIVEN[shape]), shape, thinking=True) == GIVEN[shape]


@pytest.mark.requirement("pain B6", "S0-09", "H1")
@pytest.mark.parametrize("shape", SHAPES)
def test_pain_B6_what_goes_out_holds_no_thinking_unless_asked_for(shape: str) -> None:
    for given_shape in SHAPES:
        exported = json.dumps(export_messages(import_messages(GIVEN[given_shape]), shape))
        marks = ("plan", "sig", "cipher", "gAAA", "rs_1", "fc_1", "msg_1", "thinking", "reasoning")
        assert not any(word in exported for word in marks)
        assert "It is 42." in exported
        assert exported.count('"c1"') == 2


@pytest.mark.requirement("pain B5", "pain B6", "H1")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_B5_thinking_of_any_model_never_becomes_words(model: Model, shape: str) -> None:
    history = StrictRules(model).conversation(1)
    assert CANARY not in json.dumps(export_messages(history, shape))
    for message in import_messages(export_messages(history, shape, thinking=True), shape):
        assert CANARY not in message.text
    texts = [message.text for message in history if message.role == "assistant"]
    again = import_messages(export_messages(history, shape), shape)
    assert [message.text for message in again if message.role == "assistant"] == texts


@pytest.mark.requirement("pain B5")
def test_pain_B5_a_thought_without_a_place_in_the_shape_stays_behind() -> None:
    maker = Origin("deepseek", "", "m")
    plain = Thought("a plan", origin=maker, via="reasoning_content")
    cut = Thought("half a", complete=False)
    gone = Thought("", "hidden", withheld=True)
    history = (user("?"), assistant(plain, cut, gone, "a"))
    assert export_messages(history, "anthropic", thinking=True)["messages"][1]["content"] == [
        {"type": "text", "text": "a"}
    ]
    assert export_messages(history, "responses", thinking=True)[1] == {"role": "assistant", "content": "a"}
    assert export_messages(history, "openai", thinking=True)[1] == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "a plan",
    }


def test_the_signature_of_a_call_is_of_thinking_too_and_citations_are_not() -> None:
    carrier = '{"google":{"thought_signature":"secret"}}'
    call = ToolCall("c1", "f", seals=(Seal("thought_signature", "secret", None, carrier),))
    cited = Text("a", (Seal("citations", "", None, '[{"cited_text":"x"}]'),))
    history = (user("?"), assistant(cited, call), Message("tool", (ToolResult("c1", "42"),)))
    assert "secret" not in json.dumps(export_messages(history, "openai"))
    assert "secret" in json.dumps(export_messages(history, "openai", thinking=True))
    assert "cited_text" in json.dumps(export_messages(history, "anthropic"))


def test_a_turn_of_nothing_but_thinking_is_not_exported() -> None:
    history = (user("?"), assistant(Thought("hm")), user("!"))
    assert export_messages(history, "openai") == [{"role": "user", "content": "?"}, {"role": "user", "content": "!"}]
    drawn = UnknownPart('{"inlineData":{"data":"canary"}, "thought": true}')
    for shape in SHAPES:
        assert "canary" not in json.dumps(export_messages((user("?"), assistant(drawn, "a")), shape))


@pytest.mark.requirement("pain C10")
def test_pain_C10_details_go_out_and_come_in_verbatim() -> None:
    entries = [{"type": "reasoning.text", "text": "a plan", "signature": "s", "index": 0}, {"type": "x", "index": 1}]
    for beside in ({}, {"reasoning": "a plan"}):
        chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a", **beside}]
        chat[1]["reasoning_details"] = entries  # type: ignore[assignment]
        assert export_messages(import_messages(chat), "openai", thinking=True) == chat


# --- there and back -------------------------------------------------------------------------------------------------

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
    assert import_messages(json.loads(json.dumps(exported)), shape) == messages
    marked = any(part for message in messages for part in message.parts if isinstance(part, (Thought, ToolCall, Image)))
    if marked:
        assert import_messages(exported) == messages


@pytest.mark.parametrize("shape", SHAPES)
@given(messages=MESSAGES)
@settings(max_examples=25, deadline=None)
def test_anything_is_exported_or_refused_with_words(shape: str, messages: tuple[Message, ...]) -> None:
    for thinking in (False, True):
        try:
            exported = export_messages(messages, shape, thinking=thinking)
        except ConfigError:
            continue
        json.dumps(exported)


def test_a_file_that_the_shape_has_no_place_for_is_refused() -> None:
    with pytest.raises(ConfigError, match="not by address"):
        export_messages((user(File(url="https://x/y.pdf")),), "openai")
