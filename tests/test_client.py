"""The sync client: connections, threads, reading a stream. Tests of both clients are in requirements."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import asides
from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.transports.protocols import Response
from asides_stage.stage import Fail, OpenStage, Say
from tests.decoding import stream, whole
from tests.loopback import saying, serving, whole_response
from tests.shells import KEY, MODEL


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client(api_key=KEY) as client:
        yield client


# --- connections --------------------------------------------------------------------------------------------------


def test_connections_are_used_again(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan"))
    for _ in range(3):
        client.ask(MODEL, "?", base_url=open_stage.url)
        with client.stream(MODEL, "?", base_url=open_stage.url) as events:
            list(events)
    assert (len(open_stage.requests), open_stage.connections) == (6, 1)


def test_a_refusal_costs_no_connection(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=503, headers={"Retry-After-Ms": "1"}), Fail(status=400), Say(text="42"))
    with pytest.raises(asides.BadRequest):
        client.ask(MODEL, "?", base_url=open_stage.url)
    assert client.ask(MODEL, "?", base_url=open_stage.url).text == "42"
    assert (len(open_stage.requests), open_stage.connections) == (3, 1)


def test_an_idle_connection_that_the_server_closed_is_replaced(client: asides.Client) -> None:
    with serving(saying(whole_response(whole({"content": "42"})), then=False)) as server:
        for _ in range(3):
            assert client.ask(MODEL, "?", base_url=server.url).text == "42"
            time.sleep(0.05)
        assert server.connections == 3


def test_closing_a_client_closes_its_connections_and_it_can_still_be_used(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    client = asides.Client(base_url=open_stage.url)
    client.ask(MODEL, "?")
    client.close()
    assert open_stage.wait_until(lambda: open_stage.open_connections == 0)
    assert client.ask(MODEL, "?").text == "42"
    client.close()
    client.close()


def test_a_stream_that_nobody_holds_closes_its_connection(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="word " * 200, piece=5, pause=0.01))
    events = client.stream(MODEL, "?", base_url=open_stage.url)
    next(events)
    del events
    assert open_stage.wait_until(lambda: open_stage.open_connections == 0)


def test_eight_threads_share_a_client(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(lambda request: Say(text=request.prompt.messages[-1].text, thinking="plan", pause=0.002))

    def ask(number: int) -> str:
        with client.stream(MODEL, f"question {number}", base_url=open_stage.url) as events:
            return "".join(event.text for event in events if isinstance(event, asides.TextDelta))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(40)))
    assert answers == [f"question {number}" for number in range(40)]
    assert open_stage.connections <= 8


def test_closing_one_stream_does_not_touch_the_connection_of_another(client: asides.Client, stage: OpenStage) -> None:
    """A body that came whole has given its connection back, and somebody else may be using it by then."""
    open_stage = stage(Say(text="42"), Say(text="word " * 50, piece=5, pause=0.005))
    first = client.stream(MODEL, "?", base_url=open_stage.url, stream=False)
    list(first)
    with client.stream(MODEL, "?", base_url=open_stage.url) as second:
        next(second)
        first.close()
        assert second.reply.text == "word " * 50
    assert open_stage.connections == 1


# --- reading a stream ---------------------------------------------------------------------------------------------


def test_ask_takes_a_whole_answer_and_stream_a_stream(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan", id="chatcmpl-1"))
    asked = client.ask(MODEL, "?", base_url=open_stage.url)
    with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        streamed = events.reply
    assert [bool(request.json.get("stream")) for request in open_stage.requests] == [False, True]
    assert (asked.streamed, streamed.streamed) == (False, True)
    assert asked == streamed


@pytest.mark.parametrize("wanted", [True, False])
def test_the_stream_option_wins_over_the_verb(client: asides.Client, wanted: bool, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    assert client.ask(MODEL, "?", base_url=open_stage.url, stream=wanted).streamed is wanted
    with client.stream(MODEL, "?", base_url=open_stage.url, stream=wanted) as events:
        assert asides.fold(events) == events.reply
        assert events.reply.streamed is wanted


def test_a_stream_can_be_read_in_pieces_and_in_any_way(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="one two three four five", thinking="plan", piece=3))
    with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        seen = [next(events)]
        for event in events:
            seen.append(event)
            if len(seen) == 3:
                break
        seen += events
        assert asides.fold(seen) == events.reply
        assert list(events) == []
        assert events.partial == events.reply


def test_the_reply_reads_what_was_not_read(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan"))
    with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        next(events)
        assert events.reply.text == "42"
    assert events.reply.text == "42"


def test_batches_are_the_same_events_by_the_list(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="one two three", thinking="plan", piece=2))
    with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        assert asides.fold(event for batch in events.batches() for event in batch) == events.reply


def test_nothing_is_sent_before_events_are_asked_for(client: asides.Client, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    with client.stream(MODEL, "?", base_url=open_stage.url):
        pass
    assert open_stage.connections == 0


def test_a_failed_stream_raises_its_error_again(client: asides.Client, stage: OpenStage) -> None:
    with client.stream(MODEL, "?", base_url=stage(Fail(status=401)).url) as events:
        with pytest.raises(asides.AuthError) as first:
            list(events)
        with pytest.raises(asides.AuthError) as second:
            _ = events.reply
        assert first.value is second.value
    assert repr(events) == "Stream(openai-compatible:made-up, failed)"


# --- without a client, with a transport ---------------------------------------------------------------------------


def test_ask_and_stream_need_no_client(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    assert asides.ask(MODEL, "?", base_url=open_stage.url).text == "42"
    with asides.stream(MODEL, "?", base_url=open_stage.url) as events:
        assert events.reply.text == "42"
    assert open_stage.connections == 1


class Recorded:
    """A transport of one's own: no network, recorded bytes."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)
        self.requests: list[HttpRequest] = []
        self.timeouts: list[asides.Timeout] = []
        self.closed = 0

    def open(self, request: HttpRequest, timeout: asides.Timeout) -> Response:
        self.requests.append(request)
        self.timeouts.append(timeout)
        return RecordedResponse(self.bodies.pop(0))

    def close(self) -> None:
        self.closed += 1


