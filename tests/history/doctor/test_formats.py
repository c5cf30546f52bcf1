"""What is particular to each format of histories."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.history.doctor.diagnose import diagnose
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.messages import Message, user
from asides.values.parts import ToolCall
from asides.values.thinking import Thought
from asides_stage.stage import Say, Stage

# --- parts that cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format_name", "history"),
    [
        ("openai", [{"role": "assistant", "content": {"a": 1}}]),
        ("openai", [{"role": "assistant", "tool_calls": {}}]),
        ("anthropic", [{"role": "tool", "content": "x"}]),
        ("anthropic", [{"role": "user", "content": 3}]),
        ("anthropic", [{"role": "user", "content": [{"text": "no type"}]}]),
        ("anthropic", [{"role": "assistant", "content": [{"type": "tool_use", "input": {}}]}]),
        ("responses", [{"type": "function_call", "name": "f"}]),
        ("responses", [{"type": 3}]),
        ("gemini", [{"role": "user", "parts": ["x"]}]),
        ("asides", [{"role": "user", "parts": [{"text": "no type"}]}]),
    ],
)
def test_a_part_that_is_none_is_named_with_its_place(format_name: str, history: list[object]) -> None:
    with pytest.raises(ConfigError, match=r"^(messages|input|contents)\[0\]: "):
        diagnose(history, "anthropic:claude-opus-4-6", format_name=format_name)


# --- blocks -----------------------------------------------------------------------------------------------------------

USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}


def test_a_result_goes_before_the_words_of_the_next_message() -> None:
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": "w"},
    ]
    found = diagnose(history, "anthropic:claude-opus-5-5")
    result, words = found.repaired[2]["content"]
    assert (result["tool_use_id"], result["is_error"]) == ("t", True)
    assert words == {"type": "text", "text": "w"}


def test_lines_of_one_message_are_one_turn() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "c2ln"}
    lines: list[Any] = [
        {"type": "user", "message": {"role": "user", "content": "q"}},
        {"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": [thinking]}},
        {"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": [USE]}},
        {"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "1"}]}},
    ]  # fmt: skip
    assert diagnose(lines, "anthropic:claude-haiku-4-5").sound


# --- chat completions -------------------------------------------------------------------------------------------------


def test_calls_of_the_older_kind_are_read() -> None:
    ask = {"role": "user", "content": "q"}
    called = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    returned = {"role": "function", "name": "f", "content": "1"}
    assert diagnose([ask, called, returned, ask], "openai-chat:gpt-4o").sound


def test_unknown_parts_and_fields_stay() -> None:
    odd = {"type": "hologram", "x": 1}
    history = [
        {"role": "user", "content": [odd, {"type": "text", "text": "x"}], "mine": 1},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    assert diagnose(history, "openai-chat:gpt-4o").repaired == history[:1]


# --- contents ---------------------------------------------------------------------------------------------------------

CONTENT = {"role": "user", "parts": [{"text": "q"}]}


def test_both_spellings_are_read() -> None:
    called = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}, "thought_signature": "c2ln"}]}
    returned = {"role": "user", "parts": [{"function_response": {"name": "f", "response": {}}}]}
    assert diagnose([CONTENT, called, returned], "google:gemini-3.5-flash").sound
    found = diagnose([CONTENT, called, CONTENT], "google:gemini-3.5-flash")
    assert [finding.kind for finding in found.refused] == ["tool_result_missing"]


def test_calls_without_ids_are_paired_by_name_and_order() -> None:
    called = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": n}}} for n in (1, 2)]}
    one = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}]}
    found = diagnose([CONTENT, called, one, CONTENT], "google:gemini-2.5-pro")
    assert [finding.path for finding in found.refused if finding.kind] == ["contents[1]"]
    assert len(found.repaired[2]["parts"]) == 2


def test_a_stream_in_pieces_is_one_turn() -> None:
    pieces = [{"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]} for name in ("a", "b")]
    results = {"role": "user", "parts": [{"functionResponse": {"name": n, "response": {}}} for n in ("a", "b")]}
    assert diagnose([CONTENT, *pieces, results], "google:gemini-2.5-pro").sound


# --- items ------------------------------------------------------------------------------------------------------------


def test_a_tool_of_free_text_gets_an_output_of_its_kind() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "not { json"}
    found = diagnose([{"role": "user", "content": "q"}, call], "openai:gpt-5")
    assert found.repaired[1] == call
    assert found.repaired[2]["type"] == "custom_tool_call_output"
    assert [finding.kind for finding in found.refused] == ["tool_result_missing"]


def test_items_of_the_provider_stay() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    history = [{"role": "user", "content": "q"}, search, message]
    assert diagnose(history, "openai:gpt-5").repaired == history


# --- saved conversations ----------------------------------------------------------------------------------------------


def test_a_conversation_itself_is_taken_and_what_is_repaired_loads() -> None:
    chat = asides.Conversation(messages=[user("q"), Message("assistant", (ToolCall("c", "f"),))])
    found = diagnose(chat, "deepseek:deepseek-flash")
    assert found.format == "asides"
    assert [finding.path for finding in found.refused] == ["messages[1].parts[0]"]
    loaded = asides.Conversation.from_json(json.dumps(found.repaired))
    assert len(loaded.messages) == 3


def test_thoughts_that_we_do_not_send_are_no_fault() -> None:
    origin = find_target("anthropic:claude-opus-4-6").origin
    broken = Thought("half", "summary", "block", origin, complete=False)
    found = diagnose([user("q"), Message("assistant", (broken, "x")), user("q")], "anthropic:claude-opus-4-6")
    assert found.sound
    assert [finding.effect for finding in found.findings] == ["ignored"]


def test_an_unsigned_thought_is_repaired_and_the_next_question_is_answered() -> None:
    unsigned = Thought("plan", "summary", "block", via="thinking")
    messages = [user("q"), Message("assistant", (unsigned, "x"))]
    found = diagnose(messages, "anthropic:claude-opus-4-6")
    assert [finding.kind for finding in found.refused] == ["thinking_signature_missing"]
    with Stage([Say(text="42")]) as stage:
        chat = asides.Conversation.from_json(json.dumps(found.repaired))
        reply = chat.ask("And?", model="anthropic:claude-opus-4-6", base_url=stage.url, retries=0)
    assert reply.text == "42"
    assert {notice.code for notice in reply.warnings} == {"foreign_address"}
