"""What an observer sees of a relayed request, and the figures of its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.call import Call
from asides.history.plan import Decision
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayMode, RelayRequest
from asides.relay.state.turn_state import RestoredTurn
from asides.values.events import Event, ReplyEnded, ReplyStarted, TextDelta, ThinkingDelta
from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Fail, Refuse, Say, Scene
from tests.relay.relaying import ROUTES, Door, Response, load

GEMINI = "google:gemini-3-pro-preview"
CLAUDE = "anthropic:claude-opus-4-5"
CHAT = "/v1/chat/completions"
_LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


class Recorder(RelayObserver):
    """Writes down what it sees."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.targets: list[tuple[str, RelayMode, str]] = []
        self.plans: list[tuple[Decision, ...]] = []
        self.turns: list[RestoredTurn] = []
        self.requests: list[HttpRequest] = []
        self.events: list[Event] = []

    def see_asked(self, asked: ServedRequest) -> None:
        self.order.append("asked")
        self.asked = asked

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:
        self.order.append("target")
        self.targets.append((call.model, mode, reason))

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:
        self.order.append("restored")
        self.turns += turns

    def see_plan(self, decisions: Sequence[Decision]) -> None:
        self.order.append("plan")
        self.plans.append(tuple(decisions))

    def see_request(self, request: HttpRequest) -> None:
        self.order.append("request")
        self.requests.append(request)

    def see_events(self, events: Sequence[Event]) -> None:
        if self.order[-1] != "events":
            self.order.append("events")
        self.events += events


def _ask(door: Door, observer: RelayObserver | None, *messages: Any, model: str = GEMINI, **more: Any) -> Response:
    body = {"model": model, "messages": [{"role": "user", "content": "?"}, *messages], "tools": [_LOOK], **more}
    return door.send(RelayRequest("", "POST", CHAT, body=msgspec.json.encode(body)), observer)


def _forward(door: Door, observer: RelayObserver, *, stream: bool = False) -> Response:
    body = {"model": CLAUDE, "max_tokens": 64, "messages": [{"role": "user", "content": "?"}], "stream": stream}
    return door.send(RelayRequest("", "POST", "/v1/messages", body=msgspec.json.encode(body)), observer)


def _say(**more: Any) -> Say:
    return Say(thinking="It wonders.", text="Fine.", **more)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_translated_request_is_seen_in_the_order_of_what_happens(stream: bool) -> None:
    seen = Recorder()
    with Stage(_say()) as stage:
        response = _ask(Door(stage), seen, stream=stream)
    assert response.outcome is not None
    assert response.outcome.attempts == 1
    assert seen.order == ["asked", "target", "plan", "request", "events"]
    assert (seen.asked.model, seen.asked.stream, len(seen.asked.prompt.tools)) == (GEMINI, stream, 1)
    assert seen.targets == [(GEMINI, "translate", response.outcome.reason)]
    assert isinstance(seen.events[0], ReplyStarted)
    assert isinstance(seen.events[-1], ReplyEnded)
    assert "".join(event.text for event in seen.events if isinstance(event, ThinkingDelta)) == "It wonders."
    assert "".join(event.text for event in seen.events if isinstance(event, TextDelta)) == "Fine."
    assert "sk-test" not in repr([(request.url, request.headers, request.body) for request in seen.requests])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_forwarded_request_is_seen_too(stream: bool) -> None:
    seen = Recorder()
    with Stage(_say()) as stage:
        response = _forward(Door(stage, home="anthropic"), seen, stream=stream)
    assert response.outcome is not None
    assert (response.outcome.mode, response.outcome.attempts) == ("forward", 1)
    assert seen.order == ["asked", "target", "request", "events"]
    assert isinstance(seen.events[-1], ReplyEnded)
    assert "".join(event.text for event in seen.events if isinstance(event, TextDelta)) == "Fine."


def test_the_end_of_a_forwarded_stream_that_does_not_say_so_is_seen() -> None:
    """Streams of Gemini just end."""
    body = msgspec.json.encode({"contents": [{"role": "user", "parts": [{"text": "?"}]}]})
    path = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent"
    with Stage(_say()) as stage:
        door = Door(stage, home="google")
        response = door.send(RelayRequest("", "POST", path, "alt=sse", body=body), seen := Recorder())
    assert response.outcome is not None
    assert response.outcome.mode == "forward"
    assert isinstance(seen.events[-1], ReplyEnded)


