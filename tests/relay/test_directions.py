"""Requests and replies change each for its own reasons: the bytes of the other direction pass."""

from __future__ import annotations

import msgspec
import pytest

from asides.flows.build_call import CallBuilder
from asides.flows.steps import Now, Open, Step
from asides.options import Options
from asides.relay.relay import Relay, RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.relay.steps import ReadRecords
from asides.settings import Settings
from asides_stage import Stage
from asides_stage.stage import Fail, Raw, Say
from tests.relay.relaying import FROM_CLAUDE, Door

_SPACED = b'{"model" : "%b",  "messages":[ {"role":"user","content":"?" } ], "unknown_to_us": {"a": [1 ]}%b}'
_CHAT_REPLY = (
    '{ "id":"c1", "object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",'
    '"message":{"role":"assistant","content":"%s","reasoning_content":"so"}}], "odd": 7}'
)


def test_a_reply_that_is_split_says_nothing_about_its_request() -> None:
    body = _SPACED % (b"openai-chat:gpt-4.1", b"")
    with Stage(Raw(text=_CHAT_REPLY % "<think>hm</think>Hi"), dialect=None, rules="lenient") as stage:
        response = Door(stage).post("/v1/chat/completions", body)
        (received,) = stage.requests
    assert received.body == body.replace(b"openai-chat:gpt-4.1", b"gpt-4.1")
    message = response.json["choices"][0]["message"]
    assert message["content"] == "Hi"
    assert response.outcome is not None
    assert response.outcome.reason == "thinking may be in the answer"
    assert not response.outcome.passed


def test_a_request_that_is_planned_says_nothing_about_its_reply() -> None:
    reply = _CHAT_REPLY % "Hi"
    body = {"model": "deepseek:deepseek-chat", "messages": [{"role": "user", "content": "?"}]}
    with Stage(Raw(text=reply), dialect=None, rules="lenient") as stage:
        door = Door(None, options=Options(base_url=stage.url, api_key="sk-test", temperature=0.5, tags=()))
        response = door.post("/v1/chat/completions", body)
        assert stage.requests[0].json["temperature"] == 0.5
    assert response.body.decode() == reply
    assert response.outcome is not None
    assert response.outcome.passed
    assert response.outcome.reply is not None
    assert (response.outcome.reply.text, response.outcome.reply.thinking.text) == ("Hi", "so")


@pytest.mark.parametrize("more", [b', "n": 2', b', "logprobs": true'])
def test_an_answer_that_no_event_holds_passes(more: bytes) -> None:
    choice = (
        '{"index":%d,"finish_reason":"stop","logprobs":{"content":[]},"message":{"role":"assistant","content":"%s"}}'
    )
    reply = f'{{"id":"c1","object":"chat.completion","choices":[{choice % (0, "One")},{choice % (1, "Two")}]}}'
    body = _SPACED % (b"openai-chat:gpt-4.1", more)
    with Stage(Raw(text=reply), dialect=None, rules="lenient") as stage:
        response = Door(stage).post("/v1/chat/completions", body)
        assert stage.requests[0].body == body.replace(b"openai-chat:gpt-4.1", b"gpt-4.1")
    assert (response.status, response.body.decode()) == (200, reply)


def test_a_refusal_in_unknown_words_is_planned_once() -> None:
    """The words may be those of any host; the plan may have changed just what it refused."""
    body = {
        "model": "anthropic:claude-opus-4-5",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [{"type": "text", "text": " "}]},
            {"role": "user", "content": "And?"},
        ],
    }
    refused = '{"type":"error","error":{"type":"invalid_request_error","message":"No. 17: block of words is blank"}}'
    with Stage([Fail(status=400, body=refused), Say(text="Yes")], rules="lenient") as stage:
        response = Door(stage).post("/v1/messages", body)
        assert len(stage.requests) == 2
        assert stage.requests[0].body != stage.requests[1].body
    assert response.status == 200, response.body


