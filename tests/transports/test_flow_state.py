"""The state of a running flow: the time that is left, and the credential of a request."""

from __future__ import annotations

import pytest

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, Policy
from asides.options import Timeout
from asides.providers.credentials import AwsCredentials, Secret
from asides.providers.find import find_target
from asides.transports.flow_state import ExchangeState, add_credential
from asides.values.errors import ConfigError, ConnectionLost, IdleTimeout, TransportError
from asides.values.messages import Prompt, user

URL = "http://127.0.0.1:9/v1"
REQUEST = HttpRequest("POST", URL, {"Accept": "*/*"}, b"{}", ("Authorization", "Bearer "))


def state(timeout: Timeout) -> ExchangeState:
    target = find_target("openai-compatible:m", base_url=URL)
    return ExchangeState(Call(Prompt((user("?"),)), target, Policy(timeout=timeout)))


def test_without_a_limit_the_timeouts_of_the_policy_hold_and_any_wait_is_allowed() -> None:
    unlimited = state(Timeout(idle=7))
    unlimited.begin()
    unlimited.check_wait(1e9)
    assert unlimited.timeout() == Timeout(idle=7)


def test_an_attempt_gets_what_is_left_of_the_whole_call() -> None:
    limited = state(Timeout(total=100))
    limited.begin()
    left = limited.timeout().total
    assert left is not None
    assert 90 < left <= 100
    with pytest.raises(IdleTimeout, match="the 100 s that the whole call may take"):
        limited.check_wait(101)


def test_a_call_that_is_out_of_time_starts_no_attempt() -> None:
    late = state(Timeout())
    late.allow(0)
    with pytest.raises(IdleTimeout, match=r"127\.0\.0\.1:9 did not finish"):
        late.timeout()


def test_a_limit_that_is_lifted_does_not_fall_back_to_the_timeout_of_the_call() -> None:
    lifted = state(Timeout(total=100, idle=7))
    lifted.begin()
    lifted.allow(None)
    lifted.check_wait(1e9)
    assert lifted.timeout() == Timeout(total=None, idle=7)


@pytest.mark.parametrize(
    ("seconds", "problem", "says"),
    [
        (0.0, IdleTimeout("0.0001 s were left"), "the 0 s that the whole call may take"),
        (0.0, ConnectionLost("cut"), "cut"),
        (100.0, IdleTimeout("silence"), "silence"),
        (None, IdleTimeout("silence"), "silence"),
    ],
)
def test_a_timeout_after_the_end_of_the_call_names_the_time_of_the_whole_call(
    seconds: float | None, problem: TransportError, says: str
) -> None:
    late = state(Timeout())
    late.allow(seconds)
    assert says in str(late.settle_error(problem))


@pytest.mark.parametrize(("closed", "words"), [(True, "was closed before"), (False, "is not at its end yet")])
def test_a_reply_that_is_not_whole_says_why(closed: bool, words: str) -> None:
    with pytest.raises(TransportError, match=words):
        state(Timeout()).reply(closed=closed)


def test_a_key_goes_into_the_header_that_the_request_names() -> None:
    sent = add_credential(REQUEST, Secret("k"))
    assert sent.headers == {"Accept": "*/*", "Authorization": "Bearer k"}
    assert add_credential(REQUEST, None) is REQUEST


def test_aws_credentials_sign_the_request() -> None:
    sent = add_credential(REQUEST, AwsCredentials("id", "secret", region="us-east-1", service="bedrock"))
    assert sent.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=id/")
    assert "secret" not in str(sent.headers)


def test_an_error_that_never_was_in_the_flow_hides_the_key_too() -> None:
    target = find_target("openai-compatible:m", base_url=URL)
    broken = ExchangeState(Call(Prompt((user("?"),)), target, Policy(), Secret("sk-canary-0123456789")))
    try:
        try:
            raise ValueError("http://127.0.0.1/?key=sk-canary-0123456789")
        except ValueError:
            raise ConfigError("sk-canary-0123456789 is odd.") from None
    except ConfigError as error:
        broken.failure = error
    failure = broken.failure
    assert failure is not None
    assert str(failure) == "*** is odd."
    assert failure.__context__ is None
