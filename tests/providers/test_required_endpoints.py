"""Which endpoint a call goes to: the order of the reasons, one by one, and what `explain` says of it."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.providers.endpoint import Choice, EndpointRequest, choose_endpoint, is_canonical
from asides.providers.find import find_target
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides_stage.stage import OpenStage, Say

PROXY = "https://proxy.example/v1"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_RESPONSES_DISABLE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def choose(model: str, base_url: str | None = None, **wish: Any) -> Choice:
    return choose_endpoint(find_target(model, base_url=base_url), EndpointRequest(**wish))


def dialect(model: str, base_url: str | None = None, **wish: Any) -> str:
    return choose(model, base_url, **wish).dialect


@pytest.mark.requirement("S4-REQ-005.2", "S4-REQ-009.2", "FT-20", "S4-S2", "S4-EC5")
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


@pytest.mark.requirement("S0-50")
def test_J3_a_custom_address_gets_chat() -> None:
    assert dialect("openai:gpt-5", PROXY, thinking=True) == "openai_chat"


@pytest.mark.requirement("S0-69", "S1-32")
def test_S0_54_where_no_thinking_is_asked_of_a_model_that_does_not_reason_it_is_chat() -> None:
    told = asides.explain("openai:gpt-4o", "?", max_tokens=100)
    assert (told.url, told.method) == ("https://api.openai.com/v1/chat/completions", "POST")
    assert told.body["messages"] == [{"role": "user", "content": "?"}]
    assert asides.explain("openai:some-new-model", "?").url.endswith("/chat/completions")
    assert asides.explain("openai:some-new-model", "?", thinking="low").url.endswith("/responses")


@pytest.mark.requirement("FT-20")
@pytest.mark.parametrize(
    ("model", "options", "settings", "url"),
    [
        ("openai:gpt-4o", {}, {}, "https://api.openai.com/v1/chat/completions"),
        ("openai:gpt-5", {}, {}, "https://api.openai.com/v1/responses"),
        ("openai:gpt-5", {}, {"openai_responses_enabled": False}, "https://api.openai.com/v1/chat/completions"),
        ("openai:gpt-5", {"base_url": PROXY}, {}, f"{PROXY}/chat/completions"),
        ("openai:gpt-5", {"base_url": PROXY}, {"openai_responses_enabled": True}, f"{PROXY}/responses"),
        ("openai:gpt-5", {"endpoint": "chat"}, {}, "https://api.openai.com/v1/chat/completions"),
        ("openai:gpt-4o", {"endpoint": "responses"}, {}, "https://api.openai.com/v1/responses"),
    ],
    ids=["model", "model that reasons", "switched off", "address", "address, switched on", "chat named", "named"],
)
def test_S4_A4_the_endpoint_is_decided_by_model_and_configuration(
    model: str, options: dict[str, Any], settings: dict[str, Any], url: str
) -> None:
    assert asides.explain(model, "?", settings=load_settings({}, **settings), **options).url == url


@pytest.mark.requirement("S0-45", "S0-74", "S0-60", "S1-10")
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("enabled", "path"), [(False, "/chat/completions"), (True, "/responses")])
def test_S0_52_a_call_with_named_options_reaches_either_endpoint(
    enabled: bool, path: str, streaming: bool, stage: OpenStage
) -> None:
    opened = stage(Say(text="forty-two", piece=4))
    options: dict[str, Any] = {"system": "Be brief.", "max_tokens": 500, "openai_responses_enabled": enabled}
    where: dict[str, Any] = {"base_url": opened.url, "api_key": "k"}
    if streaming:
        with asides.stream("openai:gpt-4o", "?", temperature=0.5, **options, **where) as events:
            reply = events.reply
    else:
        reply = asides.ask("openai:gpt-4o", "?", temperature=0.5, **options, **where)
    (asked,) = opened.requests
    assert (reply.text, asked.problem) == ("forty-two", None)
    assert asked.path.endswith(path)
    assert (asked.json["temperature"], asked.json.get("stream", False)) == (0.5, streaming)
    limit = "max_output_tokens" if enabled else "max_completion_tokens"
    assert asked.json[limit] == 500


@pytest.mark.requirement("FT-13")
def test_S4_REQ_009_1_chat_is_asked_as_it_always_was() -> None:
    tool = {"name": "look_up", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "18 °C"},
    ]
    told = asides.explain(
        "openai:gpt-4o", history, system="Be brief.", tools=[tool], temperature=0.5, top_p=0.9, stop=["END"], seed=7
    )
    assistant = {name: value for name, value in history[1].items() if value is not None}
    assert told.body == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, history[0], assistant, history[2]],
        "tools": [{"type": "function", "function": tool}],
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["END"],
    }


@pytest.mark.requirement("S1-31", "S0-53", "S1-06", "pain D5", "FT-20")
def test_J4_the_provider_s_own_address_and_thinking_get_responses() -> None:
    assert dialect("openai:gpt-5") == "openai_responses"
    assert dialect("openai:some-new-model", thinking=True) == "openai_responses"
    assert dialect("openai:gpt-4o") == "openai_chat"
    assert dialect("openai:gpt-5", enabled=False) == "openai_chat"
    # Tools beside an effort, which chat refuses of these models.
    assert asides.explain("openai:gpt-5.6", "?", thinking="high", tools=[{"name": "f"}]).url.endswith("/responses")


@pytest.mark.requirement("FT-20")
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


@pytest.mark.requirement("S3-12")
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
