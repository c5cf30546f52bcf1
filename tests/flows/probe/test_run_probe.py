"""The flow of the probe: servers that hang, redirect, babble or want a key; limits; secrets; and arbitrary bytes."""

from __future__ import annotations

import json
import re
import socket
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.dialects import find_dialect
from asides.flows.probe.plan_probe import build_probe
from asides.flows.probe.probe_report import ProbeReport
from asides.flows.probe.run_probe import Probe
from asides.flows.steps import Head, Open, Read
from asides.providers.provider import Target
from asides.providers.user_rows import read_rows
from asides.values.errors import ConnectionLost
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage.stage import Fail, OpenStage, Say
from tests.flows.probe.costumes import ANSWER, Costume, in_field, make_chat, refuse, wearing
from tests.flows.probe.wardrobe import COSTUMES, ONE
from tests.loopback import ReceivedRequest, saying, serving, whole_response

TOGGLE = next(costume for costume in COSTUMES if costume.name == "toggle")


def find(report: ProbeReport, topic: str) -> asides.ProbeFinding:
    finding = report.find(topic)
    assert finding is not None
    return finding


# --- servers that are none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (whole_response(b"<html><h1>It works!</h1></html>", "text/html"), "HTML"),
        (whole_response(b"", status="302 Found", Location="https://elsewhere.example/v1?token=t"), "redirects"),
        (whole_response(b"\x00\xff\xfe garbage", "application/octet-stream"), "no dialect"),
        (whole_response(b'{"hello": "world"}'), "no dialect"),
        (whole_response(b"[]"), "no dialect"),
        (whole_response(b"", status="204 No Content"), "empty"),
        (whole_response(b'{"error": {"message": "boom"}}', status="500 Oops"), "boom"),
        (whole_response(b"<html>nginx</html>", "text/html", status="502 Bad Gateway"), "502"),
    ],
)
def test_a_server_that_is_none_gives_a_clear_line_and_no_row(response: bytes, words: str) -> None:
    with serving(saying(response)) as server:
        report = asides.probe(server.url)
    assert report.row is None
    assert report.state == "nothing"
    assert words in find(report, "endpoints").text
    assert "no" in report.problem
    assert "token=t" not in report.to_text()


def test_a_body_without_an_end_is_cut() -> None:
    sent = 0

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(OSError):  # the probe leaves
            for _piece in range(4096):
                connection.sendall(b"x" * 65536)
                sent += 65536
        return False

    with serving(answer) as server:
        report = asides.probe(server.url, max_requests=2)
    assert report.row is None
    # What the sockets hold is sent, too.
    assert sent < 64 * 1024 * 1024
    assert "longer than 1048576 bytes" in report.to_text()


def test_a_server_that_hangs_ends_the_probe_after_its_time() -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.recv(1)
        return False

    with serving(answer) as server:
        began = time.monotonic()
        report = asides.probe(server.url, timeout=0.3)
        assert time.monotonic() - began < 5
    assert report.state == "unreachable"
    assert report.requests == 2


def test_a_server_that_drips_does_not_outlast_its_time() -> None:
    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _line in range(200):
            connection.sendall(b": still here\n\n")
            time.sleep(0.05)
        return False

    with serving(answer) as server:
        began = time.monotonic()
        report = asides.probe(server.url, timeout=0.4)
        assert time.monotonic() - began < 6
    assert report.row is None


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    report = asides.probe(f"http://127.0.0.1:{port}")
    assert (report.state, report.row) == ("unreachable", None)
    assert re.search(r"\. [A-Z]", report.problem)


def test_a_server_that_breaks_off_later_leaves_what_is_known() -> None:
    count = 0

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        nonlocal count
        count += 1
        if count > 4:
            return False
        content = make_chat(in_field("reasoning"))(
            TOGGLE, "", json.loads(request.body or b'{"messages":[{"role":1}]}')
        )[1]
        connection.sendall(whole_response(content))
        return True

    with serving(answer) as server:
        report = asides.probe(server.url)
    assert report.row is not None
    assert report.row.quirks.thinking_in == ("reasoning",)
    assert find(report, "replay").value is None


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_server_that_wants_a_key_says_so() -> None:
    with wearing(TOGGLE._replace(key_header="x-own-key")) as server:
        report = asides.probe(server.url)
    assert (report.state, report.row) == ("locked", None)
    assert "api_key=" in report.problem


