"""Chat messages as clients write them: every form that is accepted, and clear errors for others."""

from __future__ import annotations

from typing import Any

import pytest

from asides import ask
from asides.dialects.openai_chat.import_messages import import_message, import_messages
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.wire.inline_tags import separate
from asides_stage import Say, Stage


def parts(**message: Any) -> tuple[Part, ...]:
    return import_message(message).parts


def test_a_question() -> None:
    assert import_message({"role": "user", "content": "hi"}) == Message("user", (Text("hi"),))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_both_names_of_the_system_role(role: str) -> None:
    assert import_message({"role": role, "content": "be brief"}) == Message("system", (Text("be brief"),))


@pytest.mark.parametrize("content", [None, "", []])
def test_no_content(content: Any) -> None:
    assert import_message({"role": "user", "content": content}) == Message("user")


def test_a_name() -> None:
    assert import_message({"role": "user", "content": "hi", "name": "ada"}).name == "ada"


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ("plain", Text("plain")),
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "input_text", "text": "a"}, Text("a")),
        ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, Image(url="https://h/a.png")),
        ({"type": "image_url", "image_url": "https://h/a.png"}, Image(url="https://h/a.png")),
        (
            {"type": "image_url", "image_url": {"url": "https://u", "detail": "low"}},
            Image(url="https://u", detail="low"),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,AAE="}},
            Image(data=b"\x00\x01", media_type="image/webp"),
        ),
        ({"type": "input_image", "image_url": "data:;base64,AAE="}, Image(data=b"\x00\x01")),
        ({"type": "file", "file": {"file_id": "f1"}}, File(id="f1")),
        (
            {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;charset=utf-8;base64,AAE="}},
            File(name="a.txt", data=b"\x00\x01", media_type="text/plain"),
        ),
        ({"type": "file", "file": {"file_data": "AAE="}}, File(data=b"\x00\x01")),
        ({"type": "input_file", "file_url": "https://h/a.pdf"}, File(url="https://h/a.pdf")),
        (
            {"type": "input_audio", "input_audio": {"data": "AAE=", "format": "mp3"}},
            File(name="audio.mp3", data=b"\x00\x01", media_type="audio/mpeg"),
        ),
        (
            {"type": "video_url", "video_url": {"url": "v"}},
            UnknownPart('{"type":"video_url","video_url":{"url":"v"}}'),
        ),
    ],
)
def test_content_parts(part: Any, read: Part) -> None:
    assert parts(role="user", content=[part]) == (read,)


# --- assistant ----------------------------------------------------------------------------------------------------


