"""Interactions, whole and streamed: steps, thoughts, calls, tools of the provider, states and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.values.errors import ConnectionLost, ProtocolError, ProviderError
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought
from tests.decoding import decoded, sse
from tests.dialects.gemini_interactions.interactions import (
    ANSWER,
    CALL,
    RECORDED,
    THOUGHT,
    delta,
    encode,
    end,
    send_back,
    start,
    stream,
    target,
    whole,
)

DIALECT = "gemini_interactions"
RECORDINGS = sorted(
    path for path in RECORDED.glob("*") if path.suffix in (".json", ".sse") and ".request" not in path.name
)


def read(body: bytes) -> Reply:
    return decoded(body, target(), DIALECT)


# --- recorded ---------------------------------------------------------------------------------------------------------


def list_steps(body: bytes) -> list[Any]:
    """The steps of a recording, by hand: a stream is put together as the vendor's client does it."""
    if body.startswith(b"{"):
        return list(json.loads(body)["steps"])
    steps: list[Any] = []
    for line in body.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if event["event_type"] == "step.start":
            steps.append(event["step"])
        elif event["event_type"] == "step.delta":
            step, more = steps[event["index"]], event["delta"]
            match more["type"]:
                case "text" if step.get("content"):
                    step["content"][0]["text"] += more["text"]
                case "text":
                    step["content"] = [more]
                case "thought_summary":
                    step.setdefault("summary", []).append(more["content"])
                case "thought_signature":
                    step["signature"] = more["signature"]
                case other:
                    raise AssertionError(other)
    return steps


@pytest.mark.skipif(not RECORDINGS, reason="the recordings are not here")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_decodes_and_goes_back_exactly(path: Any) -> None:
    body = path.read_bytes()
    reply, steps = read(body), list_steps(body)
    texts = [content["text"] for step in steps for content in step.get("content", ())]
    summaries = [content["text"] for step in steps for content in step.get("summary", ())]
    assert reply.text == "".join(texts)
    assert (reply.thinking.text if reply.thinking else "") == "".join(summaries)
    assert [seal.value for seal in reply.seals if seal.value] == [
        step["signature"] for step in steps if step["type"] == "thought"
    ]
    assert reply.stop.reason == "stop"
    assert reply.usage.total is not None
    sent = send_back(reply)
    assert sent == steps


@pytest.mark.skipif(not RECORDINGS, reason="the recordings are not here")
@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.request.json")), ids=lambda path: path.stem)
def test_a_recorded_request_comes_out_as_it_went_in(path: Any) -> None:
    body = json.loads(path.read_bytes())
    served = find_dialect(DIALECT).read(path.read_bytes())
    sent, notices = encode(served.prompt, served.model)
    # What the server assumes unasked means the same.
    assert {"store": True, "stream": False, **sent} == {"store": True, "stream": False, **body}
    assert notices == []


# --- steps ------------------------------------------------------------------------------------------------------------


def test_whole_and_streamed_are_the_same() -> None:
    streamed = stream(
        start(0, {"type": "thought"}),
        delta(0, type="thought_summary", content={"type": "text", "text": "h"}),
        delta(0, type="thought_summary", content={"type": "text", "text": "m"}),
        delta(0, type="thought_signature", signature="c2ln"),
        end(0),
        start(1, {"type": "model_output"}),
        delta(1, type="text", text="4"),
        delta(1, type="text", text="2"),
        end(1),
        start(2, {"type": "function_call", "id": "c1", "name": "look", "arguments": {}}),
        delta(2, type="arguments_delta", arguments='{"at":'),
        delta(2, type="arguments_delta", arguments='"sea"}'),
        end(2),
        status="requires_action",
    )
    reply = read(whole(THOUGHT, ANSWER, CALL, status="requires_action"))
    assert read(streamed) == reply
    thought, text, call = reply.parts
    assert isinstance(thought, Thought)
    assert (thought.text, thought.kind, thought.seals[0].kind) == ("hm", "summary", "step_signature")
    assert text == Text("42")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("c1", "look", {"at": "sea"})
    assert reply.stop.reason == "tool_calls"
    assert reply.stored
    assert reply.id == "v1_1"


def test_the_arguments_of_a_call_may_come_with_its_start() -> None:
    reply = read(stream(start(0, CALL), end(0), status="requires_action"))
    assert reply.tool_calls[0].arguments == {"at": "sea"}


def test_neighbouring_texts_are_one_block_unless_one_is_annotated() -> None:
    notes = [{"type": "url_citation", "url": "https://a.example", "start_index": 0, "end_index": 1}]
    texts = [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "c", "annotations": notes},
    ]
    reply = read(whole({"type": "model_output", "content": texts}))
    assert [part.text for part in reply.parts if isinstance(part, Text)] == ["ab", "c"]
    sent = send_back(reply)
    assert sent[0]["content"] == [{"type": "text", "text": "ab"}, texts[2]]


