"""One request and one reply as a flow, driven by hand: no socket, no clock, every decision visible."""

from __future__ import annotations

import gc
import json
import socket
import tracemalloc
from collections.abc import Iterable, Iterator
from random import Random
from time import sleep
from typing import Any

import pytest

import asides
from asides.dialects import plain_row
from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, Policy
from asides.flows.exchange import Exchange, ResponseReader
from asides.flows.retry import ERROR_BODY_LIMIT
from asides.flows.steps import Done, Emit, Head, Now, Open, Read, Sleep, Step, advance
from asides.options import ReplyLimits
from asides.providers.provider import ModelRule, Provider, Target
from asides.testing.conformance.response_bodies import list_chunkings, split_body
from asides.values.errors import (
    AsidesError,
    AuthError,
    ConnectionLost,
    IdleTimeout,
    InvalidThinking,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)
from asides.values.events import Event, ReplyEnded, ReplyStarted, TextDelta, Warned
from asides.values.fold import fold
from asides.values.messages import Prompt, user
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import Thinking
from tests.decoding import chunk, sse, stream, target, whole
from tests.fuzz.bodies import written_bodies
from tests.loopback import ReceivedRequest, saying, serving, whole_response
from tests.shells import Shell, both_shells

GOOD = stream({"reasoning_content": "plan"}, {"content": "4"}, {"content": "2"})
OK = Head(200, {})


def call(to: Target | None = None, *, thinking: Thinking | None = None, **policy: Any) -> Call:
    return Call(Prompt((user("?"),), thinking=thinking or Thinking()), to or target(), Policy(**policy))


class Played:
    """A flow driven with prepared answers: heads and bytes are handed over, errors thrown."""

    def __init__(self, run: Exchange, answers: Iterable[Head | bytes | AsidesError]) -> None:
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self.reply: Reply | None = None
        self.error: AsidesError | None = None
        self._answers: Iterator[Head | bytes | AsidesError] = iter(answers)
        flow = run.steps()
        try:
            step = advance(flow)
            while not isinstance(step, Done):
                if not isinstance(step, Now):
                    self.steps.append(step)
                if isinstance(step, Emit):
                    self.events += step.events
                answer = next(self._answers) if isinstance(step, (Open, Read)) else None
                step = advance(flow, error=answer) if isinstance(answer, AsidesError) else advance(flow, answer)
            self.reply = step.result
        except AsidesError as error:
            self.error = error

    @property
    def raised(self) -> AsidesError:
        assert self.error is not None, "it went well"
        return self.error

    @property
    def kinds(self) -> str:
        """The steps by their first letters: "ORRES"."""
        return "".join(type(step).__name__[0] for step in self.steps)

    @property
    def waits(self) -> list[float]:
        return [step.seconds for step in self.steps if isinstance(step, Sleep)]


def play(answers: Iterable[Head | bytes | AsidesError], a_call: Call | None = None) -> Played:
    return Played(Exchange(a_call or call(), jitter=lambda: 0.0), answers)


