"""Forwarded requests: what goes out is what came in, and what comes back is what the provider sent."""

from __future__ import annotations

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay_request import RelayRequest
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.steps import StoredRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from asides_stage import Stage
from asides_stage.stage import Fail, Raw, Refuse, Say
from tests.loopback import ReceivedRequest, saying, serving, whole_response
from tests.relay.relaying import FROM_CLAUDE, Door, post_claude, write_request


@pytest.mark.parametrize("stream", [b"false", b"true"])
def test_only_the_name_of_the_model_changes(stream: bytes) -> None:
    with Stage(Say(text="Hi", thinking="so"), rules="lenient") as stage:
        response = post_claude(Door(stage), FROM_CLAUDE % stream)
        (received,) = stage.requests
    assert response.status == 200
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.model) == ("forward", "anthropic:claude-opus-4-5")
    assert received.body == (FROM_CLAUDE % stream).replace(b"anthropic:claude-opus-4-5", b"claude-opus-4-5")
    assert received.query == "beta=true"
    assert received.headers["anthropic-beta"] == "one-2026-01-01,two-2026-02-02"
    assert received.headers["x-stainless-lang"] == "python"
    assert received.headers["user-agent"] == "Anthropic/Python 2.8"
    assert received.headers["x-api-key"] == "sk-test"
    assert received.headers["accept-encoding"] == "identity"
    for name in ("authorization", "cookie", "x-forwarded-for"):
        assert name not in received.headers
    assert "of-the-caller" not in str(received.headers)


def test_the_response_comes_back_byte_for_byte() -> None:
    bodies = [
        b'event: message_start\r\ndata: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":3,',
        b'"output_tokens":1},"content":[],"model":"x","role":"assistant","type":"message"}}\r\n\r\n: hi\n\n',
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":',
        b'{"type":"text","text":""}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,',
        b'"delta":{"type":"text_delta","text":"Hi"}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop",',
        b'"index":0}\n\nevent:message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage"',
        b':{"output_tokens":9}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
    ]
    headers = {
        "request-id": "req_of_theirs",
        "anthropic-ratelimit-requests-remaining": "7",
        "anthropic-organization-id": "org",
        "set-cookie": "a=b",
        "server": "cloud",
    }
    with Stage(Raw(body=b"".join(bodies), chunk=7, headers=headers), rules="lenient") as stage:
        response = post_claude(Door(stage), FROM_CLAUDE % b"true")
    assert response.body == b"".join(bodies)
    assert response.headers["request-id"] == "req_of_theirs"
    assert response.headers["anthropic-ratelimit-requests-remaining"] == "7"
    assert not {"set-cookie", "server", "anthropic-organization-id", "content-length"} & response.headers.keys()
    assert response.outcome is not None
    assert response.outcome.reply is not None
    assert (response.outcome.reply.text, response.outcome.reply.usage.output) == ("Hi", 9)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 529])
def test_errors_come_back_as_they_are_and_are_not_tried_again(status: int) -> None:
    body = '{"type":"error", "error":{"type":"x","message":"prompt is too long: 9 > 8"},"request_id":"r"}'
    with Stage(Fail(status=status, body=body, retry_after=7), rules="lenient") as stage:
        response = post_claude(Door(stage), FROM_CLAUDE % b"true")
        assert len(stage.requests) == 1
    assert (response.status, response.body.decode()) == (status, body)
    assert response.headers["retry-after"] == "7"
    assert response.outcome is not None
    assert (response.outcome.status, response.outcome.mode) == (status, "forward")
    assert response.outcome.error is not None


def test_a_connection_that_fails_first_is_tried_again() -> None:
    with Stage([Refuse(), Say(text="Hi")], rules="lenient") as stage:
        response = post_claude(Door(stage), FROM_CLAUDE % b"false")
    assert response.status == 200


def test_a_cut_stream_ends_with_an_error_of_the_dialect() -> None:
    with Stage(Say(text="A long answer that never ends", piece=4, cut_after=500), rules="lenient") as stage:
        response = post_claude(Door(stage), FROM_CLAUDE % b"true")
    assert response.status == 200
    last = response.body.rstrip().rpartition(b"\n\n")[2]
    assert last.startswith(b"event: error\n")
    assert response.outcome is not None
    assert response.outcome.error is not None
    assert response.outcome.reply is not None


def test_a_field_that_we_cannot_read_is_forwarded_too() -> None:
    body = b'{"model":"anthropic:claude-opus-4-5","max_tokens":9,"messages":[{"role":"user","content":[{"type":7}]}]}'
    with Stage(
        Raw(text='{"type":"message","content":[{"type":"text","text":"ok"}],"usage":{}}'), dialect=None
    ) as stage:
        response = post_claude(Door(stage), body)
        (received,) = stage.requests
    assert received.body == body.replace(b"anthropic:claude-opus-4-5", b"claude-opus-4-5")
    assert response.outcome is not None
    assert response.outcome.mode == "forward"


