"""The log of the stage: requests, and clients that leave early."""

from __future__ import annotations

import gc
import time

import pytest

from asides_stage import Hang, OpenStage, Raw, Say
from tests.testing.stage.http_client import as_http, body_of, post, raw_socket


def test_requests_are_logged_as_they_arrived(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    post(opened, "what?", headers={"Authorization": "Bearer secret"}, temperature=0.5)
    [received] = opened.requests
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.headers["authorization"] == "Bearer secret"
    assert received.json["temperature"] == 0.5
    assert received.served is not None
    assert received.served.prompt.messages[-1].text == "what?"
    assert "secret" not in repr(received)
    assert "what?" not in repr(received)


def test_a_client_that_leaves_early_is_counted(stage: OpenStage) -> None:
    opened = stage(Say("hi", pause=0.05), Hang(), Say("hi"))
    for _ in range(2):
        with raw_socket(opened, as_http(body_of(stream=True))):
            assert opened.wait_until(lambda: len(opened.requests) == 1 + opened.closed_early)
        assert opened.wait_until(lambda: len(opened.requests) == opened.closed_early)
    post(opened)
    assert opened.wait_until(lambda: opened.open_connections == 0)
    assert opened.closed_early == 2


def test_a_client_that_leaves_a_large_reply_unread_is_counted(stage: OpenStage) -> None:
    opened = stage(Raw(b"x" * 30_000_000))
    with raw_socket(opened, as_http(body_of())) as client:
        client.recv(1000)
    assert opened.wait_until(lambda: opened.closed_early == 1)


def test_no_task_outlives_its_client(stage: OpenStage, caplog: pytest.LogCaptureFixture) -> None:
    opened = stage(Hang(), Say("hi", pause=0.02))
    for _ in range(2):
        with raw_socket(opened, as_http(body_of(stream=True))):
            assert opened.wait_until(lambda: len(opened.requests) == 1 + opened.closed_early)
        assert opened.wait_until(lambda: opened.open_connections == 0)
    time.sleep(0.1)  # a task that went on would write in the meantime
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_client_that_read_everything_did_not_leave_early(stage: OpenStage) -> None:
    opened = stage(Raw(b"x" * 3_000_000, chunk=500_000), Say("hi"))
    for _ in range(20):
        post(opened, stream=True)
    assert opened.wait_until(lambda: opened.open_connections == 0)
    assert opened.closed_early == 0


def test_waiting_ends_after_the_timeout(stage: OpenStage) -> None:
    opened = stage()
    assert opened.wait_until(lambda: bool(opened.requests), timeout=0.05) is False
