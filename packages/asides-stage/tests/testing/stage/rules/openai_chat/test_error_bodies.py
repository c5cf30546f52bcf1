"""The bodies of errors: an object, a list, a sentence, JSON inside of a sentence, or nothing at all."""

from __future__ import annotations

import json

from asides_stage import OpenStage, Say
from tests.testing.stage.rules.chat_requests import SAID, SO, USER, called, result, send
from tests.testing.stage.rules.openai_chat.host_cases import (
    LOOP,
    OFF,
    ON,
    THOUGHT,
    asking,
    body_of,
    messages,
)

TOLD = "The `reasoning_content` in the thinking mode must be passed back to the API."


def test_the_field_and_the_code_are_named(stage: OpenStage) -> None:
    assert body_of(stage, "gpt-5.1", asking(reasoning_effort="max")) == {
        "error": {
            "message": "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values "
            "are: 'none', 'low', 'medium', and 'high'.",
            "type": "invalid_request_error",
            "param": "reasoning_effort",
            "code": "unsupported_value",
        }
    }


def test_the_words_may_stand_where_others_name_the_field(stage: OpenStage) -> None:
    assert body_of(stage, "mimo-v2.5", messages(*LOOP)) == {
        "error": {
            "code": "400",
            "message": "Param Incorrect",
            "param": "The reasoning_content in the thinking mode must be passed back to the API.",
            "type": "",
        }
    }


def test_an_error_may_be_a_sentence(stage: OpenStage) -> None:
    assert body_of(stage, "grok-4-latest", asking(reasoning_effort="low")) == {
        "code": "Client specified an invalid argument",
        "error": "Model grok-4-latest does not support parameter reasoningEffort.",
    }


def test_an_error_may_be_a_list(stage: OpenStage) -> None:
    (entry,) = body_of(stage, "gemini-3-pro-preview", messages(*LOOP))
    assert (entry["error"]["code"], entry["error"]["status"]) == (400, "INVALID_ARGUMENT")
    (issue,) = body_of(stage, "openai/gpt-5", asking(reasoning={}, reasoning_effort="low"))
    assert issue == {
        "code": "custom",
        "message": 'Only one of "reasoning" and "reasoning_effort" may be provided',
        "path": [],
    }


def test_a_list_says_where_something_is_wrong(stage: OpenStage) -> None:
    assert body_of(stage, "magistral-medium-latest", messages(USER, THOUGHT, SO)) == {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
                "msg": "Extra inputs are not permitted",
                "input": "mull",
            }
        ]
    }


def test_a_gateway_quotes_the_body_of_its_upstream(stage: OpenStage) -> None:
    body = body_of(stage, "deepseek/deepseek-v4-pro", messages(*LOOP))
    error = body["error"]
    assert (error["message"], error["code"]) == ("Provider returned error", 400)
    assert error["metadata"]["provider_name"] == "DeepSeek"
    assert json.loads(error["metadata"]["raw"])["error"]["message"] == TOLD


def test_an_upstream_may_refuse_after_the_stream_was_opened(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    sent = {"model": "minimax/minimax-m2.5", **messages(USER, result("a"), stream=True)}
    answer = send(opened, "/v1/chat/completions", sent)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    chunk = json.loads(answer.payloads[0])
    assert chunk["choices"][0]["finish_reason"] == "error"
    assert (
        chunk["error"]["message"]
        == "Minimax midstream error: invalid params, tool result's tool id(a) not found (2013)"
    )
    assert opened.refusals[-1].kind == "tool_result_orphaned"
    whole = send(opened, "/v1/chat/completions", {**sent, "stream": False})
    assert (whole.status, whole.json["error"]["message"]) == (400, "Provider returned error")


def test_a_proxy_quotes_it_in_a_sentence(stage: OpenStage) -> None:
    body = body_of(stage, "deepseek-v4-pro", messages(*LOOP), at="as-litellm")
    message = body["error"]["message"]
    assert message.startswith(
        'litellm.BadRequestError: DeepSeekException - {"error":{"message":"The `reasoning_content`'
    )
    assert message.endswith("Received Model Group=deepseek-v4-pro\nAvailable Model Group Fallbacks=None")
    assert body["error"]["code"] == "400"


def test_a_server_may_say_nothing(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    sent = {"model": "any", **messages(USER, {**SAID, "reasoning_opaque": "x"}, SO)}
    assert send(opened, "/as-copilot/v1/chat/completions", sent).body == b"400 Bad Request\n"


def test_the_other_bodies(stage: OpenStage) -> None:
    flat = body_of(stage, "any", messages(USER, THOUGHT, SO), at="as-cerebras")
    assert (flat["param"], flat["code"]) == ("validation_error", "wrong_api_format")
    typed = body_of(stage, "MiniMax-M2", messages(USER, result("a")))
    assert typed["error"]["message"] == "invalid params, tool result's tool id(a) not found (2013)"
    assert body_of(stage, "glm-5.3", asking(thinking=OFF))["error"]["code"] == "1210"
    numbered = body_of(stage, "google/gemma-3-27b", messages(USER, SO), at="as-vllm")
    assert (numbered["error"]["type"], numbered["error"]["code"]) == ("BadRequestError", 400)
    relayed = body_of(stage, "kimi-k2.6", messages(*LOOP), at="as-new-api")
    assert relayed["error"]["type"] == "<nil>"
    assert "(request id: " in relayed["error"]["message"]
    copilot = body_of(stage, "any", messages(USER, called("a"), SO), at="as-copilot")
    assert copilot["code"] == "invalid_request_body"
    qwen = body_of(stage, "qwq-plus", asking())
    assert qwen["error"]["code"] == "invalid_parameter_error"
    assert qwen["id"] == f"chatcmpl-{qwen['request_id']}"
    fireworks = body_of(stage, "any", asking(thinking=ON, reasoning_effort="low"), at="as-fireworks")
    assert fireworks["object"] == "error"
    order = body_of(stage, "magistral-medium-latest", messages(USER, SAID))
    assert (order["code"], order["type"]) == ("3230", "invalid_request_message_order")
