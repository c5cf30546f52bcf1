"""One request and its body: attempts, errors of the reader, bodies without an end. Over sockets: test_model_lists."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest
from asides.flows import fetch_body as module
from asides.flows.call import Policy
from asides.flows.fetch_body import fetch_body
from asides.flows.steps import Done, Head, Open, Read, Sleep, advance
from asides.providers.find import find_target
from asides.values.errors import ConnectionLost, Overloaded, ProtocolError

TARGET = find_target("openai:gpt-5.4")
REQUEST = HttpRequest("POST", "http://h/v1", {}, b"{}")


def run(*answers: Any, read: Any = lambda _, body: body) -> tuple[Any, int]:
    """Carry out the flow: each answer is a status with the pieces of its body, or an error. Returns what it read, and
    how many requests it took.
    """
    dialect = find_dialect(TARGET.dialect)
    flow = fetch_body(
        REQUEST, dialect, TARGET, read, what="list", policy=Policy(retries=1), key=None, jitter=lambda: 0.0
    )
    waiting, pieces, opened = list(answers), [], 0
    step = advance(flow)
    while not isinstance(step, Done):
        if isinstance(step, Open):
            opened += 1
            answer = waiting.pop(0)
            if isinstance(answer, Exception):
                step = advance(flow, None, answer)
                continue
            status, *pieces = answer
            step = advance(flow, Head(status, {}))
        elif isinstance(step, Read):
            step = advance(flow, pieces.pop(0) if pieces else b"")
        else:
            assert isinstance(step, Sleep)
            step = advance(flow)
    return step.result, opened


def test_a_body_comes_in_pieces() -> None:
    assert run((200, b"on", b"e")) == (b"one", 1)


@pytest.mark.parametrize("first", [ConnectionLost("lost"), (503, b"{}")], ids=["lost", "busy"])
def test_a_failed_attempt_is_made_again(first: Any) -> None:
    assert run(first, (200, b"one")) == (b"one", 2)


def test_an_error_inside_a_good_response_counts_as_one_of_the_server() -> None:
    found: list[bytes] = []

    def read(_: Head, body: bytes) -> bytes:
        found.append(body)
        if len(found) == 1:
            raise Overloaded("busy", status=503)
        return body

    assert run((200, b"error"), (200, b"one"), read=read) == (b"one", 2)


def test_a_body_without_an_end_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 4)
    with pytest.raises(ProtocolError, match="the list of openai is too large"):
        run((200, *[b"abc"] * 9))
