"""Converse, Ollama's own language and Cohere's, by requirement: the same consumer code as everywhere, over sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import asides
from asides.providers.find import find_target
from asides.values.errors import ConnectionLost, MissingKey
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides_stage.stage import OpenStage, Raw, Say

MODELS = [
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "bedrock:openai.gpt-oss-120b-1:0",
    "ollama:qwen3:8b",
    "cohere:command-a-reasoning-08-2025",
]
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {}})
each = pytest.mark.parametrize("model", MODELS)


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client() as client:
        yield client


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def collected(client: asides.Client, model: str, url: str, **options: Any) -> tuple[list[str], list[str], Reply]:
    """One consumer for every provider: thinking and output apart, and the reply at the end."""
    thinking: list[str] = []
    output: list[str] = []
    with client.stream(model, "Why?", base_url=url, api_key="made-up", **options) as events:
        for event in events:
            match event:
                case asides.ThinkingDelta(text=text):
                    thinking.append(text)
                case asides.TextDelta(text=text):
                    output.append(text)
                case _:
                    pass
        return thinking, output, events.reply


FOUR: tuple[Event, ...] = (
    ReplyStarted(None, "r1"),
    *(ThinkingDelta(text, 0) for text in ("First ", "this, ", "then ", "that.")),
    *(TextDelta(text, 1) for text in ("forty", "-two")),
    ReplyEnded(StopReason("stop")),
)


@pytest.mark.requirement("S3-09", "S3-10", "S3-37", "S3-40", "S3-45", "S3-46", "S3-54", "FT-39")
@each
def test_C5_C6_S3_45_four_deltas_are_four_events_and_their_sum_is_the_whole(
    client: asides.Client, model: str, stage: OpenStage
) -> None:
    thinking, output, reply = collected(client, model, stage(Say(events=FOUR)).url)
    assert thinking == ["First ", "this, ", "then ", "that."]
    assert reply.metadata["thinking"] == "".join(thinking) == "First this, then that."
    assert "".join(output) == reply.text == "forty-two"


@pytest.mark.requirement("S3-03", "S3-06", "S3-38")
@each
def test_C9_streamed_and_whole_are_the_same_reply(client: asides.Client, model: str, stage: OpenStage) -> None:
    open_stage = stage(Say(events=FOUR))
    _, _, streamed = collected(client, model, open_stage.url)
    whole = client.ask(model, "Why?", base_url=open_stage.url, api_key="made-up")
    assert whole == streamed
    assert not whole.streamed
    assert streamed.streamed


@pytest.mark.requirement("S3-04", "S3-11", "S3-18", "S3-44", "S3-49", "FT-01")
@each
def test_H1_the_words_of_a_turn_hold_no_thinking(client: asides.Client, model: str, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="a secret plan"))
    first = client.ask(model, "one", base_url=open_stage.url, api_key="made-up").to_message()
    assert first is not None
    assert (first.text, first.content) != ("", None)
    assert "secret" not in first.text
    client.ask(model, [user("one"), first, user("two")], base_url=open_stage.url, api_key="made-up")
    sent = json.loads(open_stage.requests[-1].body)["messages"]
    turn = next(message for message in sent if message["role"] == "assistant")
    words = turn["content"] if isinstance(turn["content"], str) else [block.get("text") for block in turn["content"]]
    assert "secret" not in json.dumps(words)


@pytest.mark.requirement("S3-50", "K6")
@each
def test_S3_50_thinking_and_a_call_are_seen_in_one_run(client: asides.Client, model: str, stage: OpenStage) -> None:
    call = ToolCall("call_1", "look_up", {"n": 1})
    thinking, _, reply = collected(client, model, stage(Say(thinking="plan", tool_calls=(call,))).url, tools=[TOOL])
    assert "".join(thinking) == "plan"
    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [("call_1", "look_up", {"n": 1})]
    assert (reply.outcome, reply.stop.reason) == ("tool_calls", "tool_calls")


@pytest.mark.requirement("S3-51", "FT-26")
@each
def test_S3_51_what_a_model_can_do_is_declared(model: str) -> None:
    target = find_target(model, environ={"AWS_REGION": "us-east-1"})
    known = target.provider.capabilities(target.model)
    assert known.thinking in ("always", "optional")
    assert known.source
    assert known.since


@pytest.mark.requirement("F8")
@each
def test_F8_empty_pieces_make_no_events(client: asides.Client, model: str, stage: OpenStage) -> None:
    empty: tuple[Event, ...] = (
        ReplyStarted(None, "r1"),
        ThinkingDelta("", 0),
        TextDelta("", 1),
        TextDelta("42", 1),
        ToolCallDelta(2, "c", "look_up", ""),
        ReplyEnded(StopReason("tool_calls")),
    )
    thinking, output, reply = collected(client, model, stage(Say(events=empty)).url, tools=[TOOL])
    assert (thinking, output) == ([], ["42"])
    assert reply.thinking.kind == "hidden"


@each
def test_C8_a_stream_that_is_cut_raises_with_what_came(client: asides.Client, model: str, stage: OpenStage) -> None:
    whole = stage(Say(events=FOUR))
    with client.stream(model, "?", base_url=whole.url, api_key="made-up") as events:
        assert events.reply.text
    cut = stage(Say(events=FOUR, cut_after=600))
    with pytest.raises(ConnectionLost) as caught:
        client.ask(model, "?", base_url=cut.url, api_key="made-up", stream=True, retries=0)
    assert caught.value.partial is None or "forty-two" not in caught.value.partial.text


@pytest.mark.requirement("FT-28", "FT-29")
@each
def test_H5_another_providers_thoughts_stay_away_and_come_back_to_their_own(
    client: asides.Client, model: str, stage: OpenStage
) -> None:
    open_stage = stage(Say(text="42", thinking="secret"))
    others = [name for name in MODELS if name.partition(":")[0] != model.partition(":")[0]]
    call = ToolCall("call_1", "look_up", {})
    for other in others:
        made = client.ask(other, "one", base_url=open_stage.url, api_key="made-up").to_message()
        assert made is not None
        turn = Message("assistant", (*made.parts, call))
        history = [user("one"), turn, Message("tool", (ToolResult("call_1", "ok", "look_up"),)), user("two")]
        client.ask(model, history, base_url=open_stage.url, api_key="made-up", tools=[TOOL])
        assert "secret" not in open_stage.requests[-1].body.decode()


# --- Ollama -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-01", "B12")
def test_B12_A11_a_model_that_thinks_though_told_not_to_is_separated_all_the_same(
    client: asides.Client, stage: OpenStage
) -> None:
    """Recorded of qwen3:4b with `think: false`: the thought stands in the content, and only its end is marked."""
    lines = [{"model": "qwen3:4b", "message": {"content": text}, "done": False} for text in ("plan", "</think>", "42")]
    lines.append({"model": "qwen3:4b", "message": {"content": ""}, "done": True, "done_reason": "stop"})
    body = "".join(json.dumps(line) + "\n" for line in lines)
    open_stage = stage(Raw(text=body, content_type="application/x-ndjson"))
    reply = client.ask("ollama:qwen3:4b", "?", base_url=open_stage.url, thinking="off", stream=True)
    assert (reply.text, reply.metadata["thinking"]) == ("42", "plan")
    assert json.loads(open_stage.requests[-1].body)["think"] is False


@pytest.mark.requirement("FT-39")
def test_I1_the_same_host_is_asked_in_the_language_of_the_row(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    for row, path in (
        ("ollama", "/api/chat"),
        ("ollama-openai", "/v1/chat/completions"),
        ("ollama-anthropic", "/v1/messages"),
    ):
        assert client.ask(f"{row}:qwen3", "?", base_url=open_stage.url).text == "42"
        assert open_stage.requests[-1].path == path


def test_S0_a_recording_of_the_openai_endpoint_is_read_with_its_own_quirks() -> None:
    message = {"content": "<think>plan</think>42", "reasoning": None}
    body = json.dumps({"model": "qwen3", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    reply = asides.decode("openai_chat", body, provider="ollama", model="qwen3")
    assert (reply.text, reply.metadata["thinking_source"]) == ("42", "tags")
    native = b'{"model":"m","message":{"content":"42","thinking":"plan"},"done":true}'
    for dialect in ("ollama",):
        assert asides.decode(dialect, native, provider="ollama_cloud").metadata["thinking"] == "plan"


# --- Bedrock ------------------------------------------------------------------------------------------------------


def test_a_bearer_key_goes_as_such_and_credentials_of_aws_sign(
    client: asides.Client, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_stage = stage(Say(text="42"))
    model = "bedrock:amazon.nova-micro-v1:0"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "made-up-token")
    assert client.ask(model, "?", base_url=open_stage.url).text == "42"
    headers = open_stage.requests[-1].headers
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert (
        "/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
        in headers["authorization"]
    )
    assert headers["x-amz-security-token"] == "made-up-token"
    assert "made-up-secret" not in str(headers)
    shown = asides.explain(model, "?").to_text()
    assert "AWS4-HMAC-SHA256 ***" in shown
    assert "made-up" not in shown
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "made-up-bearer")
    assert client.ask(model, "?", base_url=open_stage.url).text == "42"
    assert open_stage.requests[-1].headers["authorization"] == "Bearer made-up-bearer"


async def test_the_awaiting_client_signs_too(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    open_stage = stage(Say(text="42"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up-secret")
    async with asides.AsyncClient() as client:
        reply = await client.ask("bedrock:amazon.nova-micro-v1:0", "?", base_url=open_stage.url)
    assert reply.text == "42"
    assert open_stage.requests[-1].headers["authorization"].startswith("AWS4-HMAC-SHA256 ")


def test_without_either_the_error_names_both(client: asides.Client) -> None:
    with pytest.raises(MissingKey, match="AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID"):
        client.ask("bedrock:amazon.nova-micro-v1:0", "?")


@pytest.mark.requirement("FT-28")
def test_pain_C1_H9_a_history_of_signed_thoughts_survives_json(client: asides.Client, stage: OpenStage) -> None:
    import msgspec

    open_stage = stage(Say(text="42", thinking="plan"))
    model = MODELS[0]
    first = client.ask(model, "one", base_url=open_stage.url, api_key="made-up", thinking=2000).to_message()
    assert first is not None
    again = msgspec.json.decode(msgspec.json.encode(first), type=Message)
    assert again == first
    assert [type(part) for part in again.parts] == [Thought, Text]
    client.ask(model, [user("one"), again, user("two")], base_url=open_stage.url, api_key="made-up", thinking=2000)
    sent = json.loads(open_stage.requests[-1].body)["messages"][1]["content"]
    signature = next(seal.value for seal in first.parts[0].seals)
    assert sent[0] == {"reasoningContent": {"reasoningText": {"text": "plan", "signature": signature}}}