def test_an_answer_with_everything() -> None:
    message = {
        "role": "assistant",
        "content": "42",
        "reasoning_content": "plan",
        "refusal": "no",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    assert import_message(message).parts == (
        Thought("plan", via="reasoning_content"),
        Text("42"),
        Refusal("no"),
        ToolCall("c1", "f", {"a": 1}),
    )


def test_a_thinking_part_of_another_form_stays_as_it_is() -> None:
    message = import_message({"role": "assistant", "content": [{"type": "thinking", "data": "abc"}]})
    assert message.parts == (UnknownPart('{"type":"thinking","data":"abc"}'),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_every_field_for_thinking_is_remembered(field: str) -> None:
    assert parts(role="assistant", content="a", **{field: "t"}) == (Thought("t", via=field), Text("a"))


def test_of_two_fields_the_first_with_text_counts() -> None:
    assert parts(role="assistant", reasoning="b", reasoning_content="a") == (Thought("a", via="reasoning_content"),)
    assert parts(role="assistant", reasoning="b", reasoning_content=" ") == (Thought("b", via="reasoning"),)


@pytest.mark.parametrize("blank", ["", " \n", None, 5])
def test_a_blank_field_is_no_thought(blank: Any) -> None:
    assert parts(role="assistant", content="a", reasoning_content=blank) == (Text("a"),)


def test_details_are_seals_of_one_thought() -> None:
    details = [
        {"type": "reasoning.text", "text": "pl", "signature": "s1", "index": 0},
        {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
        {"type": "reasoning.text", "text": "an", "index": 2},
    ]
    seals = (
        Seal("reasoning_details", "s1", None, '{"type":"reasoning.text","text":"pl","signature":"s1","index":0}'),
        Seal("reasoning_details", "xyz", None, '{"type":"reasoning.encrypted","data":"xyz","index":1}'),
        Seal("reasoning_details", "", None, '{"type":"reasoning.text","text":"an","index":2}'),
    )
    assert parts(role="assistant", reasoning_details=details) == (
        Thought("plan", seals=seals, via="reasoning_details"),
    )
    assert parts(role="assistant", reasoning="plan", reasoning_details=details) == (
        Thought("plan", seals=seals, via="reasoning"),
    )


def test_a_summary_in_details_is_one() -> None:
    (thought,) = parts(role="assistant", reasoning_details=[{"type": "reasoning.summary", "summary": "short"}])
    assert isinstance(thought, Thought)
    assert (thought.text, thought.kind) == ("short", "summary")


@pytest.mark.parametrize("details", [5, [], [5, "x"], None])
def test_details_that_are_none_are_left_out(details: Any) -> None:
    assert parts(role="assistant", content="a", reasoning_details=details) == (Text("a"),)


@pytest.mark.parametrize("refusal", [None, "", 5])
def test_no_refusal(refusal: Any) -> None:
    assert parts(role="assistant", content="a", refusal=refusal) == (Text("a"),)


def test_details_without_text_are_a_hidden_thought() -> None:
    (thought,) = parts(role="assistant", reasoning_details=[{"type": "reasoning.encrypted", "data": "xyz"}])
    assert isinstance(thought, Thought)
    assert (thought.text, thought.kind, [seal.value for seal in thought.seals]) == ("", "hidden", ["xyz"])


def test_thinking_in_a_content_list() -> None:
    content = [
        {
            "type": "thinking",
            "thinking": [{"type": "text", "text": "pl"}, {"type": "text", "text": "an"}],
            "signature": "s",
        },
        {"type": "text", "text": "42"},
        {"type": "reasoning", "text": "more"},
        {"type": "thinking", "thinking": [5, {"text": 5}, {"text": "odd"}], "signature": ""},
        {"type": "thinking", "thinking": 5, "signature": 5},
    ]
    assert parts(role="assistant", content=content) == (
        Thought("plan", source="block", seals=(Seal("signature", "s"),), via="content"),
        Text("42"),
        Thought("more", source="block", via="content"),
        Thought("odd", source="block", via="content"),
        Thought("", "hidden", "block", via="content"),
    )


def test_thinking_in_tags_before_the_text_is_a_thought() -> None:
    assert parts(role="assistant", content="<think>plan</think>\n\n42") == (Thought("plan", source="tags"), Text("42"))
    (cut,) = parts(role="assistant", content="<think>pla")
    assert isinstance(cut, Thought)
    assert not cut.complete


@pytest.mark.parametrize("role", ["user", "system"])
def test_people_may_write_about_tags(role: str) -> None:
    assert parts(role=role, content="<think>x</think> means?") == (Text("<think>x</think> means?"),)
    assert parts(role="assistant", content="Use <think>x</think>.") == (Text("Use <think>x</think>."),)


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ('{"a":1}', ToolCall("c", "f", {"a": 1})),
        ({"a": 1}, ToolCall("c", "f", {"a": 1})),
        ("", ToolCall("c", "f")),
        (None, ToolCall("c", "f")),
        ('{"a":', ToolCall("c", "f", {}, '{"a":')),
        ("[1]", ToolCall("c", "f", {}, "[1]")),
    ],
)
def test_arguments(arguments: Any, call: ToolCall) -> None:
    wire = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]
    assert parts(role="assistant", tool_calls=wire) == (call,)


