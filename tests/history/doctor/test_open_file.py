"""Opening a history: where the list is, which format it has, and the places of its parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose
from asides.history.doctor.open_file import open_document
from asides.intake.documents import parse_history
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
    opened = open_document(history, None, "openai_chat")
    assert (opened.format, opened.is_request) == (format_name, is_request)


def test_plain_text_has_the_format_of_the_model() -> None:
    history = [{"role": "user", "content": "x"}]
    assert open_document(history, None, "anthropic").format == "anthropic"
    assert open_document(history, "openai", "anthropic").format == "openai_chat"
    with pytest.raises(ConfigError, match="the format 'xml' is not known"):
        open_document(history, "xml", "anthropic")


def test_our_own_messages_are_taken() -> None:
    found = diagnose([user("x"), Message("assistant", "y")], "anthropic:claude-opus-4-6")
    assert (found.format, found.sound) == ("asides", True)


@pytest.mark.parametrize("history", [3, None, "text", [None], [[]], {"messages": []}, {"messages": ["x"]}])
def test_what_is_no_history_gets_a_clear_error(history: Any) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        diagnose(history, "anthropic:claude-opus-4-6")


def test_half_a_character_is_found_and_replaced() -> None:
    """A text that was cut between two UTF-16 units stops a session for good: no server reads it."""
    history = [
        {"role": "user", "content": "half \ud83d"},
        {"role": "assistant", "content": [{"type": "text", "text": "y"}]},
    ]
    for given, is_lines in ((json.dumps(history), False), ("\n".join(map(json.dumps, history)), True)):
        value, was_lines = parse_history(given.encode())
        assert was_lines is is_lines
        found = diagnose(value, "anthropic:claude-opus-4-6")
        assert [(finding.path, finding.repair) for finding in found.refused] == [
            ("messages[0].content", "U+FFFD is in its place")
        ]
        assert found.refused[0].source
        assert found.repaired[0]["content"] == "half \ufffd"
        assert diagnose(found.repaired, "anthropic:claude-opus-4-6").sound
    assert parse_history(b'["\\ud83d\\ude00"]') == (["\U0001f600"], False)
    with pytest.raises(ConfigError, match="line 1 is not"):
        parse_history(b'["\\ud83d", NaN]')


def test_the_result_of_a_tool_of_the_provider_that_the_client_ran_stays() -> None:
    """Codex answers a local_shell_call with a function_call_output."""
    items = [
        {"type": "message", "role": "user", "content": "x"},
        {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"type": "exec", "command": []}},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    assert diagnose(items, "openai:gpt-5").sound
    lines = [{"type": "response_item", "payload": item} for item in items]
    assert diagnose(lines, "openai:gpt-5").sound
    lost = [items[0], items[2]]
    assert [finding.kind for finding in diagnose(lost, "openai:gpt-5").refused] == ["tool_result_orphaned"]
