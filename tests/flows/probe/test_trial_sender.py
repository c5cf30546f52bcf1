"""Sending: what is counted, what is shown, and what a busy or broken server leads to. Over sockets: test_run_probe."""

from __future__ import annotations

from typing import Any

import pytest

from asides.flows.probe.plan_probe import build_probe
from asides.flows.probe.probe_report import ProbeStep
from asides.flows.probe.trial_sender import SpentError, StoppedError, TrialSender
from asides.flows.probe.trials import Setup, build_question
from asides.flows.steps import Allow, Emit, Head, Open, Read, Sleep
from asides.values.errors import ConnectionLost

QUESTION = build_question(Setup("openai_chat", "http://127.0.0.1:9/v1", "m"))


def make_sender(**options: Any) -> TrialSender:
    return TrialSender(build_probe("http://127.0.0.1:9", options))  # type: ignore[arg-type]


def test_each_request_is_emitted_before_it_is_sent_and_limited_in_time() -> None:
    flow = make_sender(timeout=7).send("a purpose", QUESTION, "openai_chat")
    begun = next(flow)
    assert isinstance(begun, Emit)
    (step,) = begun.events
    assert isinstance(step, ProbeStep)
    assert (step.number, step.purpose, step.method, step.outcome) == (1, "a purpose", "POST", None)
    assert step.body["model"] == "m"
    assert flow.send(None) == Allow(7.0)
    assert flow.send(None) == Open(QUESTION)
    assert flow.send(Head(200, {})) == Read()
    ended = flow.send(b"")
    assert isinstance(ended, Emit)
    assert ended.events[0].outcome.startswith("the body is empty")


def test_a_busy_server_is_asked_once_more_after_its_time() -> None:
    flow = make_sender().send("a purpose", QUESTION, "openai_chat")
    for value in (None, None, None, Head(429, {"retry-after": "3"}), b""):
        step = flow.send(value)
    assert isinstance(step, Emit)
    assert flow.send(None) == Sleep(3.0)
    again = flow.send(None)
    assert isinstance(again, Emit)
    assert again.events[0].purpose == "a purpose, again"


def test_no_request_is_sent_beyond_the_limit() -> None:
    sender = make_sender(max_requests=1)
    first = sender.send("a purpose", QUESTION, "openai_chat")
    next(first)
    with pytest.raises(SpentError):
        next(sender.send("another", QUESTION, "openai_chat"))


def test_two_failures_at_the_start_end_the_probe() -> None:
    sender = make_sender()
    for number in (1, 2):
        flow = sender.send("a purpose", QUESTION, "openai_chat")
        for value in (None, None, None):
            flow.send(value)
        assert isinstance(flow.throw(ConnectionLost("gone.")), Emit)
        with pytest.raises(StopIteration if number == 1 else StoppedError):
            next(flow)
    assert sender.report.state == "unreachable"


def test_nothing_is_known_before_an_endpoint_answers() -> None:
    sender = make_sender()
    with pytest.raises(StoppedError):
        _ = sender.setup
    assert (sender.report.row, sender.report.requests, sender.requests_left) == (None, 0, 12)


def test_a_given_limit_counts_requests_that_find_nothing() -> None:
    for options, left in (({}, 12), ({"max_requests": 12}, 9)):
        sender = make_sender(**options)
        sender._sent = sender.absent = 3
        assert sender.requests_left == left
