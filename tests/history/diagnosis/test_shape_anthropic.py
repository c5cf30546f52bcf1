"""Anthropic's turns of blocks."""

from __future__ import annotations

from typing import Any

from asides.history.diagnosis.diagnose import diagnose

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
