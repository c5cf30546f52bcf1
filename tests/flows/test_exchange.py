"""One request and one reply as a flow, driven by hand: no socket, no clock, every decision visible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, Policy
from asides.flows.exchange import Exchange
from asides.flows.retry import ERROR_BODY_LIMIT
from asides.flows.steps import Done, Emit, Head, Open, Read, Sleep, Step, advance
from asides.providers.provider import ModelRule, Provider, Target
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
    advance(flow, OK)
    first, _ = halves(GOOD)
    advance(flow, first)
    flow.close()
    assert run.partial is not None
    assert not run.partial.complete
    assert run.partial.thinking is not None
    assert run.partial.thinking.text == "plan"


def test_a_flow_names_the_dialect_it_does_not_know() -> None:
    row = Provider(name="example", dialect="smoke_signals", base_url="http://127.0.0.1:9")
    played = play([], call(target(row)))
    assert "smoke_signals" in str(played.raised)
