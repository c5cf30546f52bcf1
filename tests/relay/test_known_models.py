"""The models of a relay without a home: those of the settings, of providers with a key, and the one that needs none."""

from __future__ import annotations

import pytest

from asides.flows.build_call import CallBuilder
from asides.local import child_process
from asides.options import Options
from asides.providers.find import list_providers
from asides.providers.provider import ModelRule, Provider
from asides.relay import known_models
from asides.relay.known_models import describe_model, find_keyed_providers, has_tiny_model, list_known_models
from tests.relay.relaying import ROUTES, load


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in list_providers():
        for name in row.key_env:
            monkeypatch.delenv(name, raising=False)


def build(**tables: object) -> CallBuilder:
    return CallBuilder(Options(), settings=load(**tables))


def names(builder: CallBuilder) -> list[str]:
    return [model.id for model in list_known_models(builder) if model.id != "local:tiny"]


def test_names_of_the_settings_come_first_and_patterns_are_no_models() -> None:
    builder = build(routes=ROUTES, aliases={"mine": "google:gemini-3-pro-preview"})
    assert names(builder) == ["best", "mine"]


def test_a_provider_counts_once_it_has_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(build()) == []
    assert find_keyed_providers(build()) == ()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    found = names(build())
    assert "openai:gpt-5" in found
    assert all(name.startswith("openai:") for name in found)
    assert not any(mark in name for name in found for mark in "*?[")
    (model,) = [model for model in list_known_models(build()) if model.id == "openai:gpt-5"]
    assert model.thinking is not None
    assert model.thinking.supported
    assert model.name == "gpt-5 (OpenAI)"


def test_the_stage_plays_every_provider_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", "1")
    found = names(build())
    assert {"openai:gpt-5", "google:gemini-pro-latest", "mistral:mistral-small-latest"} <= set(found)
    assert not any(mark in name for name in found for mark in "*?[")
    assert "local" not in {row.name for row in find_keyed_providers(build())}
    for value in ("0", "https://elsewhere.example"):
        monkeypatch.setenv("ASIDES_STAGE", value)
        assert names(build()) == []


def test_the_default_model_is_one() -> None:
    assert names(build(model="deepseek:deepseek-v4-pro")) == ["deepseek:deepseek-v4-pro"]
    assert names(build(model="mine", aliases={"mine": "deepseek:deepseek-v4-pro"})) == ["mine"]


def test_rows_of_the_user_need_no_key() -> None:
    row = Provider(name="mine", base_url="http://127.0.0.1:9/v1", key="optional", models=(ModelRule(models="m1"),))
    assert names(CallBuilder(Options(), providers=(row,), settings=load())) == ["mine:m1"]


def test_the_model_that_comes_with_asides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(known_models.TINY_PACKAGES) == {child_process.ENGINE, *child_process._EMBEDDED.values()}
    monkeypatch.setattr(known_models, "has_tiny_model", lambda: True)
    (tiny,) = list_known_models(build())
    assert tiny.id == "local:tiny"
    monkeypatch.setattr(known_models, "has_tiny_model", lambda: False)
    assert list_known_models(build()) == ()
    assert isinstance(has_tiny_model(), bool)


def test_what_is_known_of_a_model() -> None:
    builder = build(routes={"best": {"targets": ["anthropic:claude-opus-5-5"]}}, aliases={"old": "openai:gpt-4"})
    best = describe_model("best", builder)
    assert best.thinking is not None
    assert (best.id, best.thinking.supported) == ("best", True)
    assert best.max_output
    old = describe_model("old", builder)
    assert old.thinking is not None
    assert not old.thinking.supported
    assert describe_model("nobody:x", builder).thinking is None