def halves(body: bytes) -> tuple[bytes, bytes]:
    middle = body.index(b"\n\n", len(body) // 2) + 2
    return body[:middle], body[middle:]


def test_a_reply_is_the_fold_of_what_was_emitted() -> None:
    played = play([OK, *halves(GOOD), b""])
    assert played.reply == fold(played.events)
    assert played.reply is not None
    assert (played.reply.text, played.reply.streamed) == ("42", True)


def test_there_is_one_emit_for_each_read_that_brought_events_and_none_for_the_others() -> None:
    first, second = halves(GOOD)
    played = play([OK, first, second[:1], second[1:], b""])
    assert played.kinds == "ORERRERE"


def test_a_whole_body_is_a_stream_of_one_chunk() -> None:
    played = play([OK, whole({"content": "42", "reasoning_content": "plan"}), b""])
    assert played.reply is not None
    assert (played.reply.text, played.reply.streamed) == ("42", False)
    assert played.reply.raw["choices"][0]["message"]["content"] == "42"


def test_nothing_happens_before_the_flow_is_driven() -> None:
    Exchange(call(target(rule=ModelRule(thinking="never")), thinking=Thinking(effort="high"))).steps()


def test_a_contradiction_is_raised_before_the_first_step() -> None:
    played = play([], call(target(rule=ModelRule(thinking="never")), thinking=Thinking(effort="high")))
    assert isinstance(played.raised, InvalidThinking)
    assert played.steps == []


OFF = Thinking(mode="off")
OPTIONAL = target(rule=ModelRule(thinking="optional"))


@pytest.mark.parametrize("thinking", [None, Thinking(mode="on"), OFF], ids=["unset", "on", "off"])
@pytest.mark.parametrize("body", [GOOD, whole({"reasoning_content": "plan", "content": "42"})], ids=["stream", "whole"])
def test_thoughts_that_come_although_thinking_is_off_are_kept_apart_and_reported(
    body: bytes, thinking: Thinking | None
) -> None:
    played = play([OK, body, b""], call(OPTIONAL, thinking=thinking))
    assert played.reply is not None
    assert (played.reply.text, played.reply.thinking and played.reply.thinking.text) == ("42", "plan")
    codes = [notice.code for notice in played.reply.warnings if notice.code.startswith("thought")]
    assert codes == (["thought_though_off"] if thinking is OFF else [])
    assert isinstance(played.events[-1], ReplyEnded)


def test_a_reply_without_thoughts_has_no_such_notice() -> None:
    played = play([OK, stream({"reasoning_content": " \n"}, {"content": "42"}), b""], call(OPTIONAL, thinking=OFF))
    assert played.reply is not None
    assert played.reply.warnings == ()


def test_warnings_follow_the_start_of_the_reply() -> None:
    a_call = call(target(rule=ModelRule(thinking="never")), thinking=Thinking(effort="high"), on_conflict="adjust")
    a_call = Call(a_call.prompt, a_call.target, a_call.policy, notices=(Notice("from_the_arguments"),))
    played = play([OK, GOOD, b""], a_call)
    assert isinstance(played.events[0], ReplyStarted)
    assert [event.code for event in played.events[1:3] if isinstance(event, Warned)] == [
        "from_the_arguments",
        "thinking_unsupported",
    ]
    assert played.reply == fold(played.events)


def test_a_failure_that_passes_is_tried_again_with_the_same_request() -> None:
    played = play([Head(503, {}), b"busy", b"", Head(429, {"retry-after": "3"}), b"", OK, GOOD, b""])
    assert played.reply is not None
    assert played.waits == [0.5, 3.0]
    requests = [step.request for step in played.steps if isinstance(step, Open)]
    assert len(requests) == 3
    assert requests[0] == requests[1] == requests[2]
    assert isinstance(requests[0], HttpRequest)


def test_the_last_failure_is_raised_and_says_how_often_it_was_tried() -> None:
    played = play([Head(500, {}), b"", Head(500, {}), b""], call(retries=1))
    assert isinstance(played.raised, Overloaded)
    assert str(played.raised).endswith("Given up after 2 attempts.")
    assert (played.raised.status, played.raised.partial) == (500, None)


def test_a_wait_that_is_too_long_ends_it_and_the_error_says_so() -> None:
    played = play([Head(429, {"retry-after": "3600"}), b""])
    assert isinstance(played.raised, RateLimited)
    assert "wait 3600 s, more than max_wait (60 s)" in str(played.raised)
    assert played.raised.retry_after == 3600.0


def test_an_error_knows_the_wait_also_when_it_was_given_as_a_date() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2026 09:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    played = play([Head(429, headers), b""])
    assert isinstance(played.raised, RateLimited)
    assert played.raised.retry_after == 7200.0


def test_a_refusal_that_stays_is_raised_at_once() -> None:
    body = json.dumps({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}).encode()
    played = play([Head(401, {"x-request-id": "req_1"}), body, b""])
    error = played.raised
    assert isinstance(error, AuthError)
    assert (error.status, error.code, error.request_id, error.body) == (401, "invalid_api_key", "req_1", body)
    assert played.kinds == "ORR"


def test_a_connection_that_fails_is_tried_again() -> None:
    played = play([ConnectionLost("refused"), OK, ConnectionLost("cut before a word"), OK, GOOD, b""])
    assert played.reply is not None
    assert played.waits == [0.5, 1.0]


def test_an_empty_answer_is_tried_again() -> None:
    played = play([OK, b"", OK, GOOD, b""])
    assert played.reply is not None
    assert played.kinds.count("O") == 2


def test_nothing_is_tried_again_once_an_event_was_handed_over() -> None:
    first, _ = halves(GOOD)
    lost = ConnectionLost("cut")
    played = play([OK, first, lost])
    assert played.raised is lost
    assert played.kinds.count("O") == 1
    assert played.raised.partial == fold(played.events)
    assert played.raised.partial is not None
    assert not played.raised.partial.complete


def test_silence_is_not_answered_with_a_second_request() -> None:
    played = play([IdleTimeout("nothing came")])
    assert isinstance(played.raised, IdleTimeout)
    assert played.kinds == "O"


@pytest.mark.parametrize(("code", "kind"), [("rate_limit_exceeded", RateLimited), ("server_error", Overloaded)])
def test_an_error_event_instead_of_a_reply_is_tried_again(code: str, kind: type[ProviderError]) -> None:
    told = sse({"error": {"message": "later", "code": code}})
    assert play([OK, told, OK, GOOD, b""]).reply is not None
    played = play([OK, told] * 3)
    assert isinstance(played.raised, kind)
    assert played.kinds.count("O") == 3


def test_an_error_event_in_the_middle_of_a_reply_is_raised_with_what_arrived() -> None:
    body = sse(chunk({"content": "half"}), {"error": {"message": "overloaded", "code": "server_error"}}, done=False)
    played = play([OK, body, b""])
    assert isinstance(played.raised, Overloaded)
    assert played.raised.partial is not None
    assert (played.raised.partial.text, played.raised.partial.complete) == ("half", False)
    assert [event.text for event in played.events if isinstance(event, TextDelta)] == ["half"]


def test_after_an_error_event_only_the_rest_that_is_there_is_read() -> None:
    body = sse({"error": {"message": "no such model", "code": "model_not_found"}}, done=False)
    played = play([OK, body, b""])
    assert isinstance(played.raised, ProviderError)
    assert played.kinds == "ORR"
    assert [step.patience is None for step in played.steps if isinstance(step, Read)] == [True, False]
    assert play([OK, body + b"data: [DONE]\n\n"]).kinds == "OR"


def test_bytes_that_break_the_dialect_end_the_reading() -> None:
    assert play([OK, GOOD[:200] + b"\n\ndata: {]\n\n"]).kinds == "ORE"


def test_a_stream_without_its_end_is_an_error_however_cleanly_it_was_closed() -> None:
    first, _ = halves(GOOD)
    played = play([OK, first, b""])
    assert isinstance(played.raised, ConnectionLost)
    assert played.raised.partial is not None
    assert not any(isinstance(event, ReplyEnded) for event in played.events)


def test_a_connection_that_breaks_after_the_last_event_loses_nothing() -> None:
    played = play([OK, GOOD, ConnectionLost("reset")])
    assert played.reply is not None
    assert (played.reply.text, played.reply.complete) == ("42", True)
    assert [notice.code for notice in played.reply.warnings] == ["connection_lost_at_end"]
    assert isinstance(played.events[-1], ReplyEnded)
    assert played.reply == fold(played.events)


def test_bytes_that_are_no_reply_are_a_protocol_error() -> None:
    played = play([OK, b"<html>hello</html>", b""])
    assert isinstance(played.raised, ProtocolError)
    assert played.raised.partial is None
    assert played.kinds.count("O") == 1


def test_an_error_body_is_read_up_to_a_limit() -> None:
    piece = b"x" * 10_000
    played = play([Head(400, {}), *[piece] * 100])
    assert isinstance(played.raised, ProviderError)
    assert played.raised.body == b"x" * ERROR_BODY_LIMIT
    assert played.kinds == "O" + "R" * 7


def test_an_error_whose_body_breaks_off_is_still_the_error() -> None:
    played = play([Head(401, {}), b'{"error": {"mess', ConnectionLost("cut")])
    assert isinstance(played.raised, AuthError)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_an_error_and_is_not_followed(status: int) -> None:
    played = play([Head(status, {"location": "https://elsewhere.example/v1"})])
    assert isinstance(played.raised, ProviderError)
    assert "https://elsewhere.example/v1" in str(played.raised)
    assert played.kinds == "O"


def test_documents_are_stored_unless_keep_raw_is_off() -> None:
    kept, dropped = play([OK, GOOD, b""]), play([OK, GOOD, b""], call(keep_raw=False))
    assert kept.reply is not None
    assert dropped.reply is not None
    assert len(kept.reply.payloads) == 4
    assert dropped.reply.payloads == ()
    assert kept.reply == dropped.reply


def test_partial_can_be_read_at_any_time() -> None:
    run = Exchange(call())
    assert run.partial is None
    flow = run.steps()
    advance(flow)
    advance(flow, 0.0)
    advance(flow, OK)
    first, _ = halves(GOOD)
    advance(flow, first)
    flow.close()
    assert run.partial is not None
    assert not run.partial.complete
    assert run.partial.thinking
    assert run.partial.thinking.text == "plan"


def test_a_flow_names_the_dialect_it_does_not_know() -> None:
    row = Provider(name="example", dialect="smoke_signals", base_url="http://127.0.0.1:9")
    played = play([], call(target(row)))
    assert "smoke_signals" in str(played.raised)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        (
            "gemini",
            {
                "candidates": [
                    {"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP"}
                ]
            },
        ),
        (
            "ollama",
            {
                "message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                "done": True,
                "done_reason": "stop",
            },
        ),
        (
            "openai-compatible",
            {
                "choices": [
                    {
                        "index": 0,
                        "message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
                        "finish_reason": "tool_calls",
                    }
                ]
            },
        ),
    ],
)
def test_ids_that_we_make_for_calls_differ_in_every_reply(provider: str, body: dict[str, object]) -> None:
    with serving(saying(whole_response(json.dumps(body).encode()))) as server:
        base_url = server.url.removesuffix("/v1") if provider == "ollama" else server.url
        replies = [
            asides.ask(f"{provider}:made-up", "go", base_url=base_url, api_key="key", retries=0) for _ in range(3)
        ]
        with asides.stream(f"{provider}:made-up", "go", base_url=base_url, api_key="key", retries=0) as streamed:
            events = list(streamed)
    assert fold(events) == streamed.reply
    assert isinstance(events[-1], ReplyEnded)
    ids = [call.id for reply in (*replies, streamed.reply) for call in reply.tool_calls]
    assert len(ids) == len(set(ids)) == 4
    # Recorded bytes give the same reply each time.
    dialect = "openai_chat" if provider == "openai-compatible" else provider
    assert asides.decode(dialect, json.dumps(body).encode()) == asides.decode(dialect, json.dumps(body).encode())


