"""Scenes become responses, over real sockets: a client gets what the script says, faults included."""

from __future__ import annotations

import http.client
import json
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage import Fail, Garbage, Hang, OpenStage, Raw, Refuse, Say
from tests.decoding import reply_of, target
from tests.testing.stage.http_client import as_http, body_of, connected, get, post, post_to, raw_socket, read_all

# --- replies ----------------------------------------------------------------------------------------------------------


SCENE = Say(
    "The answer is 42. é€🙂",
    thinking="First a plan, then another one.",
    tool_calls=(ToolCall("call_1", "look", {"where": "hier"}),),
    usage=Usage(input=3, output=9, thinking=4, cached=1, total=12),
    piece=4,
)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_tells_when_it_was_made(stage: OpenStage, streamed: bool) -> None:
    opened = stage(Say("hi"))
    now = time.time()
    asked = {"model": "any", "stream": streamed}
    messages = [{"role": "user", "content": "hi"}]
    chat = post_to(opened, "/v1/chat/completions", {**asked, "messages": messages})
    response = post_to(opened, "/v1/responses", {**asked, "input": "hi"})
    lines = post_to(opened, "/api/chat", {**asked, "messages": messages})
    created = [
        (json.loads(chat.payloads[0]) if streamed else chat.json)["created"],
        (json.loads(response.payloads[0])["response"] if streamed else response.json)["created_at"],
        datetime.fromisoformat(json.loads(lines.body.splitlines()[0])["created_at"]).timestamp(),
    ]
    if not streamed:
        created.append(get(opened, f"/v1/responses/{response.json['id']}").json["created_at"])
    assert all(now - 2 < made < now + 60 for made in created)


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_a_scene_arrives_as_it_was_written_streamed_and_whole(stage: OpenStage, chunk: int | None) -> None:
    opened = stage(msgspec.structs.replace(SCENE, chunk=chunk, id="reply_1"))
    streamed = post(opened, stream=True, stream_options={"include_usage": True})
    whole = post(opened)
    assert streamed.headers["content-type"] == "text/event-stream"
    assert (whole.headers["content-type"], int(whole.headers["content-length"])) == (
        "application/json",
        len(whole.body),
    )
    replies = [reply_of([answer.body], target())[0] for answer in (streamed, whole)]
    assert replies[0] == replies[1]
    assert (replies[0].text, replies[0].tool_calls, replies[0].usage) == (SCENE.text, SCENE.tool_calls, SCENE.usage)
    assert replies[0].thinking
    assert replies[0].thinking.text == SCENE.thinking
    assert replies[0].stop.reason == "tool_calls"
    assert len(streamed.payloads) > 15, "four characters to a delta"


def test_explicit_events_are_sent_unchanged(stage: OpenStage) -> None:
    events = (ReplyStarted("other"), ThinkingDelta("a"), TextDelta("b", 1), ReplyEnded(StopReason("length")))
    reply, _ = reply_of([post(stage(Say(events=events)), stream=True).body], target())
    assert (reply.model, reply.text, reply.stop.reason) == ("other", "b", "length")


