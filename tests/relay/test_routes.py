"""What the name of a model means: routes, aliases, providers, the home and the maker."""

from __future__ import annotations

from typing import Any

import pytest

from asides.options import Options
from asides.values.errors import ConfigError
from asides_stage import Stage
from asides_stage.stage import Fail, Say
from tests.relay.relaying import ROUTES, Door, load


def _chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "?"}], **more}


def test_a_route_asks_its_targets_in_order_with_its_defaults() -> None:
    with Stage([Fail(status=500), Say(text="Hi")]) as stage:
        door = Door(stage, settings=load(routes=ROUTES, retries=0))
        response = door.post("/v1/chat/completions", _chat("best"))
        first, second = stage.requests
    assert response.status == 200
    assert response.json["model"] == "best"
    assert (first.json["model"], second.json["model"]) == ("big", "small")
    assert second.json["max_tokens"] == 99
    assert second.json["reasoning_effort"] == "low"
    assert "fell_back" in response.headers["x-asides-notice"]


def test_what_the_request_says_wins_over_the_route() -> None:
    with Stage(Say(text="Hi")) as stage:
        door = Door(stage, settings=load(routes=ROUTES, max_tokens=5), options=Options(temperature=0.9))
        door.post("/v1/chat/completions", _chat("best", max_tokens=7, reasoning_effort="high", temperature=0.1))
        (received,) = stage.requests
    assert received.json["max_tokens"] == 7
    assert received.json["reasoning_effort"] == "high"
    assert received.json["temperature"] == 0.1


def test_names_that_fit_a_pattern_and_aliases() -> None:
    with Stage(Say(text="Hi")) as stage:
        settings = load(routes=ROUTES, aliases={"mine": "openai-compatible:any"})
        door = Door(stage, settings=settings)
        for model in ("claude-haiku-9", "mine"):
            body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
            response = door.post("/v1/messages", body)
            assert response.status == 200
            assert response.json["model"] == model
        assert {received.json["model"] for received in stage.requests} == {"any"}


def test_a_bare_name_belongs_to_the_home_and_else_to_the_maker() -> None:
    with Stage(Say(text="Hi")) as stage:
        Door(stage, home="openai-compatible").post("/v1/chat/completions", _chat("llama3:8b"))
        Door(stage).post("/v2/chat", _chat("command-a-03-2025"))
        first, second = stage.requests
    assert (first.path, first.json["model"]) == ("/v1/chat/completions", "llama3:8b")
    assert (second.path, second.json["model"]) == ("/v1/chat", "command-a-03-2025")


@pytest.mark.parametrize(
    "table",
    [{"x": 7}, {"x": {"targets": []}}, {"x": {"targets": ["a:b"], "api_key": "k"}}, {"a:b": {"targets": "c:d"}}, 7],
)
def test_routes_are_checked(table: Any) -> None:
    with pytest.raises(ConfigError, match="routes"):
        load(routes=table)