def test_a_signature_beside_a_call_or_a_message_is_stored_with_its_object() -> None:
    carrier = {"google": {"thought_signature": "c2ln"}}
    seal = Seal("thought_signature", "c2ln", None, '{"google":{"thought_signature":"c2ln"}}')
    call = {"id": "c", "function": {"name": "f"}, "extra_content": carrier}
    assert parts(role="assistant", tool_calls=[call]) == (ToolCall("c", "f", {}, None, (seal,)),)
    assert parts(role="assistant", content="a", extra_content=carrier) == (
        Thought("", "hidden", seals=(seal,)),
        Text("a"),
    )
    (unread,) = parts(role="assistant", extra_content={"vendor": 1})
    assert isinstance(unread, Thought)
    assert unread.seals == (Seal("thought_signature", "", None, '{"vendor":1}'),)
    blanks: list[tuple[str, Any]] = [
        ("extra_content", {}),
        ("extra_content", "x"),
        ("thought_signature", ""),
        ("thought_signature", 5),
    ]
    for field, blank in blanks:
        assert parts(role="assistant", content="a", **{field: blank}) == (Text("a"),)
    assert parts(role="assistant", thought_signature="c2ln") == (
        Thought("", "hidden", seals=(Seal("thought_signature", "c2ln"),)),
    )


def test_a_call_of_another_kind_is_stored_unchanged() -> None:
    call = {"id": "c", "type": "made_up", "made_up": {"name": "f", "input": "x"}}
    assert parts(role="assistant", tool_calls=[call]) == (
        UnknownPart('{"id":"c","type":"made_up","made_up":{"name":"f","input":"x"}}'),
    )


# --- tools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("sunny", "sunny"),
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "sunny"}], "sunny"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], (Text("a"), Text("b"))),
        ([{"type": "image_url", "image_url": {"url": "https://u"}}], (Image(url="https://u"),)),
    ],
)
def test_a_result(content: Any, read: Any) -> None:
    message = {"role": "tool", "tool_call_id": "c", "content": content, "name": "f"}
    assert import_message(message) == Message("tool", (ToolResult("c", read, "f"),))


def test_calls_from_before_there_were_ids_are_matched_with_their_results() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}
    result = {"role": "function", "name": "f", "content": "x"}
    history = import_messages([call, result, call, result])
    first, answer, second, other = history
    assert first.tool_calls[0] == ToolCall("call_f_1", "f", {"a": 1})
    assert answer.parts == (ToolResult("call_f_1", "x", "f"),)
    assert second.tool_calls[0].id == "call_f_2"
    assert other.parts == (ToolResult("call_f_2", "x", "f"),)
    assert import_message(call).tool_calls[0].id == "call_f"


# --- nonsense -----------------------------------------------------------------------------------------------------

