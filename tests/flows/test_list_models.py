"""A list of models as a flow, driven by hand: pages, refusals and attempts without a socket."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

import pytest

from asides.flows.call import Policy
from asides.flows.list_models import ModelListCall, list_models
from asides.flows.steps import Done, Head, Open, Read, Sleep, Step, advance
from asides.providers.find import find_host
from asides.values.errors import (
    AsidesError,
    AuthError,
    ConnectionLost,
    ProtocolError,
    ProviderError,
    RateLimited,
    Unsupported,
)
from asides.values.model_info import ModelInfo

OK = Head(200, {})


def page(*ids: str, after: str | None = None) -> bytes:
    return json.dumps(
        {"data": [{"id": name} for name in ids], "has_more": after is not None, "last_id": after}
    ).encode()


def play(
    answers: Iterable[Head | bytes | AsidesError], provider: str = "anthropic", retries: int = 2
) -> tuple[tuple[ModelInfo, ...], list[Step]]:
    """The models, and the steps that led to them."""
    call = ModelListCall(find_host(provider, environ={}), Policy(retries=retries))
    prepared = iter(answers)
    steps: list[Step] = []
    flow = list_models(call, jitter=lambda: 0.0)
    step = advance(flow)
    while not isinstance(step, Done):
        steps.append(step)
        answer = next(prepared) if isinstance(step, (Open, Read)) else None
        step = advance(flow, error=answer) if isinstance(answer, AsidesError) else advance(flow, answer)
    assert list(prepared) == [], "not all of it was asked for"
    return step.result, steps


def kinds(steps: Iterable[Step]) -> str:
    return "".join(type(step).__name__[0] for step in steps)


def ids(models: Iterable[ModelInfo]) -> list[str]:
    return [model.id for model in models]


def test_pages_are_followed_to_the_last_and_a_model_on_two_of_them_counts_once() -> None:
    models, steps = play([OK, page("a", "b", after="b"), b"", OK, page("b", "c")[:9], page("b", "c")[9:], b""])
    assert ids(models) == ["a", "b", "c"]
    assert kinds(steps) == "ORRORRR"
    opened = [step.request.url for step in steps if isinstance(step, Open)]
    assert [url.partition("?")[2] for url in opened] == ["limit=1000", "limit=1000&after_id=b"]


def test_pages_that_go_round_in_a_circle_are_not_followed_for_ever() -> None:
    again: list[Head | bytes] = [OK, page("a", after="a"), b""]
    with pytest.raises(ProtocolError, match="does not end") as caught:
        play([*again, *again])
    assert caught.value.dialect == "anthropic"


def test_a_refusal_that_passes_is_tried_again_after_what_they_ask() -> None:
    models, steps = play([Head(429, {"retry-after": "3"}), b"", OK, page("a"), b""])
    assert ids(models) == ["a"]
    assert [step.seconds for step in steps if isinstance(step, Sleep)] == [3.0]


def test_a_body_that_breaks_is_asked_for_again_since_nothing_was_handed_out() -> None:
    models, steps = play([OK, page("a")[:5], ConnectionLost("gone"), OK, page("a"), b""])
    assert ids(models) == ["a"]
    assert kinds(steps) == "ORRSORR"


def test_attempts_end() -> None:
    with pytest.raises(ConnectionLost, match="Given up after 2 attempts"):
        play([ConnectionLost("gone"), ConnectionLost("gone")], retries=1)


def test_a_wrong_key_is_said_in_the_words_of_the_dialect_and_not_tried_again() -> None:
    told = b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}'
    with pytest.raises(AuthError, match=r"anthropic answered 401.*invalid x-api-key"):
        play([Head(401, {}), told, b""])


def test_a_redirect_is_not_followed() -> None:
    with pytest.raises(ProviderError, match="Redirects are not followed"):
        play([Head(302, {"location": "https://elsewhere.example/"})])


def test_an_error_inside_a_good_response_is_that_error() -> None:
    told = b'{"error":{"code":429,"message":"slow down"}}'
    with pytest.raises(RateLimited, match="slow down"):
        play([OK, told, b""], "openrouter", retries=0)


@pytest.mark.parametrize("body", [b"", b"<html>no such page</html>", b'{"detail":"?"}', b"\xff\xfe"])
def test_what_is_no_list_is_an_error_that_says_what_to_do(body: bytes) -> None:
    answers: list[Head | bytes] = [OK, body, b""] if body else [OK, b""]
    with pytest.raises(ProtocolError, match=r"not a list of models\. Check the base URL") as caught:
        play(answers, "groq")
    assert (caught.value.dialect, caught.value.payload) == ("openai_chat", body)


def test_a_server_that_is_started_for_a_model_has_no_list() -> None:
    with pytest.raises(Unsupported, match="Name a model"):
        play([], "local")


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google", "cohere", "ollama"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 5000 + b"]" * 5000,
        b'{"data":[' + b"[" * 700 + b"]" * 700 + b"]}",
        b'{"error":' + b"[" * 5000,
        b'{"data":1e999}',
        b'{"data":[{"id":"a","created":1e999,"created_at":"9999-99"}],"has_more":1e999}',
    ],
    ids=["deep", "a deep entry", "a deep error", "a number", "numbers in fields"],
)
def test_any_bytes_are_a_list_or_an_error_of_asides(provider: str, body: bytes) -> None:
    with suppress(ProtocolError, ProviderError):
        assert isinstance(play([OK, body, b""], provider)[0], tuple)