def test_a_scene_names_the_field_of_its_thinking(stage: OpenStage) -> None:
    message = post(stage(Say("b", thinking="a", thinking_field="reasoning"))).json["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "b", "reasoning": "a"}


def test_words_are_counted_unless_usage_is_given(stage: OpenStage) -> None:
    opened = stage(Say("two words", thinking="one two three"), Say("none", usage=Usage()))
    assert post(opened, "a question of five words").json["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 5,
        "total_tokens": 10,
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert "usage" not in post(opened).json


def test_usage_in_a_stream_only_when_it_was_asked_for(stage: OpenStage) -> None:
    opened = stage(Say("hi", usage=Usage(input=3, output=9, total=12)))
    assert b"usage" not in post(opened, stream=True).body
    assert b'"completion_tokens":9' in post(opened, stream=True, stream_options={"include_usage": True}).body


def test_each_write_is_one_http_chunk(stage: OpenStage) -> None:
    opened = stage(Raw(b"data: 1\n\n", chunk=2))
    with raw_socket(opened, as_http(body_of(), "Connection: close")) as client:
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert body == b"2\r\nda\r\n2\r\nta\r\n2\r\n: \r\n2\r\n1\n\r\n1\r\n\n\r\n0\r\n\r\n"


def test_scenes_play_in_order_and_the_last_repeats(stage: OpenStage) -> None:
    opened = stage(Fail(status=503), Say("a"), Say("b"))
    assert [post(opened).status for _ in range(2)] == [503, 200]
    assert [post(opened).json["choices"][0]["message"]["content"] for _ in range(2)] == ["b", "b"]


def test_a_function_may_be_the_script(stage: OpenStage) -> None:
    def upper(request: ServedRequest) -> Say:
        return Say(request.prompt.messages[-1].text.upper())

    assert post(stage(upper), "loud").json["choices"][0]["message"]["content"] == "LOUD"


def test_the_actor_answers_when_there_is_no_script(stage: OpenStage) -> None:
    answer = post(stage(), "What is 23 * 47?").json
    assert answer["model"] == "any"
    assert answer["choices"][0]["message"]["content"] == "23 × 47 = 1081"
    assert "920 + 161" in answer["choices"][0]["message"]["reasoning_content"]


def test_the_actor_does_not_think_if_thinking_is_off(stage: OpenStage) -> None:
    message = post(stage(), "What is 23 * 47?", reasoning_effort="none").json["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "23 × 47 = 1081"}


# --- faults -----------------------------------------------------------------------------------------------------------


def test_a_failure_has_its_status_and_the_error_body_of_the_dialect(stage: OpenStage) -> None:
    date = format_datetime(datetime(2030, 1, 1, tzinfo=UTC), usegmt=True)
    opened = stage(
        Fail(status=429, message="slow down", kind="rate_limit_exceeded", retry_after=1.5),
        Fail(status=529, retry_after=date, headers={"X-Extra": "1"}),
        Fail(status=500, body="oops"),
    )
    limited, busy, plain = post(opened), post(opened, stream=True), post(opened)
    assert (limited.status, limited.headers["retry-after"]) == (429, "1.5")
    assert limited.json["error"]["message"] == "slow down"
    assert limited.json["error"]["code"] == "rate_limit_exceeded"
    assert (busy.status, busy.headers["retry-after"], busy.headers["x-extra"]) == (529, date, "1")
    assert (plain.status, plain.body) == (500, b"oops")
    assert "retry-after" not in plain.headers


def test_garbage_and_raw_bytes_arrive_unchanged(stage: OpenStage) -> None:
    line = b"data: " + b"x" * 3_000_000
    opened = stage(Garbage(), Raw(line), Raw(b'{"a":1}', content_type="application/json", status=404), Raw(b""))
    page, long_line, document, nothing = (post(opened, stream=True) for _ in range(4))
    assert (page.headers["content-type"], page.body[:6]) == ("text/html", b"<html>")
    assert (long_line.headers["content-type"], long_line.body) == ("text/event-stream", line)
    assert (document.status, document.json) == (404, {"a": 1})
    assert (nothing.status, nothing.body) == (200, b"")


def test_headers_of_a_scene_replace_those_of_the_stage(stage: OpenStage) -> None:
    opened = stage(Say("hi", headers={"Content-Type": "text/plain", "X-Request-Id": "mine"}), Say("hi"))
    with raw_socket(opened, as_http(body_of(), "Connection: close")) as client:
        head = read_all(client).partition(b"\r\n\r\n")[0].lower()
    assert b"content-type: text/plain" in head
    assert (head.count(b"content-type"), head.count(b"x-request-id")) == (1, 1)
    assert post(opened).headers["x-request-id"] == "stage-2"


def test_a_connection_cut_in_a_stream(stage: OpenStage) -> None:
    opened = stage(Raw(b"data: 1\n\ndata: 2\n\n", cut_after=12))
    with connected(opened) as connection:
        connection.request("POST", "/v1/chat/completions", body_of(stream=True))
        response = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead) as caught:
            response.read()
    assert caught.value.partial == b"data: 1\n\ndat"


def test_a_connection_cut_in_a_whole_body(stage: OpenStage) -> None:
    opened = stage(Say("a long answer", cut_after=10))
    with connected(opened) as connection:
        connection.request("POST", "/v1/chat/completions", body_of())
        response = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead) as caught:
            response.read()
    assert len(caught.value.partial) == 10


def test_a_cut_after_the_end_is_no_cut(stage: OpenStage) -> None:
    assert post(stage(Raw(b"abc", cut_after=4))).body == b"abc"


def test_a_connection_reset(stage: OpenStage) -> None:
    opened = stage(Say("a long answer", cut_after=10, reset=True))
    with raw_socket(opened, as_http(body_of())) as client:
        assert opened.wait_until(lambda: opened.connections == 1 and opened.open_connections == 0)
        with pytest.raises(ConnectionResetError):
            read_all(client)


@pytest.mark.parametrize("scene", [Refuse(), Refuse(reset=True)])
def test_a_connection_closed_without_a_byte(stage: OpenStage, scene: Refuse) -> None:
    opened = stage(scene)
    with connected(opened) as connection:
        connection.request("POST", "/v1/chat/completions", body_of())
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.getresponse()
    assert opened.closed_early == 0, "it was the stage that left"


def test_silence_before_the_first_byte(stage: OpenStage) -> None:
    opened = stage(Hang())
    with raw_socket(opened, as_http(body_of())) as client:
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_silence_may_end(stage: OpenStage) -> None:
    with raw_socket(stage(Hang(seconds=0.05)), as_http(body_of())) as client:
        assert read_all(client) == b""


def test_silence_in_the_middle(stage: OpenStage) -> None:
    opened = stage(Raw(b"data: 1\n\ndata: 2\n\n", hang_after=9))
    with raw_socket(opened, as_http(body_of(stream=True))) as client:
        received = b""
        while not received.endswith(b"9\r\ndata: 1\n\n\r\n"):
            received += client.recv(65536)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_delays_and_pauses_take_their_time(stage: OpenStage) -> None:
    opened = stage(Raw(b"abcd", chunk=1, delay=0.1, pause=0.02))
    started = time.perf_counter()
    post(opened)
    assert time.perf_counter() - started >= 0.1 + 4 * 0.02


def test_a_paused_stream_arrives_piece_by_piece(stage: OpenStage) -> None:
    opened = stage(Raw(b"ab", chunk=1, pause=0.3))
    with raw_socket(opened, as_http(body_of(), "Connection: close")) as client:
        received = b""
        while b"1\r\na" not in received:
            received += client.recv(65536)
        arrived = time.perf_counter()
        assert b"1\r\nb" not in received
        read_all(client)
        assert time.perf_counter() - arrived > 0.1
