"""The models that a caller may ask: others are refused before a provider is asked, and are in no list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asides.flows.build_call import CallBuilder
from asides.relay.allowed_models import AllowedModels, refuse_model
from asides.settings import load_settings
from asides_stage import Fail, Say
from tests.gateway.access.limited_gateway import CLAUDE, Limited, PlayedStage, limited
from tests.gateway.http_client import chat, message

OTHER = "openai:gpt-5"
TOML = f"""
[aliases]
clever = "{CLAUDE}"
quick = "openai:gpt-4o-mini"
[routes.mixed]
targets = ["{CLAUDE}", "openai:gpt-4o-mini"]
retries = 0
[routes.other]
targets = ["{OTHER}"]
"""


@pytest.fixture(scope="module")
def stage() -> Iterator[PlayedStage]:
    played = PlayedStage()
    with played.stage:
        yield played


@pytest.fixture(scope="module")
def gateway(stage: PlayedStage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    with limited(stage, str(tmp_path_factory.mktemp("allowed")), toml=TOML) as gateway:
        yield gateway


def test_patterns_fit_names_as_they_are_and_as_clients_write_them() -> None:
    allowed = AllowedModels(("Anthropic:*", "fast"))
    assert allowed.allows("anthropic:claude-opus-4")
    assert allowed.allows("ANTHROPIC:x")
    assert allowed.allows(" fast ")
    routes = {"fast": {"targets": ["openai:gpt-4o-mini"]}}
    builder = CallBuilder(settings=load_settings(environ={}, files=[], routes=routes))
    for name, dialect in (("models/fast", "gemini"), ("claude/fast[1m]", "anthropic"), ("fast:latest", "ollama")):
        assert allowed.can_ask(name, builder, dialect)
    for other in ("openai:gpt-5", "faster", "", "xanthropic:a", "fast:latest"):
        assert not allowed.allows(other)
    assert AllowedModels(()).allows("anything")


def test_the_error_names_the_model_and_no_pattern() -> None:
    error = refuse_model("x" * 500)
    assert (error.status, error.code) == (403, "model_not_found")
    assert "x" * 201 not in str(error)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/chat/completions", {**chat(), "model": OTHER}, "model_not_found"),
        ("/v1/responses", {"model": OTHER, "input": "?"}, "model_not_found"),
        ("/v1/messages", {**message(), "model": OTHER}, "permission_error"),
        (
            "/v1/messages/count_tokens",
            {"model": OTHER, "messages": [{"role": "user", "content": "?"}]},
            "permission_error",
        ),
        (f"/v1beta/models/{OTHER}:generateContent", {"contents": [{"parts": [{"text": "?"}]}]}, "PERMISSION_DENIED"),
        ("/v1/chat/completions", {**chat(), "model": "other"}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": "quick"}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": "gpt-5"}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": "nobody:knows"}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": CLAUDE, "asides": {"fallbacks": [OTHER]}}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": "clever", "asides": {"fallbacks": "quick"}}, "model_not_found"),
        ("/v1/chat/completions", {**chat(), "model": CLAUDE, "models": [OTHER]}, "model_not_found"),
    ],
)
def test_what_a_key_may_not_ask_never_reaches_a_provider(
    gateway: Limited, stage: PlayedStage, path: str, body: dict[str, Any], code: str, request: pytest.FixtureRequest
) -> None:
    added = gateway.add_key(request.node.name, models=("anthropic:*",))
    before = stage.count
    answer = gateway.ask(added, path, body)
    assert answer.status == 403, answer.body
    assert code in answer.body.decode()
    assert stage.count == before


def test_a_name_that_is_allowed_leads_where_the_settings_say(gateway: Limited, stage: PlayedStage) -> None:
    added = gateway.add_key("by route", models=("mixed", "quick"))
    stage.play(Fail(status=500), Say(text="from the second"), Say(text="quick"))
    answer = gateway.ask(added, "/v1/chat/completions", {**chat(), "model": "mixed"})
    assert answer.json["choices"][0]["message"]["content"] == "from the second"
    assert gateway.ask(added, "/v1/chat/completions", {**chat(), "model": "quick"}).status == 200
    assert gateway.ask(added, "/v1/chat/completions", {**chat(), "model": CLAUDE}).status == 403


def test_of_a_route_only_the_allowed_targets_are_asked(gateway: Limited, stage: PlayedStage) -> None:
    added = gateway.add_key("by target", models=("openai:gpt-4*",))
    stage.play(Say(text="from the second"))
    before = stage.count
    answer = gateway.ask(added, "/v1/chat/completions", {**chat(), "model": "mixed"})
    assert answer.json["choices"][0]["message"]["content"] == "from the second"
    assert stage.count == before + 1
    assert "model_not_allowed" in answer.headers["x-asides-notice"]
    stage.play(Fail(status=400))
    only_first = gateway.add_key("first", models=("anthropic:*",))
    assert gateway.ask(only_first, "/v1/chat/completions", {**chat(), "model": "mixed"}).status >= 400
    assert stage.count == before + 2, "the second is not for this key"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/models", {}),
        ("/v1/models", {"anthropic-version": "2023-06-01"}),
        ("/v1beta/models", {}),
        ("/api/tags", {}),
    ],
)
def test_lists_have_what_may_be_asked(gateway: Limited, path: str, headers: dict[str, str], tmp_path: Path) -> None:
    from tests.gateway.http_client import ask

    all_models = gateway.add_key(f"all {tmp_path.name}")
    some = gateway.add_key(f"some {tmp_path.name}", models=("quick", "anthropic:*"))

    def read(key: str) -> str:
        given = [("authorization", f"Bearer {key}"), *headers.items()]
        return ask(gateway.gateway, "GET", path, None, given).body.decode()

    everything, seen = read(all_models.key), read(some.key)
    assert "quick" in everything
    assert "other" in everything
    assert "quick" in seen
    assert "clever" in seen, "it leads to a model of Anthropic"
    assert '"other"' not in seen
    assert "/other" not in seen
    assert "openai:" not in seen


def test_one_model_that_may_not_be_asked_does_not_exist(gateway: Limited) -> None:
    added = gateway.add_key("one", models=("anthropic:*",))
    assert gateway.ask(added, "/v1/models/clever", method="GET").status == 200
    for name in ("other", "quick", "openai:gpt-5"):
        answer = gateway.ask(added, f"/v1/models/{name}", method="GET")
        assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")


def test_a_request_that_cannot_be_read_is_not_forwarded_for_a_key_with_limits(
    gateway: Limited, stage: PlayedStage
) -> None:
    added = gateway.add_key("unreadable", models=("anthropic:*",))
    before = stage.count
    body = {**message(), "model": CLAUDE, "messages": "no list"}
    assert gateway.ask(added, "/v1/messages", body).status == 400
    assert stage.count == before


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-4-6"}]},
        {"tools": [{"name": "look_up", "input_schema": {"type": "object"}}, {"type": "a_2", "advisor_model": "x"}]},
        {"plugins": [{"id": "router", "allowed_models": ["claude-opus-4-6"]}]},
    ],
)
def test_a_tool_of_the_host_leads_to_no_other_model(stage: PlayedStage, gateway: Limited, more: dict[str, Any]) -> None:
    added = gateway.add_key(f"tools {more}", models=(CLAUDE,))
    before = stage.count
    answer = gateway.ask(added, "/v1/messages", {**message(), "model": CLAUDE, **more})
    assert (answer.status, stage.count) == (403, before)
    assert "may not ask every model" in answer.body.decode()


@pytest.mark.parametrize("name", [f"claude/{OTHER}", f"claude/{OTHER}[1m]", "claude/openai/gpt-5", "claude/other"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_what_clients_write_before_a_name_fits_no_pattern(
    stage: PlayedStage, gateway: Limited, name: str, path: str
) -> None:
    """Claude Code shows names only with this prefix: what follows it is the model."""
    added = gateway.add_key(f"prefix {name} {path}", models=("claude*",))
    before = stage.count
    answer = gateway.ask(added, path, {**message(), "model": name})
    assert (answer.status, stage.count) == (403, before)
    stage.play(Say(text="42"))
    assert gateway.ask(added, "/v1/messages", {**message(), "model": "claude/claude-sonnet-4-5"}).status == 200
