"""Signs of life: what each dialect has for them, early heads, and clients that count events alone."""

from __future__ import annotations

from typing import Any

import pytest

from asides.flows.steps import Emit, Flow, Head, Open, Read
from asides.relay.endpoints import find_reply_form
from asides.relay.pings import Pings
from asides.relay.relay import RelayExchange
from asides.relay.relay_config import Caller
from asides.relay.relay_request import ResponseStart
from asides.values.messages import Prompt, user
from tests.relay.relaying import CALLERS, Door, Response, read_response, write_request

MODEL = "deepseek:deepseek-v4-pro"
CODEX = {"originator": "codex_exec", "user-agent": "codex_exec/0.166.0 (Debian 12)"}
FIRST = b'data: {"id":"x","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
LAST = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"42"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def begin(
    dialect: str, *, stream: bool = True, headers: dict[str, str] | None = None
) -> tuple[RelayExchange, Flow[Any]]:
    """A request that waits for the head of its provider's response."""
    request = write_request(dialect, MODEL, Prompt((user("?"),), stream=stream))
    request.headers.update(headers or {})
    door = Door(None, store=False, options={"base_url": "http://127.0.0.1:1/v1", "api_key": "k"})
    exchange = door.relay.begin(request)
    flow = exchange.steps()
    drive(flow, until=Open)
    return exchange, flow


def drive(flow: Flow[Any], value: Any = None, *, until: type) -> tuple[Any, list[Any]]:
    """Carry out steps until one of this kind; also what was emitted on the way."""
    emitted: list[Any] = []
    while True:
        try:
            step = flow.send(value)
        except StopIteration as end:
            return end.value, emitted
        value = None
        if isinstance(step, Emit):
            emitted += step.events
        elif isinstance(step, (until, Read)):
            return step, emitted
        elif type(step).__name__ == "Now":
            value = 0.0


@pytest.mark.parametrize("dialect", CALLERS)
def test_an_early_head_leaves_once_and_the_reply_follows_without_one(dialect: str) -> None:
    exchange, flow = begin(dialect)
    early = exchange.open_early()
    if dialect == "bedrock":  # it has no sign of life
        assert early is None
        assert exchange.write_ping(0.0) == b""
        return
    assert early is not None
    assert early.status == 200
    assert exchange.open_early() is None
    before = exchange.write_ping(1_700_000_000.0)
    assert before
    _, emitted = drive(flow, Head(200, {"content-type": "text/event-stream"}, 1_700_000_001.0), until=Read)
    _, more = drive(flow, FIRST, until=Read)
    within = exchange.write_ping(1_700_000_002.0)
    assert within
    outcome, last = drive(flow, LAST, until=Read)
    pieces = [*emitted, *more, within, *last]
    if isinstance(outcome, Read):
        outcome, rest = drive(flow, b"", until=Read)
        pieces += rest
    assert not any(isinstance(piece, ResponseStart) for piece in pieces)
    reply = read_response(dialect, MODEL, Response(200, early.headers, before + b"".join(pieces), None))
    assert reply.text == "42"
    assert exchange.write_ping(1_700_000_003.0) == b"", "nothing follows the end"


@pytest.mark.parametrize("dialect", CALLERS)
def test_a_whole_reply_has_no_early_head(dialect: str) -> None:
    exchange, _ = begin(dialect, stream=False)
    assert exchange.open_early() is None
    assert exchange.write_ping(0.0) == b""


def test_what_is_not_begun_has_no_early_head() -> None:
    door = Door(None, store=False)
    exchange = door.relay.begin(write_request("anthropic", MODEL, Prompt((user("?"),), stream=True)))
    assert exchange.open_early() is None
    assert exchange.write_ping(0.0) == b""


def test_a_client_that_takes_a_comment_for_silence_gets_an_event() -> None:
    exchange, _ = begin("openai_responses", headers=CODEX)
    assert exchange.open_early() is not None
    ping = exchange.write_ping(0.0)
    assert ping.startswith(b"event: ")
    assert b'"type":"keepalive"' in ping
    others, _ = begin("openai_responses", headers={"user-agent": "OpenAI/Python 2.8"})
    assert others.write_ping(0.0).startswith(b":")
    anthropic, _ = begin("anthropic", headers=CODEX)  # its own form counts as an event
    assert anthropic.write_ping(0.0).startswith(b"event: ping\n")


def test_a_line_of_ollama_has_the_time() -> None:
    exchange, _ = begin("ollama")
    assert b'"created_at":"2023-11-14T22:13:20Z"' in exchange.write_ping(1_700_000_000.0)


def test_a_dialect_of_others_may_have_no_sign_of_life() -> None:
    class Writer:
        content_type = "text/plain"

    caller = Caller.__new__(Caller)
    caller.started = caller.opened_early = False
    pings = Pings(caller, lambda **_: Writer(), "any")  # type: ignore[arg-type]
    assert pings.open_early() is None
    assert find_reply_form("ollama", "/api/generate", {})[1](model="m", stream=True, include_usage=False).write_ping()  # type: ignore[attr-defined]
