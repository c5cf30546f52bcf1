"""Items of Responses."""

from __future__ import annotations

from asides.history.diagnosis.diagnose import diagnose


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
