"""The models that a relay names without asking anybody."""

from __future__ import annotations

import pytest

from asides.flows.build_call import CallBuilder
from asides.providers.provider import ModelRule, Provider
from asides.relay.answers import known_models
from asides.relay.answers.known_models import KnownModel, describe_model, list_known_models
from asides.settings import Settings
from asides.settings_tables import RouteTable

_ROW = Provider(
    name="acme",
    title="Acme",
    base_url="https://api.acme.example/v1",
    key_env=("ACME_API_KEY",),
    models=(
        ModelRule(models="thinker", thinking="always", efforts=("low", "high")),
        ModelRule(models="switch", thinking="optional", efforts=("high",)),
        ModelRule(models="plain", thinking="never"),
        ModelRule(models="other-*", thinking="always"),
    ),
)


def build(**settings: object) -> CallBuilder:
    return CallBuilder(settings=Settings(providers=(_ROW,), **settings))  # type: ignore[arg-type]


def list_ids(builder: CallBuilder) -> list[str]:
    return [model.id for model in list_known_models(builder)]


def test_names_of_the_settings_come_first_then_models_of_rows_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "key")
    monkeypatch.setattr(known_models, "_is_installed", lambda row: True)
    builder = build(
        routes={"best": RouteTable(targets=("acme:thinker",)), "b*": RouteTable(targets=("acme:plain",))},
        aliases={"short": "acme:switch"},
        model="acme:other-1",
    )
    assert list_ids(builder) == [
        *("best", "short", "acme:other-1"),
        *("acme:thinker", "acme:switch", "acme:plain"),
        "local:tiny",
    ]


def test_a_row_without_a_key_and_a_model_that_is_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_models, "_is_installed", lambda row: False)
    assert list_ids(build()) == []


def test_efforts_are_those_that_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "key")
    builder = build(aliases={"short": "acme:switch"})
    assert [describe_model(name, builder) for name in ("acme:thinker", "short", "acme:plain")] == [
        KnownModel("acme:thinker", "acme:thinker", "acme", True, ("low", "high")),
        KnownModel("short", "acme:switch", "acme", True, ("off", "high")),
        KnownModel("acme:plain", "acme:plain", "acme", False, ()),
    ]


def test_a_name_that_leads_nowhere_is_no_model() -> None:
    assert describe_model("nobody:model", build()) is None


def test_a_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_models, "MOST_MODELS", 3)
    assert len(list_known_models(build(aliases={f"name-{n}": "acme:plain" for n in range(10)}))) == 3


def test_two_rows_of_one_host_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert {model.provider for model in list_known_models(build())} <= {"openai", "local"}
