"""A name without a key: the fallback model, or an error that says which route to add."""

from __future__ import annotations

from typing import Any

import pytest

from asides.options import Options
from asides.providers.find import list_providers
from asides.values.errors import ConfigError
from asides_stage import Stage
from asides_stage.stage import Say
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
    assert response.status == 502
    message = response.json["error"]["message"]
    assert "ANTHROPIC_API_KEY" in message
    assert '[routes."claude-*"] and, below it, targets = ["openai:gpt-5"]' in message
    assert "api_key=" not in message
    guessed = ask(stand(), "nobody:model").json["error"]["message"]
    assert ("unknown provider 'nobody'" in guessed, "api_key=" in guessed) == (True, False)
    strangers = ask(stand(), "claude-haiku-4-5-20251001", tenant="a").json["error"]["message"]
    assert "ask the operator of this relay" in strangers
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
        assert ask(door, "anthropic:claude-haiku-4-5").status == 502
        assert len(stage.requests) == 1


def test_a_fallback_without_a_key_changes_nothing() -> None:
    response = ask(stand(config={"fallback_model": "mistral:mistral-small-latest"}), "claude-haiku-4-5")
    assert response.status == 502
    assert "ANTHROPIC_API_KEY" in response.json["error"]["message"]


# --- files of this machine --------------------------------------------------------------------------------------------

_FILES = (
    *("local:/etc/hostname", "local://etc/hostname", " local:/etc/hostname ", "LOCAL:/etc/hostname", "local:../x"),
    *("local//etc/hostname", "local:./tiny", "local:tiny/../x", "local:/etc/a:b"),
)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models for which a server was started."""
    asked: list[str] = []

    def launch(model: str, *, wait: bool = True) -> None:
        del wait
        asked.append(model)
        raise ConfigError("no server here")

    monkeypatch.setattr("asides.transports.launch._import_launcher", lambda _: launch)
    return asked


@pytest.mark.parametrize("model", _FILES)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_tenant_names_no_file_of_this_machine(model: str, path: str, started: list[str]) -> None:
    door = stand()
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    for given in ({"model": model}, {"model": "openai:gpt-5", "asides": {"fallbacks": [model]}}):
        response = door.post(path, {**body, **given}, tenant="a")
        assert response.status in (400, 404), response
        assert "clients cannot name model files" in response.json["error"]["message"]
    assert started == []


def test_a_tenant_names_what_the_settings_call_so(started: list[str]) -> None:
    tables = {
        "aliases": {"mine": "local:/models/a.gguf"},
        "routes": {"yours": {"targets": ["local:/models/b.gguf"]}, "odd-*": {"targets": ["local:/models/c.gguf"]}},
    }
    door = stand(**tables, config={"fallback_model": "local:/models/d.gguf"})
    for model in ("mine", "yours", "odd-1", "claude-haiku-4-5", "local:tiny", "LOCAL: Tiny"):
        message = ask(door, model, tenant="a").json["error"]["message"]
        assert "no server here" in message, model
    wanted = ["/models/a.gguf", "/models/b.gguf", "/models/c.gguf", "/models/d.gguf", "tiny", "Tiny"]
    assert list(dict.fromkeys(started)) == wanted


def test_the_owner_names_any_file(started: list[str]) -> None:
    response = ask(stand(), "local:/models/a.gguf")
    assert (response.status, "no server here" in response.json["error"]["message"]) == (400, True)
    assert set(started) == {"/models/a.gguf"}
