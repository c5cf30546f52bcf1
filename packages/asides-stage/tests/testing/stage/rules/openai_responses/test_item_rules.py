"""The items of a Responses request: ids, pairs, stored items, tool results."""

from __future__ import annotations

from asides_stage import OpenStage
from tests.testing.stage.rules.openai_responses.item_requests import (
    CALLS,
    THINKS,
    accepted,
    ask,
    refused,
    without,
)


def test_reasoning_and_what_follows_it_come_back_together(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    accepted(opened, thought, message)
    assert refused(opened, thought) == (400, "reasoning_item_orphaned")
    assert refused(opened, message) == (400, "reasoning_item_missing")
    accepted(opened, without(message, "id"))
    accepted(opened, without(thought, "id"), without(message, "id"))


def test_an_item_without_state_must_be_stored(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    assert refused(opened, without(thought, "encrypted_content"), message) == (404, "item_not_persisted")
    assert refused(opened, {"type": "item_reference", "id": thought["id"]}, message) == (404, "item_not_persisted")
    kept, told = ask(opened, store=True)
    accepted(opened, without(kept, "encrypted_content"), told)


def test_an_organisation_without_retention_stores_nothing(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened, key="sk-zdr", store=True)
    bare = without(thought, "encrypted_content")
    assert refused(opened, bare, message, key="sk-zdr") == (404, "item_not_persisted")
    assert "for Zero Data Retention organizations" in opened.refusals[-1].text
    accepted(opened, thought, message, key="sk-zdr")


def test_ids_begin_as_those_of_their_kind_are_short_and_not_there_twice(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    for name in ("", "reasoning_1"):
        assert refused(opened, {**thought, "id": name}, message) == (400, "reasoning_item_id_invalid")
    assert "Invalid 'input[0].id': 'reasoning_1'. Expected an ID that begins with 'rs'." in opened.refusals[-1].text
    assert refused(opened, {**thought, "id": "rs_" + "a" * 80}, message) == (400, "reasoning_item_id_invalid")
    assert "maximum length 64, but got a string with length 83" in opened.refusals[-1].text
    assert refused(opened, thought, message, thought, message) == (400, "reasoning_item_duplicate")
    assert opened.refusals[-1].text.startswith(f"Duplicate item found with id {thought['id']}.")


def test_reasoning_has_a_summary_and_no_content(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    text = [{"type": "reasoning_text", "text": "mull"}]
    assert refused(opened, {**thought, "content": text}, message) == (400, "reasoning_content_nonempty")
    accepted(opened, {**thought, "content": []}, message)
    assert refused(opened, without(thought, "summary"), message) == (400, "")
    assert opened.refusals[-1].text == "Missing required parameter: 'input[0].summary'."


def test_calls_and_outputs_pair(stage: OpenStage) -> None:
    opened = stage(CALLS)
    thought, call = ask(opened)
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    accepted(opened, thought, call, output)
    assert refused(opened, thought, call) == (400, "tool_result_missing")
    assert refused(opened, output) == (400, "tool_result_orphaned")
    accepted(opened, thought, call, output, {"type": "configuration_update", "reasoning": {"effort": "high"}})