class RecordedResponse:
    def __init__(self, body: bytes) -> None:
        self.pieces = [body[:7], body[7:], b""]

    def head(self) -> Head:
        return Head(200, {})

    def read(self, patience: float | None = None) -> bytes:
        return self.pieces.pop(0)

    def close(self) -> None:
        pass


def test_a_client_takes_any_transport() -> None:
    transport = Recorded(whole({"content": "42"}), stream({"content": "43"}))
    with asides.Client(transport=transport, api_key=KEY, base_url="http://nowhere.example/v1", timeout=7) as client:
        assert client.ask(MODEL, "?").text == "42"
        assert client.ask(MODEL, "?").text == "43"
    assert transport.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert transport.timeouts == [asides.Timeout(connect=7, first_byte=7, idle=7)] * 2
    assert transport.closed == 1


def test_closing_while_other_threads_start_is_safe(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    client = asides.Client(base_url=open_stage.url)
    stop = threading.Event()

    def close_again_and_again() -> None:
        while not stop.is_set():
            client.close()

    closing = threading.Thread(target=close_again_and_again)
    closing.start()
    try:
        assert [client.ask(MODEL, "?").text for _ in range(20)] == ["42"] * 20
    finally:
        stop.set()
        closing.join()
        client.close()


@pytest.mark.parametrize(("kind", "name"), [(asides.Client, "Client"), (asides.AsyncClient, "AsyncClient")])
def test_the_repr_names_the_options_of_a_client_without_their_values(kind: Any, name: str) -> None:
    assert repr(kind()) == f"{name}()"
    assert repr(kind(base_url="http://127.0.0.1/v1", api_key="sk-canary")) == f"{name}(base_url=…, api_key=…)"
