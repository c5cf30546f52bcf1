"""The stage as the other hosts of Responses: their items, their errors, and errors around errors."""

from __future__ import annotations

import json

from asides.dialects.openai_responses.rules import RULES
from asides_stage import OpenStage
from tests.testing.stage.rules.chat_requests import send
from tests.testing.stage.rules.openai_responses.item_requests import (
    ASKED,
    CALLS,
    FIRST,
    PATH,
    THINKS,
    TURN,
    accepted,
    ask,
    refused,
    without,
)


def test_azure_gives_no_code_no_reason_and_no_404(stage: OpenStage) -> None:
    opened, path = stage(THINKS), "/as-azure/v1/responses"
    thought, message = ask(opened, path)
    body = {**FIRST, "input": [{**thought, "encrypted_content": "gAAAwrong"}, message, ASKED]}
    error = send(opened, path, body).json["error"]
    assert (error["message"], error["code"]) == (
        f"The encrypted content for item {thought['id']} could not be verified.",
        None,
    )
    assert refused(opened, without(thought, "encrypted_content"), message, path=path) == (400, "item_not_persisted")


def test_xai_pairs_nothing_and_speaks_in_sentences(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened, model="grok-4.5")
    accepted(opened, thought, message, model="grok-4.5")
    accepted(opened, thought, model="grok-4.5")
    changed = {**thought, "encrypted_content": "gAAA"}
    answer = send(opened, PATH, {**FIRST, "model": "grok-4.5", "input": [changed, message, ASKED]})
    assert answer.json == {
        "code": "invalid-argument",
        "error": "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified "
        "encrypted_content from a previous response.",
    }
    bare = without(thought, "summary")
    assert refused(opened, bare, message, model="grok-4.5") == (400, "encrypted_reasoning_invalid")
    assert "compaction blob" in opened.refusals[-1].text
    empty = {"role": "assistant", "content": ""}
    assert refused(opened, thought, empty, model="grok-4.5") == (400, "empty_content")


def test_a_model_whose_reasoning_is_text_wants_it_back(stage: OpenStage) -> None:
    opened = stage(CALLS)
    model = "deepseek-v4-pro"
    thought, call = ask(opened, model=model)
    assert thought["content"] == [{"type": "reasoning_text", "text": "mull it over"}]
    assert not thought.get("encrypted_content")
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    accepted(opened, thought, call, output, model=model)
    assert refused(opened, call, output, model=model) == (400, "reasoning_content_required")


def test_gateways_and_proxies_quote_the_body(stage: OpenStage) -> None:
    opened = stage(THINKS)
    thought, message = ask(opened)
    body = {**FIRST, "input": [{**thought, "encrypted_content": "gAAA"}, message, ASKED]}
    routed = send(opened, "/as-openrouter/v1/responses", {**body, "model": "openai/gpt-5"}).json["error"]
    assert routed["message"] == "Provider returned error"
    assert json.loads(routed["metadata"]["raw"])["error"]["code"] == "invalid_encrypted_content"
    proxied = send(opened, "/as-litellm/v1/responses", body).json["error"]
    assert proxied["message"].startswith("litellm.BadRequestError: OpenAIException - {")
    hidden = send(opened, "/as-relay/v1/responses", body)
    assert (hidden.status, hidden.json["error"]["message"]) == (502, "Upstream request failed")
    assert opened.refusals[-1].kind == "opaque_provider_error"
    copilot = send(opened, "/as-copilot/v1/responses", body).json["error"]
    assert copilot["code"] == "invalid_request_body"


def test_another_maker_has_other_words_for_an_item_that_is_gone(stage: OpenStage) -> None:
    opened = stage(THINKS)
    made_up = {"type": "reasoning", "id": "rs_made_up", "summary": []}
    sent = {**FIRST, "model": "meta/muse-spark-1.3", "input": [made_up, TURN, ASKED]}
    error = send(opened, "/as-openrouter/v1/responses", sent).json["error"]
    assert error["metadata"]["raw"] == "Referenced reasoning item 'rs_made_up' was not found or has expired."


def test_every_rule_has_a_date_and_a_source() -> None:
    assert len(RULES) > 25
    assert [rule.text for rule in RULES if not rule.since.startswith("20") or len(rule.source) < 8] == []
