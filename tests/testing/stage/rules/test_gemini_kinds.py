"""For each kind of rejection, a request that Gemini refuses, and the nearest one that it accepts. Written by hand."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import pytest

from asides import ToolCall
from asides.testing import OpenStage, Say, Stage
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


class Case(NamedTuple):
    """A request that is refused, and the nearest that is not."""

    kind: str
    words: str
    model: str
    broken: Wire
    legal: Wire
    legal_model: str | None = None
    base: str = "/v1beta/models"


UNSIGNED: Wire = {"contents": [GO, CALL, RESULT]}
PLACEHOLDER: Wire = {
    "contents": [
        GO,
        {"role": "model", "parts": [{**CALL["parts"][0], "thoughtSignature": "skip_thought_signature_validator"}]},
        RESULT,
    ]
}
CASES = {
    "a call without its signature": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work",
        PRO,
        UNSIGNED,
        PLACEHOLDER,
    ),
    "a call without its signature at Vertex": Case(
        "thought_signature_missing",
        "Unable to submit request because function call `look` in the 2. content block is missing a",
        PRO,
        UNSIGNED,
        PLACEHOLDER,
        base=VERTEX,
    ),
    "a call of an earlier turn needs none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-3.1-flash",
        {"contents": [GO, {"role": "model", "parts": [{"text": "a"}]}, GO, CALL, RESULT]},
        {"contents": [GO, CALL, RESULT, {"role": "model", "parts": [{"text": "a"}]}, GO]},
    ),
    "2.5 needs none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-4-argon",
        UNSIGNED,
        UNSIGNED,
        "gemini-2.5-pro",
    ),
    "models that draw need none": Case(
        "thought_signature_missing",
        "Function call is missing a thought_signature",
        "gemini-3-flash-preview",
        UNSIGNED,
        UNSIGNED,
        "gemini-3-pro-image-preview",
    ),
    "a signature that is no base64": Case(
        "thought_signature_invalid",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for",
        PRO,
        {"contents": [GO, {"role": "model", "parts": [{"text": "a", "thoughtSignature": "no base64!"}]}, GO]},
        {"contents": [GO, {"role": "model", "parts": [{"text": "a"}]}, GO]},
    ),
    "a forged signature": Case(
        "thought_signature_invalid",
        "Corrupted thought signature.",
        PRO,
        {"contents": [GO, {"role": "model", "parts": [{"text": "a", "thought_signature": "Zm9yZ2Vk"}]}, GO]},
        {"contents": [GO, {"role": "model", "parts": [{"text": "a"}]}, GO]},
    ),
    "a call at the beginning": Case(
        "tool_turn_order",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        "gemini-2.5-flash",
        {"contents": [CALL, RESULT]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "a result without a call": Case(
        "tool_turn_order",
        "Please ensure that function response turn comes immediately after a function call turn",
        "gemini-2.5-flash",
        {"contents": [GO, RESULT]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "a result is missing": Case(
        "tool_result_missing",
        "Please ensure that the number of function response parts is equal to the number of function call parts",
        "gemini-2.5-flash",
        {"contents": [GO, CALL, GO]},
        {"contents": [GO, CALL, RESULT]},
    ),
    "no parts": Case(
        "empty_content",
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
        PRO,
        {"contents": [GO, {"role": "model", "parts": []}, GO]},
        {"contents": [GO, GO]},
    ),
    "budget and level": Case(
        "reasoning_params_conflict",
        "You can only set only one of thinking budget and thinking level.",
        PRO,
        thinking(thinkingBudget=1024, thinkingLevel="low"),
        thinking(thinkingLevel="low"),
    ),
    "off on 2.5 Pro": Case(
        "thinking_cannot_disable",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "gemini-2.5-pro",
        thinking(thinkingBudget=0),
        thinking(thinkingBudget=0),
        "gemini-2.5-flash",
    ),
    "off on 3 Pro": Case(
        "thinking_cannot_disable",
        "Budget 0 is invalid.",
        "gemini-3.1-pro-preview",
        thinking(thinkingBudget=0),
        thinking(thinkingLevel="LOW"),
    ),
    "a budget too large": Case(
        "budget_out_of_range",
        "The thinking budget 64000 is invalid. Please choose a value between 128 and 32768.",
        "gemini-2.5-pro",
        thinking(thinkingBudget=64_000),
        thinking(thinkingBudget=-1),
    ),
    "a budget too small": Case(
        "budget_out_of_range",
        "The thinking budget 100 is invalid. Please choose a value between 512 and 24576.",
        "gemini-2.5-flash-lite",
        thinking(thinkingBudget=100),
        thinking(thinkingBudget=512),
    ),
    "a level on 2.5": Case(
        "effort_unsupported_param",
        "Thinking level is not supported for this model.",
        "gemini-2.5-flash",
        thinking(thinkingLevel="low"),
        thinking(thinkingBudget=1000),
    ),
    "minimal on 3.8": Case(
        "effort_unsupported_value",
        "Thinking level MINIMAL is not supported for this model.",
        "gemini-3.8-flash",
        thinking(thinkingLevel="minimal"),
        thinking(thinkingLevel="minimal"),
        "gemini-3-flash-preview",
    ),
    "medium on 3 Pro at Vertex": Case(
        "effort_unsupported_value",
        "Unable to submit request because thinking_level MEDIUM is not supported by this model.",
        PRO,
        thinking(thinkingLevel="MEDIUM"),
        thinking(thinkingLevel="HIGH"),
        base=VERTEX,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_is_refused_in_the_words_of_the_server_and_the_nearest_is_not(stage: OpenStage, name: str) -> None:
    case = CASES[name]
    opened = stage(Say(text="42"))
    assert_refused(opened, post(opened, case.model, case.broken, base=case.base), case.kind, case.words)
    answer = post(opened, case.legal_model or case.model, case.legal, base=case.base)
    assert answer.status == 200, answer.body


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
