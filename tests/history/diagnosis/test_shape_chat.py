"""Chat completions, the older functions included."""

from __future__ import annotations

from asides.history.diagnosis.diagnose import diagnose


def test_a_call_of_the_older_kind_gets_a_result_of_its_kind() -> None:
    ask = {"role": "user", "content": "q"}
    called = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    returned = {"role": "function", "name": "f", "content": "1"}
    assert diagnose([ask, called, returned, ask], "openai-chat:gpt-4o").sound
    found = diagnose([ask, called, ask], "openai-chat:gpt-4o")
    assert (found.repaired[2]["role"], found.repaired[2]["name"]) == ("function", "f")


def test_unknown_parts_and_fields_stay() -> None:
    odd = {"type": "hologram", "x": 1}
    history = [
        {"role": "user", "content": [odd, {"type": "text", "text": "x"}], "mine": 1},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    assert diagnose(history, "openai-chat:gpt-4o").repaired == history[:1]
