"""Opening a history: where the list is, which format it has, and the places of its parts."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.diagnosis.diagnose import diagnose
from asides.history.diagnosis.draft import open_draft, parse_history, write_path
from asides.values.errors import ConfigError
from asides.values.messages import Message, user

_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("history", "format_name", "is_request"),
    [
        ([{"role": "user", "content": "x"}], "openai_chat", False),
        ([{"role": "assistant", "tool_calls": [_CALL]}], "openai_chat", False),
        ({"messages": [{"role": "user", "content": "x"}], "system": "s"}, "anthropic", False),
        ({"messages": [{"role": "user", "content": "x"}], "model": "m"}, "openai_chat", True),
        ([{"role": "assistant", "content": [{"type": "thinking", "signature": "s"}]}], "anthropic", False),
        ([{"type": "reasoning", "summary": []}], "openai_responses", False),
        ({"input": [{"role": "user", "content": "x"}], "store": False}, "openai_responses", True),
        ({"output": [{"type": "reasoning", "summary": []}], "model": "m"}, "openai_responses", False),
        ([{"role": "user", "parts": [{"text": "x"}]}], "gemini", False),
        ({"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {}}, "gemini", True),
        ({"asides": 1, "messages": [{"role": "user", "parts": []}], "model": "m"}, "asides", False),
        ([{"role": "user", "parts": [{"type": "text", "text": "x"}]}], "asides", False),
        ([user("x")], "asides", False),
        ([{"type": "user", "message": {"role": "user", "content": "x"}}], "openai_chat", False),
    ],
)
def test_the_format_is_detected(history: Any, format_name: str, is_request: bool) -> None:
    draft = open_draft(history, None, "openai_chat")
    assert (draft.format, draft.is_request) == (format_name, is_request)


def test_plain_text_has_the_format_of_the_model() -> None:
    history = [{"role": "user", "content": "x"}]
    assert open_draft(history, None, "anthropic").format == "anthropic"
    assert open_draft(history, "openai", "anthropic").format == "openai_chat"
    with pytest.raises(ConfigError, match="the format 'xml' is not known"):
        open_draft(history, "xml", "anthropic")


def test_lines_are_read_and_the_broken_one_is_named() -> None:
    assert parse_history(b'\xef\xbb\xbf{"a": 1}\n\n{"b": 2}\n') == ([{"a": 1}, {"b": 2}], True)
    with pytest.raises(ConfigError, match="line 2 is not"):
        parse_history(b'{"a": 1}\n{"b": \n')
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_history(b"[" * 500 + b"]" * 500)


def test_lines_around_messages_keep_their_places() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    lines = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}},
        {"type": "event_msg", "payload": {"type": "token_count"}},
        {"type": "response_item", "payload": call},
        {"type": "turn_context", "payload": {}},
    ]
    found = diagnose(lines, "openai:gpt-5")
    assert [line["type"] for line in found.repaired] == [
        "session_meta",
        "response_item",
        "event_msg",
        "response_item",
        "response_item",
        "turn_context",
    ]
    assert found.repaired[3]["payload"] == {name: value for name, value in call.items() if name != "id"}
    assert found.repaired[4]["payload"]["type"] == "function_call_output"
    assert lines[3]["payload"] == call


def test_the_places_are_those_of_the_file() -> None:
    """A finding behind something that was left out names the place in the given file."""
    orphan = {"role": "tool", "tool_call_id": "x", "content": "1"}
    history = [orphan, {"role": "user", "content": "q"}, orphan, {"role": "assistant", "tool_calls": [_CALL]}]
    found = diagnose(history, "openai-chat:gpt-4o")
    assert [finding.path for finding in found.refused] == ["messages[0]", "messages[2]", "messages[3].tool_calls[0]"]
    assert [finding.message for finding in found.refused] == [0, 2, 3]
    assert write_path(("a", 1, "b", "c", 2)) == "a[1].b.c[2]"


def test_our_own_messages_are_taken() -> None:
    found = diagnose([user("x"), Message("assistant", "y")], "anthropic:claude-opus-4-6")
    assert (found.format, found.sound) == ("asides", True)


@pytest.mark.parametrize("history", [3, None, "text", [None], [[]], {"messages": []}, {"messages": ["x"]}])
def test_what_is_no_history_gets_a_clear_error(history: Any) -> None:
    with pytest.raises(ConfigError, match="To do"):
        diagnose(history, "anthropic:claude-opus-4-6")
