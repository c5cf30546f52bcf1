"""Each form of message on the wire: text, images, files, calls, results, and thinking that goes back."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_chat.encode_messages import encode_messages
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, Target
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thinking, Thought

UNKNOWN = ModelRule()
UNSET = Thinking()
CALL = ToolCall("call_1", "weather", {"city": "Rome", "days": 2})
WIRE_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Rome","days":2}'},
}


def target(rule: ModelRule = UNKNOWN, replay: str = "all", **quirks: Any) -> Target:
    rows: Any = (ReplayRule(when=replay),)  # type: ignore[arg-type]
    provider = Provider(name="host", quirks=Quirks(**quirks), replay=rows)
    return Target(provider, "model", "https://host.test/v1", rule)


def encoded(
    *messages: Message, to: Target | None = None, system: str | None = None, thinking: Thinking = UNSET
) -> list[Any]:
    wire, notices = encode_with_notices(*messages, to=to, system=system, thinking=thinking)
    assert notices == []
    return wire


def encode_with_notices(
    *messages: Message, to: Target | None = None, system: str | None = None, thinking: Thinking = UNSET
) -> tuple[list[Any], list[Notice]]:
    notices: list[Notice] = []
    wire = encode_messages(Prompt(messages, system=system, thinking=thinking), to or target(), notices)
    # Through JSON and back, as a server reads it.
    return msgspec.json.decode(msgspec.json.encode(wire)), notices


# --- system -------------------------------------------------------------------------------------------------------


def test_the_system_prompt_comes_first_and_system_messages_stay_where_they_are() -> None:
    assert encoded(user("a"), system_message := system("later"), user("b"), system="first") == [
        {"role": "system", "content": "first"},
        {"role": "user", "content": "a"},
        {"role": "system", "content": system_message.text},
        {"role": "user", "content": "b"},
    ]


@pytest.mark.parametrize("blank", [None, "", "  \n"])
def test_an_empty_system_prompt_is_not_sent(blank: str | None) -> None:
    assert encoded(user("a"), system=blank) == [{"role": "user", "content": "a"}]


def test_an_empty_system_message_is_not_sent() -> None:
    assert encoded(system(""), user("a")) == [{"role": "user", "content": "a"}]


def test_the_role_of_the_system_prompt_is_the_hosts_or_the_models() -> None:
    assert encoded(system="s", to=target(system_role="developer"))[0]["role"] == "developer"
    assert encoded(system("s"), to=target(ModelRule(system_role="developer")))[0]["role"] == "developer"
    assert (
        encoded(system="s", to=target(ModelRule(system_role="system"), system_role="developer"))[0]["role"] == "system"
    )


def test_a_picture_in_a_system_message_is_left_out_with_a_notice() -> None:
    message = Message("system", (Text("s"), Image(url="https://host.test/a.png")))
    wire, notices = encode_with_notices(message)
    assert wire == [{"role": "system", "content": "s"}]
    assert [notice.code for notice in notices] == ["part_not_sent"]


# --- user ---------------------------------------------------------------------------------------------------------


def test_one_text_is_a_plain_string() -> None:
    assert encoded(user("hi")) == [{"role": "user", "content": "hi"}]


def test_an_empty_user_message_is_sent() -> None:
    assert encoded(Message("user")) == [{"role": "user", "content": ""}]


def test_a_name_is_sent() -> None:
    assert encoded(Message("user", (Text("hi"),), "ada")) == [{"role": "user", "name": "ada", "content": "hi"}]
    assert encoded(Message("assistant", (Text("hi"),), "bot")) == [
        {"role": "assistant", "name": "bot", "content": "hi"}
    ]


def test_several_texts_are_parts() -> None:
    assert encoded(user("a", "b")) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (Image(url="https://host.test/a.png"), {"type": "image_url", "image_url": {"url": "https://host.test/a.png"}}),
        (
            Image(url="https://host.test/a.png", detail="low"),
            {"type": "image_url", "image_url": {"url": "https://host.test/a.png", "detail": "low"}},
        ),
        (
            Image(data=b"\x00\x01", media_type="image/webp"),
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,AAE="}},
        ),
        (File(id="file-1"), {"type": "file", "file": {"file_id": "file-1"}}),
        (
            File(name="a.pdf", data=b"\x00\x01"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAE="}},
        ),
        (
            File(name="a.txt", url="data:text/plain;base64,AAE="),
            {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,AAE="}},
        ),
        (
            File(data=b"\x00\x01", media_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "AAE=", "format": "mp3"}},
        ),
        (UnknownPart('{"type":"video_url","video_url":{"url":"v"}}'), {"type": "video_url", "video_url": {"url": "v"}}),
    ],
)
def test_parts_beside_a_text(part: Any, wire: dict[str, Any]) -> None:
    assert encoded(user("what is this?", part)) == [
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}, wire]}
    ]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (File(url="https://host.test/a.pdf"), "not by address"),
        (msgspec.convert({"type": "file"}, File), "neither data nor an id"),
        (msgspec.convert({"type": "image"}, Image), "neither data nor an address"),
    ],
)
def test_a_file_without_a_form_in_the_dialect_is_an_error(part: Any, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        encoded(user(part))


def test_a_part_that_another_provider_made_is_left_out_with_a_notice() -> None:
    foreign = UnknownPart('{"type":"compaction"}', Origin("other", "https://other.test", "m"))
    wire, notices = encode_with_notices(user("a", foreign), user("b", foreign))
    assert wire == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert [notice.code for notice in notices] == ["part_not_sent"]  # once, not for each of them


# --- assistant and tools ------------------------------------------------------------------------------------------


def test_an_answer_and_a_call() -> None:
    assert encoded(assistant("let me see", CALL)) == [
        {"role": "assistant", "content": "let me see", "tool_calls": [WIRE_CALL]}
    ]


def test_a_turn_that_only_calls_tools_has_no_content_at_all() -> None:
    assert encoded(assistant(CALL)) == [{"role": "assistant", "tool_calls": [WIRE_CALL]}]


def test_texts_around_a_call_are_one_content() -> None:
    assert encoded(assistant("a", CALL, "b"))[0]["content"] == "ab"


def test_arguments_that_were_never_json_go_back_as_they_came() -> None:
    call = ToolCall("c", "f", {}, '{"a": ')
    assert encoded(assistant(call))[0]["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_a_refusal_goes_back_as_one() -> None:
    assert encoded(assistant(Refusal("no"))) == [{"role": "assistant", "content": None, "refusal": "no"}]


def test_an_assistant_message_without_anything_is_left_out_with_a_notice() -> None:
    wire, notices = encode_with_notices(user("a"), Message("assistant"), user("b"))
    assert [message["role"] for message in wire] == ["user", "user"]
    assert [notice.code for notice in notices] == ["message_not_sent"]


def test_what_was_added_is_told_after_what_was_left_out() -> None:
    host = target(ModelRule(signed_calls=True), after_results="assistant")
    result = Message("tool", (ToolResult("call_1", "rain", "weather"),))
    history = (user("?"), assistant(CALL), result, user("!"), assistant(CALL), result, assistant())
    _, notices = encode_with_notices(*history, to=host)
    assert [notice.code for notice in notices] == ["message_not_sent", "signature_stand_in", "turn_added"]


def test_an_unknown_part_of_an_assistant_is_left_out_with_a_notice() -> None:
    wire, notices = encode_with_notices(assistant("a", UnknownPart("{}")))
    assert wire == [{"role": "assistant", "content": "a"}]
    assert [notice.code for notice in notices] == ["part_not_sent"]


def test_each_result_is_a_separate_message() -> None:
    results = Message("tool", (ToolResult("call_1", "sunny"), ToolResult("call_2", "boom", is_error=True)))
    assert encoded(results) == [
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "call_2", "content": "boom"},
    ]


def test_results_in_a_user_message_come_before_its_text() -> None:
    assert encoded(Message("user", (Text("and now?"), ToolResult("call_1", "sunny")))) == [
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        {"role": "user", "content": "and now?"},
    ]


def test_a_user_message_of_results_alone_says_nothing_more() -> None:
    assert [message["role"] for message in encoded(Message("user", (ToolResult("call_1", "x"),)))] == ["tool"]
    assert encoded(Message("tool")) == []


def test_a_picture_in_a_result_becomes_a_note_with_a_notice() -> None:
    result = ToolResult("call_1", (Text("see"), Image(data=b"1"), File(data=b"%PDF-2")))
    wire, notices = encode_with_notices(Message("tool", (result,)))
    assert wire[0]["content"] == "see\n[image, image/png: not shown]\n[file, application/pdf: not shown]"
    assert [notice.code for notice in notices] == ["result_part_not_sent"]


def test_text_in_a_tool_message_is_an_error() -> None:
    with pytest.raises(Unsupported, match="ToolResult"):
        encoded(Message("tool", (Text("sunny"),)))


def test_ids_that_do_not_fit_are_mapped_the_same_way_everywhere() -> None:
    picky = target(tool_call_ids="nine_alphanumerics")
    result = Message("tool", (ToolResult("call_1", "sunny"),))
    call, answer = encoded(assistant(CALL), result, to=picky)
    mapped = call["tool_calls"][0]["id"]
    assert re.fullmatch("[A-Za-z0-9]{9}", mapped)
    assert answer["tool_call_id"] == mapped
    assert encoded(result, to=picky)[0]["tool_call_id"] == mapped
    assert encoded(Message("tool", (ToolResult("call_2"),)), to=picky)[0]["tool_call_id"] != mapped
    assert encoded(Message("tool", (ToolResult("abcDEF123"),)), to=picky)[0]["tool_call_id"] == "abcDEF123"


def test_a_longer_history_begins_with_the_shorter_one() -> None:
    history = [
        user("a"),
        assistant(Thought("t", via="reasoning"), CALL),
        Message("tool", (ToolResult("call_1", "x"),)),
        assistant("b"),
        user("c"),
    ]
    whole = encoded(*history, system="s")
    for length in range(len(history)):
        assert whole[: length + 1] == encoded(*history[:length], system="s")


# --- thinking that goes back --------------------------------------------------------------------------------------


def test_a_thought_goes_back_in_the_field_that_it_came_in() -> None:
    assert encoded(assistant(Thought("plan", via="reasoning"), "42")) == [
        {"role": "assistant", "content": "42", "reasoning": "plan"}
    ]


@pytest.mark.parametrize("via", [None, "reasoning_details", "cot"])
def test_a_thought_from_nowhere_the_host_knows_goes_into_its_usual_field(via: str | None) -> None:
    assert encoded(assistant(Thought("plan", via=via), "42"), to=target(replay_field="reasoning")) == [
        {"role": "assistant", "content": "42", "reasoning": "plan"}
    ]


def test_a_thinking_field_of_the_row_is_used() -> None:
    wire = encoded(assistant(Thought("plan", via="custom"), "42"), to=target(thinking_in=("custom",)))
    assert wire == [{"role": "assistant", "content": "42", "custom": "plan"}]


def test_several_thoughts_share_the_field_with_a_blank_line_between() -> None:
    assert encoded(assistant(Thought("a"), "42", Thought("b")))[0]["reasoning_content"] == "a\n\nb"
    hidden = Thought("", "hidden", seals=(Seal("encrypted", "x"),))
    assert encoded(assistant(Thought("a"), hidden, "42"))[0]["reasoning_content"] == "a"


def test_thoughts_from_two_fields_go_back_to_both() -> None:
    message = assistant(Thought("a", via="reasoning"), Thought("b", via="thinking"), "42")
    assert encoded(message) == [{"role": "assistant", "content": "42", "reasoning": "a", "thinking": "b"}]


def test_a_turn_with_only_thinking_has_a_content_field() -> None:
    assert encoded(assistant(Thought("plan"))) == [{"role": "assistant", "content": "", "reasoning_content": "plan"}]


DETAIL = '{"type":"reasoning.text","text":"plan","signature":"s1","index":0}'
ENCRYPTED = '{"type": "reasoning.encrypted", "data": "xyz", "index": 1}'


def test_details_go_back_verbatim_in_order_and_alone() -> None:
    seals = (Seal("reasoning_details", "s1", None, DETAIL), Seal("reasoning_details.encrypted", "xyz", None, ENCRYPTED))
    thought = Thought("plan", via="reasoning", seals=seals)
    notices: list[Notice] = []
    wire = encode_messages(Prompt((assistant(thought, "42"),)), target(replay_as="details"), notices)
    assert msgspec.json.encode(wire) == (
        b'[{"role":"assistant","content":"42","reasoning_details":[' + f"{DETAIL},{ENCRYPTED}".encode() + b"]}]"
    )


def test_a_thought_without_details_falls_back_to_the_field_beside_them() -> None:
    assert encoded(assistant(Thought("plan", via="reasoning_content"), "42"), to=target(replay_as="details")) == [
        {"role": "assistant", "content": "42", "reasoning": "plan"}
    ]


def test_a_detail_that_lost_its_entry_cannot_go_back() -> None:
    thought = Thought("plan", seals=(Seal("reasoning_details", "s1"), Seal("reasoning_details", "s2", None, DETAIL)))
    (wire,) = encoded(assistant(thought, "42"), to=target(replay_as="details"))
    assert [entry["signature"] for entry in wire["reasoning_details"]] == ["s1"]


def test_thinking_in_a_content_list_has_its_position_and_signature() -> None:
    message = assistant(Thought("a", source="block", seals=(Seal("signature", "s1"),)), "42", Thought("b"), "43")
    assert encoded(message, to=target(replay_as="content_list"))[0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "signature": "s1"},
        {"type": "text", "text": "42"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "b"}]},
        {"type": "text", "text": "43"},
    ]
    hidden = assistant(Thought("", "hidden", "block", seals=(Seal("signature", "s1"),)), "42")
    assert encoded(hidden, to=target(replay_as="content_list"))[0]["content"] == [
        {"type": "thinking", "thinking": [], "signature": "s1"},
        {"type": "text", "text": "42"},
    ]
    nothing = assistant(Thought(""), "42")
    assert encoded(nothing, to=target(replay_as="content_list"))[0]["content"] == [{"type": "text", "text": "42"}]


@pytest.mark.parametrize("replay_as", ["content_list", "tags"])
def test_without_a_thought_content_is_a_plain_string(replay_as: str) -> None:
    assert encoded(assistant("42"), to=target(replay_as=replay_as)) == [{"role": "assistant", "content": "42"}]


def test_thinking_in_tags_comes_before_the_text() -> None:
    message = assistant(Thought("plan", source="tags"), "42", CALL)
    assert encoded(message, to=target(replay_as="tags")) == [
        {"role": "assistant", "content": "<think>plan</think>42", "tool_calls": [WIRE_CALL]}
    ]
    own = target(ModelRule(replay_as="tags", tags=(("[T]", "[/T]"),)))
    assert encoded(message, to=own)[0]["content"] == "[T]plan[/T]42"


@pytest.mark.parametrize("replay_as", ["field", "details", "content_list", "tags"])
def test_a_signature_is_echoed_where_it_came(replay_as: str) -> None:
    carrier = '{"vendor": {"thought_signature": "c2ln"}}'
    call = ToolCall("call_1", "f", {}, None, (Seal("thought_signature", "c2ln", None, carrier),))
    notices: list[Notice] = []
    wire = msgspec.json.encode(encode_messages(Prompt((assistant(call),)), target(replay_as=replay_as), notices))
    assert wire == (
        b'[{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"},'
        b'"extra_content":' + carrier.encode() + b"}]}]"
    )
    thought = Thought("", "hidden", seals=(Seal("thought_signature", "c2ln", None, carrier),))
    assert encoded(assistant(thought, "42"), to=target(replay_as="field"))[0]["extra_content"] == {
        "vendor": {"thought_signature": "c2ln"}
    }
    bare = Thought("", "hidden", seals=(Seal("thought_signature", "c2ln"),))
    assert encoded(assistant(bare, "42"), to=target(replay_as="field"))[0]["thought_signature"] == "c2ln"


def test_seals_of_other_dialects_are_never_written() -> None:
    call = ToolCall("call_1", "f", {}, None, (Seal("signature", "opaque-seal", None, '{"x":"opaque-seal"}'),))
    thought = Thought("plan", seals=(Seal("encrypted", "opaque-seal", None, '{"x":"opaque-seal"}'),))
    for replay_as in ("field", "details", "content_list", "tags"):
        wire = encoded(assistant(thought, call), to=target(replay_as=replay_as))
        assert "opaque-seal" not in str(wire)


# --- the empty field ----------------------------------------------------------------------------------------------

KNOWN = ModelRule(thinking="optional", default="on")


def field_of(rule: ModelRule, thinking: Thinking, *parts: Any, replay: str = "tool_turns") -> Any:
    wire = encoded(assistant(*parts), to=target(rule, replay, empty_thinking=True), thinking=thinking)
    return wire[0].get("reasoning_content")


@pytest.mark.parametrize(
    ("rule", "thinking"),
    [
        (KNOWN, Thinking()),
        (KNOWN, Thinking(effort="low")),
        (ModelRule(thinking="optional", default="off"), Thinking(mode="on")),
        (ModelRule(thinking="always", default="off"), Thinking()),
        (ModelRule(), Thinking()),
    ],
)
def test_a_turn_that_called_tools_says_that_there_was_no_thinking(rule: ModelRule, thinking: Thinking) -> None:
    assert field_of(rule, thinking, CALL) == ""


@pytest.mark.parametrize(
    ("rule", "thinking", "replay"),
    [
        (KNOWN, Thinking(mode="off"), "tool_turns"),
        (ModelRule(thinking="never"), Thinking(), "tool_turns"),
        (ModelRule(thinking="optional", default="off"), Thinking(), "tool_turns"),
        (KNOWN, Thinking(), "never"),
    ],
)
def test_no_empty_field_where_the_model_does_not_think_or_wants_nothing_back(
    rule: ModelRule, thinking: Thinking, replay: str
) -> None:
    assert field_of(rule, thinking, CALL, replay=replay) is None


def test_the_rule_for_an_empty_field_is_found_by_the_models_public_name() -> None:
    rows = (ReplayRule(models="old*"), ReplayRule(when="tool_turns"))
    provider = Provider(name="host", quirks=Quirks(empty_thinking=True), replay=rows)
    for family, field in (("old-model", None), ("new-model", "")):
        where = Target(provider, "deployment", "https://host.test/v1", KNOWN, family)
        assert encoded(assistant(CALL), to=where)[0].get("reasoning_content") == field


def test_no_empty_field_on_a_turn_without_calls_or_with_a_thought() -> None:
    assert field_of(KNOWN, Thinking(), "42") is None
    assert field_of(KNOWN, Thinking(), Thought("plan"), CALL) == "plan"


def test_cache_breakpoints_of_answers_and_results_go_to_hosts_that_take_them() -> None:
    answer = Message("assistant", (Text("so", cache=True), ToolCall("c1", "look", {})))
    result = Message("tool", (ToolResult("c1", (Text("seen", cache="1h"),)),))
    point = {"type": "ephemeral"}
    first, second = encoded(answer, result, to=target(cache_control=True))
    assert first["content"] == [{"type": "text", "text": "so", "cache_control": point}]
    assert second["content"] == [{"type": "text", "text": "seen", "cache_control": {**point, "ttl": "1h"}}]
    (first, second), notices = encode_with_notices(answer, result)
    assert (first["content"], second["content"]) == ("so", "seen")
    assert [notice.code for notice in notices] == ["cache_not_sent"]
