"""Every dialect of a caller in front of every dialect of a provider, on the strict stage."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import ReplyWriter
from asides.providers.find import find_provider, find_target
from asides.relay.written_exchange import open_writer
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThoughtSealed
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking
from asides.values.tools import Tool
from asides.values.traits import find_results
from asides.values.usage import Usage
from asides_stage import Stage
from asides_stage.stage import Raw, Say
from tests.relay.relaying import CALLERS, UPSTREAMS, Door
from tests.relay.translated import BASES, read, target_of

_WEATHER = Tool(
    "get_weather",
    "The weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
# Between these two, thinking may be in the answer, or the host has rules of its own.
_TRANSLATED = ("cohere", "ollama", "openai_chat")
_HIGH = Thinking(effort="high")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("caller", CALLERS)
def test_a_reply_keeps_thinking_and_answer_apart(caller: str, upstream: str, stream: bool) -> None:
    scene = Say(text="It is 42.", thinking="Six times seven.", usage=Usage(10, 20, 5))
    with Stage(scene) as stage:
        stage.expect_no_refusals()
        prompt = Prompt((user("6*7?"),), system="Be brief.", thinking=_HIGH, stream=stream)
        reply, response = Door(stage).answer(caller, upstream, prompt)
    assert response.status == 200
    assert reply.text == "It is 42."
    assert reply.thinking
    assert reply.thinking.text == "Six times seven."
    assert reply.stop.reason == "stop"
    assert reply.usage.input == 10
    assert reply.usage.output == 20
    assert response.outcome is not None
    is_same = find_provider(upstream.partition(":")[0]).dialect == caller
    assert response.outcome.mode == ("forward" if is_same and caller not in _TRANSLATED else "translate")
    assert response.outcome.reason
    if not is_same and caller not in ("gemini", "bedrock", "cohere"):
        assert upstream.encode() in response.body, "the model is named as the caller did"


def _play(request: ServedRequest) -> Say:
    """Call a tool until five results are there."""
    results = sum(len(find_results(message)) for message in request.prompt.messages)
    if results >= 5:
        return Say(thinking=f"Enough of {results}.", text="Sunny everywhere.")
    call = ToolCall(f"call_{results}aB3dE5fG7", "get_weather", {"city": f"City {results}"})
    return Say(thinking=f"Ask number {results}.", tool_calls=(call,))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("caller", CALLERS)
def test_tools_to_the_fifth_step(caller: str, upstream: str, stream: bool) -> None:
    with Stage(_play) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        prompt = Prompt((user("Weather in five cities?"),), tools=(_WEATHER,), thinking=_HIGH, stream=stream)
        for step in range(5):
            reply = door.ask(caller, upstream, prompt)
            (call,) = reply.tool_calls
            assert call.name == "get_weather"
            assert call.arguments == {"city": f"City {step}"}
            assert reply.thinking
            assert reply.thinking.text == f"Ask number {step}."
            prompt = _continue(prompt, reply.parts, call)
        reply = door.ask(caller, upstream, prompt)
        assert reply.text == "Sunny everywhere."
        assert reply.thinking
        assert reply.thinking.text == "Enough of 5."
        stage.assert_no_leak("asd1.")


def _continue(prompt: Prompt, parts: tuple[object, ...], call: ToolCall) -> Prompt:
    turn = Message("assistant", parts)  # type: ignore[arg-type]
    result = Message("tool", (ToolResult(call.id, "sunny", name=call.name),))
    return msgspec.structs.replace(prompt, messages=(*prompt.messages, turn, result))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("caller", ["anthropic", "gemini", "ollama", "openai_chat", "openai_responses", "cohere"])
def test_a_schema_gives_json_from_every_model(caller: str, upstream: str, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }

    def play(request: ServedRequest) -> Say:
        if request.prompt.output is not None:
            return Say(text='{"sum": 42}')
        assert "sum" in str(request.prompt), "the schema is in the instructions"
        return Say(text='Here it is:\n```json\n{"sum": 42}\n```\nDone.', piece=3)

    with Stage(play) as stage:
        stage.expect_no_refusals()
        prompt = Prompt((user("6*7 as JSON?"),), output=OutputSchema("answer", schema, strict=True), stream=stream)
        reply = Door(stage).ask(caller, upstream, prompt)
    assert msgspec.json.decode(reply.text) == {"sum": 42}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", CALLERS)
def test_an_empty_reply_is_a_valid_response(caller: str, stream: bool) -> None:
    with Stage(Say(text="")) as stage:
        prompt = Prompt((user("?"),), stream=stream)
        reply = Door(stage).ask(caller, "openai-compatible:any", prompt)
    assert reply.text == ""


def test_the_writer_serves_the_client_of_the_request() -> None:
    served = read("openai_responses", {**BASES["openai_responses"], "instructions": "Be brief."})
    writer = open_writer(served, "openai_responses", target_of("gemini"))
    assert isinstance(writer, ReplyWriter)
    document = json.loads(writer.write([ReplyStarted("x", "upstream-id"), TextDelta("a"), ReplyEnded()]))
    assert document["instructions"] == "Be brief."
    assert document["id"] == writer.reply_id != "upstream-id"
    own = open_writer(served, "openai_responses", target_of("openai_responses"))
    assert json.loads(own.write([ReplyStarted("x", "upstream-id"), ReplyEnded()]))["id"] == "upstream-id"


def test_a_reminder_of_the_system_after_the_question_reaches_hosts_that_want_a_question_last() -> None:
    messages = [{"role": "user", "content": "What is 23 * 47?"}, {"role": "system", "content": "Answer in one line."}]
    with Stage() as stage:
        answered = Door(stage).post(
            "/v1/chat/completions", {"model": "mistral:magistral-medium-latest", "messages": messages}
        )
        assert answered.status == 200
        assert "1081" in answered.json["choices"][0]["message"]["content"]
        assert "Answer in one line." in str(stage.requests[-1].json["messages"][0]["content"])


@pytest.mark.parametrize("store", [True, False], ids=["vault", "carried"])
def test_the_items_of_a_translated_stream_keep_the_ids_that_they_were_announced_with(store: bool) -> None:
    reasoning: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_theirs1",
        "summary": [{"type": "summary_text", "text": "Look."}],
    }
    message: dict[str, Any] = {
        "type": "message",
        "id": "msg_theirs2",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
    }
    message = {**message, "content": [{"type": "output_text", "text": "I look.", "annotations": []}]}
    call = {"type": "function_call", "id": "fc_theirs3", "call_id": "call_aB3dE5fG7h", "name": "get_weather"}
    call |= {"arguments": "{}", "status": "completed"}
    items: list[dict[str, Any]] = [{**reasoning, "encrypted_content": "gAAAA"}, message, call]
    first = _write_responses_stream(items)
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    given: list[dict[str, object]] = [{"role": "user", "content": "Weather?"}]
    with Stage([Raw(body=first, headers={"content-type": "text/event-stream"})]) as stage:
        door = Door(stage, store=store, forwards=False)
        for _ in range(2):
            body = {
                "model": "openai-responses:gpt-5.2",
                "input": given,
                "tools": [tool],
                "stream": True,
                "store": False,
            }
            response = door.post("/v1/responses", {**body, "reasoning": {"effort": "high", "summary": "auto"}})
            lines = [line[6:] for line in response.body.split(b"\n") if line.startswith(b"data: ")]
            events = [msgspec.json.decode(line) for line in lines]
            added, done = (
                [event["item"]["id"] for event in events if event["type"] == f"response.output_item.{kind}"]
                for kind in ("added", "done")
            )
            output = events[-1]["response"]["output"]
            assert len(added) >= 3
            assert added == done == [item["id"] for item in output]
            assert {event["item_id"] for event in events if "item_id" in event} <= set(added)
            assert output[1]["phase"] == "commentary"
            given += output
            given.append({"type": "function_call_output", "call_id": "call_aB3dE5fG7h", "output": "sunny"})
        returned = stage.requests[1].json["input"]
    assert [item.get("encrypted_content") for item in returned if item.get("type") == "reasoning"] == ["gAAAA"]


def _write_responses_stream(items: list[dict[str, Any]]) -> bytes:
    """A stream as OpenAI sends it (2026-11), each item without its pieces."""
    response = {"id": "resp_theirs", "object": "response", "created_at": 1, "model": "gpt-5.2", "status": "completed"}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
    for number, item in enumerate(items):
        begun = {name: [] if name in ("summary", "content") else value for name, value in item.items()}
        begun.pop("encrypted_content", None)
        if "arguments" in begun:
            begun["arguments"] = ""
        events.append({"type": "response.output_item.added", "output_index": number, "item": begun})
        events.append({"type": "response.output_item.done", "output_index": number, "item": item})
    events.append({"type": "response.completed", "response": {**response, "output": items}})
    return b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), msgspec.json.encode(each)) for each in events)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", ["anthropic", "bedrock", "cohere"])
def test_citations_of_another_dialect_are_told_and_not_written(caller: str, stream: bool) -> None:
    upstream = "cohere:command-a-03-2025" if caller != "cohere" else "anthropic:claude-opus-4-5"
    served = ServedRequest(Prompt((user("Why?"),)), "m", stream)
    writer: Any = open_writer(served, caller, find_target(upstream))
    citation = '[{"start":0,"end":2,"text":"60","sources":[{"type":"foreign-source","id":"x:0"}]}]'
    sealed = ThoughtSealed(Seal("citations", "", None, citation), 0)
    written = writer.write([ReplyStarted("m"), TextDelta("60 years", 0), sealed, ReplyEnded(StopReason("stop"))])
    assert b"60 years" in written
    assert b"foreign-source" not in written
    assert [notice.code for notice in writer.notices] == ["part_not_written"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", CALLERS)
def test_text_before_a_lone_close_is_no_answer_unless_it_was_sent(caller: str, stream: bool) -> None:
    with Stage(Say(text="hidden</think>answer", piece=4, pause=0.05 if stream else 0)) as stage:
        prompt = Prompt((user("?"),), stream=stream)
        reply = Door(stage).ask(caller, "vllm:some-model", prompt)
    assert reply.text == ("hiddenanswer" if stream else "answer")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", CALLERS)
def test_commentary_is_not_in_the_answer_of_any_client_and_goes_back_with_its_phase(caller: str, stream: bool) -> None:
    """Clients of most dialects never see it: the vault has it."""
    call = ToolCall("call_0aB3dE5fG7", "get_weather", {"city": "Oslo"})

    def play(request: ServedRequest) -> Say:
        if any(find_results(message) for message in request.prompt.messages):
            return Say(thinking="So.", commentary="I read it.", text="It is sunny.")
        return Say(thinking="Look.", commentary="I look it up.", tool_calls=(call,))

    with Stage(play) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        prompt = Prompt((user("Weather?"),), tools=(_WEATHER,), thinking=_HIGH, stream=stream)
        first = door.ask(caller, "openai-responses:gpt-5.2", prompt)
        assert (first.text, len(first.tool_calls)) == ("", 1)
        # Clients of chat completions send back what they know.
        sent = first.parts if caller != "openai_chat" else (*first.parts[:1], *first.tool_calls)
        prompt = _continue(prompt, sent, first.tool_calls[0])
        reply = door.ask(caller, "openai-responses:gpt-5.2", prompt)
        shows = caller in ("openai_chat", "openai_responses")
        assert (reply.text, reply.commentary) == ("It is sunny.", "I read it." if shows else "")
        assert reply.thinking.text == "So."
        items = stage.requests[-1].json["input"]
        said = [item for item in items if item.get("phase") == "commentary"]
        assert [item["content"][0]["text"] for item in said] == ["I look it up."]
