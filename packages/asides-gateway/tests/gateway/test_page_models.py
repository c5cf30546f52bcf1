"""What a conversation's model and thinking mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.flows.build_call import CallBuilder
from asides.flows.call import encode_request
from asides.options import Options
from asides.providers.provider import ModelRule, Provider
from asides.settings import Settings
from asides.settings_tables import RouteTable
from asides.values.errors import InvalidThinking, MissingKey, UnknownModel
from asides.values.thinking import Thinking
from asides_gateway import page_models
from asides_gateway.page_models import PageModel, choose_model, find_default_model, list_models, show_model
from tests.gateway.page_client import page_gateway, without_settings


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:gpt-5", {"reasoning": {"summary": "auto"}}),
        ("anthropic:claude-opus-5-5", {"thinking": {"type": "adaptive", "display": "summarized"}}),
        ("gemini:gemini-3-pro-preview", {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}),
        ("openai:gpt-4", {}),
    ],
)
def test_a_model_is_asked_to_show_its_thinking_where_nothing_else_was_chosen(name: str, expected: object) -> None:
    builder = CallBuilder(Options(api_key="sk-test"), settings=without_settings())
    chosen = choose_model(name, None, builder)
    call = builder.build(chosen.asked, "?", chosen.options, stream=True)
    sent = json.loads(encode_request(call.prompt, call.target, on_conflict="adjust").request.body)
    found = {field: sent[field] for field in ("reasoning", "thinking", "generationConfig") if field in sent}
    assert found == expected
    quiet = CallBuilder(Options(api_key="sk-test"), settings=without_settings(thinking=Thinking(mode="off")))
    assert "thinking" not in choose_model(name, None, quiet).options, "the settings choose"


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
    aliases = {"without a key": "openai:gpt-5", "short": "ollama:c"}
    assert find_default_model(build(without_settings(aliases=aliases))) == "short"
    monkeypatch.setattr(page_models, "list_known_models", lambda builder: ())
    assert find_default_model(build()) is None
    with pytest.raises(UnknownModel, match=r"\. [A-Z]"):
        choose_model(None, None, build())


def test_a_client_with_a_key_names_no_file_of_this_machine(tmp_path: Path) -> None:
    settings = without_settings(aliases={"mine": f"local:{tmp_path}/model.gguf"})
    builder = build(settings)
    for name in (f"local:{tmp_path}/model.gguf", "local:~/x", f"local/{tmp_path}"):
        with pytest.raises(UnknownModel, match="clients cannot name model files"):
            choose_model(name, None, builder, may_name_files=False)
    for name in ("mine", "local:tiny", "LOCAL:tiny", "ollama:m"):
        assert choose_model(name, None, builder, may_name_files=False).name == name
    addressed = CallBuilder(Options(base_url="http://127.0.0.1:9/v1"), settings=settings)
    assert choose_model("openai-compatible:m", None, addressed, may_name_files=False).target == "openai-compatible:m"
    assert choose_model(f"local:{tmp_path}/model.gguf", None, builder).target.startswith("local:")
    with page_gateway(tmp_path, settings, keys=("sk-one",)) as page:
        conversation = page.create("ollama:m")
        body = {"text": "?", "model": f"local:{tmp_path}/model.gguf"}
        answer = page.send("POST", f"/conversations/{conversation}/messages", body)
        assert (answer.status, answer.body["error"]["code"]) == (400, "unknown_model")
        assert page.show(conversation)["messages"] == []


# --- the list ---------------------------------------------------------------------------------------------------------

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


def test_the_list_has_the_default_first_and_what_can_be_asked_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "key")
    settings = without_settings(providers=(_ROW,), aliases={"short": "acme:switch"}, model="acme:plain")
    listed = [model for model in list_models(build(settings)) if model.provider == "acme"]
    assert listed == [
        PageModel("acme:plain", "acme:plain", "acme", False, ()),
        PageModel("short", "acme:switch", "acme", True, ("off", "high")),
        PageModel("acme:thinker", "acme:thinker", "acme", True, ("low", "high")),
        PageModel("acme:switch", "acme:switch", "acme", True, ("off", "high")),
    ]


def test_a_model_whose_address_is_not_set_is_listed_and_one_that_leads_nowhere_is_not() -> None:
    builder = build(without_settings(aliases={"mine": "openai-compatible:thinker"}))
    found = show_model("mine", builder)
    assert found is not None
    assert (found.target, found.provider) == ("openai-compatible:thinker", "openai-compatible")
    assert show_model("nobody:model", builder) is None


def test_the_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_models, "MOST_MODELS", 3)
    assert len(list_models(build(without_settings(aliases={f"name-{n}": "ollama:m" for n in range(10)})))) == 3