def test_no_key_is_in_anything_that_the_probe_shows() -> None:
    """Not even when the server sends it back, in a header's place, in an error, or as the name of a field."""
    secret = "plain-and-odd-secret-4711"
    steps: list[asides.ProbeStep] = []

    def check(body: dict[str, Any]) -> None:
        if "reasoning_effort" in body:
            raise refuse(400, f"Your key {secret} may not use 'reasoning_effort'.")

    costume = Costume(
        "echo", make_chat(in_field(f"reasoning_{secret}")), models={"data": [{"id": f"m-{secret}"}]}, check=check
    )
    with wearing(costume) as server:
        report = asides.probe(
            f"http://127.0.0.1:{server.port}/v1?token={secret}", api_key=secret, on_progress=steps.append
        )
        assert any(secret in str(request.headers) for request in server.heard)
    assert report.row is not None
    shown = [report.to_text(), json.dumps(report.to_dict()), repr(report), *map(str, steps)]
    assert not any(secret in text for text in shown)
    assert report.row.query == (("token", "$PROBED_TOKEN"),)


def test_a_key_of_another_provider_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-strangers")
    with wearing(TOGGLE) as server:
        asides.probe(server.url, extent="quick")
        assert all("authorization" not in request.headers for request in server.heard)


def test_the_variable_of_the_key_is_read_and_named_in_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "k-123")
    with wearing(TOGGLE) as server:
        report = asides.probe(server.url, key_env="ACME_KEY", extent="quick")
        assert {request.headers["authorization"] for request in server.heard} == {"Bearer k-123"}
    assert report.row is not None
    assert (report.row.key_env, report.row.key) == (("ACME_KEY",), "required")


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", range(1, 13))
def test_the_probe_may_end_after_any_request(most: int) -> None:
    with wearing(TOGGLE) as server:
        report = asides.probe(server.url, max_requests=most)
        assert len(server.heard) == report.requests == most
    assert (report.row is None) == (most == 1)
    assert not report.complete
    assert "stopped after" in report.problem


def test_a_thorough_probe_looks_everywhere_and_says_so() -> None:
    with wearing(TOGGLE) as server:
        report = asides.probe(server.url, extent="thorough")
    assert report.complete
    assert report.requests <= 40
    dialects = {endpoint["dialect"] for endpoint in find(report, "endpoints").value.values()}
    assert dialects == {"openai_chat", "openai_responses", "anthropic", "ollama", "gemini", "cohere", "bedrock"}
    assert find(report, "replay").value == {"kept": True, "left_out": True, "altered": True, "required": False}
    assert "a developer message: accepted" in find(report, "settings").text


def test_a_busy_server_is_asked_again(stage: OpenStage) -> None:
    opened = stage(Fail(status=429, retry_after=0), Say(thinking="plan", text=ANSWER))
    report = asides.probe(opened.url, model="m", extent="quick")
    assert report.row is not None
    assert report.row.models[0].default == "on"