def test_the_state_of_an_earlier_turn_is_seen_coming_back() -> None:
    with Stage([Say(thinking="First.", tool_calls=(ToolCall("1", "look", {}),)), _say()]) as stage:
        door = Door(stage)
        message = _ask(door, None, model=CLAUDE, reasoning_effort="high").json["choices"][0]["message"]
        del message["reasoning_content"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "a bird"}
        seen = Recorder()
        response = _ask(door, seen, message, result, model=CLAUDE, reasoning_effort="high")
    assert response.status == 200
    assert response.outcome is not None
    assert (response.outcome.restored, response.outcome.missed) == (1, 0)
    assert seen.turns == [RestoredTurn(1, "vault")]
    assert seen.order == ["asked", "restored", "target", "plan", "request", "events"]
    [decisions] = seen.plans
    assert [(decision.message, decision.action, decision.what) for decision in decisions] == [(1, "keep", "thought")]
    assert decisions[0].why
    assert decisions[0].source


def test_state_that_is_not_found_is_missed_also_where_the_request_fails() -> None:
    turn = {"role": "assistant", "content": "Something that the relay never saw."}
    with Stage(Fail(status=400, message="no")) as stage:
        response = _ask(Door(stage), seen := Recorder(), turn, {"role": "user", "content": "And?"})
    assert response.outcome is not None
    assert response.outcome.error is not None
    assert (response.outcome.attempts, response.outcome.restored, response.outcome.missed) == (1, 0, 1)
    assert seen.turns == [RestoredTurn(1, "")]


def test_every_attempt_counts() -> None:
    with Stage([Fail(status=503, retry_after=0), Fail(status=503, retry_after=0), _say()]) as stage:
        response = _ask(Door(stage), seen := Recorder())
    assert response.outcome is not None
    assert response.outcome.attempts == len(seen.requests) == len(seen.plans) == 3
    assert seen.requests[0] == seen.requests[2]


@pytest.mark.parametrize(
    "scenes", [[Refuse(), Say(text="Fine.")], [Say(text="Fine.")]], ids=["after a lost connection", "at once"]
)
def test_attempts_of_forwarded_requests_count(scenes: list[Scene]) -> None:
    with Stage(scenes) as stage:
        door = Door(stage, home="anthropic")
        response = _forward(door, seen := Recorder())
    assert response.outcome is not None
    assert response.outcome.attempts == len(seen.requests) == len(scenes)


def test_each_target_of_a_route_is_seen() -> None:
    with Stage([Fail(status=500), Say(text="other")]) as stage:
        door = Door(stage, settings=load(routes=ROUTES), options={"retries": 0})
        response = _ask(door, seen := Recorder(), model="best")
    assert response.outcome is not None
    assert response.outcome.attempts == 2
    assert [target[0] for target in seen.targets] == ["openai-compatible:big", "openai-compatible:small"]


def test_a_count_of_tokens_is_an_attempt() -> None:
    body = {"model": CLAUDE, "messages": [{"role": "user", "content": "?"}]}
    with Stage(_say()) as stage:
        request = RelayRequest("", "POST", "/v1/messages/count_tokens", body=msgspec.json.encode(body))
        response = Door(stage).send(request, seen := Recorder())
    assert response.status == 200
    assert response.outcome is not None
    assert response.outcome.attempts == len(seen.requests) == 1
    assert seen.requests[0].url.endswith("/count_tokens")


def test_requests_that_ask_no_provider_have_no_attempts() -> None:
    seen = Recorder()
    response = Door(None).send(RelayRequest("", "GET", "/v1/models"), seen)
    assert response.outcome is not None
    assert (response.outcome.attempts, seen.order) == (0, [])


@pytest.mark.parametrize("method", ["see_asked", "see_target", "see_restored", "see_plan", "see_request", "see_events"])
@pytest.mark.parametrize("model", [GEMINI, "deepseek:deepseek-v4-pro"])
def test_an_observer_that_raises_breaks_no_reply(method: str, model: str, caplog: pytest.LogCaptureFixture) -> None:
    failing = Recorder()

    def fail(*_: object) -> None:
        failing.order.append(method)
        raise ValueError("the SECRET of an observer")

    setattr(failing, method, fail)
    turn = {"role": "assistant", "content": "Something that the relay never saw."}
    with Stage(_say(piece=1)) as stage:
        door = Door(stage)
        response = _ask(door, failing, turn, {"role": "user", "content": "And?"}, model=model, stream=True)
        plain = _ask(door, None, turn, {"role": "user", "content": "And?"}, model=model, stream=True)
    if method != "see_plan" or model == GEMINI:
        assert failing.order[-1] == method, "it is not asked again"
        assert "the observer of a request failed: ValueError" in caplog.text
    assert "SECRET" not in caplog.text
    assert response.outcome is not None
    assert plain.outcome is not None
    assert response.outcome.attempts == plain.outcome.attempts == 1
    assert response.outcome.reply is not None
    assert response.outcome.reply.text == "Fine."
    assert response.body.count(b"data: ") == plain.body.count(b"data: ")