def test_pictures_and_other_files_are_parts_of_the_answer() -> None:
    content: list[Any] = [
        {"type": "text", "text": "Here:"},
        {"type": "image", "data": "cGljdHVyZQ==", "mime_type": "image/png"},
        {"type": "audio", "uri": "https://files.example/a.wav", "mime_type": "audio/wav"},
        {"type": "hologram", "beam": 1},
    ]
    reply = read(whole({"type": "model_output", "content": content}))
    _, picture, sound, unknown = reply.parts
    assert isinstance(picture, Image)
    assert picture.data == b"picture"
    assert isinstance(sound, File)
    assert sound.url == "https://files.example/a.wav"
    assert isinstance(unknown, UnknownPart)
    sent = send_back(reply)
    assert [item for step in sent for item in step["content"]] == content
    streamed = stream(
        start(0, {"type": "model_output"}),
        delta(0, type="text", text="Here:"),
        delta(0, **content[1]),
        delta(0, **content[2]),
        end(0),
    )
    assert read(streamed).parts == reply.parts[:3]


def test_a_picture_in_a_thought_is_thinking_and_goes_back_with_it() -> None:
    picture = {"type": "image", "data": "cGlj", "mime_type": "image/png"}
    thought = {**THOUGHT, "summary": [{"type": "text", "text": "so"}, picture]}
    reply = read(whole(thought, ANSWER))
    assert reply.text == "42"
    assert [type(part) for part in reply.parts] == [Thought, Text]
    sent = send_back(reply)
    assert sent[0] == thought