@pytest.mark.parametrize("status", ["500 Internal Server Error", "400 Bad Request"])
def test_a_picture_to_a_server_that_takes_none_is_sent_once(status: str) -> None:
    error = {"error": {"code": 500, "message": "image input is not supported - hint: provide the mmproj"}}
    refused = pytest.raises(asides.Unsupported, match="image input is not supported")
    with serving(saying(whole_response(json.dumps(error).encode(), status=status))) as server, refused:
        asides.ask(
            "openai-compatible:made-up",
            [asides.user("what is it?", asides.Image(data=b"png"))],
            base_url=server.url,
            retries=3,
        )
    assert len(server.heard) == 1


# --- an error inside a stream, in any chunking ------------------------------------------------------------------------

_ERRORS: dict[str, object] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
    "cohere": {"message": "boom"},
    "gemini": {"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}},
    "ollama": {"error": "boom"},
    "openai_chat": {"error": {"message": "boom", "code": "server_error"}},
    "openai_responses": {"type": "error", "code": "server_error", "message": "boom"},
}
_COUNTS: dict[str, object] = {
    "openai_chat": {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    "openai_responses": {"type": "response.failed", "response": {"output": [], "usage": {"output_tokens": 4}}},
}


def broken_streams(dialect: str) -> Iterator[bytes]:
    """Streams with an error, or bytes that break the dialect, after each event; then the rest, or counts."""
    for body in written_bodies():
        if body.dialect != dialect or b"\n" not in body.data.strip():
            continue
        end = b"\n" if dialect == "ollama" else b"\n\n"
        events = body.data.removesuffix(end).split(end)
        prefix = b"" if dialect == "ollama" else b"data: "
        for place in range(1, len(events), 9):
            for trouble in (json.dumps(_ERRORS[dialect]).encode(), b"{]"):
                yield end.join([*events[:place], prefix + trouble, *events[place:]]) + end
            if dialect in _COUNTS:
                late = [prefix + json.dumps(each).encode() for each in (_ERRORS[dialect], _COUNTS[dialect])]
                yield end.join([*events[:place], *late]) + end


@pytest.mark.parametrize("lost", [False, True], ids=["ended", "dropped"])
@pytest.mark.parametrize("dialect", _ERRORS)
def test_what_arrived_before_an_error_does_not_depend_on_the_chunking(dialect: str, lost: bool) -> None:
    row = plain_row(dialect)
    a_call = call(Target(row, "made-up", "http://127.0.0.1:9", row.rule("made-up")), retries=0)
    for number, body in enumerate(broken_streams(dialect)):
        outcomes: list[tuple[object, ...]] = []
        random_cut = Random(number).randrange(1, len(body))
        end: bytes | AsidesError = ConnectionLost("it broke.") if lost else b""
        for pieces in ([body], split_body(body, (7,)), split_body(body, (random_cut,)), split_body(body, (1,))):
            played = play([OK, *pieces, end, end], a_call)
            arrived = played.reply if played.error is None else played.error.partial
            seen = fold(played.events).text if played.events else ""
            outcomes.append((repr(played.error), arrived, None if arrived is None else arrived.raw, seen))
        assert all(outcome == outcomes[0] for outcome in outcomes), body


@both_shells
@pytest.mark.parametrize("pause", [None, 0.02], ids=["one write", "a write for each event"])
def test_what_arrived_before_an_error_is_the_same_over_a_socket(shell: Shell, pause: float | None) -> None:
    body = sse(chunk({"content": "a"}), chunk({"content": "b"}), _ERRORS["openai_chat"], _COUNTS["openai_chat"])

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in [body] if pause is None else body.split(b"\n\n"):
            connection.sendall(event if pause is None else event + b"\n\n")
            sleep(pause or 0)
        return False

    with serving(answer) as server:
        outcome = shell(server.url, retries=0)
    partial = outcome.raised.partial
    assert isinstance(outcome.raised, Overloaded)
    assert partial is not None
    assert (partial.text, partial.usage.output, len(partial.payloads)) == ("ab", 4, 4)


def test_an_error_whose_counts_follow_is_still_tried_again() -> None:
    told = sse(_ERRORS["openai_chat"], _COUNTS["openai_chat"])
    assert play([OK, told, OK, GOOD, b""]).reply is not None
    first, second = sse(_ERRORS["openai_chat"], done=False), sse(_COUNTS["openai_chat"])
    played = play([OK, first, second, OK, GOOD, b""])
    assert played.reply is not None
    assert [type(event) for event in played.events].count(ReplyStarted) == 1


# --- limits -----------------------------------------------------------------------------------------------------------


def limited(body: bytes, **limits: int | None) -> Played:
    plays = [
        play([OK, *pieces, b"", b""], call(reply_limits=ReplyLimits(**limits))) for pieces in list_chunkings(body)[:3]
    ]
    assert len({repr(played.error) for played in plays}) == 1, "the chunking made a difference"
    assert all(fold(played.events) == fold(plays[0].events) for played in plays if played.events)
    partials = [None if played.error is None else played.error.partial for played in plays]
    assert all(partial == partials[0] for partial in partials)
    return plays[0]


def call_chunk(index: int, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "look_up", "arguments": arguments}
    return chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "function": function}]})