def test_options_of_ours_stay_here() -> None:
    body = b'{"asides": {"retries": 0}, "model":"anthropic:claude-opus-4-5","max_tokens":9,"messages":[%b]}'
    body %= b'{"role":"user","content":"?"}'
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = post_claude(Door(stage), body)
        (received,) = stage.requests
    assert received.body == b'{"model":"claude-opus-4-5","max_tokens":9,"messages":[{"role":"user","content":"?"}]}'
    assert response.outcome is not None
    assert response.outcome.mode == "forward"


@pytest.mark.parametrize("alt", ["", "sse"])
def test_gemini_names_the_model_in_the_path(alt: str) -> None:
    body = b'{"contents": [ {"role":"user","parts":[{"text":"hi"}]} ]}'
    path = "/v1beta/models/gemini%3Agemini-3-pro-preview:streamGenerateContent"
    with Stage(Say(text="Hi")) as stage:
        stage.expect_no_refusals()
        query = f"alt={alt}&key=secret" if alt else "key=secret"
        response = Door(stage).post(path, body, query=query)
        (received,) = stage.requests
    assert received.body == body
    assert received.path.endswith("/models/gemini-3-pro-preview:streamGenerateContent")
    assert received.query == ("alt=sse" if alt else "")
    assert response.body.startswith(b"data: " if alt else b"[")
    assert response.outcome is not None
    assert response.outcome.mode == "forward"


def test_the_next_target_is_asked_before_the_first_byte() -> None:
    with Stage([Fail(status=529), Say(text="Hi")], rules="lenient") as stage:
        body = msgspec.json.decode(FROM_CLAUDE % b"false") | {"asides": {"fallbacks": ["anthropic:claude-sonnet-4-5"]}}
        response = post_claude(Door(stage), msgspec.json.encode(body))
        assert [received.json["model"] for received in stage.requests] == ["claude-opus-4-5", "claude-sonnet-4-5"]
    assert response.status == 200
    assert "fell_back" in response.headers["x-asides-notice"]
    assert response.outcome is not None
    assert response.outcome.model == "anthropic:claude-sonnet-4-5"


def test_a_whole_response_with_a_length_waits_for_the_record() -> None:
    body = b'{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"usage":{}}'
    seen: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest, connection: object) -> bool:
        seen.append(request)
        return saying(whole_response(body))(request, connection)  # type: ignore[arg-type]

    with serving(answer) as server:
        door = Door(None, options=Options(base_url=f"{server.url}/v1", api_key="sk-test"))
        response = post_claude(door, FROM_CLAUDE % b"false")
    assert response.body == body
    assert len(seen) == 1


class _Watched(MemoryVault):
    """Counts what is written."""

    written = 0

    def write(self, tenant: str, record: StoredRecord) -> None:
        super().write(tenant, record)
        self.written += 1


def test_a_client_that_drops_what_was_forwarded_gets_it_back() -> None:
    call = ToolCall("toolu_aB3dE5fG7hJ9", "look", {"at": "x"})
    tool = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
    prompt = Prompt((user("?"),), tools=(tool,), thinking=Thinking(budget=2048), stream=True, max_tokens=8000)
    with Stage([Say(thinking="so", tool_calls=(call,)), Say(text="Seen.")]) as stage:
        stage.expect_no_refusals()
        vault = _Watched()
        door = Door(stage, records=vault)
        stream, _ = door.open(write_request("anthropic", "anthropic:claude-opus-4-5", prompt))
        for piece in stream:
            assert vault.written == (1 if b"message_stop" in piece else 0), "stored before the last event leaves"
        assert stream.outcome is not None
        assert stream.outcome.mode == "forward"
        bare = Message("assistant", (call,))
        result = Message("tool", (ToolResult(call.id, "a thing", name="look"),))
        prompt = msgspec.structs.replace(prompt, messages=(*prompt.messages, bare, result))
        reply, response = door.answer("anthropic", "anthropic:claude-opus-4-5", prompt)
        last = stage.requests[-1].json
    assert reply.text == "Seen."
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.reason) == ("translate", "reasoning state is put back")
    assert [block["type"] for block in last["messages"][1]["content"]] == ["thinking", "tool_use"]


