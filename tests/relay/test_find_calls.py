"""A name without a key: the fallback model, or an error that says which route to add."""

from __future__ import annotations

from typing import Any

import pytest

from asides.options import Options
from asides.providers.find import list_providers
from asides.testing import Stage
from asides.testing.stage import Say
from tests.relay.relaying import Door, Response, load


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in list_providers():
        for name in row.key_env:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def ask(door: Door, model: str, **more: Any) -> Response:
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    return door.post("/v1/messages", body, **more)


def stand(**tables: Any) -> Door:
    """A gateway without the options of a stage: each provider has its own address and key."""
    config = tables.pop("config", {})
    return Door(None, settings=load(**tables), options=Options(), **config)


def test_the_error_says_which_route_to_add() -> None:
    response = ask(stand(), "claude-haiku-4-5-20251001")
    assert response.status == 401
    message = response.json["error"]["message"]
    assert "ANTHROPIC_API_KEY" in message
    assert '[routes."claude-*"] and, below it, targets = ["openai:gpt-5"]' in message
    assert "api_key=" not in message
    strangers = ask(stand(), "claude-haiku-4-5-20251001", tenant="a").json["error"]["message"]
    assert "ask whoever runs this relay" in strangers
    asked = {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}
    gemini = stand().post("/v1beta/models/gemini-3.5-flash-lite:generateContent", asked)
    assert '[routes."gemini-*"]' in gemini.json["error"]["message"]


def test_the_route_that_the_error_names_is_one() -> None:
    message = ask(stand(), 'odd"] name-1').json["error"]["message"]
    assert message.count('"]') == 2
    table = {"claude-*": {"targets": ["openai:gpt-5"]}}
    with Stage(Say(text="Hi")) as stage:
        door = Door(stage, settings=load(routes=table))
        assert ask(door, "claude-haiku-4-5").status == 200


def test_the_fallback_model_answers_for_models_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage(Say(text="Hi")) as stage:
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", stage.url)
        config = {"fallback_model": "openai-compatible:any"}
        door = stand(config=config)
        response = ask(door, "claude-haiku-4-5")
        assert response.status == 200, response.body
        assert response.json["model"] == "claude-haiku-4-5"
        assert "model_replaced" in response.headers["x-asides-notice"]
        assert response.outcome is not None
        (notice,) = [each for each in response.outcome.notices if each.code == "model_replaced"]
        assert (notice.asked, notice.sent) == ("claude-haiku-4-5", "openai-compatible:any")
        assert stage.requests[0].json["model"] == "any"
        counted = door.post(
            "/v1/messages/count_tokens", {"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": "hey"}]}
        )
        assert counted.status == 200
        assert "model_replaced" in counted.headers["x-asides-notice"]
        # Whoever names the provider means it.
        assert ask(door, "anthropic:claude-haiku-4-5").status == 401
        assert len(stage.requests) == 1


def test_a_fallback_without_a_key_changes_nothing() -> None:
    response = ask(stand(config={"fallback_model": "mistral:mistral-small-latest"}), "claude-haiku-4-5")
    assert response.status == 401
    assert "ANTHROPIC_API_KEY" in response.json["error"]["message"]
