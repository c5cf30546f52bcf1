"""The spans of a gateway's requests: parents, what is inside, how they end; and `asides serve` with a collector."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import asides
from asides.options import Options
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.request_spans import RequestSpans, find_route
from asides_gateway.run_gateway import start_gateway_telemetry
from asides_gateway.watcher import RequestWatch
from asides_stage import Fail, OpenStage, Say
from tests.gateway.page_client import page_gateway
from tests.gateway.request_records import make_record
from tests.gateway.served import KEY, ROUTE, serve, write_settings
from tests.telemetry.collector import Collector, collecting
from tests.telemetry.recorded import Recorded, get, identify, is_inside, recording

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
CANARY = "canary-of-a-prompt"
Body = dict[str, Any]


def _ask_chat(model: str = "anthropic:claude-sonnet-4-5", **more: Any) -> Body:
    return {"model": model, "messages": [{"role": "user", "content": CANARY}], **more}


def _ask_messages(**more: Any) -> Body:
    return {**_ask_chat("claude-sonnet-4-5", max_tokens=2048), **more}


@pytest.fixture
def recorded() -> Generator[Recorded]:
    with recording() as recorded:
        yield recorded


def _open(url: str, **settings: Any) -> Gateway:
    own = GatewaySettings(port=0, drain_seconds=0.5, **settings)
    return Gateway(own, load_settings(environ={}, files=[]), options=Options(base_url=url, api_key="sk-upstream"))


def _post(url: str, path: str, body: Body, **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _wait(is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- one request ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "mode"), [(CHAT, _ask_chat(), "translate"), (MESSAGES, _ask_messages(), "forward")]
)
@pytest.mark.parametrize("streams", [True, False])
def test_a_request_is_a_server_span_inside_the_clients_and_holds_the_providers(
    recorded: Recorded, stage: OpenStage, path: str, body: Body, mode: str, streams: bool
) -> None:
    opened = stage(Say(text="the answer", thinking="hm"))
    with _open(opened.url) as gateway:
        status, _ = _post(gateway.url, path, {**body, "stream": streams}, traceparent=TRACEPARENT, tracestate="a=b")
        assert status == 200
    server, client = recorded.find(f"POST {path}"), recorded.find("chat claude-sonnet-4-5")
    assert recorded.names == ["chat claude-sonnet-4-5", f"POST {path}"]
    assert (server.kind, client.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert server.parent is not None
    assert format(server.parent.span_id, "016x") == PARENT
    assert format(identify(server).trace_id, "032x") == TRACE
    assert is_inside(client, server)
    known = get(server)
    expected = {
        "http.request.method": "POST",
        "http.route": path,
        "url.path": path,
        "http.response.status_code": 200,
        "asides.mode": mode,
        "asides.end": "done",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.request.stream": streams,
        "gen_ai.response.finish_reasons": ("stop",),
    }
    assert expected.items() <= known.items()
    assert known["gen_ai.usage.output_tokens"] == get(client)["gen_ai.usage.output_tokens"]
    assert known["gen_ai.response.time_to_first_chunk"] <= known["asides.response.time_to_first_answer"]
    assert server.status.status_code is StatusCode.UNSET
    headers = opened.requests[0].headers
    assert headers["traceparent"].split("-")[1:3] == [TRACE, format(identify(client).span_id, "016x")]
    assert CANARY not in recorded.dump()


def test_a_provider_elsewhere_is_not_told_of_the_trace_nor_of_the_clients_baggage(stage: OpenStage) -> None:
    headers = {"traceparent": TRACEPARENT, "tracestate": "canary=1", "baggage": "user=canary", "x-b3-traceid": "canary"}
    opened = stage(Say(text="1"), Say(text="2"))
    with recording(propagate="none"), _open(opened.url) as gateway:
        assert _post(gateway.url, MESSAGES, _ask_messages(), **headers)[0] == 200
        assert _post(gateway.url, CHAT, _ask_chat(), **headers)[0] == 200
    for request in opened.requests:
        assert not {"traceparent", "tracestate", "baggage", "x-b3-traceid"} & request.headers.keys()
        assert "canary" not in str(request.headers)


def test_requests_of_one_connection_do_not_meet(recorded: Recorded, stage: OpenStage) -> None:
    opened = stage(*[Say(text="x")] * 3)
    with _open(opened.url) as gateway:
        parts = urlsplit(gateway.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        for headers in ({"traceparent": TRACEPARENT}, {}, {}):
            connection.request("POST", CHAT, json.dumps(_ask_chat()), {"content-type": "application/json", **headers})
            assert connection.getresponse().read()
        connection.close()
    servers = [span for span in recorded.spans if span.kind is SpanKind.SERVER]
    assert [span.parent is not None for span in servers] == [True, False, False]
    assert len({identify(span).trace_id for span in servers}) == 3


def test_the_span_is_current_until_the_request_ends_and_not_after(recorded: Recorded) -> None:
    """A connection is one task: what a request leaves there, the next one would find."""
    spans = RequestSpans(recorded.tracer, recorded.meter_provider.get_meter("test"))
    watch = RequestWatch((spans,), make_record(path=CHAT, dialect="openai_chat"))
    watch.begin()
    assert trace.get_current_span().get_span_context().is_valid
    watch.end("done", status=200)
    assert not trace.get_current_span().get_span_context().is_valid
    assert recorded.names == [f"POST {CHAT}"]


def test_an_error_of_the_provider_is_on_both_spans(recorded: Recorded, stage: OpenStage) -> None:
    opened = stage(Fail(500, message=CANARY), Fail(500, message=CANARY), Fail(500, message=CANARY))
    with _open(opened.url) as gateway:
        assert _post(gateway.url, CHAT, _ask_chat())[0] >= 500
    server, client = recorded.find(f"POST {CHAT}"), recorded.find("chat claude-sonnet-4-5")
    for span in (server, client):
        assert span.status.status_code is StatusCode.ERROR
        assert get(span)["error.type"]
    assert get(client)["http.request.resend_count"] == 2
    assert CANARY not in recorded.dump()


def test_a_refused_request_is_a_span_without_a_parent(recorded: Recorded, stage: OpenStage) -> None:
    with _open(stage().url, keys=(KEY,)) as gateway:
        status, _ = _post(
            gateway.url, CHAT, _ask_chat(), authorization="Bearer sk-canary-wrong", traceparent=TRACEPARENT
        )
        assert status == 401
        assert _post(gateway.url, "/v1/nothing/canary", {}, authorization=f"Bearer {KEY}")[0] == 404
    refused = recorded.find(f"POST {CHAT}")
    assert (get(refused)["http.response.status_code"], get(refused)["asides.end"]) == (401, "refused")
    assert refused.parent is None
    assert refused.status.status_code is StatusCode.UNSET
    for word in (KEY, "sk-canary-wrong"):
        assert word not in recorded.dump()


def test_a_client_that_leaves_ends_both_spans(recorded: Recorded, stage: OpenStage) -> None:
    opened = stage(Say(text="word " * 200, thinking="y", pause=0.05))
    with _open(opened.url) as gateway:
        parts = urlsplit(gateway.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
            body = json.dumps(_ask_chat(stream=True)).encode()
            lines = (f"POST {CHAT} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}", "", "")
            connection.sendall("\r\n".join(lines).encode() + body)
            connection.settimeout(20)
            assert connection.recv(1000)
        _wait(lambda: recorded.count_ended() == 2)
    assert get(recorded.find(f"POST {CHAT}"))["asides.end"] == "left"
    assert get(recorded.find(f"POST {CHAT}"))["asides.closed"] is True
    assert get(recorded.find("chat claude-sonnet-4-5"))["asides.closed"] is True


def test_a_turn_of_the_page_links_to_the_turn_before(
    recorded: Recorded, stage: OpenStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASIDES_STAGE", stage(Say(text="One."), Say(text="Two."), Say(text="Three.")).url)
    with page_gateway(tmp_path) as page:
        conversation, other = (page.create("anthropic:claude-opus-5-5") for _ in range(2))
        page.ask(conversation, "First?")
        page.ask(conversation, "Second?")
        page.ask(other, "Third?")
        _wait(lambda: recorded.count_ended() == 6)
    turns = [span for span in recorded.spans if span.kind is SpanKind.SERVER]
    first, second, third = turns
    assert "{conversation}" in first.name
    assert not first.links
    assert [link.context.span_id for link in second.links] == [identify(first).span_id]
    assert not third.links
    chats = [span for span in recorded.spans if span.kind is SpanKind.CLIENT]
    assert all(is_inside(chat, turn) for chat, turn in zip(chats, turns, strict=True))


def test_metrics_of_requests(recorded: Recorded, stage: OpenStage) -> None:
    with _open(stage(Say(text="x")).url) as gateway:
        _post(gateway.url, CHAT, _ask_chat())
        _post(gateway.url, f"/v1/canary-{'x' * 50}", {})
    metrics = recorded.list_metrics()
    durations = {
        dict(point.attributes)["http.response.status_code"]: point for point in metrics["http.server.request.duration"]
    }
    assert dict(durations[200].attributes)["http.route"] == CHAT
    assert durations[404].count == 1
    assert all(point.value == 0 for point in metrics["http.server.active_requests"])
    (reply,) = metrics["gen_ai.server.request.duration"]
    assert dict(reply.attributes)["gen_ai.provider.name"] == "anthropic"
    assert metrics["gen_ai.server.time_to_first_token"][0].count == 1


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (CHAT, CHAT),
        ("/v1beta/models/gemini-3-pro:generateContent", "/v1beta/models/{model}:generateContent"),
        ("/v1beta/models/a/b:streamGenerateContent", "/v1beta/models/{model}:streamGenerateContent"),
        ("/v1/models/claude-opus-5-5", "/v1/models/{model}"),
        ("/v1/models", "/v1/models"),
        ("/model/eu.anthropic.x/converse-stream", "/model/{model}/converse-stream"),
        ("/v1/responses/resp_123/input_items", "/v1/responses/{response}/input_items"),
        ("/v1/responses/input_tokens", "/v1/responses/input_tokens"),
        ("/ui/api/conversations/abc/turns", "/ui/api/conversations/{conversation}/turns"),
    ],
)
def test_a_route_holds_no_name_that_someone_chose(path: str, route: str) -> None:
    assert find_route(path) == route


def test_clients_cannot_add_series_without_end(recorded: Recorded, stage: OpenStage) -> None:
    with _open(stage().url) as gateway:
        parts = urlsplit(gateway.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        for number in range(130):
            connection.request("PROPFIND", f"/nothing/{number}")
            connection.getresponse().read()
        connection.close()
    points = recorded.list_metrics()["http.server.request.duration"]
    assert len({dict(point.attributes)["http.route"] for point in points}) == 101
    assert {dict(point.attributes)["http.request.method"] for point in points} == {"_OTHER"}


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Generator[Collector]:
    with collecting(tmp_path_factory.mktemp("collector")) as collector:
        yield collector


def _find_pair(spans: list[dict[str, Any]], trace_id: str) -> list[dict[str, Any]]:
    wanted = base64.b64encode(bytes.fromhex(trace_id)).decode()
    return [span for span in spans if span["traceId"] == wanted]


@pytest.mark.parametrize("workers", [1, 2])
def test_serve_sends_its_spans_and_flushes_them_at_its_end(
    collector: Collector, stage: OpenStage, tmp_path: Path, workers: int
) -> None:
    opened = stage(*[Say(text="canary-answer", thinking="canary-thinking")] * 8)
    write_settings(tmp_path, opened.url)
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "ASIDES_GATEWAY_KEY": KEY}
    traces = [os.urandom(16).hex() for _ in range(8)]
    with serve(tmp_path, "--workers", str(workers), env=env) as served:
        for each in traces:
            headers = {"authorization": f"Bearer {KEY}", "traceparent": f"00-{each}-{PARENT}-01"}
            assert _post(served.url, CHAT, {**_ask_chat(ROUTE), "max_tokens": 4000}, **headers)[0] == 200
        assert served.end() == 0
    spans = collector.list_spans()
    instances = set()
    for each in traces:
        client, server = sorted(_find_pair(spans, each), key=lambda span: span["name"], reverse=True)
        assert (server["name"], client["name"]) == (f"POST {CHAT}", "chat claude-sonnet-4-5")
        assert (server["kind"], client["kind"]) == ("SPAN_KIND_SERVER", "SPAN_KIND_CLIENT")
        assert client["parentSpanId"] == server["spanId"]
        assert server["resource"]["service.name"] == "asides-gateway"
        instances.add(server["resource"]["service.instance.id"])
        for word in (CANARY, "canary-answer", "canary-thinking", KEY, "sk-stage"):
            assert word not in f"{server}{client}"
    assert 1 <= len(instances) <= workers
    names = {metric["name"] for metric in collector.list_metrics()}
    assert {"http.server.request.duration", "gen_ai.client.token.usage", "gen_ai.server.request.duration"} <= names
    assert KEY not in collector.text


def test_a_collector_that_is_gone_is_told_once_and_slows_nothing(stage: OpenStage, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    opened = stage(*[Say(text="x")] * 20)
    write_settings(tmp_path, opened.url)
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with serve(tmp_path, env=env) as served:
        began = time.monotonic()
        for _ in range(20):
            assert _post(served.url, CHAT, {**_ask_chat(ROUTE), "max_tokens": 4000})[0] == 200
        assert time.monotonic() - began < 5
        served.wait_for_log("traces could not be sent")
        assert served.end(signal.SIGTERM) == 0
        assert served.log.count("traces could not be sent") == 1
        assert "Traceback" not in served.log


def test_the_settings_turn_it_off_and_its_content_on(
    collector: Collector, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    assert start_gateway_telemetry(GatewaySettings(telemetry=False)) is None
    telemetry = start_gateway_telemetry(GatewaySettings(telemetry_content=True, trace_hosts=("*.internal",)))
    assert telemetry is not None
    say = Say(text="shown-answer", thinking="hidden-thinking")
    try:
        with _open(stage(say).url) as gateway:
            assert _post(gateway.url, MESSAGES, _ask_messages(model="anthropic:claude-content"))[0] == 200
    finally:
        telemetry.close()
        asides.uninstrument()
    (chat,) = (span for span in collector.list_spans() if span["name"] == "chat claude-content")
    assert CANARY in chat["attributes"]["gen_ai.input.messages"]
    assert "shown-answer" in chat["attributes"]["gen_ai.output.messages"]
    assert "hidden-thinking" not in collector.text
