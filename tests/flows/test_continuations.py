"""A reply that the provider ends at the limit of one request is continued: one stream, one reply, the usage summed."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

import asides
from asides.flows.call import Call, Policy
from asides.flows.exchange import Exchange
from asides.flows.steps import Head, Open
from asides.providers.find import find_target
from asides.values.errors import ConnectionLost, Overloaded
from asides.values.events import ReplyEnded, ReplyStarted, UsageReported
from asides.values.messages import Prompt, ProviderState, user
from tests.decoding import sse
from tests.flows.test_exchange import OK, Played
from tests.loopback import ReceivedRequest, serving, whole_response

MODEL = "gemini-4-pro"


def chunk(*parts: dict[str, Any], finish: str | None = None, token: str | None = None, used: int = 0) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    if token is not None:
        candidate["continuationToken"] = token
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": MODEL, "responseId": f"r{used}"}
    if used:
        counts = {"promptTokenCount": 10, "candidatesTokenCount": used, "thoughtsTokenCount": 1}
        body["usageMetadata"] = {**counts, "totalTokenCount": 11 + used}
    return body


THOUGHT = {"text": "plan", "thought": True}
HOPS = [
    [chunk(THOUGHT), chunk({"text": "one "}, finish="CONTINUATION", token="dG9rZW4x", used=2)],
    [chunk({"text": "two "}), chunk({"text": "three "}, finish="CONTINUATION", token="dG9rZW4y", used=3)],
    [chunk({"text": "four"}, finish="STOP", used=4)],
]


def streamed(hop: list[dict[str, Any]]) -> bytes:
    return sse(*hop, done=False)


def whole(hop: list[dict[str, Any]]) -> bytes:
    parts = [part for each in hop for part in each["candidates"][0]["content"]["parts"]]
    last = {**hop[-1], "candidates": [{**hop[-1]["candidates"][0], "content": {"role": "model", "parts": parts}}]}
    return json.dumps(last, indent=2).encode()


def gemini(**policy: Any) -> Call:
    target = find_target(f"gemini:{MODEL}", base_url="http://127.0.0.1:9", environ={})
    return Call(Prompt((user("Count."),), extra={"seed": 7}), target, Policy(**policy))


def play(answers: list[Any], **policy: Any) -> Played:
    return Played(Exchange(gemini(**policy), jitter=lambda: 0.0), answers)


def answers_of(bodies: list[bytes]) -> list[Any]:
    return [answer for body in bodies for answer in (OK, body[: len(body) // 2], body[len(body) // 2 :], b"")]


@pytest.mark.parametrize("write", [streamed, whole])
def test_the_hops_are_one_reply(write: Any) -> None:
    played = play(answers_of([write(hop) for hop in HOPS]))
    reply = played.reply
    assert reply is not None
    assert (reply.text, reply.outcome, reply.stop.reason) == ("one two three four", "answered", "stop")
    assert reply.thinking is not None
    assert reply.thinking.text == "plan"
    assert (reply.usage.input, reply.usage.output, reply.usage.thinking) == (30, 12, 3)
    assert reply.usage.total == 42
    assert reply.warnings == ()
    assert len(reply.parts) == 2
    kinds = [type(event) for event in played.events]
    assert (kinds.count(ReplyStarted), kinds.count(ReplyEnded)) == (1, 1)
    assert isinstance(played.events[-1], ReplyEnded)
    assert reply.streamed == (write is streamed)


def test_each_request_is_the_first_one_with_the_last_token() -> None:
    played = play(answers_of([streamed(hop) for hop in HOPS]))
    bodies = [json.loads(step.request.body) for step in played.steps if isinstance(step, Open)]
    assert [body.pop("continuationToken", None) for body in bodies] == [None, "dG9rZW4x", "dG9rZW4y"]
    assert bodies[0] == bodies[1] == bodies[2]


def test_usage_grows_with_each_request() -> None:
    played = play(answers_of([streamed(hop) for hop in HOPS]))
    totals = [event.usage.total for event in played.events if isinstance(event, UsageReported)]
    assert totals == [13, 27, 42]


def test_an_option_turns_it_off() -> None:
    played = play(answers_of([streamed(HOPS[0])]), continuations=0)
    reply = played.reply
    assert reply is not None
    assert (reply.text, reply.stop.reason, reply.stop.raw) == ("one ", "length", "CONTINUATION")
    assert [notice.code for notice in reply.warnings] == ["reply_not_continued"]


def test_a_limit_bounds_it() -> None:
    played = play(answers_of([streamed(HOPS[0]), streamed(HOPS[0])]), continuations=1)
    reply = played.reply
    assert reply is not None
    assert (reply.text, reply.stop.reason) == ("one one ", "length")
    assert [notice.code for notice in reply.warnings] == ["reply_not_continued"]


def test_a_request_that_fails_is_sent_again() -> None:
    first, second, third = answers_of([streamed(HOPS[0])]), [Head(503, {}), b"{}", b""], answers_of([streamed(HOPS[2])])
    played = play([*first, *second, *third])
    assert played.reply is not None
    assert (played.reply.text, len(played.waits)) == ("one four", 1)


def test_the_last_failure_has_the_reply_so_far() -> None:
    played = play([*answers_of([streamed(HOPS[0])]), Head(503, {}), b"{}", b""], retries=0)
    assert isinstance(played.raised, Overloaded)
    assert played.raised.partial is not None
    assert played.raised.partial.text == "one "


def test_a_hop_that_breaks_off_is_an_error() -> None:
    played = play([*answers_of([streamed(HOPS[0])]), OK, streamed([chunk({"text": "two "})]), b""])
    assert isinstance(played.raised, ConnectionLost)
    assert played.raised.partial is not None
    assert played.raised.partial.text == "one two "


@pytest.mark.parametrize("streams", [True, False])
def test_over_sockets_sync_and_async(streams: bool) -> None:
    bodies = [streamed(hop) if streams else whole(hop) for hop in HOPS]
    kind = "text/event-stream" if streams else "application/json"

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        token = json.loads(request.body).get("continuationToken")
        body = bodies[[None, "dG9rZW4x", "dG9rZW4y"].index(token)]
        connection.sendall(whole_response(body, content_type=kind))
        return True

    with serving(answer) as server:
        url = server.url.removesuffix("/v1")
        reply = asides.ask(f"gemini:{MODEL}", "Count.", base_url=url, api_key="k", stream=streams)

        async def ask() -> asides.Reply:
            return await asides.aio.ask(f"gemini:{MODEL}", "Count.", base_url=url, api_key="k", stream=streams)

        assert asyncio.run(ask()).text == reply.text == "one two three four"


@pytest.mark.parametrize("empty", [{}, {"candidates": []}, {"usageMetadata": {"promptTokenCount": 1}}])
@pytest.mark.parametrize("write", [streamed, whole])
def test_half_an_answer_whose_rest_is_empty_is_an_error_with_the_half(write: Any, empty: dict[str, Any]) -> None:
    rest = sse(empty, done=False) if write is streamed else json.dumps(empty).encode()
    played = play(answers_of([write(HOPS[0]), rest]), retries=0)
    assert played.reply is None
    assert isinstance(played.error, ConnectionLost)
    assert played.error.partial is not None
    assert played.error.partial.text == "one "


# --- Interactions -----------------------------------------------------------------------------------------------------


def text(said: str) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": said}]}


THINKS: dict[str, Any] = {
    "type": "thought",
    "signature": "c2ln",
    "summary": [{"type": "text", "text": "plan"}],
}
CALLS: dict[str, Any] = {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "sea"}}
STEPS: list[list[dict[str, Any]]] = [[THINKS, text("one ")], [text("two "), CALLS], [text("three")]]


def interaction(number: int, *, stored: bool, whole_body: bool) -> bytes:
    """The body of one of the requests that a reply takes."""
    is_last = number == len(STEPS) - 1
    named: dict[str, Any] = {"id": f"v1_{number}" if stored else "", "object": "interaction", "model": MODEL}
    used = {"total_input_tokens": 10, "total_output_tokens": number + 1, "total_tokens": 11 + number}
    ended: dict[str, Any] = {**named, "status": "completed" if is_last else "requires_continuation", "usage": used}
    if not is_last:
        ended["continuation_token"] = f"token{number}"
    if whole_body:
        return json.dumps({**ended, "steps": STEPS[number]}).encode()
    events: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {**named, "status": "in_progress"}}
    ]
    for index, step in enumerate(STEPS[number]):
        events += [
            {"event_type": "step.start", "index": index, "step": step},
            {"event_type": "step.stop", "index": index},
        ]
    return sse(*events, {"event_type": "interaction.completed", "interaction": ended})


@pytest.mark.parametrize("whole_body", [True, False], ids=["whole", "stream"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_the_interactions_of_a_reply_are_one(stored: bool, whole_body: bool) -> None:
    target = find_target(f"google-interactions:{MODEL}", base_url="http://127.0.0.1:9", environ={})
    state = ProviderState(store=True, previous_response_id="v1_before") if stored else ProviderState()
    call = Call(Prompt((user("Count."),), state=state), target, Policy())
    bodies = [interaction(number, stored=stored, whole_body=whole_body) for number in range(len(STEPS))]
    played = Played(Exchange(call, jitter=lambda: 0.0), answers_of(bodies))
    reply = played.reply
    assert reply is not None
    assert (reply.text, reply.thinking.text, reply.stop.reason) == ("one two three", "plan", "tool_calls")
    assert [type(part).__name__ for part in reply.parts] == ["Thought", "Text", "ToolCall", "Text"]
    assert (reply.usage.input, reply.usage.output, reply.usage.total) == (30, 6, 36)
    assert (reply.id, reply.stored) == (("v1_2", True) if stored else (None, False)), "the next turn continues the last"
    assert (reply.warnings, reply.streamed) == ((), not whole_body)
    sent = [json.loads(step.request.body) for step in played.steps if isinstance(step, Open)]
    assert [body.pop("continuation_token", None) for body in sent] == [None, "token0", "token1"]
    if stored:
        assert [body["previous_interaction_id"] for body in sent] == ["v1_before", "v1_0", "v1_1"]
        assert ["input" in body for body in sent] == [True, False, False]
    else:
        assert sent[0] == sent[1] == sent[2]
        assert sent[0]["store"] is False


def test_an_interaction_that_cannot_be_continued_says_so() -> None:
    target = find_target(f"google-interactions:{MODEL}", base_url="http://127.0.0.1:9", environ={})
    body = json.loads(interaction(0, stored=False, whole_body=True))
    del body["continuation_token"]
    call = Call(Prompt((user("Count."),)), target, Policy())
    for answers, policy in (
        (json.dumps(body).encode(), call),
        (interaction(0, stored=False, whole_body=False), Call(call.prompt, target, Policy(continuations=0))),
    ):
        reply = Played(Exchange(policy, jitter=lambda: 0.0), answers_of([answers])).reply
        assert reply is not None
        assert (reply.text, reply.stop.raw) == ("one ", "requires_continuation")
        assert [notice.code for notice in reply.warnings] == ["reply_not_continued"]
