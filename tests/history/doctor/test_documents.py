"""The repaired document: the places of findings, the lines around messages, and the time that it takes."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose

_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


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
    assert [finding.path for finding in found.refused] == ["messages[0]", "messages[2]", "messages[3]"]
    assert [finding.message for finding in found.refused] == [0, 2, 3]


def test_lines_around_a_message_that_moves_are_there_once() -> None:
    lines: list[Any] = [
        {"type": "user", "message": {"role": "user", "content": "x"}},
        {"type": "assistant", "message": {"role": "assistant", "content": None, "tool_calls": [_CALL]}},
        {"type": "user", "message": {"role": "user", "content": "y"}},
        {"type": "note"},
        "a line that is no object",
        {"type": "tool", "message": {"role": "tool", "tool_call_id": "a", "content": "1"}},
    ]
    found = diagnose(lines, "openai-chat:gpt-4o")
    assert {finding.kind for finding in found.refused} == {"tool_result_missing", "tool_result_orphaned"}
    assert sorted(map(json.dumps, found.repaired)) == sorted(map(json.dumps, lines))
    assert found.repaired[-1] == lines[2]


def _make_long(count: int) -> dict[str, tuple[str, list[Any]]]:
    chat: list[Any] = []
    items: list[Any] = [{"role": "user", "content": "x"}]
    contents: list[Any] = []
    for number in range(count):
        call = {"id": f"a{number}", "type": "function", "function": {"name": "f", "arguments": "{"}}
        chat += [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        chat.append({"role": "tool", "tool_call_id": f"b{number}", "content": "1"})
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x"})
        items.append({"type": "function_call", "call_id": "same", "name": "f", "arguments": "{}", "id": f"fc_{number}"})
        items += [{"role": "user", "content": "x"}]
        contents.append({"role": "user", "parts": [{"text": "x"}]})
        contents.append({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]})
    return {
        "chat": ("deepseek:deepseek-reasoner", chat),
        "items": ("openai:gpt-5", items),
        "contents": ("google:gemini-3-pro-preview", contents),
    }


@pytest.mark.parametrize("name", ["chat", "items", "contents"])
def test_the_work_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    def count_calls(count: int) -> int:
        model, history = _make_long(count)[name]
        calls = 0

        def profile(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            assert not diagnose(history, model).sound
        finally:
            sys.setprofile(None)
        return calls

    count_calls(10)
    # Four times as long takes four times as many calls; with a square it takes up to 16 times.
    assert count_calls(400) < 6 * count_calls(100)
