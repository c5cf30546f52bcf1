"""Thinking as it is on the wire: blocks, items, signatures. The stuck histories of test_diagnose.py use the most."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.doctor.diagnose import diagnose

ASK = {"role": "user", "content": "q"}
TEXT = {"type": "text", "text": "x"}


def thought(text: str | None = "t", signature: str | None = "c2ln", **more: Any) -> dict[str, Any]:
    fields = {"type": "thinking", "thinking": text, "signature": signature, **more}
    return {name: value for name, value in fields.items() if value is not None}


def said(*blocks: Any) -> list[Any]:
    return [ASK, {"role": "assistant", "content": list(blocks)}, ASK]


@pytest.mark.parametrize(
    ("blocks", "kind", "kept"),
    [
        ([thought(), TEXT], None, 2),
        ([thought(signature=None), TEXT], "thinking_signature_missing", 1),
        ([thought(text=None), TEXT], "thinking_text_missing", 1),
        ([thought(text=" "), TEXT], "thinking_text_missing", 1),
        ([thought(), thought(), TEXT], "thinking_block_modified", 2),
        ([thought(), TEXT, thought(signature="b3RoZXI=")], "thinking_final_block", 2),
        ([TEXT, thought(), TEXT], "thinking_order", 2),
        ([{"type": "redacted_thinking", "data": ""}, TEXT], "thinking_signature_missing", 1),
        ([{"type": "redacted_thinking", "data": "x"}, TEXT], None, 2),
    ],
)
def test_blocks(blocks: list[Any], kind: str | None, kept: int) -> None:
    found = diagnose(said(*blocks), "anthropic:claude-opus-4-6")
    assert [finding.kind for finding in found.refused] == ([] if kind is None else [kind])
    assert len(found.repaired[1]["content"]) == kept
    assert found.repaired[1]["content"][0]["type"] in ("thinking", "redacted_thinking", "text")


def test_a_model_that_omits_the_text_gets_the_empty_field_back() -> None:
    found = diagnose(said(thought(text=None), TEXT), "anthropic:claude-opus-5-5")
    assert found.repaired[1]["content"] == [{"type": "thinking", "signature": "c2ln", "thinking": ""}, TEXT]


def test_clones_that_sign_nothing_keep_their_blocks() -> None:
    assert diagnose(said(thought(signature=""), TEXT), "minimax-anthropic:MiniMax-M2").sound


def test_thinking_behind_a_repair_goes_where_it_is_bound_to_the_past() -> None:
    history = [*said(thought(signature=""), TEXT), *said(thought(), TEXT)[1:]]
    found = diagnose(history, "anthropic:claude-opus-5-5")
    assert [finding.kind for finding in found.refused] == ["thinking_signature_missing", "thinking_prefix_mismatch"]
    assert [finding.path for finding in found.refused] == ["messages[1].content[0]", "messages[3].content[0]"]
    assert len(diagnose(history, "anthropic:claude-opus-4-6").refused) == 1


def test_thinking_goes_from_the_open_turn_when_the_request_turns_it_off() -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    returned = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]}
    request = {
        "model": "claude-haiku-4-5",
        "max_tokens": 99,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [ASK, {"role": "assistant", "content": [thought(), use]}, returned],
    }
    found = diagnose(request, "anthropic:claude-haiku-4-5")
    assert [finding.kind for finding in found.refused] == ["thinking_present_while_disabled"]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert diagnose({**request, "max_tokens": 9999, "thinking": thinking}, "anthropic:claude-haiku-4-5").sound


def reasoning(**more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", **more}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "1"}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (reasoning(), []),
        (reasoning(id="reasoning_15"), ["reasoning_item_id_invalid"]),
        (reasoning(id="rs_" + "x" * 80), ["reasoning_item_id_invalid"]),
        (reasoning(content=[{"type": "reasoning_text", "text": "t"}]), ["reasoning_content_nonempty"]),
        (reasoning(summary=None), [None]),
        (reasoning(encrypted_content=None), ["item_not_persisted", "reasoning_item_missing"]),
    ],
)
def test_items(item: Any, kind: list[str | None]) -> None:
    history = [ASK, item, CALL, OUTPUT]
    assert [finding.kind for finding in diagnose(history, "openai:gpt-5").refused] == kind
    # A clone gives ids of its own, and wants the text of its reasoning back.
    assert diagnose(history, "vllm:qwen3").format == "openai_responses"


def test_what_may_be_stored_stays() -> None:
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    request = {"model": "gpt-5", "input": [ASK, bare, CALL, OUTPUT]}
    assert diagnose({**request, "store": True}, "openai:gpt-5").sound
    assert not diagnose({**request, "store": False}, "openai:gpt-5").sound


def test_only_the_first_call_of_a_step_of_the_open_turn_is_signed() -> None:
    def model(*names: str) -> Any:
        return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in names]}

    def returned(*names: str) -> Any:
        return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {}}} for name in names]}

    ask = {"role": "user", "parts": [{"text": "q"}]}
    history = [ask, model("a"), returned("a"), ask, model("b", "c"), returned("b", "c"), model("d"), returned("d")]
    found = diagnose(history, "google:gemini-3.5-flash")
    assert [finding.path for finding in found.refused] == ["contents[4].parts[0]", "contents[6].parts[0]"]
    assert diagnose(history, "google:gemini-2.5-pro").sound
