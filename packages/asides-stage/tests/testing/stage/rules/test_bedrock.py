"""The stage refuses what Bedrock and Claude refuse, and never what asides sends; also tool loops of other dialects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

CLAUDE = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ADAPTIVE = "bedrock:us.anthropic.claude-opus-5-5"
GPT_OSS = "bedrock:openai.gpt-oss-120b-1:0"
TOOLS = [Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})]


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client(api_key="made-up") as client:
        yield client


def step(number: int, *, last: bool, signs: bool) -> Say:
    """A turn with everything in it: a thought, a redacted one, words, another thought, a call (but in the last one)."""
    events: list[Event] = [ReplyStarted(None, f"r_{number}"), ThinkingDelta(f"plan {number} \n", 0)]
    if signs:
        events.append(ThoughtSealed(Seal("redacted", f"cipher{number:02}"), 1, "hidden", "block"))
    events += [TextDelta(f"step {number}", 2), ThinkingDelta("more ", 3), ThinkingDelta("thought", 3)]
    if last:
        events.append(TextDelta("done", 4))
    else:
        events += [ToolCallDelta(4, f"tooluse_{number}", "look_up"), ToolCallDelta(4, arguments=f'{{"n": {number}}}')]
    return Say(events=(*events, ReplyEnded(StopReason("stop" if last else "tool_calls"))))


def steps(count: int, *, signs: bool = True) -> Callable[[ServedRequest], Say]:
    def play(request: ServedRequest) -> Say:
        done = sum(isinstance(part, ToolResult) for message in request.prompt.messages for part in message.parts)
        return step(done, last=done >= count, signs=signs)

    return play


def loop(client: asides.Client, stage: Stage, model: str, **options: Any) -> list[Message]:
    """Ask, run the tools, ask again, until there is nothing to run: the whole history."""
    history = [user("go")]
    for _ in range(10):
        reply = client.ask(model, history, base_url=stage.url, tools=TOOLS, retries=0, **options)
        message = reply.to_message()
        assert message is not None
        history.append(message)
        if not reply.tool_calls:
            return history
        history.append(Message("tool", tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)))
    raise AssertionError("it never ended")


@pytest.mark.requirement("FT-28")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "thinking"), [(CLAUDE, 2000), (ADAPTIVE, "high"), (GPT_OSS, "low")])
def test_F6_a_loop_of_three_steps_with_thinking_between_passes(
    client: asides.Client, stage: OpenStage, model: str, thinking: Any, stream: bool
) -> None:
    open_stage = stage(steps(3, signs=model != GPT_OSS))
    history = loop(client, open_stage, model, thinking=thinking, stream=stream)
    assert [message.role for message in history] == ["user", *["assistant", "tool"] * 3, "assistant"]
    sent = json.loads(open_stage.requests[-1].body)["messages"]
    kinds = [next(iter(block)) for message in sent if message["role"] == "assistant" for block in message["content"]]
    turn = (
        ["reasoningContent", "text", "reasoningContent", "toolUse"]
        if model == GPT_OSS
        else ["reasoningContent", "reasoningContent", "text", "reasoningContent", "toolUse"]
    )
    assert kinds == turn * 3
    assert history[-1].text == "step 3done"


@pytest.mark.requirement("FT-39")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["ollama:qwen3", "cohere:command-a-reasoning-08-2025"])
def test_H4_thinking_goes_back_in_loops_of_the_other_languages(
    client: asides.Client, stage: OpenStage, model: str, stream: bool
) -> None:
    open_stage = stage(steps(3, signs=False))
    history = loop(client, open_stage, model, thinking=True, stream=stream)
    assert [message.role for message in history] == ["user", *["assistant", "tool"] * 3, "assistant"]
    sent = json.loads(open_stage.requests[-1].body)["messages"]
    turns = [json.dumps(message) for message in sent if message["role"] == "assistant"]
    assert len(turns) == 3
    for number, turn in enumerate(turns):
        assert f"plan {number}" in turn
        assert "more thought" in turn
    assert history[-1].text == "step 3done"


def post(stage: Stage, model: str, **body: Any) -> Answer:
    document = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], **body}
    with connected(stage) as connection:
        connection.request("POST", f"/v1/model/{model}/converse", json.dumps(document).encode())
        return Answer(connection.getresponse())


THINKING = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}
CALL = {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "t", "content": []}}
CONFIG = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {}}}}]}


def turns(*contents: list[Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant" if place % 2 else "user", "content": one} for place, one in enumerate(contents)]


def test_one_changed_byte_of_a_thought_is_refused(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(steps(1))
    loop(client, open_stage, CLAUDE, thinking=2000)
    body = json.loads(open_stage.requests[-1].body)
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"
    assert post(open_stage, model, **body).status == 200
    for block, path in ((0, ("reasoningText", "text")), (0, ("reasoningText", "signature")), (1, ("redactedContent",))):
        changed = json.loads(json.dumps(body))
        place = changed["messages"][1]["content"][block]["reasoningContent"]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = ("B" if place[path[-1]][0] == "A" else "A") + place[path[-1]][1:]
        answer = post(open_stage, model, **changed)
        assert answer.status == 400, path
        words = {"text": "cannot be modified", "signature": "Invalid `signature`", "redactedContent": "Invalid `data`"}
        assert words[path[-1]] in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"messages": [*turns([{"text": "a"}]), *turns([{"text": "b"}])]}, "alternate"),
        ({"messages": turns([{"text": " "}])}, "is blank"),
        ({"messages": turns([{"text": "a"}], [CALL], [{"text": "b"}]), "toolConfig": CONFIG}, "Expected toolResult"),
        ({"messages": turns([{"text": "a"}], [CALL], [RESULT])}, "toolConfig field must be defined"),
        (
            {
                "messages": turns(
                    [{"text": "a"}],
                    [{"reasoningContent": {"reasoningText": {"text": "x"}}}, {"text": "y"}],
                    [{"text": "?"}],
                )
            },
            "messages.1.content.0.thinking.signature: Field required",
        ),
        (
            {
                "messages": turns(
                    [{"text": "a"}],
                    [{"reasoningContent": {"redactedContent": "eA=="}}, {"text": "y"}],
                    [{"text": "?"}],
                )
            },
            "Invalid `data` in `redacted_thinking` block",
        ),
        (
            {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}},
            "adaptive thinking is not supported on this model",
        ),
        ({"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 10}}}, "1024"),
        ({**THINKING, "inferenceConfig": {"maxTokens": 2000}}, "must be greater than"),
        ({**THINKING, "inferenceConfig": {"temperature": 0.5}}, "temperature"),
        ({"additionalModelRequestFields": {**THINKING["additionalModelRequestFields"], "top_k": 1}}, "top_k"),
        ({**THINKING, "toolConfig": {**CONFIG, "toolChoice": {"any": {}}}}, "forces tool use"),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(stage: OpenStage, body: dict[str, Any], problem: str) -> None:
    answer = post(stage(Say(text="42")), "us.anthropic.claude-sonnet-4-5-v1%3A0", **body)
    assert answer.status == 400
    assert problem in answer.json["message"]


def test_allowed_requests_are_answered(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan"))
    allowed = {
        "messages": turns([{"text": "a"}], [CALL], [RESULT], [{"text": "b"}], [{"text": "c"}]),
        "toolConfig": CONFIG,
        **THINKING,
    }
    answer = post(open_stage, "us.anthropic.claude-sonnet-4-5-v1%3A0", **allowed)
    assert answer.status == 200
    reasoning, text = answer.json["output"]["message"]["content"]
    assert reasoning["reasoningContent"]["reasoningText"]["signature"]
    assert text == {"text": "42"}
    unsigned = post(open_stage, "openai.gpt-oss-20b-1%3A0").json["output"]["message"]["content"][0]
    assert "signature" not in unsigned["reasoningContent"]["reasoningText"]


def test_a_signature_of_another_model_is_refused(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan"))
    first = client.ask(CLAUDE, "?", base_url=open_stage.url, thinking=2000).to_message()
    assert first is not None
    other = "bedrock:us.anthropic.claude-haiku-4-5-v1:0"
    reply = client.ask(other, [user("?"), first, user("again")], base_url=open_stage.url, thinking=2000)
    assert reply.text == "42"
    assert "reasoningContent" not in open_stage.requests[-1].body.decode()
    turn = Message("assistant", tuple(part for part in first.parts if isinstance(part, (Thought, Text))))
    client.ask(CLAUDE, [user("?"), turn, user("again")], base_url=open_stage.url, thinking=2000)
    assert "reasoningContent" in open_stage.requests[-1].body.decode()


def test_a_turn_does_not_end_with_a_thought(stage: OpenStage) -> None:
    opened = stage(Say(thinking="mull", text="hm"))
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    go = {"role": "user", "content": [{"text": "go"}]}
    turn = post(opened, model, messages=[go]).json["output"]["message"]
    thought, words = turn["content"]
    assert post(opened, model, messages=[go, turn, go]).status == 200
    backwards = {"role": "assistant", "content": [words, thought]}
    assert b"final block" in post(opened, model, messages=[go, backwards, go]).body
