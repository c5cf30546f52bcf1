"""Encrypted reasoning: bound to its account and model, changed by no byte, refused in the words of the day."""

from __future__ import annotations

import json

import pytest

from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import send
from tests.testing.stage.rules.openai_responses.item_requests import (
    ASKED,
    FIRST,
    PATH,
    THINKS,
    accepted,
    ask,
    refused,
    without,
)


def test_the_thinking_cannot_be_read_from_the_token(stage: OpenStage) -> None:
    thought, _ = ask(stage(THINKS), reasoning={"effort": "low"})
    token = thought["encrypted_content"]
    assert token.startswith("gAAAAA")
    assert b"mull" not in bytes(token, "ascii")
    assert "mull" not in json.dumps(thought)


def test_one_changed_byte_another_model_or_another_stage_is_enough(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    token = thought["encrypted_content"]
    accepted(opened, thought, message, model="gpt-5-2025-08-07")
    middle = len(token) // 2
    changed = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]
    for wrong in (changed, token[:-8], "gAAA", "not base64!"):
        sent = {**thought, "encrypted_content": wrong}
        assert refused(opened, sent, message) == (400, "encrypted_reasoning_invalid")
        assert f"for item {thought['id']} could not be verified. Reason:" in opened.refusals[-1].text
    assert refused(opened, thought, message, model="gpt-5-mini") == (400, "encrypted_reasoning_invalid")
    foreign, told = ask(stage(THINKS))
    assert refused(opened, foreign, told) == (400, "encrypted_reasoning_invalid")


def test_it_is_bound_to_the_account(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened, key="sk-one")
    accepted(opened, thought, message, key="sk-one")
    assert refused(opened, thought, message, key="sk-two") == (400, "encrypted_reasoning_wrong_account")
    assert "organization_id did not match the target organization" in opened.refusals[-1].text
    # Without its state, the answer goes to any account.
    accepted(opened, without(message, "id"), key="sk-two")


@pytest.mark.parametrize(
    ("date", "words", "kind"),
    [
        ("2025-12-20", "The encrypted content gAAA...", "encrypted_reasoning_invalid"),
        (
            "2026-03-10",
            "could not be verified. Reason: Encrypted content organization_id",
            "encrypted_reasoning_wrong_account",
        ),
        ("2026-06-01", "for item rs_", "encrypted_reasoning_wrong_account"),
    ],
)
def test_the_words_have_changed_with_time(stage: OpenStage, date: str, words: str, kind: str) -> None:
    opened = stage(THINKS, date=date)
    thought, message = ask(opened, key="sk-one")
    assert refused(opened, thought, message, key="sk-two") == (400, kind)
    assert words in opened.refusals[-1].text
    assert ("Reason" in opened.refusals[-1].text) is (date > "2026-03-05")


def test_inside_a_stream_the_error_comes_after_the_status(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened, key="sk-one")
    answer = send(opened, PATH, {**FIRST, "input": [thought, message, ASKED], "stream": True}, "sk-two")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    events = [json.loads(payload) for payload in answer.payloads]
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "error",
        "response.failed",
    ]
    assert events[2]["error"]["code"] == "invalid_encrypted_content"
    assert events[3]["response"]["error"]["message"] == events[2]["error"]["message"]
    assert opened.refusals[-1].kind == "encrypted_reasoning_wrong_account"
    # What is wrong with the items is seen before a stream is opened.
    early = send(opened, PATH, {**FIRST, "input": [message, ASKED], "stream": True}, "sk-one")
    assert early.status == 400
