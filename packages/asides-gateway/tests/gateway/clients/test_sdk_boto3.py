"""boto3 against `asides serve` before providers of other dialects. It has no awaiting form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from asides_stage import Fail, Say
from tests.gateway.clients.gateway_before_stage import (
    CANARY,
    CHECKED,
    DOUBT,
    EVERY_STATE,
    ROUTES,
    STEPS,
    SURE,
    TOOLS,
    GatewayBeforeStage,
    Notebook,
    count_states,
    each_upstream_but,
    run_errand,
)
from tests.integrations.upstreams import ANSWER, STEP, SUM, UPSTREAMS

# These packages have no types.
boto3: Any = pytest.importorskip("boto3")
Config: Any = pytest.importorskip("botocore.config").Config

Wire = dict[str, Any]
Asking = Callable[..., Wire]
GEMINI = UPSTREAMS["gemini"]
TOOL_CONFIG: Wire = {
    "tools": [
        {"toolSpec": {"name": name, "description": text, "inputSchema": {"json": schema}}}
        for name, text, schema in TOOLS
    ]
}
SETTINGS: Wire = {
    "inferenceConfig": {"maxTokens": 16000},
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 12000}},
}
elsewhere = each_upstream_but("bedrock")


@pytest.fixture
def client(gateway: GatewayBeforeStage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client with no file, variable or metadata service of this machine."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    made = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=gateway.url,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    yield made
    made.close()


def user(text: str) -> Wire:
    return {"role": "user", "content": [{"text": text}]}


def converse(client: Any, model: str, messages: list[Wire], **more: Any) -> Wire:
    response = client.converse(modelId=model, messages=messages, **SETTINGS, **more)
    return {
        "content": response["output"]["message"]["content"],
        "stop": response["stopReason"],
        "usage": response["usage"],
    }


def converse_streamed(client: Any, model: str, messages: list[Wire], **more: Any) -> Wire:
    response = client.converse_stream(modelId=model, messages=messages, **SETTINGS, **more)
    content: list[Wire] = []
    found: Wire = {"content": content}
    for event in response["stream"]:
        match event:
            case {"contentBlockStart": {"start": {"toolUse": call}, "contentBlockIndex": index}}:
                assert index == len(content)
                content.append({"toolUse": {**call, "input": ""}})
            case {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}:
                if index == len(content):
                    content.append({})
                _add(content[index], delta)
            case {"messageStop": {"stopReason": stop}}:
                found["stop"] = stop
            case {"metadata": {"usage": usage}}:
                found["usage"] = usage
            case _:
                pass
    for block in content:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return found


def _add(block: Wire, delta: Wire) -> None:
    match delta:
        case {"text": text}:
            block["text"] = block.get("text", "") + text
        case {"reasoningContent": {"redactedContent": data}}:
            block["reasoningContent"] = {"redactedContent": data}
        case {"reasoningContent": piece}:
            thought = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {"text": ""})
            for name, text in piece.items():
                thought[name] = thought.get(name, "") + text
        case {"toolUse": {"input": text}}:
            block["toolUse"]["input"] += text
        case _:
            pytest.fail(f"a delta of an unknown kind: {delta}")


for_each_way = pytest.mark.parametrize("way", [converse, converse_streamed])


def read_thinking(content: list[Wire]) -> str:
    thoughts = [block["reasoningContent"] for block in content if "reasoningContent" in block]
    return "".join(thought.get("reasoningText", {}).get("text", "") for thought in thoughts)


@elsewhere
@for_each_way
def test_thoughts_are_apart_from_the_answer(client: Any, accepted: GatewayBeforeStage, model: str, way: Asking) -> None:
    del accepted
    found = way(client, model, [user(SUM)])
    assert STEP in read_thinking(found["content"])
    assert [block["text"] for block in found["content"] if "text" in block] == [ANSWER]
    assert (found["stop"], found["usage"]["totalTokens"] > 0) == ("end_turn", True)


def test_many_threads_at_the_same_time(client: Any, accepted: GatewayBeforeStage) -> None:
    del accepted
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: converse_streamed(client, GEMINI, [user(SUM)]), range(16)):
            assert {"text": ANSWER} in found["content"]


def keep_all(content: list[Wire]) -> list[Wire]:
    return content


def keep_no_thinking(content: list[Wire]) -> list[Wire]:
    return [block for block in content if "reasoningContent" not in block]


@elsewhere
@for_each_way
@pytest.mark.parametrize("keep", [keep_all, keep_no_thinking])
def test_an_errand(
    client: Any,
    accepted: GatewayBeforeStage,
    notebook: Notebook,
    model: str,
    way: Asking,
    keep: Callable[[list[Wire]], list[Wire]],
) -> None:
    accepted.play(run_errand)
    since = len(accepted.stage.requests)
    messages = [user(notebook.errand)]

    def step() -> Wire:
        found = way(client, model, messages, toolConfig=TOOL_CONFIG)
        messages.append({"role": "assistant", "content": keep(found["content"])})
        return found

    for _ in range(STEPS):
        found = step()
        [call] = [block["toolUse"] for block in found["content"] if "toolUse" in block]
        assert (found["stop"], CANARY in read_thinking(found["content"])) == ("tool_use", True)
        text = notebook.run(call["name"], call["input"])
        result = {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": text}]}}
        messages.append({"role": "user", "content": [result]})
    assert {"text": CHECKED} in step()["content"]
    messages.append(user(DOUBT))
    assert {"text": SURE} in step()["content"]
    assert count_states(accepted, since)[: STEPS + 1] == EVERY_STATE


@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "ValidationException"),
        (404, "ResourceNotFoundException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_an_error_is_that_of_the_client(
    client: Any, gateway: GatewayBeforeStage, operation: str, status: int, name: str
) -> None:
    gateway.play(Fail(status=status, message="not today", retry_after=7 if status == 429 else None))
    with pytest.raises(getattr(client.exceptions, name), match="not today") as caught:
        getattr(client, operation)(modelId=GEMINI, messages=[user(SUM)])
    metadata = caught.value.response["ResponseMetadata"]
    assert (metadata["HTTPStatusCode"], bool(metadata["RequestId"])) == (status, True)
    assert metadata["HTTPHeaders"].get("retry-after") == ("7" if status == 429 else None)


def test_names_of_the_settings_are_asked(client: Any) -> None:
    for name in ROUTES:
        assert {"text": ANSWER} in converse(client, name, [user(SUM)])["content"]


@elsewhere
def test_tokens_are_counted(client: Any, model: str) -> None:
    asked = {"converse": {"messages": [user(SUM)]}}
    assert client.count_tokens(modelId=model, input=asked)["inputTokens"] > 0


def test_leaving_a_stream_leaves_the_provider(client: Any, gateway: GatewayBeforeStage) -> None:
    gateway.play(Say("a long answer " * 400, thinking="plan", pause=0.02, piece=5))
    before = gateway.stage.closed_early
    stream = client.converse_stream(modelId=GEMINI, messages=[user(SUM)])["stream"]
    next(iter(stream))
    stream.close()
    assert gateway.stage.wait_until(lambda: gateway.stage.closed_early == before + 1, 2)


def test_a_body_of_three_megabytes(client: Any, accepted: GatewayBeforeStage) -> None:
    long = "w" * 3_000_000
    accepted.play(Say("read"))
    assert {"text": "read"} in converse(client, GEMINI, [user(long)])["content"]
    served = accepted.stage.requests[-1].served
    assert served is not None
    assert len(served.prompt.messages[-1].text) == len(long)
