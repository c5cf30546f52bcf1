"""A client of Responses asks for a compaction: one item, which any model reads as a summary on the next turn."""

from __future__ import annotations

from typing import Any

import pytest

from asides.history.summary import LABEL
from asides.relay.state.relay_keys import RelayKeys
from asides.values.events import PartArrived, ReplyEnded, ReplyStarted, StopReason
from asides.values.parts import UnknownPart
from asides.values.usage import Usage
from asides_stage import Stage
from asides_stage.stage import Fail, Say
from tests.relay.relaying import UPSTREAMS, Door, load
from tests.relay.responses_items import read_events, read_response

TALK: list[Any] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are a coding agent."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My name is Ada. Write a file."}]},
    {"type": "function_call", "name": "write", "call_id": "call_aB3dE5fG7h", "arguments": '{"path":"a.txt"}'},
    {"type": "function_call_output", "call_id": "call_aB3dE5fG7h", "output": "written"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It is there.", "annotations": []}],
    },
]
TRIGGER = {"type": "compaction_trigger"}
SUMMARY = "Ada wanted a file; a.txt is written."
ELSEWHERE = [name for name in UPSTREAMS if not name.startswith("openai-responses")]
OPENAI = "openai-responses:gpt-5.2"


def ask(model: str, **more: Any) -> dict[str, Any]:
    """What Codex sends."""
    common = {"store": False, "include": ["reasoning.encrypted_content"], "instructions": "Be brief."}
    return {"model": model, "input": [*TALK, TRIGGER], "stream": True, **common, **more}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("upstream", ELSEWHERE)
def test_one_item_comes_back_and_any_model_goes_on_from_it(upstream: str, stream: bool) -> None:
    usage = Usage(120, 30)
    with Stage([Say(thinking="the canary", text=SUMMARY, usage=usage), Say(text="Your name is Ada.")]) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        answered = door.post("/v1/responses", ask(upstream, stream=stream))
        assert answered.status == 200, answered.body
        assert "compaction_summarised" in answered.headers["x-asides-notice"]
        response = read_response(answered.body)
        (item,) = response["output"]
        assert item["type"] == "compaction"
        assert item["id"].startswith("cmp_")
        assert item["encrypted_content"].startswith("asd1.")
        assert SUMMARY.encode() not in answered.body
        assert b"canary" not in answered.body
        assert response["status"] == "completed"
        assert (response["usage"]["input_tokens"], response["usage"]["output_tokens"]) == (120, 30)
        asked = stage.requests[0].served
        assert asked is not None
        assert not asked.prompt.tools
        shown = "\n".join(message.text for message in asked.prompt.messages)
        assert "My name is Ada" in shown
        assert 'write with {"path":"a.txt"}' in shown
        assert "coding agent" not in shown

        question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My name?"}]}
        going_on = ask(upstream, stream=stream, input=[TALK[0], item, question])
        second = door.post("/v1/responses", going_on)
        assert read_response(second.body)["output"][-1]["content"][0]["text"] == "Your name is Ada."
        sent = stage.requests[1].body
    assert SUMMARY.encode() in sent
    assert LABEL.encode() in sent
    assert b"asd1." not in sent


def test_a_stream_tells_that_the_summary_is_written() -> None:
    with Stage([Say(text=SUMMARY * 10, piece=10)]) as stage:
        answered = Door(stage).post("/v1/responses", ask("deepseek:deepseek-v4-pro"))
    events = read_events(answered.body)
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-2:] == ["response.output_item.done", "response.completed"]
    assert set(kinds[3:-2]) == {"response.compaction.compacting"}
    assert len({event["item_id"] for event in events[3:-2]} | {events[-2]["item"]["id"]}) == 1
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_openai_gets_the_request_itself(stream: bool) -> None:
    own = '{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"}'
    events = (ReplyStarted("gpt-5.2", "resp_1"), PartArrived(UnknownPart(own), 0), ReplyEnded(StopReason("stop")))
    with Stage([Say(events=events)]) as stage:
        answered = Door(stage).post("/v1/responses", ask(OPENAI, stream=stream))
        assert stage.requests[0].json["input"][-1] == TRIGGER
    assert answered.outcome is not None
    assert answered.outcome.mode == "forward"
    (item,) = read_response(answered.body)["output"]
    assert item["encrypted_content"] == "gAAAA"


def test_openai_reads_a_summary_of_ours_as_words_and_compacts_it_itself() -> None:
    own = '{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"}'
    events = (ReplyStarted("gpt-5.2", "resp_1"), PartArrived(UnknownPart(own), 0), ReplyEnded(StopReason("stop")))
    with Stage([Say(text=SUMMARY), Say(text="Ada."), Say(events=events)]) as stage:
        door = Door(stage)
        (item,) = read_response(door.post("/v1/responses", ask("anthropic:claude-opus-4-5")).body)["output"]
        door.post("/v1/responses", ask(OPENAI, input=[item, TALK[1]]))
        door.post("/v1/responses", ask(OPENAI, input=[item, TALK[1], TRIGGER]))
        first, second = stage.requests[1:]
    assert SUMMARY.encode() in first.body
    assert b"asd1." not in first.body + second.body
    assert second.json["input"][-1] == TRIGGER
    assert SUMMARY.encode() in second.body