def test_a_reply_that_ran_out_of_tokens_is_asked_for_with_more() -> None:
    def answer(costume: Costume, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        kind, content = make_chat(in_field("reasoning"))(costume, path, body)
        if body["max_tokens"] <= 512:
            content = content.replace(ANSWER.encode(), b"").replace(
                b'"finish_reason": "stop"', b'"finish_reason": "length"'
            )
        return kind, content

    with wearing(Costume("long", answer, models=ONE)) as server:
        asides.probe(server.url, extent="quick")
        limits = [json.loads(request.body)["max_tokens"] for request in server.heard if request.body]
    assert limits[:2] == [512, 2048]
    assert set(limits[1:]) == {2048}


# --- the stage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_the_stage_in_every_field(stage: OpenStage, field: str) -> None:
    opened = stage(Say(text=ANSWER, thinking="a plan", thinking_field=field, usage=Usage(3, 9, thinking=4, total=12)))
    report = asides.probe(opened.url)
    assert report.row is not None
    assert report.row.quirks.thinking_in == (field,)
    assert find(report, "usage").value == {"counts_thinking": True, "output_excludes_thinking": False}


@pytest.mark.parametrize("dialect", ["anthropic", "openai_responses", "ollama", "gemini", "cohere", "bedrock"])
def test_the_stage_in_every_dialect(stage: OpenStage, dialect: str) -> None:
    opened = stage()
    report = asides.probe(
        opened.url.removesuffix("/v1"), dialect=dialect, model="claude-sonnet-4-5" if dialect == "anthropic" else None
    )
    assert report.dialect == dialect
    assert report.row is not None
    with asides.Client(providers=[report.row]) as client:
        reply = client.ask(f"{report.row.name}:{report.model}", "What is 6 * 7?")
    assert "42" in reply.text


def test_tools_and_calls_of_the_stage(stage: OpenStage) -> None:
    call = ToolCall("call_1", "get_weather", {"location": "Paris"})
    opened = stage(
        lambda request: (
            Say(thinking="plan", tool_calls=(call,)) if request.prompt.tools else Say(thinking="p", text="x")
        )
    )
    assert find(asides.probe(opened.url), "tools").value == {"called": True}


# --- arbitrary servers, without sockets -------------------------------------------------------------------------------


def drive(answer: Callable[[int], tuple[int, dict[str, str], bytes] | None], **options: Any) -> ProbeReport:
    """Run the flow with these answers; None is a connection that is lost."""
    probe = Probe(build_probe("http://127.0.0.1:9/v1", options))  # type: ignore[arg-type]
    flow = probe.steps()
    value: Any = None
    error: Exception | None = None
    rest: list[bytes] = []
    number = 0
    while True:
        try:
            step = flow.send(value) if error is None else flow.throw(error)
        except StopIteration as end:
            report = end.value
            break
        value = error = None
        if isinstance(step, Open):
            number += 1
            given = answer(number)
            if given is None:
                error = ConnectionLost("lost.")
            else:
                status, headers, body = given
                value, rest = Head(status, headers, 1.8e9), [body[at : at + 999] for at in range(0, len(body), 999)]
        elif isinstance(step, Read):
            value = rest.pop(0) if rest else b""
    assert isinstance(report, ProbeReport)
    return report


_WORDS = st.sampled_from(
    "reasoning reasoning_content content role thinking message delta choices text error id tool_calls function name"
    " arguments usage index finish_reason type data models code class reasoning_details signature output candidates"
    " parts".split()
) | st.sampled_from(["a b", "", "\x1b[31m", "inner voice"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.sampled_from(["<think>a b</think>c", "stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(max_size=12), inner, max_size=5),
    max_leaves=12,
)


def _wrap(message: Any, stream: bool) -> bytes:
    if not stream:
        return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    chunk = {"choices": [{"index": 0, "delta": message}]}
    return f"data: {json.dumps(chunk)}\n\ndata: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()


_MESSAGES = st.dictionaries(_WORDS | st.text(max_size=12), _JSON, max_size=5)
_BODIES = (
    st.binary(max_size=200)
    | _JSON.map(lambda value: json.dumps(value).encode())
    | st.builds(_wrap, _MESSAGES, st.booleans())
    | st.builds(lambda text, name: _wrap({"content": text, name: text}, False), st.text(max_size=60), _WORDS)
)
_ANSWERS = st.lists(
    st.none()
    | st.tuples(
        st.sampled_from([200, 200, 200, 200, 201, 301, 400, 401, 404, 422, 429, 500, 503]),
        st.dictionaries(st.sampled_from(["location", "retry-after", "content-type"]), st.text(max_size=20), max_size=2),
        _BODIES,
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(answers=_ANSWERS, extent=st.sampled_from(["quick", "usual", "thorough"]))
def test_a_probe_never_raises_whatever_a_server_sends(answers: list[Any], extent: str) -> None:
    report = drive(lambda number: answers[number % len(answers)], extent=extent)
    text = report.to_text()
    assert "\x1b" not in text
    json.dumps(report.to_dict())
    if report.row is not None:
        _check_row(report)


def _check_row(report: ProbeReport) -> None:
    """The row of any server can be pasted, and a decoder can be made of it."""
    assert report.row is not None
    (row,) = read_rows(tomllib.loads(report.to_text())["providers"], "asides.toml", ())
    assert row == report.row
    namespace: dict[str, Any] = {"asides": asides}
    assert eval(report.python, namespace) == row
    decoder = find_dialect(row.dialect).decoder(Target(row, "m", row.base_url, row.rule("m")))
    decoder.feed(_wrap({"content": "x"}, False))
    decoder.finish()


def test_a_body_of_every_kind_is_decoded_alike_by_both_halves_of_the_test() -> None:
    """The property above would pass on nothing but refusals: this shows that its bodies reach the row."""
    report = drive(
        lambda number: (200, {}, _wrap({"content": "132", "odd name": "some thought here"}, number % 2 == 0))
    )
    assert report.row is not None
    assert report.row.quirks.thinking_in == ("odd name",)
    assert msgspec.structs.asdict(report.row.models[0])["thinking"] == "always"
