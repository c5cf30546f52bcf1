"""Thinking that Bedrock's models made comes back to the stage: for its account, its model and its conversation."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "global.anthropic.claude-opus-5-5"
HI: Wire = {"role": "user", "content": [{"text": "hi"}]}
FORGED: Wire = {"reasoningContent": {"reasoningText": {"text": "plan", "signature": "eA=="}}}
HIDDEN: Wire = {"reasoningContent": {"redactedContent": "eA=="}}
THINKS = Say(thinking="plan", text="42")
WRAPPED = "The model returned the following errors: "


def post(stage: Stage, model: str, key: str = "one", **body: Any) -> Answer:
    with connected(stage) as connection:
        path = f"/model/{quote(model, safe='')}/converse"
        signed = f"AWS4-HMAC-SHA256 Credential={key}/20261115/us-east-1/bedrock/aws4_request, Signature=x"
        connection.request("POST", path, json.dumps({"messages": [HI], **body}), {"authorization": signed})
        return Answer(connection.getresponse())


def model_turn(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def native(**fields: Any) -> Wire:
    return {"additionalModelRequestFields": fields}


def assert_refused(stage: Stage, answer: Answer, kind: str | None, words: str) -> None:
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (400, "ValidationException"), answer.body
    assert answer.json["message"].startswith(words)
    assert (stage.refusals[-1].kind, stage.refusals[-1].body) == (kind, answer.body)


ENABLED = {"type": "enabled", "budget_tokens": 2000}


def test_a_refusal_has_the_body_of_the_server_and_is_logged(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    words = f'{WRAPPED}"thinking.type.enabled" is not supported for this model.'
    assert_refused(opened, post(opened, OPUS, **native(thinking=ENABLED)), "thinking_mode_unsupported", words)
    assert post(opened, SONNET, **native(thinking=ENABLED)).status == 200


@pytest.mark.parametrize(
    ("model", "block", "words"),
    [
        (SONNET, FORGED, "Invalid `signature` in `thinking` block"),
        ("us.openai.gpt-5.6-sol", HIDDEN, "Invalid `data` in `redacted_thinking` block"),
    ],
)
def test_thinking_that_was_not_made_here_is_refused(stage: OpenStage, model: str, block: Wire, words: str) -> None:
    opened = stage(Say(text="42"))
    answer = post(opened, model, messages=[HI, model_turn(block, {"text": "a"}), HI])
    assert_refused(opened, answer, "thinking_signature_invalid", f"{WRAPPED}messages.1.content.0: {words}")
    assert post(opened, model, messages=[HI, model_turn({"text": "a"}), HI]).status == 200


def test_thinking_of_the_newest_claude_is_bound_to_the_conversation(stage: OpenStage) -> None:
    opened = stage(THINKS)
    turn = post(opened, OPUS, system=[{"text": "It is Monday."}]).json["output"]["message"]
    later = [HI, turn, HI]
    point = {"cachePoint": {"type": "default"}}
    same = [{"role": "user", "content": [*HI["content"], point]}, turn, HI]
    assert post(opened, OPUS, system=[{"text": "It is Monday."}, point], messages=same).status == 200
    answer = post(opened, OPUS, system=[{"text": "It is Tuesday."}], messages=later)
    words = f"{WRAPPED}messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different"
    assert_refused(opened, answer, "thinking_prefix_mismatch", words)


def test_the_account_is_that_of_the_signing_key(stage: OpenStage) -> None:
    model = "us.anthropic.claude-haiku-5-5"
    opened = stage(THINKS)
    turn = post(opened, model).json["output"]["message"]
    assert post(opened, model, messages=[HI, turn, HI]).status == 200
    assert not opened.requests[-1].dropped
    assert post(opened, model, key="two", messages=[HI, turn, HI]).status == 200
    assert opened.requests[-1].dropped == ("messages.1.content.0: organization_binding_mismatch",)


def test_hidden_thinking_of_openai_is_made_and_goes_back_to_its_model(stage: OpenStage) -> None:
    model = "us.openai.gpt-5.6-sol"
    opened = stage(THINKS)
    turn = post(opened, model).json["output"]["message"]
    assert list(turn["content"][0]["reasoningContent"]) == ["redactedContent"]
    assert b"plan" not in json.dumps(turn).encode()
    assert post(opened, model, messages=[HI, turn, HI]).status == 200
    assert post(opened, "us.openai.gpt-5.6-luna", messages=[HI, turn, HI]).status == 400