def test_no_credential_of_the_caller_leaves_under_any_name() -> None:
    headers = {
        "helicone-auth": "Bearer a",
        "ocp-apim-subscription-key": "b",
        "x-access-token": "c",
        "x-auth-request-email": "d",
        "x-client-secret": "e",
        "chatgpt-account-id": "f",
        "idempotency-key": "kept",
        "session_id": "kept",
        "x-split": "one\r\nx-injected: two",
        "x-odd name": "g",
    }
    body = FROM_CLAUDE % b"false"
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage).send(RelayRequest("", "POST", "/v1/messages", "", headers, body))
        (received,) = stage.requests
    assert response.status == 200
    assert {name: received.headers[name] for name in headers if name in received.headers} == {
        "idempotency-key": "kept",
        "session_id": "kept",
    }
    assert "x-injected" not in received.headers


_CHOOSES = """
x-http-method-override x-http-method x-method-override helicone-target-url helicone-openai-api-base
helicone-cache-enabled anthropic-workspace anthropic-workspace-id anthropic-organization-id openai-organization
openai-project x-hf-bill-to x-goog-user-project x-goog-request-params x-vercel-ai-gateway-provider cf-aig-cache-ttl
x-portkey-provider x-portkey-config x-portkey-custom-host x-target-url x-original-url x-rewrite-url x-upstream-base-url
x-ms-region x-azure-deployment x-databricks-org-id x-account-id x-project-id prefer traceparent x-forwarded-for
x-amzn-bedrock-service-tier x-amzn-bedrock-performanceconfig-latency x-litellm-tags x-openrouter-provider
""".split()


@pytest.mark.parametrize("tenant", ["", "a"])
def test_a_tenant_chooses_no_account_address_or_method(tenant: str) -> None:
    kept = {
        "user-agent": "claude-cli/2.8",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2026-01-01",
        "x-stainless-retry-count": "0",
        "x-claude-code-session-id": "1",
        "idempotency-key": "2",
        "session_id": "3",
        "x-client-request-id": "4",
    }
    headers = kept | dict.fromkeys([*_CHOOSES, f"x-{'long-' * 20}name"], "chosen")
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        request = RelayRequest("", "POST", "/v1/messages", "", headers, FROM_CLAUDE % b"false", tenant)
        assert Door(stage).send(request).status == 200
        (received,) = stage.requests
    assert {name: received.headers[name] for name in kept} == kept
    chosen = [name for name, value in received.headers.items() if value == "chosen"]
    assert bool(chosen) is not bool(tenant), "a caller without a key is the owner of the gateway"


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("alt=sse", "alt=sse"),
        ("alt=json", "alt=json"),
        ("$alt=json;enum-encoding=int", "%24alt=json%3Benum-encoding%3Dint"),
        ("alt=proto", ""),
        ("$alt=proto&prettyPrint=true", "prettyPrint=true"),
        ("fields=responseId", ""),
        ("fields=candidates&key=of-the-caller", ""),
    ],
)
def test_a_tenant_chooses_no_form_that_hides_what_was_used(query: str, sent: str) -> None:
    body = b'{"contents": [{"role": "user", "parts": [{"text": "?"}]}]}'
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        base_url = stage.url.removesuffix("/v1") + "/v1beta"
        door = Door(stage, options=Options(base_url=base_url))
        assert door.send(RelayRequest("", "POST", path, query, {}, body, "a")).status == 200
        (received,) = stage.requests
    assert received.query == sent


@pytest.mark.parametrize("stream", [b"false", b"true"])
def test_an_error_of_the_provider_shows_no_key(stream: bytes) -> None:
    error = b'{"type":"error","error":{"type":"authentication_error","message":"no: sk-of-the-operator"}}'
    told = whole_response(
        error,
        status="400 No",
        **{
            "x-api-key": "sk-of-the-operator",
            "x-goog-api-key": "sk-of-the-operator",
            "x-request-id": "sk-of-the-operator",
        },
    )
    with serving(saying(told)) as server:
        door = Door(None, options=Options(base_url=server.url, api_key="sk-of-the-operator"))
        response = post_claude(door, FROM_CLAUDE % stream)
    assert response.outcome is not None
    assert response.outcome.mode == "forward"
    assert response.body == error.replace(b"sk-of-the-operator", b"***")
    assert "sk-of-the-operator" not in repr(response.headers)


_ALTERED = {
    "model": "anthropic:claude-opus-4-5",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "messages": [
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "so", "signature": "altered"}, {"type": "text", "text": "Hi"}],
        },
        {"role": "user", "content": "And?"},
    ],
}
_INVALID = (
    '{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in '
    '`thinking` block"}}'
)


