"""Lists of models, one model, and what clients of a dialect ask a server first."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.providers.find import list_providers
from asides.relay import known_models
from asides.relay.known_models import find_keyed_providers
from asides.relay.listed_models import ListedModels
from asides.values.model_info import ModelInfo
from asides_stage import Stage
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


# --- a relay without a home -------------------------------------------------------------------------------------------

_GATEWAY = {"routes": ROUTES, "aliases": {"mine": "anthropic:claude-opus-5-5"}}


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One provider has a key, and the model without one is not installed."""
    for row in list_providers():
        for name in row.key_env:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(known_models, "has_tiny_model", lambda: False)


def _stand(**config: Any) -> Door:
    return Door(None, settings=load(**_GATEWAY), lists_home=False, **config)


@pytest.mark.usefixtures("keyed")
def test_a_list_without_a_home_holds_what_can_be_asked_and_asks_nobody() -> None:
    listed = _stand().get("/v1/models").json
    names = [model["id"] for model in listed["data"]]
    assert names[:2] == ["best", "mine"]
    assert {"openai:gpt-5", "openai:gpt-4"} <= set(names)
    assert listed["object"] == "list"
    assert all({"id", "object", "created", "owned_by"} <= model.keys() for model in listed["data"])


@pytest.mark.usefixtures("keyed")
def test_claude_code_sees_every_model_in_the_form_that_it_lists() -> None:
    """Its request, and its own check of a name (2.1.197)."""
    headers = {"anthropic-version": "2023-06-01", "authorization": "Bearer x"}
    door = _stand()
    page = door.get("/v1/models", headers=headers, query="limit=1000").json
    names = [model["id"] for model in page["data"]]
    assert {"claude/best", "claude/openai:gpt-5"} <= set(names)
    assert all(name.lower().startswith(("claude", "anthropic")) for name in names)
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, names[0], names[-1])
    for model in page["data"]:
        assert model["type"] == "model"
        assert model["display_name"]
        assert model["created_at"].endswith("Z")
        assert door.get(f"/v1/models/{quote(model['id'], safe='')}", headers=headers).json == model
    assert {model["display_name"] for model in page["data"]} >= {"best", "gpt-5 (OpenAI)"}
    first = door.get("/v1/models", headers=headers, query="limit=1").json
    assert first["has_more"] is True
    second = door.get("/v1/models", headers=headers, query=f"limit=1&after_id={first['last_id']}").json
    assert second["first_id"] == names[1]


@pytest.mark.usefixtures("keyed")
def test_gemini_clients_see_names_methods_and_limits_page_by_page() -> None:
    door = _stand()
    models = door.get("/v1beta/models").json["models"]
    by_name = {model["name"]: model for model in models}
    assert by_name["models/mine"]["thinking"] is True
    assert by_name["models/mine"]["outputTokenLimit"] > 1000
    assert by_name["models/openai:gpt-4"]["thinking"] is False
    assert all("generateContent" in model["supportedGenerationMethods"] for model in models)
    page = door.get("/v1beta/models", query="pageSize=1").json
    following = door.get("/v1beta/models", query=f"pageSize=1&pageToken={page['nextPageToken']}").json
    assert [page["models"][0], following["models"][0]] == models[:2]
    assert door.get("/v1beta/models/openai%3Agpt-5").json["name"] == "models/openai:gpt-5"


@pytest.mark.usefixtures("keyed")
def test_ollama_clients_see_what_a_model_can_do() -> None:
    door = _stand()
    tags = {model["name"]: model for model in door.get("/api/tags").json["models"]}
    assert len(tags["best"]["digest"]) == 64
    assert "thinking" in tags["openai:gpt-5"]["capabilities"]
    for name in ("mine", "mine:latest"):
        shown = door.post("/api/show", {"model": name}).json
        assert shown["capabilities"] == ["completion", "tools", "thinking", "vision"]
    assert "thinking" not in door.post("/api/show", {"model": "openai:gpt-4"}).json["capabilities"]
    assert door.post("/api/show", {"model": "nobody-knows"}).status == 404


@pytest.mark.usefixtures("keyed")
def test_a_list_shows_what_the_provider_lists_and_asks_nobody_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage() as stage:
        monkeypatch.setenv("OPENAI_BASE_URL", stage.url)
        listed = ListedModels()
        builder = CallBuilder(settings=load(**_GATEWAY))
        (call,) = listed.list_due(find_keyed_providers(builder), builder, 0.0)
        listed.keep(call, (ModelInfo("one", created=5, context=1000), ModelInfo("gpt-5")), 0.0)
        door = _stand(listed=listed)
        models = {model["id"]: model for model in door.get("/v1/models").json["data"]}
        assert [*models] == ["best", "mine", "openai:one", "openai:gpt-5"]
        assert (models["openai:one"]["created"], models["openai:one"]["context_length"]) == (5, 1000)
        assert models["openai:gpt-5"]["reasoning"], "the provider does not say that it thinks, and our row does"
        assert [model["id"] for model in door.get("/v1/models", query="search=GPT").json["data"]] == ["openai:gpt-5"]
        few = _stand(listed=listed, shown_models=("openai:o*",)).get("/v1/models").json["data"]
        assert [model["id"] for model in few] == ["best", "mine", "openai:one"]
        assert not stage.requests
