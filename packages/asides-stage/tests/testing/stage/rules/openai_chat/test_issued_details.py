"""State that a host issues is known again: it comes back whole, unchanged, in order, and only to its model."""

from __future__ import annotations

import json

import pytest

from asides_stage import OpenStage, Say
from tests.testing.stage.chat_requests import LOOK, SO, USER, accepted, called, refused, result

# --- state that is known again ----------------------------------------------------------------------------------------

GATEWAYS = ["anthropic/claude-sonnet-4.5", "openai/gpt-5", "google/gemini-3-pro"]


CLAUDE_CHANGED = "blocks in the latest assistant message cannot be modified"
CLAUDE_FOREIGN = "Invalid `signature` in `thinking` block"
NOT_WHOLE = "whole, once, and in their order"
UNVERIFIED = "could not be verified"
CORRUPTED = "Corrupted thought signature."


@pytest.mark.parametrize(
    ("model", "changed", "foreign"),
    [
        (GATEWAYS[0], CLAUDE_CHANGED, CLAUDE_FOREIGN),
        (GATEWAYS[1], UNVERIFIED, UNVERIFIED),
        (GATEWAYS[2], CORRUPTED, CORRUPTED),
        ("minimax-m3", NOT_WHOLE, NOT_WHOLE),
    ],
)
def test_details_come_back_whole_unchanged_and_in_order(
    stage: OpenStage, model: str, changed: str, foreign: str
) -> None:
    opened, other = stage(Say(thinking="mull", tool_calls=(LOOK,))), stage(Say(text="42"))
    turn = accepted(opened, model, USER)
    details = turn["reasoning_details"]
    accepted(opened, model, USER, turn, result("call_1"))
    for wrong, words in (
        ([{**details[0], "format": "unknown"}, *details[1:]], changed),
        ([*details, *details], NOT_WHOLE),
        ([*details[1:], {**details[0], "index": 7}], changed),
    ):
        assert words in refused(opened, model, USER, {**turn, "reasoning_details": wrong}, result("call_1"))
    assert foreign in refused(other, model, USER, turn, result("call_1"))


@pytest.mark.parametrize(("field", "words"), [("signature", CLAUDE_FOREIGN), ("text", CLAUDE_CHANGED)])
def test_one_byte_of_a_signed_detail_is_enough(stage: OpenStage, field: str, words: str) -> None:
    opened = stage(Say(thinking="mull", tool_calls=(LOOK,)))
    turn = accepted(opened, GATEWAYS[0], USER)
    (entry,) = turn["reasoning_details"]
    changed = {**entry, field: entry[field].swapcase()}
    sent = {**turn, "reasoning_details": [changed]}
    assert words in refused(opened, GATEWAYS[0], USER, sent, result("call_1"))
    later = [SO, {"role": "assistant", "content": "so"}, SO]
    assert CLAUDE_FOREIGN in refused(opened, GATEWAYS[0], USER, sent, result("call_1"), *later)


def test_details_of_another_model_are_refused(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", tool_calls=(LOOK,)))
    turn = accepted(opened, "anthropic/claude-sonnet-4.5", USER)
    assert CLAUDE_FOREIGN in refused(opened, "anthropic/claude-opus-4.5", USER, turn, result("call_1"))
    assert opened.refusals[-1].kind == "thinking_signature_invalid"


def test_a_part_of_the_details_is_refused(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", tool_calls=(LOOK,)))
    turn = accepted(opened, "openai/gpt-5", USER)
    assert len(turn["reasoning_details"]) == 2
    for part in (turn["reasoning_details"][:1], turn["reasoning_details"][1:], turn["reasoning_details"][::-1]):
        refusal = refused(opened, "openai/gpt-5", USER, {**turn, "reasoning_details": part}, result("call_1"))
        assert "whole, once, and in their order" in refusal


def test_text_without_its_signed_details_is_refused(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", tool_calls=(LOOK,)))
    turn = accepted(opened, GATEWAYS[0], USER)
    del turn["reasoning_details"]
    assert "without its reasoning_details" in refused(opened, GATEWAYS[0], USER, turn, result("call_1"))
    del turn["reasoning"]
    accepted(opened, GATEWAYS[0], USER, turn, result("call_1"))


def test_the_first_call_of_a_step_is_signed(stage: OpenStage) -> None:
    model = "gemini-3-pro-preview"
    opened, other = stage(Say(thinking="mull", tool_calls=(LOOK,))), stage(Say(text="42"))
    turn = accepted(opened, model, USER)
    accepted(opened, model, USER, turn, result("call_1"))
    assert "Corrupted thought signature" in refused(other, model, USER, turn, result("call_1"))
    changed = json.loads(json.dumps(turn).replace('\\"at\\":1', '\\"at\\":2'))
    assert changed != turn
    assert "Corrupted thought signature" in refused(opened, model, USER, changed, result("call_1"))
    bare = called("call_1")
    assert "missing a thought_signature" in refused(opened, model, USER, bare, result("call_1"))
    accepted(opened, model, USER, bare, result("call_1"), SO)
    stand_in = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
    bare["tool_calls"][0] |= stand_in
    accepted(opened, model, USER, bare, result("call_1"))