@pytest.mark.parametrize("upstream", [*ELSEWHERE, "openai-compatible:any"])
def test_the_item_of_another_provider_goes_to_nobody_else(upstream: str) -> None:
    theirs = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-of-openai"}
    with Stage([Say(text="What file?")]) as stage:
        stage.expect_no_refusals()
        answered = Door(stage).post("/v1/responses", ask(upstream, input=[theirs, TALK[1]]))
        assert answered.status == 200
        assert b"gAAAA-of-openai" not in stage.requests[0].body
        assert b"cannot be read here" in stage.requests[0].body
    assert "compaction_unreadable" in answered.headers["x-asides-notice"]


def test_the_item_of_openai_goes_back_to_openai() -> None:
    theirs = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-of-openai"}
    with Stage([Say(text="What file?")]) as stage:
        Door(stage).post("/v1/responses", ask(OPENAI, input=[theirs, TALK[1]]))
        assert stage.requests[0].json["input"][0] == theirs


def test_a_long_summary_is_in_the_store_and_another_instance_reads_it() -> None:
    keys = RelayKeys.generate()
    long = "word " * 20_000
    with Stage([Say(text=long), Say(text="Yes.")]) as stage:
        door = Door(stage, keys=keys)
        (item,) = read_response(door.post("/v1/responses", ask("anthropic:claude-opus-4-5")).body)["output"]
        assert len(item["encrypted_content"]) < 1000
        other = Door(stage, keys=keys, records=door.records)
        other.post("/v1/responses", ask("gemini:gemini-3-pro-preview", input=[item, TALK[1]]))
        assert stage.requests[1].body.count(b"word word") > 5000
        lost = Door(stage, keys=keys).post("/v1/responses", ask("deepseek:deepseek-v4-pro", input=[item, TALK[1]]))
        assert b"cannot be read here" in stage.requests[2].body
    assert "compaction_unreadable" in lost.headers["x-asides-notice"]


def test_another_tenant_cannot_read_the_summary() -> None:
    with Stage([Say(text=SUMMARY), Say(text="Who?")]) as stage:
        door = Door(stage)
        first = door.post("/v1/responses", ask("anthropic:claude-opus-4-5"), tenant="a")
        (item,) = read_response(first.body)["output"]
        answered = door.post("/v1/responses", ask("anthropic:claude-opus-4-5", input=[item, TALK[1]]), tenant="b")
        assert answered.status == 200
        assert SUMMARY.encode() not in stage.requests[1].body
        assert b"asd1." not in stage.requests[1].body
    assert "compaction_unreadable" in answered.headers["x-asides-notice"]


def test_a_stored_compaction_is_continued_from_its_summary() -> None:
    with Stage([Say(text="Done."), Say(text=SUMMARY), Say(text="Ada.")]) as stage:
        door = Door(stage)
        common = {"model": "anthropic:claude-opus-4-5"}
        first = door.post("/v1/responses", {**common, "input": "My name is Ada. " * 20}).json
        compacted = door.post("/v1/responses", {**common, "previous_response_id": first["id"], "input": [TRIGGER]}).json
        assert compacted["store"] is True
        door.post("/v1/responses", {**common, "previous_response_id": compacted["id"], "input": "My name?"})
        sent = stage.requests[2].body
    assert SUMMARY.encode() in sent
    assert b"My name is Ada. My name" not in sent


def test_nothing_to_compact_is_told() -> None:
    with Stage() as stage:
        answered = Door(stage).post("/v1/responses", ask("anthropic:claude-opus-4-5", input=[TALK[0], TRIGGER]))
        assert not stage.requests
    assert answered.status == 400
    assert "nothing to compact" in answered.json["error"]["message"]


def test_the_next_target_of_a_route_sums_up_when_the_first_fails() -> None:
    routes = {"best": {"targets": ["deepseek:deepseek-v4-pro", "anthropic:claude-opus-4-5"]}}
    with Stage([Fail(status=401), Say(text=SUMMARY)]) as stage:
        answered = Door(stage, settings=load(routes=routes)).post("/v1/responses", ask("best"))
    assert answered.status == 200
    assert "fell_back" in answered.headers["x-asides-notice"]


def test_a_model_that_says_nothing_costs_no_memory() -> None:
    with Stage([Say(thinking="hm", text="")]) as stage:
        whole = Door(stage).post("/v1/responses", ask("anthropic:claude-opus-4-5", stream=False))
        assert whole.status == 502
        streamed = Door(stage).post("/v1/responses", ask("anthropic:claude-opus-4-5"))
    last = read_events(streamed.body)[-1]
    assert last["type"] == "response.failed"
    assert "not compacted" in last["response"]["error"]["message"]


def test_a_filter_that_stops_the_summary_is_no_fault_of_the_server() -> None:
    with Stage([Say(text="I", stop="content_filter")]) as stage:
        answered = Door(stage).post("/v1/responses", ask("deepseek:deepseek-v4-pro", stream=False))
    assert answered.status == 400
    assert answered.json["error"]["code"] == "content_filter"
