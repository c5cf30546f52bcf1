"""When to try again, and after how many seconds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.flows.call import Policy
from asides.flows.retry import GiveUp, Retry, clean_error, decide_retry, read_retry_after
from asides.providers.credentials import Secret
from asides.providers.find import find_target
from asides.values.errors import (
    AsidesError,
    AuthError,
    ConnectionLost,
    ConnectTimeout,
    IdleTimeout,
    Overloaded,
    RateLimited,
    ReplayRejected,
    TransportError,
)
from asides.values.raw_documents import Documents, compress_documents
from asides.values.reply import CallContext, Reply
from asides_stage import OpenStage, Raw

POLICY = Policy(retries=2, backoff=1.0, max_backoff=8.0, max_wait=60.0)


def judged(
    failure: int | AsidesError, headers: dict[str, str] | None = None, *, attempt: int = 1, jitter: float = 0.0
) -> Retry | GiveUp:
    return decide_retry(failure, headers or {}, attempt=attempt, policy=POLICY, jitter=jitter, received=1_000_000.0)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 524, 529])
def test_a_temporary_status_is_tried_again(status: int) -> None:
    assert judged(status) == Retry(1.0)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422, 451])
def test_a_lasting_status_is_not_tried_again(status: int) -> None:
    assert judged(status) == GiveUp()


@pytest.mark.parametrize("error", [ConnectionLost("x"), ConnectTimeout("x"), RateLimited("x"), Overloaded("x")])
def test_a_fault_of_the_connection_or_of_the_moment_is_tried_again(error: AsidesError) -> None:
    assert judged(error) == Retry(1.0)


@pytest.mark.parametrize("error", [IdleTimeout("x"), TransportError("a bad certificate"), AuthError("x")])
def test_an_idle_timeout_and_lasting_errors_are_not_tried_again(error: AsidesError) -> None:
    assert judged(error) == GiveUp()


def test_waits_double_up_to_a_limit() -> None:
    patient = Policy(retries=9, backoff=1.0, max_backoff=8.0)
    waits = [decide_retry(500, {}, attempt=n, policy=patient, jitter=0.0) for n in range(1, 7)]
    assert waits == [Retry(seconds) for seconds in (1.0, 2.0, 4.0, 8.0, 8.0, 8.0)]
    endless = Policy(retries=9999, backoff=1.0, max_backoff=8.0)
    assert decide_retry(500, {}, attempt=5000, policy=endless, jitter=0.0) == Retry(8.0)


@given(jitter=st.floats(0, 1), attempt=st.integers(1, 60))
def test_jitter_only_shortens_a_wait_and_by_half_at_most(jitter: float, attempt: int) -> None:
    patient = Policy(retries=100, backoff=1.0, max_backoff=8.0)
    full = min(2.0 ** (attempt - 1), 8.0)
    settled = decide_retry(500, {}, attempt=attempt, policy=patient, jitter=jitter)
    assert isinstance(settled, Retry)
    assert full / 2 <= settled.seconds <= full


def test_jitter_makes_a_difference() -> None:
    assert (judged(500, jitter=0.0), judged(500, jitter=1.0)) == (Retry(1.0), Retry(0.5))


def test_attempts_are_the_first_and_the_retries() -> None:
    assert isinstance(judged(500, attempt=2), Retry)
    assert judged(500, attempt=3) == GiveUp("Given up after 3 attempts.")
    assert decide_retry(500, {}, attempt=1, policy=Policy(retries=0), jitter=0.0) == GiveUp()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        # Against the server's own clock, whatever ours says.
        ({"retry-after": "Wed, 21 Oct 2026 07:28:20 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        # Without one, against the moment at which the response came (1970-01-12 13:46:40).
        ({"retry-after": "Mon, 12 Jan 1970 13:46:45 GMT"}, 5.0),
        ({"retry-after": "Mon, 12 Jan 1970 13:46:45 -0000"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, 1_000_000.0) == seconds
    assert judged(429, headers) == Retry(1.0 if seconds is None else seconds)


def test_a_date_means_nothing_without_any_clock() -> None:
    assert read_retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:20 GMT"}) is None


def test_jitter_does_not_change_a_wait_that_the_server_asks_for() -> None:
    assert judged(429, {"retry-after": "7"}, jitter=1.0) == Retry(7.0)


def test_a_longer_wait_than_max_wait_ends_the_call_and_the_error_says_so() -> None:
    assert judged(429, {"retry-after": "60"}) == Retry(60.0)
    settled = judged(429, {"retry-after": "3600"})
    assert settled == GiveUp("Not tried again: the server asks to wait 3600 s, more than max_wait (60 s).")


def test_an_error_inside_a_good_response_may_ask_for_a_wait_too() -> None:
    assert judged(RateLimited("x", retry_after=4.0)) == Retry(4.0)


def test_the_server_may_say_whether_to_try_again() -> None:
    assert judged(500, {"x-should-retry": "false"}) == GiveUp()
    assert judged(400, {"x-should-retry": "true"}) == Retry(1.0)
    assert judged(400, {"x-should-retry": "true"}, attempt=3) == GiveUp("Given up after 3 attempts.")


def test_documents_without_a_secret_stay_compressed_in_the_reply_of_an_error() -> None:
    target = find_target("openai-compatible:m", base_url="http://127.0.0.1:9/v1")
    for document in (b'{"a":1}', b'{"a":"sk-canary-3141592653"}'):
        documents = Documents([compress_documents([b"{}", document])], [b"{}"])
        error = TransportError("x")
        error.partial = Reply(call=CallContext(payloads=documents))
        clean_error(error, target, Secret("sk-canary-3141592653"))
        assert (error.partial.payloads is documents) is (b"canary" not in document)
        assert b"canary" not in b"".join(error.partial.payloads)


@pytest.mark.parametrize("status", [400, 404, 429, 502, 529])
def test_a_refusal_with_a_kind_is_not_tried_again_whatever_its_status(stage: OpenStage, status: int) -> None:
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    raw = f'{{"type":"error","error":{{"type":"invalid_request_error","message":"{words}"}}}}'
    wrapped = json.dumps({"error": {"message": "Provider returned error", "code": status, "metadata": {"raw": raw}}})
    server = stage(Raw(text=wrapped, status=status, headers={"content-type": "application/json"}))
    with pytest.raises(ReplayRejected) as caught:
        asides.ask("openai-compatible:made-up", "Hello", base_url=server.url, retries=2)
    assert (caught.value.status, caught.value.kind) == (status, "thinking_signature_invalid")
    assert f"Provider returned error: {words}" in str(caught.value)
    assert len(server.requests) == 1
