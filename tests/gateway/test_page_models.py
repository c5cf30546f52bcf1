"""What a conversation's model and thinking mean."""

from __future__ import annotations

import pytest

from asides.flows.build_call import CallBuilder
from asides.gateway import page_models
from asides.gateway.page_models import choose_model, find_default_model
from asides.settings import Settings
from asides.settings_tables import RouteTable
from asides.values.errors import InvalidThinking, MissingKey, UnknownModel
from tests.gateway.page_client import without_settings


def build(settings: Settings | None = None) -> CallBuilder:
    return CallBuilder(settings=settings or without_settings())


def test_a_name_is_a_route_an_alias_or_a_model() -> None:
    builder = build(
        without_settings(
            routes={"best": RouteTable(targets=("ollama:a", "ollama:b"), thinking="high")},
            aliases={"short": "ollama:c"},
        )
    )
    best = choose_model("best", None, builder)
    assert (best.name, best.target, best.asked, best.options.get("thinking")) == (
        "best",
        "ollama:a",
        ["ollama:a", "ollama:b"],
        "high",
    )
    assert choose_model("best", "low", builder).options.get("thinking") == "low", "the person's choice wins"
    short = choose_model("short", 2000, builder)
    assert (short.name, short.asked, short.options.get("thinking")) == ("short", "ollama:c", 2000)
    assert choose_model("ollama:d", "off", builder).asked == "ollama:d"


def test_what_cannot_be_asked_is_refused_before_anything_is_saved() -> None:
    builder = build()
    for name, thinking, error in (
        ("nobody:m", None, UnknownModel),
        ("no-provider", None, UnknownModel),
        ("openai:gpt-5", None, MissingKey),
        ("ollama:m", "lots", InvalidThinking),
    ):
        with pytest.raises(error):
            choose_model(name, thinking, builder)


def test_the_default_is_that_of_the_settings_else_the_first_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_default_model(build(without_settings(model="ollama:m"))) == "ollama:m"
    assert find_default_model(build(without_settings(aliases={"short": "ollama:c"}))) == "short"
    monkeypatch.setattr(page_models, "list_known_models", lambda builder: ())
    assert find_default_model(build()) is None
    with pytest.raises(UnknownModel, match="To do"):
        choose_model(None, None, build())
