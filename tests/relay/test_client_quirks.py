"""What real clients need beside the letter of their dialect (reference: their captured requests, 2026-11-15)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay_request import RelayRequest
from asides.values.messages import Prompt, user
from asides.values.parts import ToolCall, ToolResult
from asides_stage import Stage
from asides_stage.stage import Fail, Say
from tests.relay.relaying import CALLERS, UPSTREAMS, Door, load, write_request
from tests.relay.responses_items import read_events, read_response

UPSTREAM_OF = {"openai_chat": UPSTREAMS[0]}
CALL = ToolCall("call_aB3dE5fG7h", "write_file", {"path": "a.txt"})
DECLARED = {
    "name": "write_file",
    "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("caller", CALLERS)
def test_clients_of_every_dialect_learn_when_to_come_back(caller: str, status: int) -> None:
    upstream = UPSTREAM_OF.get(caller, "deepseek:deepseek-v4-pro")
    with Stage([Fail(status=status, retry_after=7)]) as stage:
        door = Door(stage, options=Options(retries=0))
        response = door.send(write_request(caller, upstream, Prompt((user("hi"),), max_tokens=9)))
    assert response.status in (status, 529)
    assert response.headers["retry-after"] == "7"
    if caller == "bedrock":
        assert response.headers["x-amzn-errortype"]


@pytest.mark.parametrize("mode", ["memory", "carry-only"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("upstream", ["deepseek:deepseek-v4-pro", "gemini:gemini-3-pro-preview", "ollama:qwen3:8b"])
def test_claude_code_finds_a_signature_on_every_thought(upstream: str, stream: bool, mode: str) -> None:
    """It keeps only those that have one."""
    body = {
        "model": upstream,
        "max_tokens": 9000,
        "stream": stream,
        "thinking": {"type": "adaptive"},
        "messages": [{"role": "user", "content": "?"}],
    }
    with Stage([Say(thinking="hm", text="Yes.")]) as stage:
        response = Door(stage, state_mode=mode).post("/v1/messages", body)
    if stream:
        events = read_events(response.body)
        started = events[0]["message"]
        signatures = [
            event["delta"]["signature"] for event in events if event.get("delta", {}).get("type") == "signature_delta"
        ]
        # Vercel's client reads these two, or it fails the whole stream.
        assert {"input_tokens", "output_tokens"} <= started["usage"].keys()
    else:
        started = response.json
        signatures = [block["signature"] for block in started["content"] if block["type"] == "thinking"]
    assert len(signatures) == 1
    assert signatures[0]
    assert started["id"].startswith("msg_")


def _gemini(*contents: Any) -> bytes:
    tools = [{"functionDeclarations": [DECLARED]}]
    thinking = {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}
    return msgspec.json.encode({"contents": contents, "tools": tools, "generationConfig": thinking})


@pytest.mark.parametrize(
    "upstream", ["anthropic:claude-opus-4-5", "deepseek:deepseek-v4-pro", "openai-responses:gpt-5.2"]
)
def test_gemini_cli_resumes_without_signatures_and_with_every_result_twice(upstream: str) -> None:
    path = "/v1beta/models/gemini-3.1-pro-preview:generateContent"
    with Stage([Say(thinking="I call it.", tool_calls=(CALL,)), Say(text="Done.")]) as stage:
        stage.expect_no_refusals()
        door = Door(stage, settings=load(routes={"gemini-*": {"targets": [upstream]}}))
        asked = {"role": "user", "parts": [{"text": "Write it."}]}
        first = door.post(path, _gemini(asked)).json["candidates"][0]["content"]["parts"]
        call = next(part["functionCall"] for part in first if "functionCall" in part)
        resumed = {"functionCall": call, "thoughtSignature": "skip_thought_signature_validator"}
        result = {"functionResponse": {"id": call.get("id"), "name": call["name"], "response": {"output": "written"}}}
        twice = {"role": "user", "parts": [result, result]}
        second = door.post(path, _gemini(asked, {"role": "model", "parts": [resumed]}, twice))
        assert second.status == 200, second.body
        served = stage.requests[-1].served
    assert served is not None
    results = [part for message in served.prompt.messages for part in message.parts if isinstance(part, ToolResult)]
    assert len(results) == 1
    assert b"skip_thought" not in stage.requests[-1].body
    assert second.outcome is not None
    assert second.outcome.restored == 1


def test_codex_reads_the_id_and_the_usage_at_the_end() -> None:
    body = {
        "model": "anthropic:claude-opus-4-5",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "client_metadata": {"session": "x"},
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAA"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        ],
        "tools": [
            {"type": "web_search"},
            {
                "type": "namespace",
                "name": "agents",
                "description": "Others.",
                "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object", "properties": {}}}],
            },
        ],
    }
    with Stage([Say(thinking="hm", text="Hello.")]) as stage:
        stage.expect_no_refusals()
        response = Door(stage).post("/v1/responses", body)
        assert response.status == 200, response.body
        assert [tool["name"] for tool in stage.requests[0].json["tools"]] == ["agents__spawn", "web_search"]
        assert stage.requests[0].json["system"]
    last = read_events(response.body)[-1]
    assert last["type"] == "response.completed"
    document = read_response(response.body)
    assert document["id"].startswith("resp_")
    assert document["usage"]["total_tokens"] > 0


def test_a_websocket_upgrade_is_answered_with_the_way_back_to_http() -> None:
    request = RelayRequest("", "GET", "/v1/responses", headers={"upgrade": "websocket", "connection": "upgrade"})
    assert Door(None).send(request).status == 426


def test_small_jobs_of_clients_have_names_that_a_pattern_catches() -> None:
    routes = {name: {"targets": ["openai-compatible:small"]} for name in ("claude-*", "gemini-*", "gpt-*")}
    asked = {"messages": [{"role": "user", "content": "?"}], "max_tokens": 9}
    with Stage(Say(text="Hi")) as stage:
        door = Door(stage, settings=load(routes=routes))
        assert door.post("/v1/messages", {**asked, "model": "claude-haiku-4-5-20251001"}).status == 200
        assert door.post("/v1/responses", {"model": "gpt-5.4-review", "input": "?"}).status == 200
        contents = {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}
        assert door.post("/v1beta/models/gemini-3.5-flash-lite:generateContent", contents).status == 200
        assert {received.json["model"] for received in stage.requests} == {"small"}
