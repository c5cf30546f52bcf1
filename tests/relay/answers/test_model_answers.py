"""Lists of models, one model, and what clients of a dialect ask a server first."""

from __future__ import annotations

from typing import Any

import pytest

from asides.options import Options
from asides.testing import Stage
from tests.relay.relaying import ROUTES, Door, load


@pytest.mark.parametrize(
    ("path", "headers", "names"),
    [
        ("/v1/models", {}, lambda body: [model["id"] for model in body["data"]]),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, lambda body: [model["id"] for model in body["data"]]),
        ("/v1beta/models", {}, lambda body: [model["name"].removeprefix("models/") for model in body["models"]]),
        ("/api/tags", {}, lambda body: [model["model"] for model in body["models"]]),
        ("/v1/models", {"x-fern-sdk-name": "cohere"}, lambda body: [model["name"] for model in body["models"]]),
    ],
)
def test_lists_in_the_shape_of_the_caller(path: str, headers: dict[str, str], names: Any) -> None:
    settings = load(routes=ROUTES, aliases={"mine": "openai-compatible:any"})
    with Stage(models=["one", "two"]) as stage:
        home = Options(base_url=stage.url, api_key="sk-test")
        door = Door(None, settings=settings, home="openai-compatible", home_options=home)
        response = door.get(path, headers=headers)
        assert response.status == 200
        assert names(response.json) == ["one", "two", "best", "mine"]
        assert door.get(path, headers=headers, method="HEAD").status == 200
    unlisted = door.get(path, headers=headers)
    assert names(unlisted.json) == ["best", "mine"]
    assert "models_not_listed" in unlisted.headers["x-asides-notice"]


def test_one_model() -> None:
    settings = load(routes=ROUTES)
    door = Door(None, settings=settings)
    for name in ("best", "anthropic:claude-opus-4-5", "openai/gpt-5"):
        response = door.get(f"/v1/models/{name.replace(':', '%3A')}")
        assert (response.status, response.json["id"]) == (200, name)
    response = door.get("/v1/models/nobody%3Ax")
    assert response.status == 404
    assert response.json["error"]["code"] == "model_not_found"


def test_what_ollama_clients_ask_first() -> None:
    door = Door(None, settings=load(routes=ROUTES))
    assert door.get("/").body == b"Ollama is running"
    assert door.get("/", method="HEAD").status == 200
    assert door.get("/api/version").json["version"]
    assert door.get("/api/ps").json == {"models": []}
    shown = door.post("/api/show", {"model": "best"})
    assert "thinking" in shown.json["capabilities"]
    assert door.post("/api/show", {"model": "nobody:x"}).status == 404
    assert door.post("/api/generate", {"model": "best"}).json["done_reason"] == "load"