@pytest.mark.parametrize(
    "kind",
    ["google_search", "google_maps", "code_execution", "url_context", "file_search", "mcp_server_tool", "retrieval"],
)
def test_a_tool_of_the_provider_comes_whole_or_in_deltas_and_goes_back(kind: str) -> None:
    call = {"type": f"{kind}_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "c2ln"}
    result = {"type": f"{kind}_result", "call_id": "s1", "result": [{"a": 1}], "is_error": True}
    streamed = stream(
        start(0, {"type": call["type"], "id": "s1"}),
        delta(0, type=call["type"], arguments=call["arguments"], signature="c2ln"),
        end(0),
        start(1, {"type": result["type"], "call_id": "s1"}),
        delta(1, type=result["type"], result=result["result"], is_error=True),
        end(1),
        start(2, ANSWER),
        end(2),
    )
    reply = read(whole(call, result, ANSWER))
    assert read(streamed) == reply
    tool, answer = reply.parts[:2]
    assert isinstance(tool, ServerTool)
    assert isinstance(answer, ServerTool)
    assert (tool.name, tool.id, answer.status) == (f"{kind}_call", "s1", "error")
    assert reply.tool_calls == ()
    sent = send_back(reply)
    assert sent == [call, result, ANSWER]


def test_a_step_and_a_delta_that_are_not_known_are_told() -> None:
    reply = read(whole({"type": "dream", "of": "sheep"}, ANSWER))
    assert isinstance(reply.parts[0], UnknownPart)
    assert json.loads(reply.parts[0].json) == {"type": "dream", "of": "sheep"}
    odd = stream(start(0, ANSWER), delta(0, type="dream", of="sheep"), {"event_type": "interaction.dreamt"}, end(0))
    assert read(odd).text == "42"
    assert [notice.code for notice in read(odd).warnings] == ["unknown_event", "unknown_event"]


def test_deltas_without_a_start_are_read() -> None:
    streamed = stream(
        delta(0, type="thought_summary", content={"type": "text", "text": "hm"}),
        delta(0, type="thought_signature", signature="c2ln"),
        delta(1, type="text", text="42"),
    )
    assert read(streamed).parts == read(whole(THOUGHT, ANSWER)).parts


def test_the_steps_may_come_with_the_end_of_a_stream() -> None:
    assert read(stream(steps=[THOUGHT, ANSWER])).parts == read(whole(THOUGHT, ANSWER)).parts


# --- counts, states, errors -------------------------------------------------------------------------------------------


def test_what_tools_put_into_the_prompt_is_input_and_the_output_holds_thinking() -> None:
    usage = {
        "total_input_tokens": 10,
        "total_tool_use_tokens": 5,
        "total_output_tokens": 3,
        "total_thought_tokens": 7,
        "total_cached_tokens": 2,
        "total_tokens": 25,
    }
    counted = read(whole(ANSWER, usage=usage)).usage
    assert (counted.input, counted.output, counted.thinking, counted.cached, counted.total) == (15, 10, 7, 2, 25)
    streamed = stream(start(0, ANSWER), {**delta(0, type="text", text="!"), "metadata": {"total_usage": usage}}, end(0))
    assert read(streamed).usage == counted


@pytest.mark.parametrize(
    ("status", "steps", "reason"),
    [
        ("completed", (ANSWER,), "stop"),
        ("requires_action", (CALL,), "tool_calls"),
        ("incomplete", (ANSWER,), "length"),
        ("budget_exceeded", (ANSWER,), "length"),
        ("requires_continuation", (ANSWER,), "length"),
        ("in_progress", (), "unknown"),
        ("queued", (), "unknown"),
        ("daydreaming", (ANSWER,), "unknown"),
    ],
)
def test_the_status_says_why_it_ended(status: str, steps: tuple[Any, ...], reason: str) -> None:
    reply = read(whole(*steps, status=status))
    assert (reply.stop.reason, reply.stop.raw) == (reason, status)
    assert any(notice.code == "unknown_stop_reason" for notice in reply.warnings) == (reason == "unknown")


def test_a_background_task_has_begun_and_can_be_asked_for_by_its_id() -> None:
    reply = read(whole(status="in_progress"))
    assert (reply.id, reply.text, reply.stored) == ("v1_1", "", True)


def test_what_is_not_stored_has_no_id() -> None:
    body = json.loads(whole(THOUGHT, ANSWER))
    body["id"] = ""
    reply = read(json.dumps(body).encode())
    assert (reply.id, reply.stored) == (None, False)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_interaction_is_an_error_with_its_words(status: str) -> None:
    errors = [{"code": "internal", "message": "the disk was full"}]
    for body in (whole(status=status, errors=errors), stream(status=status, errors=errors)):
        with pytest.raises(ProviderError, match="the disk was full"):
            read(body)
    with pytest.raises(ProviderError, match=f"ended as {status}"):
        read(whole(status=status))


def test_an_error_inside_a_stream_keeps_what_came_before() -> None:
    error = {"event_type": "error", "error": {"code": "resource_exhausted", "message": "slow down"}}
    with pytest.raises(ProviderError, match="slow down") as problem:
        read(stream(start(0, ANSWER), error, status=None))
    assert problem.value.partial is not None
    assert problem.value.partial.text == "42"


def test_a_stream_without_its_end_was_cut_off() -> None:
    for body in (stream(start(0, ANSWER), end(0), status=None), sse(start(0, ANSWER), done=True)):
        with pytest.raises(ConnectionLost):
            read(body)


def test_something_else_is_named() -> None:
    with pytest.raises(ProtocolError, match="not an interaction"):
        read(b'{"object":"chat.completion","choices":[]}')


def test_an_error_body_has_its_code_and_words() -> None:
    body = b'{"error":{"message":"Invalid turn token: v1_gone","code":"invalid_request"}}'
    error = find_dialect(DIALECT).error(400, {}, body, target())
    assert error.kind == "previous_response_missing"
    assert "Invalid turn token" in str(error)


def test_thinking_in_tags_is_split_off_where_a_host_may_write_it() -> None:
    plain = msgspec.structs.replace(target(), overrides=(("tags", ("think",)),))
    body = whole({"type": "model_output", "content": [{"type": "text", "text": "<think>hm</think>42"}]})
    reply = decoded(body, plain, DIALECT)
    assert reply.text == "42"
    assert reply.thinking is not None
    assert reply.thinking.text == "hm"


def test_searches_and_an_unusual_tier_are_in_usage() -> None:
    counts = [{"type": "google_search", "count": 2}, {"type": "google_maps", "count": 1}, {"count": None}]
    usage = {"total_input_tokens": 3, "total_output_tokens": 2, "grounding_tool_count": counts}
    counted = read(whole(ANSWER, usage=usage, service_tier="flex")).usage
    assert (counted.tool_requests, counted.tier) == (3, "flex")
    assert read(whole(ANSWER, usage=usage, service_tier="standard")).usage.tier is None


def test_a_reply_that_stops_at_the_limit_of_a_request_says_so() -> None:
    for body in (
        whole(ANSWER, status="requires_continuation", continuation_token="t"),
        stream(start(0, ANSWER), end(0), status="requires_continuation", continuation_token="t"),
    ):
        reply = read(body)
        assert (reply.stop.reason, reply.stop.raw) == ("length", "requires_continuation")
        assert [notice.code for notice in reply.warnings] == ["reply_not_continued"]
        assert "continuation_token" in json.dumps(reply.metadata["raw"])
    assert read(whole(ANSWER)).warnings == ()
