"""The fields in which chat hosts take thinking, and the entries of `reasoning_details`."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose

ASK = {"role": "user", "content": "q"}
CALL = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call00001", "content": "1"}


@pytest.mark.parametrize(
    ("model", "given", "kept", "kind"),
    [
        ("deepseek:deepseek-flash", {"reasoning_content": "t"}, {"reasoning_content": "t"}, None),
        ("deepseek:deepseek-flash", {"reasoning_content": ""}, {"reasoning_content": ""}, None),
        (
            "deepseek:deepseek-flash",
            {"reasoning_content": None},
            {"reasoning_content": ""},
            "reasoning_content_required",
        ),
        ("deepseek:deepseek-flash", {}, {"reasoning_content": ""}, "reasoning_content_required"),
        ("deepseek:deepseek-flash", {"reasoning": "t"}, {"reasoning_content": "t"}, "reasoning_content_required"),
        ("deepseek:deepseek-r1", {"reasoning_content": "t"}, {}, "reasoning_field_rejected"),
        ("moonshot:kimi-k2-thinking", {}, {"reasoning_content": "."}, "reasoning_content_required"),
        ("groq:openai/gpt-oss-120b", {"reasoning_content": "t"}, {"reasoning": "t"}, "reasoning_field_rejected"),
        ("groq:qwen/qwen3-32b", {"reasoning": "t"}, {}, "reasoning_field_rejected"),
        ("cerebras:gpt-oss-120b", {"reasoning_content": "t"}, {"reasoning": "t"}, "reasoning_field_rejected"),
        ("cerebras:zai-glm-4.7", {"reasoning_content": "t"}, {}, "reasoning_field_rejected"),
        ("qwen:qwen3-max", {"reasoning_content": "t"}, {"reasoning_content": "t"}, None),
        ("zai:glm-5", {"reasoning_content": "t"}, {"reasoning_content": "t"}, None),
    ],
)
def test_thinking_is_in_the_field_of_the_host(model: str, given: Any, kept: Any, kind: str | None) -> None:
    message = {"role": "assistant", "tool_calls": [CALL]}
    found = diagnose([ASK, {**message, **given}, RESULT], model)
    assert [finding.kind for finding in found.refused] == ([] if kind is None else [kind])
    assert found.repaired == [ASK, {**message, **kept}, RESULT]


def test_a_content_list_holds_thinking_as_thinking() -> None:
    message = {"role": "assistant", "content": "x", "reasoning_content": "t"}
    found = diagnose([ASK, message, ASK], "mistral:magistral-medium-latest")
    assert found.repaired[1] == {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "x"}],
    }


def entry(index: int, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": f"t{index}", "index": index, "format": "anthropic-claude-v1", **more}


@pytest.mark.parametrize(
    ("details", "repaired"),
    [
        ([entry(0, signature="a"), entry(1, signature="b")], None),
        ([entry(1, signature="b"), entry(0, signature="a")], [entry(0, signature="a"), entry(1, signature="b")]),
        ([entry(0, signature="a"), entry(0, signature="a")], [entry(0, signature="a")]),
        ([entry(0, text="t"), entry(0, text="0"), entry(0, text="", signature="a")], [entry(0, signature="a")]),
        ([entry(1, signature="b")], []),
        ([{"type": "reasoning.encrypted", "index": 0}], []),
        (["text"], []),
    ],
)
def test_entries_are_whole_once_and_in_order(details: Any, repaired: Any) -> None:
    message = {"role": "assistant", "content": "x", "reasoning": "t0", "reasoning_details": details}
    found = diagnose([ASK, message, ASK], "openrouter:anthropic/claude-opus-4.6")
    assert {finding.kind for finding in found.refused} == (set() if repaired is None else {"thinking_block_modified"})
    kept = details if repaired is None else repaired
    assert found.repaired[1].get("reasoning_details", []) == kept
    assert ("reasoning" in found.repaired[1]) == bool(kept)


@pytest.mark.parametrize("content", [None, "", " "])
def test_fields_and_blank_content_that_a_host_refuses_go(content: str | None) -> None:
    message = {"role": "assistant", "reasoning_content": "t", "tool_calls": [CALL]}
    found = diagnose([ASK, {**message, "content": content}, RESULT], "moonshot:kimi-k2-thinking")
    assert [finding.kind for finding in found.refused] == ["empty_content"]
    assert found.repaired == [ASK, message, RESULT]
    assert diagnose([ASK, {**message, "content": content}, RESULT], "deepseek:deepseek-flash").sound
    said: dict[str, Any] = {"role": "assistant", "content": "x", "refusal": None, "annotations": []}
    found = diagnose([ASK, said, ASK], "mistral:mistral-large-latest")
    assert [finding.path for finding in found.refused] == ["messages[1]"]
    assert found.repaired == [ASK, {"role": "assistant", "content": "x"}, ASK]


def test_a_signed_block_behind_a_router_needs_its_signature() -> None:
    """One message alone shows it: nothing else in the file says how the entry was."""
    entry = {"type": "reasoning.text", "text": "a plan", "format": "anthropic-claude-v1", "index": 0}
    turn = {"role": "assistant", "content": "y", "reasoning": "a plan"}
    history = [{"role": "user", "content": "x"}, {**turn, "reasoning_details": [entry]}]
    found = diagnose(history, "openrouter:anthropic/claude-sonnet-4.5")
    assert [finding.kind for finding in found.refused] == ["thinking_block_modified"]
    assert found.repaired[1] == {"role": "assistant", "content": "y"}
    history[1] = {**turn, "reasoning_details": [{**entry, "signature": "s"}]}
    assert diagnose(history, "openrouter:anthropic/claude-sonnet-4.5").sound
