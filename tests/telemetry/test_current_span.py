"""Which servers are told of a trace, and which span is the current one."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach

import asides
from asides.providers.find import find_target
from asides.telemetry.current_span import CurrentSpan, Propagation
from asides_stage.stage import Stage
from tests.telemetry.recorded import Recorded, identify, recording


def _reaches(url: str, propagate: Any = "loopback") -> bool:
    return Propagation(propagate).reaches(find_target("openai-compatible:m", base_url=url))


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:80", "127.9.9.9"])
def test_servers_of_this_machine_are_told_by_default(host: str) -> None:
    assert _reaches(f"http://{host}/v1")
    assert not _reaches(f"http://{host}/v1", "none")


@pytest.mark.parametrize("host", ["api.example.com", "localhost.example.com", "10.0.0.1", "127.0.0.1.example.com"])
def test_others_are_told_only_where_the_user_says_so(host: str) -> None:
    assert not _reaches(f"https://{host}/v1")
    assert not _reaches(f"https://{host}/v1", ["*.internal"])
    assert _reaches(f"https://{host}/v1", "all")
    assert _reaches(f"https://{host}/v1", [host])
    assert _reaches("https://llm.internal/v1", ["*.internal"])


def test_the_makers_are_not_told() -> None:
    for model in ("openai:gpt-5.5", "anthropic:claude-sonnet-4-5", "google:gemini-3-pro"):
        assert not Propagation("loopback").reaches(find_target(model))


@pytest.mark.parametrize("wrong", ["everyone", ["https://host/"], [""], [3]])
def test_what_names_no_host_is_refused(wrong: Any) -> None:
    with pytest.raises(asides.ConfigError, match="propagate"):
        asides.instrument(propagate=wrong)


@pytest.mark.parametrize(("propagate", "is_told"), [("loopback", True), ("none", False)])
def test_a_request_carries_the_span_and_no_baggage(propagate: Any, is_told: bool) -> None:
    token = attach(baggage.set_baggage("user", "canary"))
    try:
        with recording(propagate=propagate) as recorded, Stage() as stage:
            asides.ask("openai-compatible:m", "?", base_url=stage.url, api_key="k")
            headers = stage.requests[0].headers
    finally:
        detach(token)
    assert ("traceparent" in headers) == is_told
    assert "baggage" not in headers
    if is_told:
        assert format(_find_chat(recorded), "016x") in headers["traceparent"]


def _find_chat(recorded: Recorded) -> int:
    return identify(recorded.find("chat m")).span_id


def test_spans_that_are_entered_inside_each_other_leave_in_any_order() -> None:
    with recording() as recorded:
        outer, inner = (recorded.tracer.start_span(name) for name in ("outer", "inner"))
        first, second = (CurrentSpan(trace.set_span_in_context(span)) for span in (outer, inner))
        first.enter()
        second.enter()
        first.leave()
        assert trace.get_current_span() is inner, "what was entered inside keeps its place"
        second.leave()
        assert trace.get_current_span() is outer
        first.leave()
        assert not trace.get_current_span().get_span_context().is_valid
        outer.end()
        inner.end()


def test_leaving_elsewhere_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with recording() as recorded:
        span = recorded.tracer.start_span("elsewhere")
        current = CurrentSpan(trace.set_span_in_context(span))
        contextvars.copy_context().run(current.enter)
        current.leave()
        current.leave()
        span.end()
    assert not caplog.records
