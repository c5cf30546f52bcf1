"""Thinking of Claude that comes back to the stage: accepted as it was made, refused or dropped where it was changed.

The requests are written by hand and sent raw, so that nothing of asides decides what is in them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from asides import ToolCall
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

HI: Wire = {"role": "user", "content": "hi"}
GO: Wire = {"role": "user", "content": "go"}
TOOLS: list[Wire] = [{"name": "look", "input_schema": {"type": "object"}}]
ENABLED: Wire = {"type": "enabled", "budget_tokens": 2000}
ADAPTIVE: Wire = {"type": "adaptive"}
DISABLED: Wire = {"type": "disabled"}
CALL: Wire = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT: Wire = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
LOOP: list[Wire] = [GO, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}]
BINDING_BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
UPDATES_BETA = {"anthropic-beta": "thinking-display-updates-2026-08-18"}


def assistant(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def post(stage: Stage, body: Wire, headers: Mapping[str, str] | None = None) -> Answer:
    given = {
        name: value for name, value in ({"max_tokens": 4000, "messages": [HI]} | body).items() if value is not None
    }
    with connected(stage) as connection:
        connection.request("POST", "/v1/messages", json.dumps(given), {"x-api-key": "sk-one", **(headers or {})})
        return Answer(connection.getresponse())


def assert_refused(stage: Stage, answer: Answer, kind: str | None, words: str) -> None:
    error = answer.json["error"]
    assert (answer.status, answer.json["type"], error["type"]) == (400, "error", "invalid_request_error"), answer.body
    assert words in error["message"]
    refusal = stage.refusals[-1]
    assert (refusal.kind, refusal.status, refusal.text, refusal.body) == (kind, 400, error["message"], answer.body)
    assert stage.requests[refusal.number].refusal is refusal
    assert stage.requests[refusal.number].problem == error["message"]


def test_a_refusal_has_the_body_of_the_server_and_is_logged(stage: OpenStage) -> None:
    opened = stage(Say(text="42"), date="2026-11-15")
    body = {"model": "claude-opus-4-7", "thinking": ENABLED}
    words = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"'
    assert_refused(opened, post(opened, body), "thinking_mode_unsupported", words)
    assert post(opened, {"model": "claude-opus-4-7", "thinking": ADAPTIVE}).status == 200


# --- thinking that comes back -----------------------------------------------------------------------------------------


def begin(stage: Stage, model: str, *, key: str = "sk-one", **fields: Any) -> tuple[Wire, list[Wire]]:
    """Ask once. Return the request and the blocks of the answer."""
    settings: Wire = ENABLED if model.startswith(("claude-sonnet-4", "claude-haiku-4", "claude-opus-4-5")) else ADAPTIVE
    asked: Wire = {"model": model, "thinking": settings, "tools": TOOLS, "messages": [GO], **fields}
    answer = post(stage, asked, {"x-api-key": key})
    assert answer.status == 200, answer.body
    return asked, answer.json["content"]


def go_on(asked: Wire, blocks: list[Wire], *more: Wire, **fields: Any) -> Wire:
    return {**asked, "messages": [*asked["messages"], assistant(*blocks), *(more or (HI,))], **fields}


THINKS = Say(thinking="plan", text="42")
LOOKS = Say(thinking="plan", tool_calls=(ToolCall("t1", "look", {}),))
GENERATIONS = ("claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-opus-5", "claude-fable-5-1")


@pytest.mark.parametrize("model", GENERATIONS)
def test_a_changed_signature_is_invalid_and_an_unchanged_one_goes_back(stage: OpenStage, model: str) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, model)
    assert post(opened, go_on(asked, blocks)).status == 200
    changed = copy.deepcopy(blocks)
    changed[0]["signature"] = changed[0]["signature"][::-1]
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    assert_refused(opened, post(opened, go_on(asked, changed)), "thinking_signature_invalid", words)
    changed[0]["signature"] = ""
    assert_refused(opened, post(opened, go_on(asked, changed)), "thinking_signature_invalid", words)


def test_no_character_of_a_signature_may_change(stage: OpenStage) -> None:
    opened, other = stage(THINKS), stage(THINKS)
    asked, blocks = begin(opened, "claude-opus-4-6")
    signature = blocks[0]["signature"]
    for place in range(0, len(signature) - 4, 5):
        changed = signature[:place] + ("A" if signature[place] != "A" else "B") + signature[place + 1 :]
        answer = post(opened, go_on(asked, [{**blocks[0], "signature": changed}, *blocks[1:]]))
        assert_refused(opened, answer, "thinking_signature_invalid", "messages.1.content.0: Invalid `signature`")
    answer = post(other, go_on(asked, blocks))
    assert_refused(other, answer, "thinking_signature_invalid", "messages.1.content.0: Invalid `signature`")


@pytest.mark.parametrize("model", GENERATIONS)
def test_thinking_without_its_text_needs_the_empty_text(stage: OpenStage, model: str) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, model, thinking={**(ENABLED if "4-5" in model else ADAPTIVE), "display": "omitted"})
    assert blocks[0]["thinking"] == ""
    assert post(opened, go_on(asked, blocks)).status == 200
    del blocks[0]["thinking"]
    words = "messages.1.content.0.thinking.thinking: Field required"
    assert_refused(opened, post(opened, go_on(asked, blocks)), "thinking_text_missing", words)


def test_changed_thinking_of_the_latest_turn_is_named_as_such(stage: OpenStage) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, "claude-sonnet-4-5")
    changed = [{**blocks[0], "thinking": "plans"}, *blocks[1:]]
    words = "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be"
    assert_refused(opened, post(opened, go_on(asked, changed)), "thinking_block_modified", words)
    # In an earlier turn it is a signature that does not fit.
    later = go_on(asked, changed, HI, assistant(text("x")), HI)
    assert_refused(opened, post(opened, later), "thinking_signature_invalid", "messages.1.content.0: Invalid")


def test_thoughts_of_the_latest_turn_stay_together_and_in_order(stage: OpenStage) -> None:
    opened = stage(THINKS, LOOKS)
    asked, (first, words) = begin(opened, "claude-opus-4-6")
    more = go_on(asked, [first, words])
    second, call = post(opened, more).json["content"]
    # Both thoughts, as a client that joins the two turns would send them.
    joined = go_on(asked, [first, second, call], {"role": "user", "content": [RESULT]})
    assert_refused(opened, post(opened, joined), "thinking_block_modified", "messages.1.content.1: `thinking` or")


def test_a_thought_of_several_may_not_be_left_out(stage: OpenStage) -> None:
    from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta

    events = (
        ReplyStarted(None, "m"),
        ThinkingDelta("one", 0),
        TextDelta("so", 1),
        ThinkingDelta("two", 2),
        TextDelta("42", 3),
        ReplyEnded(StopReason("stop")),
    )
    opened = stage(Say(events=events))
    asked, blocks = begin(opened, "claude-opus-4-6")
    assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "text"]
    assert post(opened, go_on(asked, blocks)).status == 200
    # The last may go, and all may go; only the first may not go alone.
    assert post(opened, go_on(asked, [*blocks[:2], blocks[3]])).status == 200
    assert post(opened, go_on(asked, [blocks[1], blocks[3]])).status == 200
    without_first = go_on(asked, [blocks[2], *blocks[1:2], blocks[3]])
    assert_refused(opened, post(opened, without_first), "thinking_block_modified", "cannot be modified")


def test_thinking_stands_at_the_beginning_and_not_at_the_end(stage: OpenStage) -> None:
    opened = stage(THINKS)
    asked, (thought, words) = begin(opened, "claude-sonnet-4-5")
    backwards = go_on(asked, [words, thought, words])
    message = "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be"
    assert_refused(opened, post(opened, backwards), "thinking_order", message)
    alone = go_on(asked, [thought])
    message = "messages.1: The final block in an assistant message cannot be `thinking`."
    assert_refused(opened, post(opened, alone), "thinking_final_block", message)
    newer, (thought, words) = begin(opened, "claude-opus-5-5")
    assert post(opened, go_on(newer, [words, thought, words])).status == 200, "from 4.7 on, text may come first"


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5", "claude-haiku-5-5"])
def test_thinking_in_a_tool_loop_is_refused_when_it_was_turned_off(stage: OpenStage, model: str) -> None:
    opened = stage(LOOKS)
    asked, blocks = begin(opened, model)
    result = {"role": "user", "content": [RESULT]}
    message = "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot"
    off = go_on(asked, blocks, result, thinking=DISABLED)
    assert_refused(opened, post(opened, off), "thinking_present_while_disabled", message)
    assert post(opened, go_on(asked, blocks, result)).status == 200
    assert post(opened, go_on(asked, blocks[1:], result, thinking=DISABLED)).status == 200
    ended = go_on(asked, blocks, result, assistant(text("42")), HI, thinking=DISABLED)
    assert post(opened, ended).status == 200, "an earlier turn may keep it"


def test_thinking_that_a_script_made_unasked_may_stay(stage: OpenStage) -> None:
    """No real server makes it, so no rule is known for it."""
    opened = stage(LOOKS)
    asked, blocks = begin(opened, "claude-haiku-4-5", thinking=None)
    assert blocks[0]["type"] == "thinking"
    assert post(opened, go_on(asked, blocks, {"role": "user", "content": [RESULT]})).status == 200


def test_thinking_is_bound_to_the_model_in_silence_or_aloud(stage: OpenStage) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, "claude-sonnet-4-5")
    answer = post(opened, go_on(asked, blocks, model="claude-haiku-4-5"))
    assert_refused(opened, answer, "thinking_signature_invalid", "messages.1.content.0: Invalid `signature`")
    # Another name of the same model is no other model.
    assert post(opened, go_on(asked, blocks, model="claude-sonnet-4-5-20250929")).status == 200
    # Fable 5.1 and later leave it out without a word, but for those that they can read.
    assert post(opened, go_on(asked, blocks, model="claude-opus-5-5", thinking=ADAPTIVE)).status == 200
    assert opened.requests[-1].dropped == ("messages.1.content.0: model_binding_mismatch",)
    asked, blocks = begin(opened, "claude-opus-5")
    assert post(opened, go_on(asked, blocks, model="claude-fable-5-1")).status == 200
    assert not opened.requests[-1].dropped


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-haiku-5-5"])
def test_thinking_of_another_account_is_left_out_in_silence(stage: OpenStage, model: str) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, model)
    assert post(opened, go_on(asked, blocks), {"x-api-key": "sk-two"}).status == 200
    assert opened.requests[-1].dropped == ("messages.1.content.0: organization_binding_mismatch",)
    assert post(opened, go_on(asked, blocks), {"authorization": "Bearer sk-one"}).status == 200
    assert not opened.requests[-1].dropped, "the account is the key, whatever header it is in"
    asked, blocks = begin(opened, "claude-opus-5-5")
    assert post(opened, go_on(asked, blocks), {"x-api-key": "sk-two"}).status == 200
    assert not opened.requests[-1].dropped


BOUND = ["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]
CHANGES: dict[str, Wire] = {
    "system": {"system": "It is Tuesday."},
    "tools": {"tools": [*TOOLS, {"name": "other", "input_schema": {"type": "object"}}]},
    "messages": {"messages": [{"role": "user", "content": "gone"}]},
}


@pytest.mark.parametrize("model", BOUND)
@pytest.mark.parametrize("change", CHANGES)
def test_the_newest_models_bind_thinking_to_what_stands_before_it(stage: OpenStage, model: str, change: str) -> None:
    opened = stage(THINKS, date="2026-11-15")
    asked, blocks = begin(opened, model, system="It is Monday.")
    elsewhere = go_on({**asked, **CHANGES[change]}, blocks)
    message = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conver"
    answer = post(opened, elsewhere)
    assert_refused(opened, answer, "thinking_prefix_mismatch", message)
    error = answer.json["error"]["message"]
    assert "That setting requires the `thinking-binding-controls-2026-08-01` value" in error
    assert ("The `system` prompt differs" in error) == (change == "system")
    # With the beta, the sentence about the beta is gone, and the setting drops the block.
    answer = post(opened, elsewhere, BINDING_BETA)
    assert_refused(opened, answer, "thinking_prefix_mismatch", message)
    assert "That setting requires" not in answer.json["error"]["message"]
    dropping = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert post(opened, {**elsewhere, "thinking": dropping}, BINDING_BETA).status == 200
    assert opened.requests[-1].dropped == ("messages.1.content.0: prefix_binding_mismatch",)
    # Without the block it passes, and so does the block where it was.
    assert post(opened, go_on({**asked, **CHANGES[change]}, blocks[1:])).status == 200
    assert post(opened, go_on(asked, blocks)).status == 200


@pytest.mark.parametrize(
    ("model", "date", "key", "refused"),
    [
        ("claude-opus-5-5", "2026-11-15", "sk-one", True),
        ("claude-opus-5-5", "2026-08-30", "sk-one", False),
        ("claude-opus-5-5", "2026-11-15", "sk-older-account", False),
        ("claude-fable-5-2", "2026-11-15", "sk-older-account", True),
        ("claude-opus-5", "2026-11-15", "sk-one", False),
    ],
)
def test_the_prefix_is_checked_for_accounts_made_since_the_end_of_august(
    stage: OpenStage, model: str, date: str, key: str, refused: bool
) -> None:
    opened = stage(THINKS, date=date)
    asked, blocks = begin(opened, model, key=key, system="It is Monday.")
    answer = post(opened, go_on({**asked, "system": "It is Tuesday."}, blocks), {"x-api-key": key})
    assert (answer.status == 400) is refused


def test_an_older_account_may_edit_the_text_but_not_the_signature(stage: OpenStage) -> None:
    """Measured on Opus 5.5 on 2026-09-26."""
    opened, key = stage(LOOKS), {"x-api-key": "sk-older-account"}
    asked, blocks = begin(
        opened, "claude-opus-5-5", key="sk-older-account", thinking={**ADAPTIVE, "display": "omitted"}
    )
    result = {"role": "user", "content": [RESULT]}
    assert post(opened, go_on(asked, [{**blocks[0], "thinking": "x"}, blocks[1]], result), key).status == 200
    assert post(opened, go_on(asked, blocks[1:], result), key).status == 200
    assert post(opened, go_on(asked, [{**blocks[0], "signature": "x"}, blocks[1]], result), key).status == 400


def test_cache_marks_and_the_form_of_a_text_do_not_break_the_binding(stage: OpenStage) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, "claude-opus-5-5", system="Be brief.", messages=[GO])
    mark = {"cache_control": {"type": "ephemeral"}}
    same = go_on(asked, blocks)
    same["system"] = [{"type": "text", "text": "Be brief.", **mark}]
    same["tools"] = [{**TOOLS[0], **mark}]
    same["messages"][0] = {"role": "user", "content": [{**text("go"), **mark}]}
    answer = post(opened, same)
    assert answer.status == 200, answer.body


def test_the_rest_of_consecutive_thoughts_is_dropped_too(stage: OpenStage) -> None:
    from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, ThoughtSealed
    from asides.values.thinking import Seal

    events = (
        ReplyStarted(None, "m"),
        ThinkingDelta("one", 0),
        ThoughtSealed(Seal("redacted", "Y2lwaGVy"), 1, "hidden", "block"),
        TextDelta("42", 2),
        ReplyEnded(StopReason("stop")),
    )
    opened = stage(Say(events=events))
    asked, blocks = begin(opened, "claude-opus-5-5")
    assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "text"]
    assert post(opened, go_on(asked, blocks)).status == 200
    dropping = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    moved = go_on({**asked, "system": "other", "thinking": dropping}, blocks)
    assert post(opened, moved, BINDING_BETA).status == 200
    reason = "prefix_binding_mismatch"
    assert opened.requests[-1].dropped == (f"messages.1.content.0: {reason}", f"messages.1.content.1: {reason}")
    forged = [blocks[0], {**blocks[1], "data": "Zm9yZ2Vk"}, blocks[2]]
    words = "messages.1.content.1: Invalid `data` in `redacted_thinking` block"
    assert_refused(opened, post(opened, go_on(asked, forged)), "thinking_signature_invalid", words)


def test_a_summary_goes_back_as_it_was_signed(stage: OpenStage) -> None:
    opened = stage(Say(text="They greeted."))
    compacting = {"model": "claude-opus-5-5", "messages": [HI, assistant(text("hello")), GO]}
    answer = post(opened, {**compacting, "compaction": {"type": "summarize"}}).json
    (block,) = answer["content"]
    assert (block["type"], block["content"], answer["stop_reason"]) == ("compaction", "They greeted.", "compaction")
    later = {"model": "claude-opus-5-5", "messages": [assistant(block), GO]}
    assert post(opened, later).status == 200
    answer = post(opened, {**later, "messages": [assistant({**block, "content": "They fought."}), GO]})
    words = "messages.0.content.0: `compaction` block `content` does not match its `signature`"
    assert_refused(opened, answer, "compaction_signature_mismatch", words)
    assert answer.json["error"]["details"] == {"error_code": "compaction_content_mismatch"}


def test_an_older_day_has_the_older_words(stage: OpenStage) -> None:
    opened = stage(Say(text="42"), date="2025-12-01")
    body = {"model": "claude-opus-4-5", "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}
    assert post(opened, body).json["error"]["message"].endswith("requires `thinking` to be enabled")


def test_thinking_of_a_user_is_refused(stage: OpenStage) -> None:
    opened = stage(THINKS)
    asked, blocks = begin(opened, "claude-opus-5-5")
    answer = post(opened, {**asked, "messages": [{"role": "user", "content": [blocks[0], text("x")]}]})
    assert_refused(opened, answer, None, "`thinking` blocks may only be in `assistant` messages")