def test_a_refusal_is_the_whole_response_where_the_reply_would_be_written() -> None:
    body = _SPACED % (b"openai-chat:gpt-4.1", b"")
    refused = '{"error":{"message":"out of luck","type":"invalid_request_error"}}'
    with Stage([Fail(status=400, body=refused)] * 3, rules="lenient") as stage:
        response = Door(stage).post("/v1/chat/completions", body)
    assert (response.status, response.body.decode()) == (400, refused)


def test_bytes_between_events_pass_when_they_come() -> None:
    """A ping of the provider, and an event of a kind that we do not know, do not wait for the next words."""
    start = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{},"content":[],"model":"x",'
        b'"role":"assistant","type":"message"}}\n\n'
    )
    odd = [b'event: ping\ndata: {"type": "ping"}\n\n', b'event: odd\ndata: {"type":"odd"}\n\n']
    end = (
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    with Stage(Raw(body=b"".join([start, *odd, end]), pause=0.01, chunk=40), rules="lenient") as stage:
        stream, _ = Door(stage).open(RelayRequest("", "POST", "/v1/messages", "", {}, FROM_CLAUDE % b"true"))
        pieces = list(stream)
    assert b"".join(pieces) == b"".join([start, *odd, end])
    assert [piece for piece in pieces if b"odd" in piece and b"message_delta" not in piece]


def test_calls_without_ids_of_older_clients_go_out_as_they_came() -> None:
    """The strict stage takes them too: results belong to the calls in their order."""
    calls: list[dict[str, object]] = [{"function": {"name": name, "arguments": {}}} for name in ("look", "feel")]
    tools = [
        {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}
        for name in ("look", "feel")
    ]
    body = {
        "model": "ollama:qwen3",
        "stream": False,
        "think": False,
        "tools": tools,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_name": "look", "content": "seen"},
            {"role": "tool", "tool_name": "feel", "content": "felt"},
        ],
    }
    with Stage(Say(text="Hi")) as stage:
        stage.expect_no_refusals()
        response = Door(stage).post("/api/chat", body)
        assert stage.requests[0].json == {**body, "model": "qwen3"}
    assert response.status == 200, response.body


def test_the_headers_of_the_client_travel_with_a_planned_request_too() -> None:
    """A field of a beta is refused without its header."""
    body = b'{"model":"anthropic:claude-opus-4-5","max_tokens":99,"messages":[{"role":"user","content":"?"}]}'
    headers = {"anthropic-beta": "one-2026-01-01, two-2026-02-02", "authorization": "Bearer of-the-caller"}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        door = Door(stage, options=Options(temperature=0.5))
        response = door.send(RelayRequest("", "POST", "/v1/messages", "", headers, body))
        (received,) = stage.requests
    assert response.status == 200, response.body
    assert received.json["temperature"] == 0.5
    assert {"one-2026-01-01", "two-2026-02-02"} <= {*received.headers["anthropic-beta"].replace(" ", "").split(",")}
    assert "of-the-caller" not in str(received.headers)


@pytest.mark.parametrize(("model", "reads"), [("openai-chat:gpt-4.1", False), ("deepseek:deepseek-chat", True)])
def test_the_store_is_read_only_for_hosts_that_take_thinking_back(model: str, reads: bool) -> None:
    said = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "?"}]
    body = msgspec.json.encode({"model": model, "messages": said})
    builder = CallBuilder(Options(api_key="sk-test"), settings=Settings())
    relay = Relay(builder, RelayConfig(state_mode="memory"))
    flow = relay.begin(RelayRequest("", "POST", "/v1/chat/completions", body=body)).steps()
    steps: list[Step] = [next(flow)]
    while not isinstance(steps[-1], Open):
        steps.append(flow.send(1.0 if isinstance(steps[-1], Now) else None))
    assert any(isinstance(step, ReadRecords) for step in steps) is reads