@pytest.mark.parametrize(
    ("body", "limits", "said", "arrived"),
    [
        (sse(*[chunk({"content": "a"})] * 50), {"reply_bytes": 1000}, "more than 1000 bytes", "a" * 6),
        (sse(*[chunk({"content": "a"})] * 50), {"events": 9}, "more than 9 events", "a" * 9),
        (sse(chunk({"content": "a"}), *[{}] * 50), {"events": 9}, "more than 9 events", "a"),
        (sse(chunk({"content": "a"}), *map(call_chunk, range(9))), {"tool_calls": 3}, "more than 3 tool calls", "a"),
        (
            sse(chunk({"content": "a"}), *[call_chunk(0, "é" * 10)] * 9),
            {"argument_bytes": 65},
            "more than 65 bytes of arguments",
            "a",
        ),
    ],
    ids=["bytes", "events", "empty events", "calls", "arguments"],
)
def test_a_reply_that_grows_too_large_is_an_error_with_what_arrived(
    body: bytes, limits: dict[str, int], said: str, arrived: str
) -> None:
    error = limited(body, **limits).raised
    assert isinstance(error, ProtocolError)
    assert said in str(error)
    assert "reply_limits" in str(error)
    assert error.dialect == "openai_chat"
    assert error.partial is not None
    assert error.partial.text == arrived
    assert len(error.partial.tool_calls) == (3 if "tool_calls" in limits else 1 if "argument_bytes" in limits else 0)
    usual = play([OK, body, b""], call(reply_limits=ReplyLimits(None, None, None, None)))
    assert usual.reply is None or usual.reply.text.startswith(arrived)


