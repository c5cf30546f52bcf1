"""The stage as the hosts of Responses: what breaks a rule is refused as there, and the nearest legal request is not."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from asides.testing import OpenStage, Say, Stage
from asides.testing.stage.rules.openai_responses import RULES
from asides.values.parts import ToolCall
from tests.testing.stage.rules.chat_requests import Wire, send

ASKED: Wire = {"role": "user", "content": "?"}
TURN: Wire = {"role": "assistant", "content": "so"}
FIRST: Wire = {"model": "gpt-5", "input": [ASKED], "store": False, "reasoning": {"effort": "low", "summary": "auto"}}
PATH = "/v1/responses"
THINKS = Say(thinking="mull it over", text="42")
CALLS = Say(thinking="mull it over", tool_calls=(ToolCall("c1", "look", {"at": 1}),))


def ask(stage: Stage, path: str = PATH, key: str | None = None, **fields: Any) -> list[Wire]:
    """The items of the stage's answer."""
    answer = send(stage, path, {**FIRST, **fields}, key)
    assert answer.status == 200, answer.body
    items: list[Wire] = answer.json["output"]
    return items


def refused(stage: Stage, *sent: Wire, path: str = PATH, key: str | None = None, **fields: Any) -> tuple[int, str]:
    """The status and the kind of the refusal of these items and a question."""
    before = len(stage.refusals)
    answer = send(stage, path, {**FIRST, "input": [*sent, ASKED], **fields}, key)
    assert len(stage.refusals) == before + 1, answer.body
    return answer.status, stage.refusals[-1].kind or ""


def accepted(stage: Stage, *sent: Wire, path: str = PATH, key: str | None = None, **fields: Any) -> None:
    answer = send(stage, path, {**FIRST, "input": [*sent, ASKED], **fields}, key)
    assert answer.status == 200, answer.body


def without(item: Wire, *names: str) -> Wire:
    return {name: value for name, value in item.items() if name not in names}


# --- settings ---------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """Settings that break a rule, and what makes them legal."""

    kind: str
    model: str
    broken: Wire
    legal: Wire
    words: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.model}: {self.words[:40]}"


def effort(value: str) -> Wire:
    return {"reasoning": {"effort": value}}


ENCRYPTED = {"include": ["reasoning.encrypted_content"]}
SETTINGS = [
    Setting(
        "effort_unsupported_value",
        "gpt-5.1",
        effort("minimal"),
        effort("none"),
        "with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
    ),
    Setting("effort_unsupported_value", "gpt-6-astra", effort("none"), effort("max"), "'none' is not supported"),
    Setting("effort_unsupported_value", "o3", effort("xhigh"), effort("high"), "'low', 'medium', and 'high'"),
    Setting(
        "effort_unsupported_param",
        "gpt-4o",
        effort("low"),
        {},
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ),
    Setting(
        "encrypted_reasoning_unsupported",
        "gpt-4o",
        ENCRYPTED,
        {"include": []},
        "Encrypted content is not supported with this model.",
    ),
    Setting("sampling_unsupported", "gpt-5", {"temperature": 0.2}, {"temperature": 1}, "Unsupported parameter: 'temp"),
    Setting("sampling_unsupported", "gpt-5.2", {"top_p": 0.5, **effort("low")}, {"top_p": 0.5}, "'top_p'"),
    Setting("unknown_param", "gpt-5", {"thinking": {}}, {}, "Unknown parameter: 'thinking'."),
    Setting(
        "effort_unsupported_param",
        "gpt-5",
        {"reasoning_effort": "low"},
        effort("low"),
        "has moved to 'reasoning.effort'",
    ),
    Setting(
        "summary_not_allowed",
        "gpt-5",
        {"reasoning": {"summary": "auto"}},
        effort("low"),
        "must be verified to generate reasoning summaries",
        key="sk-unverified",
    ),
    Setting(
        "previous_response_missing",
        "gpt-5",
        {"previous_response_id": "resp_gone"},
        {},
        "Previous response with id 'resp_gone' not found.",
    ),
    Setting(
        "previous_response_forbidden",
        "gpt-5",
        {"previous_response_id": "resp_gone"},
        {},
        "due to Zero Data Retention.",
        key="sk-zdr",
    ),
    Setting(
        "context_length",
        "gpt-4o",
        {"input": "a " * 128_001},
        {"input": "a " * 127_000},
        "Your input exceeds the context window of this model.",
    ),
    Setting("effort_unsupported_param", "grok-4", effort("low"), {}, "does not support parameter reasoningEffort."),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_settings_that_break_a_rule_are_refused_and_the_nearest_legal_ones_are_not(
    stage: OpenStage, setting: Setting
) -> None:
    opened = stage(THINKS)
    asked: Wire = {"model": setting.model, "input": "?"}
    answer = send(opened, PATH, {**asked, **setting.broken}, setting.key)
    (refusal,) = opened.refusals
    assert (answer.status, refusal.kind) == (400, setting.kind)
    assert setting.words in refusal.text
    legal = send(opened, PATH, {**asked, **setting.legal}, setting.key)
    assert legal.status == 200, legal.body


# --- items ------------------------------------------------------------------------------------------------------------


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


# --- encrypted reasoning ----------------------------------------------------------------------------------------------


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


# --- hosts ------------------------------------------------------------------------------------------------------------


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