SECRET = "do-not-repeat-me"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (SECRET, "not text"),
        ([SECRET], "not a list"),
        ({"content": SECRET}, "role is missing"),
        ({"role": 5, "content": SECRET}, "role is text, not a number"),
        ({"role": "robot", "content": SECRET}, "the role 'robot' is not known; use system, developer, user"),
        ({"role": "user", "content": 5}, "content must be text or a list of parts, not a number"),
        ({"role": "user", "content": True}, "not true or false"),
        ({"role": "user", "content": {"text": SECRET}}, "not an object"),
        ({"role": "user", "content": b"bytes"}, "not bytes"),
        ({"role": "user", "content": [5]}, "a content part must be an object with a type, not a number"),
        ({"role": "user", "content": [{"text": SECRET}]}, "no type"),
        ({"role": "user", "content": [{"type": "text"}]}, "text is missing"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "no url"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": 5}}]}, "no url"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": ""}]}, "no url"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": SECRET}]}, "no data"),
        ({"role": "user", "content": [{"type": "file", "file": SECRET}]}, "must be an object, not text"),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, "neither file_data nor file_id"),
        ({"role": "user", "content": [{"type": "file", "file": {"file_data": SECRET + "!"}}]}, "not base64"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "no data"),
        ({"role": "user", "content": [{"type": "x", "y": object()}]}, "cannot be written as JSON"),
        ({"role": "user", "content": "a", "name": 5}, "name is text"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls must be a list, not an object"),
        ({"role": "assistant", "tool_calls": [5]}, "a tool call must be an object"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "no function"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "id is missing"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}, "name is missing"),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": 5}}]},
            "the arguments of f are JSON text, not a number",
        ),
        ({"role": "tool", "content": SECRET}, "tool_call_id is missing"),
        (
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "refusal", "refusal": SECRET}]},
            "a tool result is text",
        ),
        ({"role": "function", "content": SECRET}, "name is missing"),
        (None, "not null"),
    ],
)
def test_an_invalid_message_raises_without_repeating_content(message: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        import_message(message)
    assert SECRET not in str(caught.value)


def test_an_error_in_a_history_says_where() -> None:
    with pytest.raises(ConfigError, match=r"messages\[1\]: the role 'robot'"):
        import_messages([{"role": "user", "content": "a"}, {"role": "robot"}])


@pytest.mark.parametrize("more", [[], [{"type": "text", "text": "!"}]], ids=["one", "two"])
def test_the_cache_breakpoint_of_a_part_of_a_result_is_that_of_the_result(more: list[Any]) -> None:
    part = {"type": "text", "text": "seen", "cache_control": {"type": "ephemeral"}}
    (result,) = import_message({"role": "tool", "tool_call_id": "c1", "content": [part, *more]}).parts
    assert isinstance(result, ToolResult)
    assert result.cache is True


_TEXTS = (
    *("The end.", "to=self", "Thinking: no", "a < b", "x </think> y", "[1]", " <think>so</think>Hi", "\n", "t"),
    *("<think>so</think>Hi", "[THINK]so[/THINK]Hi", "<|channel|>analysis<|message|>so<|end|>Hi", "A <think>so</think>"),
)


@pytest.mark.parametrize("text", _TEXTS)
def test_tags_are_found_wherever_a_text_may_begin_with_one(text: str) -> None:
    """Most texts hold no tag for certain, and are not searched. The result is the same."""
    (message,) = import_messages([{"role": "assistant", "content": text}])
    separated = separate(text, position="leading", starts_inside=False)
    assert message.text == separated.text
    assert "".join(part.text for part in message.parts if isinstance(part, Thought)) == (separated.thinking or "")


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("role", ["user", "developer", "assistant"])
def test_a_plain_message_is_read_as_any_other(role: str, text: str) -> None:
    (message,) = import_messages([{"role": role, "content": text}])
    assert message == import_message({"role": role, "content": text})


@pytest.mark.parametrize("kind", [{"type": "tool_call"}, {}], ids=["typed", "untyped"])
@pytest.mark.parametrize("model", ["openai-chat:gpt-4o", "openai:gpt-5", "anthropic:claude-sonnet-4-5"])
def test_calls_in_the_shape_of_langchain_keep_their_result(kind: dict[str, str], model: str) -> None:
    """A role, and calls with `args` instead of a function. No provider gets them in that shape."""
    call = {"name": "look", "args": {"at": "sky"}, "id": "call_1", **kind}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "content": "blue", "tool_call_id": "call_1"}
    history: list[dict[str, Any]] = [{"role": "user", "content": "?"}, turn, result]
    (_, message, _) = import_messages(history)
    assert message.parts == (ToolCall("call_1", "look", {"at": "sky"}),)
    with Stage([Say(text="fine")]) as stage:
        ask(model, [*history, {"role": "user", "content": "so?"}], api_key="k", base_url=stage.url)
    sent = stage.requests[-1].body.decode()
    assert "blue" in sent
    assert '"args"' not in sent
