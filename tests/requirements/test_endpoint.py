"""Which endpoint a call goes to: the order of the reasons, one by one, and what `explain` says of it."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.providers.endpoint import Choice, EndpointRequest, choose_endpoint, is_canonical
from asides.providers.find import find_target
from asides.settings import load_settings
from asides.values.errors import ConfigError

PROXY = "https://proxy.example/v1"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_RESPONSES_DISABLE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def choose(model: str, base_url: str | None = None, **wish: Any) -> Choice:
    return choose_endpoint(find_target(model, base_url=base_url), EndpointRequest(**wish))


def dialect(model: str, base_url: str | None = None, **wish: Any) -> str:
    return choose(model, base_url, **wish).dialect


@pytest.mark.requirement("S4-REQ-005.2", "S4-REQ-009.2", "FT-20", "S4-A4", "S4-S2", "S4-EC5")
def test_J1_the_switch_in_the_environment_beats_every_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dialect("openai:gpt-5", PROXY, enabled=True, disabled=True) == "openai_chat"
    assert dialect("openai:gpt-5", endpoint="responses", thinking=True, disabled=True) == "openai_chat"
    named = choose("openai-responses:gpt-5", disabled=True)
    assert named.dialect == "openai_chat"
    assert [notice.code for notice in named.notices] == ["responses_disabled"]
    monkeypatch.setenv("OPENAI_RESPONSES_DISABLE", "true")
    assert asides.explain("openai:gpt-5", "?", thinking="high").url.endswith("/chat/completions")


@pytest.mark.parametrize("word", ["", "false", "0", "no"])
def test_J1_another_word_in_the_environment_switches_nothing_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_RESPONSES_DISABLE", word)
    assert asides.explain("openai:gpt-5", "?").url.endswith("/responses")


@pytest.mark.requirement("S4-REQ-005.1", "S4-S2")
def test_J2_switched_on_a_custom_address_gets_responses() -> None:
    assert dialect("openai:gpt-4o", PROXY, enabled=True) == "openai_responses"
    told = asides.explain(
        "openai:gpt-4o", "?", base_url=PROXY, settings=load_settings({}, openai_responses_enabled=True)
    )
    assert told.url == f"{PROXY}/responses"
    assert (
        asides.explain("openai:gpt-4o", "?", base_url=PROXY, openai_responses_enabled=True).url == f"{PROXY}/responses"
    )


@pytest.mark.requirement("S0-54", "S0-69", "S1-32", "S0-50")
def test_J3_a_custom_address_gets_chat() -> None:
    assert dialect("openai:gpt-5", PROXY, thinking=True) == "openai_chat"


@pytest.mark.requirement("S1-31", "S0-53", "S0-74", "S1-06", "S0-45", "S0-52", "pain D5")
def test_J4_the_provider_s_own_address_and_thinking_get_responses() -> None:
    assert dialect("openai:gpt-5") == "openai_responses"
    assert dialect("openai:some-new-model", thinking=True) == "openai_responses"
    assert dialect("openai:gpt-4o") == "openai_chat"
    assert dialect("openai:gpt-5", enabled=False) == "openai_chat"
    # Tools beside an effort, which chat refuses of these models.
    assert asides.explain("openai:gpt-5.6", "?", thinking="high", tools=[{"name": "f"}]).url.endswith("/responses")


def test_J5_chat_named_for_a_model_that_is_only_on_responses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for model, wish in (("openai-chat:gpt-5-pro", {}), ("openai:gpt-5-pro", {"endpoint": "chat"})):
        with pytest.raises(ConfigError, match="only on the Responses endpoint"):
            choose(model, **wish)
    assert dialect("openai:gpt-5-pro", PROXY) == "openai_responses"
    with pytest.raises(ConfigError, match="OPENAI_RESPONSES_DISABLE"):
        choose("openai:gpt-5-pro", disabled=True)
    monkeypatch.setenv("OPENAI_RESPONSES_DISABLE", "1")
    with pytest.raises(ConfigError, match="OPENAI_RESPONSES_DISABLE"):
        asides.explain("openai:o3-pro", "?")


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.example/v1",
        "https://xapi.openai.com/v1",
        "https://evil.example/api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com/other",
    ],
)
def test_J6_what_looks_like_the_address_is_not_it(url: str) -> None:
    assert not is_canonical(find_target("openai:gpt-5", base_url=url))
    assert dialect("openai:gpt-5", url, thinking=True) == "openai_chat"


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1/", "HTTPS://API.OpenAI.com:443/v1", "https://api.openai.com/v1/responses"]
)
def test_J6_another_spelling_of_the_address_is_it(url: str) -> None:
    assert is_canonical(find_target("openai:gpt-5", base_url=url))


def test_J7_an_endpoint_that_is_none_is_ignored_and_told() -> None:
    choice = choose("openai:gpt-5", endpoint="telepathy")
    assert choice.dialect == "openai_responses"
    assert [notice.code for notice in choice.notices] == ["endpoint_ignored"]


@pytest.mark.requirement("S3-12", "S0-51")
def test_rows_and_words_that_name_the_endpoint() -> None:
    assert dialect("openai-responses:gpt-4o", PROXY) == "openai_responses"
    assert dialect("openai-chat:gpt-5") == "openai_chat"
    assert dialect("openai:gpt-4o", endpoint="responses") == "openai_responses"
    assert dialect("openai:gpt-5", endpoint="chat") == "openai_chat"
    assert dialect("vllm:any", endpoint="responses") == "openai_responses"
    assert dialect("vllm:any") == "openai_chat"
    with pytest.raises(ConfigError, match="not known to speak"):
        choose("groq:any", endpoint="responses")


def test_state_with_the_provider_needs_responses() -> None:
    assert dialect("openai:gpt-4o", PROXY, stateful=True) == "openai_responses"
    assert asides.explain("openai:gpt-4o", "?", previous_response_id="resp_1").url.endswith("/responses")


def test_azure_s_own_hosts_and_the_older_address() -> None:
    def at(host: str, **wish: Any) -> str:
        return choose_endpoint(
            find_target("azure:mine", base_url=host, family="gpt-5"), EndpointRequest(**wish)
        ).dialect

    assert at("https://r.openai.azure.com") == "openai_responses"
    assert at("https://r.openai.azure.com.evil.example") == "openai_chat"
    assert at("https://r.openai.azure.com?api-version=2024-10-21") == "openai_chat"


def test_explain_says_why() -> None:
    told = asides.explain("openai:gpt-5", "?")
    assert "openai_responses: the model thinks" in told.to_text()
    assert asides.explain("openai:gpt-4o", "?").to_text().splitlines()[1] == "openai_chat: nothing here needs Responses"


def test_a_thought_of_one_row_is_at_home_in_the_other_rows_of_its_host() -> None:
    origins = {find_target(f"{name}:gpt-5").origin for name in ("openai", "openai-responses", "openai-chat")}
    assert len(origins) == 1