def test_a_whole_body_that_is_too_large_is_an_error() -> None:
    assert "more than 100 bytes" in str(limited(whole({"content": "a" * 500}), reply_bytes=100).raised)


def test_the_documents_of_a_long_reply_take_less_memory_than_they_had_bytes() -> None:
    events = [chunk({"content": f"word {number} "}, padding=f"{number:x}" * 20) for number in range(9_000)]
    body = sse(*events, chunk(finish="stop"))
    pieces = split_body(body, (65_536,))

    def grow(**policy: Any) -> tuple[int, Reply]:
        tracemalloc.start()
        try:
            exchange = Exchange(call(**policy))
            flow = exchange.steps()
            assert isinstance(advance(flow), Now)
            advance(flow)
            step = advance(flow, OK)
            for piece in pieces:
                step = advance(flow, piece)
                while isinstance(step, (Emit, Now)):
                    step = advance(flow)
            size = tracemalloc.get_traced_memory()[0]
            partial = exchange.partial
            assert partial is not None
            flow.close()
            return size, partial
        finally:
            tracemalloc.stop()

    (without, _), (kept, reply) = grow(keep_raw=False), grow()
    assert kept - without < len(body) / 2
    assert len(reply.payloads) == 9_001
    assert reply.raw == [*events, chunk(finish="stop")]


def test_empty_events_take_no_memory() -> None:
    pieces = [b"data: {}\n\n" * 5000] * 8
    exchange = Exchange(call())
    flow = exchange.steps()
    advance(flow)
    advance(flow, 0.0)
    advance(flow, OK)
    assert isinstance(advance(flow, sse(chunk({"content": "a"}), done=False)), Now)
    advance(flow, 0.0)
    tracemalloc.start()
    try:
        for piece in pieces:
            advance(flow, piece)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert grown < sum(map(len, pieces))
    flow.close()


def test_a_call_that_ended_leaves_nothing_that_holds_itself() -> None:
    def count() -> int:
        return sum(type(found) in (Exchange, ResponseReader) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = count()
        assert Played(Exchange(call()), [OK, GOOD, b""]).reply is not None
        assert count() == before
    finally:
        gc.enable()
