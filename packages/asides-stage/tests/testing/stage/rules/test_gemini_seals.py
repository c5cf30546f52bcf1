"""Signatures that come back to the stage hold for their model, project and call."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from asides import ToolCall
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

PRO = "gemini-3-pro-preview"
GO: Wire = {"role": "user", "parts": [{"text": "go"}]}
CALL: Wire = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
RESULT: Wire = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "42"}}}]}
LOOKS = Say(tool_calls=(ToolCall("c1", "look", {"at": 1}),))
VERTEX = "/v1/projects/mine/locations/global/publishers/google/models"


def post(stage: Stage, model: str, body: Wire, *, base: str = "/v1beta/models", key: str = "one") -> Answer:
    with connected(stage) as connection:
        path = f"{base}/{model}:generateContent"
        connection.request("POST", path, json.dumps({"contents": [GO], **body}), {"x-goog-api-key": key})
        return Answer(connection.getresponse())


def assert_refused(stage: Stage, answer: Answer, kind: str, words: str) -> None:
    error = answer.json["error"]
    assert (answer.status, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT"), answer.body
    assert error["message"].startswith(words)
    assert (stage.refusals[-1].kind, stage.refusals[-1].body) == (kind, answer.body)


def thinking(**config: Any) -> Wire:
    return {"generationConfig": {"thinkingConfig": config}}


def test_a_refusal_has_the_body_of_the_server_and_is_logged(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    forged = {"role": "model", "parts": [{"text": "a", "thought_signature": "Zm9yZ2Vk"}]}
    answer = post(opened, PRO, {"contents": [GO, forged, GO]})
    assert_refused(opened, answer, "thought_signature_invalid", "Corrupted thought signature.")
    answer = post(opened, PRO, thinking(thinkingBudget=1024, thinkingLevel="low"))
    words = "You can only set only one of thinking budget and thinking level."
    assert_refused(opened, answer, "reasoning_params_conflict", words)
    assert post(opened, PRO, thinking(thinkingLevel="low")).status == 200


@pytest.mark.parametrize(
    ("model", "base", "key", "arguments", "words"),
    [
        pytest.param(PRO, "/v1beta/models", "one", {"at": 1}, None, id="where it was made"),
        pytest.param("gemini-3-flash-preview", "/v1beta/models", "one", {"at": 1}, "not valid", id="another model"),
        pytest.param(PRO, "/v1beta/models", "two", {"at": 1}, "not valid", id="another key"),
        pytest.param(PRO, "/v1beta/models", "one", {"at": 2}, "not valid", id="another call"),
        pytest.param(PRO, VERTEX, "one", {"at": 1}, "Unable to submit request because Thought", id="another host"),
    ],
)
def test_a_signature_holds_for_its_model_its_project_and_its_call(
    stage: OpenStage, model: str, base: str, key: str, arguments: Wire, words: str | None
) -> None:
    opened = stage(LOOKS)
    content = copy.deepcopy(post(opened, PRO, {}).json["candidates"][0]["content"])
    content["parts"][0]["functionCall"]["args"] = arguments
    answer = post(opened, model, {"contents": [GO, content, RESULT]}, base=base, key=key)
    if words is None:
        assert answer.status == 200, answer.body
    else:
        assert answer.status == 400
        assert words in answer.json["error"]["message"]
        assert opened.refusals[-1].kind == "thought_signature_invalid"


def test_each_step_of_the_turn_needs_its_signature_and_a_parallel_call_does_not(stage: OpenStage) -> None:
    opened = stage(Say(tool_calls=(ToolCall("c1", "look", {}), ToolCall("c2", "look", {"at": 2}))), LOOKS)
    first = post(opened, PRO, {}).json["candidates"][0]["content"]
    assert ["thoughtSignature" in part for part in first["parts"]] == [True, False]
    two = {"role": "user", "parts": RESULT["parts"] * 2}
    second = post(opened, PRO, {"contents": [GO, first, two]}).json["candidates"][0]["content"]
    both = [GO, first, two, second, RESULT]
    assert post(opened, PRO, {"contents": both}).status == 200
    del second["parts"][0]["thoughtSignature"]
    assert_refused(
        opened, post(opened, PRO, {"contents": both}), "thought_signature_missing", "Function call is missing"
    )


@pytest.mark.parametrize(("secret", "status"), [(None, 400), (b"shared", 200)])
def test_another_stage_accepts_a_signature_only_with_the_same_secret(secret: bytes | None, status: int) -> None:
    with Stage(LOOKS, secret=secret) as first:
        content = post(first, PRO, {}).json["candidates"][0]["content"]
    with Stage(LOOKS, secret=secret) as second:
        assert post(second, PRO, {"contents": [GO, content, RESULT]}).status == status
