"""The makers' own libraries see their own errors when a key has used up what it may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from asides_stage import Say
from tests.gateway.access.limited_gateway import CLAUDE, Limited, PlayedStage, limited

pytestmark = pytest.mark.clients
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
genai = pytest.importorskip("google.genai")


@pytest.fixture(scope="module")
def stage() -> Iterator[PlayedStage]:
    played = PlayedStage()
    with played.stage:
        yield played


@pytest.fixture(scope="module")
def gateway(stage: PlayedStage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    with limited(stage, str(tmp_path_factory.mktemp("refusals"))) as gateway:
        yield gateway


KINDS: dict[str, dict[str, Any]] = {
    "rate": {"rpm": 1},
    "budget": {"budget_day": "0.0000001"},
    "model": {"models": ("openai:nothing",)},
}


def make_key(gateway: Limited, stage: PlayedStage, kind: str, name: str) -> str:
    """A key whose next request is refused."""
    added = gateway.add_key(f"{name} {kind}", **KINDS[kind])
    if kind == "rate":
        stage.play(Say(text="42"))
        body = {"model": CLAUDE, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
        assert gateway.ask(added, "/v1/messages", body).status == 200
    return added.key


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
def test_openai(gateway: Limited, stage: PlayedStage, kind: str, stream: bool) -> None:
    key = make_key(gateway, stage, kind, f"openai {stream}")
    client = openai.OpenAI(base_url=f"{gateway.gateway.url}/v1", api_key=key, max_retries=0)
    expected = openai.PermissionDeniedError if kind == "model" else openai.RateLimitError
    codes = {"rate": "rate_limit_exceeded", "budget": "insufficient_quota", "model": "model_not_found"}
    before = stage.count
    with pytest.raises(expected) as caught:
        client.chat.completions.create(model=CLAUDE, messages=[{"role": "user", "content": "?"}], stream=stream)
    assert caught.value.code == codes[kind]
    with pytest.raises(expected):
        client.responses.create(model=CLAUDE, input="?", stream=stream)
    assert stage.count == before


def test_libraries_do_not_wait_for_the_next_day(gateway: Limited, stage: PlayedStage) -> None:
    """They try again by themselves; a budget that is spent is not worth it."""
    key = make_key(gateway, stage, "budget", "retries")
    client = openai.OpenAI(base_url=f"{gateway.gateway.url}/v1", api_key=key, max_retries=5, timeout=20)
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model=CLAUDE, messages=[{"role": "user", "content": "?"}])
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert int(caught.value.response.request.headers["x-stainless-retry-count"]) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
def test_anthropic(gateway: Limited, stage: PlayedStage, kind: str, stream: bool) -> None:
    key = make_key(gateway, stage, kind, f"anthropic {stream}")
    client = anthropic.Anthropic(base_url=gateway.gateway.url, api_key=key, max_retries=0)
    expected = anthropic.PermissionDeniedError if kind == "model" else anthropic.RateLimitError
    with pytest.raises(expected) as caught:
        client.messages.create(model=CLAUDE, max_tokens=99, messages=[{"role": "user", "content": "?"}], stream=stream)
    body: Any = caught.value.body
    assert body["error"]["type"] == ("permission_error" if kind == "model" else "rate_limit_error")
    if kind == "rate":
        assert 0 < int(caught.value.response.headers["retry-after"]) <= 61


@pytest.mark.parametrize("kind", KINDS)
def test_google(gateway: Limited, stage: PlayedStage, kind: str) -> None:
    key = make_key(gateway, stage, kind, "google")
    client = genai.Client(api_key=key, http_options=genai.types.HttpOptions(base_url=gateway.gateway.url))
    with pytest.raises(genai.errors.ClientError) as caught:
        client.models.generate_content(model=CLAUDE, contents="?")
    assert caught.value.code == (403 if kind == "model" else 429)
    assert caught.value.status == ("PERMISSION_DENIED" if kind == "model" else "RESOURCE_EXHAUSTED")


def test_a_key_that_is_revoked_is_an_error_of_authentication(gateway: Limited) -> None:
    client = openai.OpenAI(
        base_url=f"{gateway.gateway.url}/v1", api_key="sk-asides-abcdefgh-" + "x" * 43, max_retries=0
    )
    with pytest.raises(openai.AuthenticationError):
        client.models.list()