@pytest.mark.parametrize("stream", [False, True])
def test_a_known_refusal_of_a_forwarded_request_is_repaired(stream: bool) -> None:
    body = {**_ALTERED, "stream": stream}
    with Stage([Fail(status=400, body=_INVALID), Say(text="Yes")], rules="lenient") as stage:
        door = Door(stage)
        response = door.post("/v1/messages", body)
        first, second = stage.requests
        assert b"altered" in first.body
        assert b"altered" not in second.body
        # What was learned about this history holds for its next request.
        again = door.post("/v1/messages", body)
        assert b"altered" not in stage.requests[2].body
    assert (response.status, again.status) == (200, 200)
    assert b"Yes" in response.body
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.reason) == ("translate", "its provider refused it as it was")
    assert response.outcome.attempts == 2


def test_a_refusal_that_nothing_repairs_comes_back_as_it_was() -> None:
    second = _INVALID.replace("messages.1", "messages.7")
    with Stage([Fail(status=400, body=_INVALID), *[Fail(status=400, body=second)] * 4], rules="lenient") as stage:
        response = Door(stage).post("/v1/messages", {**_ALTERED, "stream": True})
        assert len(stage.requests) > 1
    assert (response.status, response.body.decode()) == (400, _INVALID)
    assert response.outcome is not None
    assert response.outcome.error is not None


def test_a_result_without_its_call_goes_through_the_plan() -> None:
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "Hm."},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}]},
            {"role": "user", "content": "And?"},
        ],
    }
    refused = (
        '{"type":"error","error":{"type":"invalid_request_error","message":"messages.2.content.0: unexpected '
        "`tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding "
        '`tool_use` block in the previous message."}}'
    )
    with Stage([Fail(status=400, body=refused), Say(text="Yes")], rules="lenient") as stage:
        response = Door(stage).post("/v1/messages", body)
        assert b"tool_use_id" in stage.requests[0].body
        assert b"tool_use_id" not in stage.requests[1].body
    assert response.status == 200, response.body


_SEALED = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "model": "x",
    "content": [
        {"type": "thinking", "thinking": "CANARY of one host", "signature": "c2VhbCBvZiBvbmU="},
        {"type": "text", "text": "Hi"},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 9},
}


@pytest.mark.parametrize("mode", ["carry-only", "memory"])
def test_thinking_of_another_host_is_not_forwarded(mode: str) -> None:
    """What was passed on byte for byte has an origin too, whatever the client sends next, and wherever."""
    question = {"role": "user", "content": "?"}
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    answer = msgspec.json.encode(_SEALED).decode()
    with (
        Stage(Raw(text=answer), dialect=None, rules="lenient") as one,
        Stage(Raw(text=answer), dialect=None, rules="lenient") as other,
    ):
        door = Door(one, store=mode == "memory", trusts_callers=True)
        first = door.post("/v1/messages", {**body, "messages": [question]})
        assert first.outcome is not None
        assert first.outcome.mode == "forward"
        history = [question, {"role": "assistant", "content": first.json["content"]}, question]
        back = door.post("/v1/messages", {**body, "messages": history})
        assert back.outcome is not None
        assert back.outcome.mode == "forward", back.outcome.reason
        assert b"CANARY" in one.requests[-1].body
        elsewhere = {"base_url": other.url, "api_key": "sk-other"}
        moved = door.post("/v1/messages", {**body, "messages": history, "asides": elsewhere})
        (received,) = other.requests
    assert moved.status == 200, moved.body
    assert b"CANARY" not in received.body
    assert b"c2VhbCBvZiBvbmU=" not in received.body


def test_the_store_knows_after_a_restart_who_made_what_was_passed_on() -> None:
    question = {"role": "user", "content": "?"}
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    answer = msgspec.json.encode(_SEALED).decode()
    keys = RelayKeys.generate()
    with (
        Stage(Raw(text=answer), dialect=None, rules="lenient") as one,
        Stage(Raw(text=answer), dialect=None, rules="lenient") as other,
    ):
        before = Door(one, keys=keys)
        first = before.post("/v1/messages", {**body, "messages": [question]})
        history = [question, {"role": "assistant", "content": first.json["content"]}, question]
        after = Door(other, records=before.records, keys=keys)
        after.post("/v1/messages", {**body, "messages": history})
        (received,) = other.requests
    assert b"CANARY" not in received.body


_FOREIGN_ID = "functions.look:0"


def test_ids_of_another_providers_calls_do_not_stop_a_conversation() -> None:
    """A client that was moved from another provider gives the ids of that one back."""
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": _FOREIGN_ID, "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": _FOREIGN_ID, "content": "a thing"}]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    }
    with Stage(Say(text="Seen.")) as stage:
        response = Door(stage).post("/v1/messages", body)
        first, last = stage.requests
    assert response.status == 200, response.body
    assert first.problem is not None
    called, answered = (message["content"][0] for message in last.json["messages"][1:])
    assert called["id"] == answered["tool_use_id"] != _FOREIGN_ID
