"""boto3 against the stage, over real sockets: thoughts apart, tool loops with signatures, exceptions, counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.parts import ToolCall
from asides_stage import Fail, OpenStage, Say, Stage

# These packages have no types.
boto3: Any = pytest.importorskip("boto3")
Config: Any = pytest.importorskip("botocore.config").Config
ClientError: Any = pytest.importorskip("botocore.exceptions").ClientError

Wire = dict[str, Any]

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
THINKING: Wire = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
TOOLS: Wire = {
    "tools": [
        {
            "toolSpec": {
                "name": "look",
                "description": "Looks.",
                "inputSchema": {"json": {"type": "object", "properties": {"at": {"type": "string"}}}},
            }
        }
    ]
}


@pytest.fixture(autouse=True)
def no_aws_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, variable or metadata service of this machine takes part."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def connect(stage: Stage) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=stage.url.removesuffix("/v1"),
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )


def user(text: str) -> Wire:
    return {"role": "user", "content": [{"text": text}]}


def converse(client: Any, messages: list[Wire], **more: Any) -> Wire:
    """The message and the rest of a whole response."""
    settings = {"inferenceConfig": {"maxTokens": 4000}, "additionalModelRequestFields": THINKING, **more}
    response = client.converse(modelId=MODEL, messages=messages, **settings)
    return {
        "message": response["output"]["message"],
        "stop": response["stopReason"],
        "usage": response["usage"],
        "id": response["ResponseMetadata"]["RequestId"],
    }


def converse_streamed(client: Any, messages: list[Wire], **more: Any) -> Wire:
    """The same from a stream. Fails if a block begins before the last one has ended."""
    settings = {"inferenceConfig": {"maxTokens": 4000}, "additionalModelRequestFields": THINKING, **more}
    response = client.converse_stream(modelId=MODEL, messages=messages, **settings)
    found: Wire = {"id": response["ResponseMetadata"]["RequestId"]}
    content: list[Wire] = []
    is_open = False
    for event in response["stream"]:
        match event:
            case {"messageStart": {"role": role}}:
                found["message"] = {"role": role, "content": content}
            case {"contentBlockStart": {"start": {"toolUse": call}, "contentBlockIndex": index}}:
                assert (is_open, index) == (False, len(content))
                content.append({"toolUse": {**call, "input": ""}})
                is_open = True
            case {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}:
                if not is_open:
                    assert index == len(content)
                    content.append({})
                    is_open = True
                assert index == len(content) - 1
                _add_delta(content[-1], delta)
            case {"contentBlockStop": {"contentBlockIndex": index}}:
                assert (is_open, index) == (True, len(content) - 1)
                is_open = False
            case {"messageStop": {"stopReason": stop}}:
                found["stop"] = stop
            case {"metadata": metadata}:
                found["usage"] = metadata.get("usage")
            case other:
                pytest.fail(f"an event of an unknown kind: {other}")
    assert not is_open
    return found


def _add_delta(block: Wire, delta: Wire) -> None:
    match delta:
        case {"text": text}:
            block["text"] = block.get("text", "") + text
        case {"reasoningContent": piece}:
            thought = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            for name, text in piece.items():
                thought[name] = thought.get(name, "") + text
        case {"toolUse": {"input": text}}:
            block["toolUse"]["input"] += text
        case _:
            pytest.fail(f"a delta of an unknown kind: {delta}")


WAYS = [converse, converse_streamed]


@pytest.mark.parametrize("way", WAYS)
def test_thoughts_are_apart_from_the_answer(stage: OpenStage, way: Any) -> None:
    opened = stage(Say(thinking="Six times seven, by steps.", text="It is forty-two.", piece=5))
    found = way(connect(opened), [user("What is 6 * 7?")])
    thought, text = found["message"]["content"]
    assert found["message"]["role"] == "assistant"
    assert thought["reasoningContent"]["reasoningText"]["text"] == "Six times seven, by steps."
    assert thought["reasoningContent"]["reasoningText"]["signature"]
    assert text == {"text": "It is forty-two."}
    assert found["stop"] == "end_turn"
    assert found["usage"] == {"inputTokens": 5, "outputTokens": 8, "totalTokens": 13}


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_loop_with_its_signatures_is_accepted(stage: OpenStage, way: Any) -> None:
    opened = stage(
        Say(thinking="I should look.", text="Let me look.", tool_calls=(call("a"), call("b")), piece=4),
        Say(thinking="One more.", tool_calls=(call("c"),), piece=4),
        Say(thinking="All fine.", text="All is fine.", piece=4),
        Say(thinking="Polite.", text="You are welcome.", piece=4),
    )
    client = connect(opened)
    messages = [user("Look around.")]
    for _ in range(3):
        found = way(client, messages, toolConfig=TOOLS)
        messages.append(_with_objects(found["message"]))
        results = [_answer(block["toolUse"]) for block in found["message"]["content"] if "toolUse" in block]
        assert found["stop"] == ("tool_use" if results else "end_turn")
        messages.append({"role": "user", "content": results} if results else user("Thank you."))
    last = way(client, messages, toolConfig=TOOLS)["message"]["content"]
    assert last[-1] == {"text": "You are welcome."}
    assert [received.problem for received in opened.requests] == [None] * 4


def call(name: str) -> ToolCall:
    return ToolCall(name, "look", {"at": f"the {name}"})


def _with_objects(message: Wire) -> Wire:
    """The message with the inputs of calls as objects: a stream has them as text."""
    for block in message["content"]:
        if "toolUse" in block and isinstance(block["toolUse"]["input"], str):
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return message


def _answer(call: Wire) -> Wire:
    return {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": f"{call['input']['at']} is fine"}]}}


def test_blocks_that_come_mixed_are_one_after_another(stage: OpenStage) -> None:
    events = (
        ReplyStarted(MODEL),
        ThinkingDelta("plan", 0),
        TextDelta("so", 1),
        ToolCallDelta(2, "a", "look", '{"at":'),
        ToolCallDelta(3, "b", "look", '{"at":'),
        ToolCallDelta(2, arguments='"x"}'),
        ToolCallDelta(3, arguments='"y"}'),
        ReplyEnded(StopReason("tool_calls")),
    )
    found = converse_streamed(connect(stage(Say(events=events))), [user("Look.")], toolConfig=TOOLS)
    calls = [block["toolUse"] for block in found["message"]["content"] if "toolUse" in block]
    assert [(one["toolUseId"], one["input"]) for one in calls] == [("a", '{"at":"x"}'), ("b", '{"at":"y"}')]


def test_every_answer_names_its_request(stage: OpenStage) -> None:
    client = connect(stage(Say(text="fine")))
    ids = [way(client, [user("?")])["id"] for way in (*WAYS, *WAYS)]
    assert len({*ids, None}) == 5


@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
        (408, "ModelTimeoutException"),
        (424, "ModelErrorException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_an_error_is_the_exception_of_its_name(stage: OpenStage, operation: str, status: int, name: str) -> None:
    client = connect(stage(Fail(status=status, message="not today")))
    with pytest.raises(getattr(client.exceptions, name)) as caught:
        getattr(client, operation)(modelId=MODEL, messages=[user("?")])
    assert isinstance(caught.value, ClientError)
    assert caught.value.response["Error"] == {"Message": "not today", "Code": name}
    metadata = caught.value.response["ResponseMetadata"]
    assert (metadata["HTTPStatusCode"], bool(metadata["RequestId"])) == (status, True)


def test_an_exception_of_a_scene_has_the_name_of_its_kind(stage: OpenStage) -> None:
    client = connect(stage(Fail(status=429, kind="ServiceQuotaExceededException")))
    with pytest.raises(client.exceptions.ServiceQuotaExceededException):
        client.converse(modelId=MODEL, messages=[user("?")])


def test_a_forged_signature_and_an_unknown_path_are_refused_by_name(stage: OpenStage) -> None:
    client = connect(stage(Say(text="42")))
    forged = {"reasoningContent": {"reasoningText": {"text": "plan", "signature": "Zm9yZ2Vk"}}}
    messages = [user("?"), {"role": "assistant", "content": [forged, {"text": "42"}]}, user("!")]
    with pytest.raises(client.exceptions.ValidationException, match="Invalid `signature`"):
        converse(client, messages)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.invoke_model(modelId=MODEL, body=b"{}")


def test_a_signature_for_a_stage_with_a_key_is_refused_by_name(stage: OpenStage) -> None:
    with pytest.raises(ClientError) as caught:
        converse(connect(stage(Say(text="42"), key="right")), [user("?")])
    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


def test_tokens_are_counted_as_the_reply_counts_them(stage: OpenStage) -> None:
    client = connect(stage(Say(text="42")))
    asked = {"messages": [user("one two three")], "system": [{"text": "be kind"}]}
    counted = client.count_tokens(modelId=MODEL, input={"converse": asked})
    assert counted["inputTokens"] == client.converse(modelId=MODEL, **asked)["usage"]["inputTokens"] == 5
    with pytest.raises(client.exceptions.ValidationException):
        client.count_tokens(modelId=MODEL, input={"invokeModel": {"body": b"{}"}})
