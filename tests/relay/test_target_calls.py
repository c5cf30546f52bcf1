"""The calls of a request: one for each target, in the caller's dialect where the host speaks it."""

from __future__ import annotations

import pytest

from asides.dialects.dialect import ServedRequest
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.relay.endpoints import find_endpoint
from asides.relay.relay_config import Caller, RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.relay.request_options import RequestOptions, collect_options
from asides.relay.routes import Route
from asides.relay.target_calls import build_calls
from asides.settings import Settings
from asides.values.errors import MissingKey
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
from asides.values.tools import Tool

_PROMPT = Prompt((user("?"),))


def _build(
    path: str, *models: str, prompt: Prompt = _PROMPT, config: RelayConfig | None = None
) -> list[tuple[str, str]]:
    caller = Caller(
        RelayRequest("", "POST", path),
        find_endpoint("POST", path, "", {}),
        CallBuilder(settings=Settings()),
        config or RelayConfig(),
    )
    options = RequestOptions(Options(on_conflict="adjust"), models, False)
    call = build_calls(caller, ServedRequest(prompt, models[0], False), options)
    return [(each.model, each.target.dialect) for each in (call, *call.fallbacks)]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def test_a_host_with_two_dialects_is_asked_in_that_of_the_caller() -> None:
    assert _build("/v1/responses", "openai:gpt-4o") == [("openai:gpt-4o", "openai_responses")]
    assert _build("/v1/chat/completions", "openai:gpt-5") == [("openai:gpt-5", "openai_chat")]


def test_the_home_is_asked_in_the_dialect_of_its_client() -> None:
    """The official client alone would ask this server for Responses too."""
    home = RelayConfig(
        home="openai-compatible", home_options=Options(base_url="http://127.0.0.1:9/v1", api_key="sk-test")
    )
    model = "openai-compatible:any"
    assert _build("/v1/responses", model, config=home) == [(model, "openai_responses")]
    assert _build("/v1/chat/completions", model, config=home) == [(model, "openai_chat")]


def test_thinking_that_was_asked_for_comes_back_only_from_one() -> None:
    prompt = Prompt((user("?"),), thinking=Thinking(effort="high"))
    assert _build("/v1/chat/completions", "openai:gpt-5", prompt=prompt) == [("openai:gpt-5", "openai_responses")]


def test_targets_without_a_key_are_left_out() -> None:
    assert _build("/v1/messages", "anthropic:claude-opus-4-5", "openai:gpt-4o") == [("openai:gpt-4o", "openai_chat")]
    with pytest.raises(MissingKey):
        _build("/v1/messages", "anthropic:claude-opus-4-5")


def test_the_key_of_the_home_goes_nowhere_else() -> None:
    config = RelayConfig(home="anthropic", home_options=Options(api_key="sk-home"))
    assert _build("/v1/messages", "anthropic:claude-opus-4-5", config=config)
    with pytest.raises(MissingKey):
        _build("/v1/messages", "mistral:mistral-large-latest", config=config)


def test_an_agent_may_have_many_tools() -> None:
    tools = tuple(Tool(f"tool_{number}", "x" * 500) for number in range(200))
    caller = Caller(
        RelayRequest("", "POST", "/v1/messages"),
        find_endpoint("POST", "/v1/messages", "", {}),
        CallBuilder(settings=Settings()),
        RelayConfig(),
    )
    prompt = Prompt((user("?"),), tools=tools)
    options = collect_options({}, prompt, Route(("openai:gpt-5",)), caller.config, caller.builder)
    assert len(build_calls(caller, ServedRequest(prompt, "x", False), options).prompt.tools) == 200


def test_the_key_of_the_home_does_not_follow_another_address() -> None:
    path = "/v1/chat/completions"
    config = RelayConfig(home="openai", home_options=Options(api_key="sk-of-the-client"), trusts_callers=True)
    caller = Caller(
        RelayRequest("", "POST", path), find_endpoint("POST", path, "", {}), CallBuilder(settings=Settings()), config
    )
    served = ServedRequest(_PROMPT, "openai:gpt-4o", False)
    for named, expected in (
        (Options(), "sk-of-the-client"),
        (Options(base_url="https://elsewhere.test/v1"), "sk-test"),
        (Options(base_url="https://elsewhere.test/v1", api_key="sk-named"), "sk-named"),
    ):
        call = build_calls(caller, served, RequestOptions(named, ("openai:gpt-4o",), False))
        assert call.key is not None
        assert call.key.reveal() == expected
