"""The choice between a host's dialects: the first condition that applies decides, with its reason and its notices.

The same choice in whole calls, with `explain` and the settings, is in tests/providers/test_required_endpoints.py.
"""

from __future__ import annotations

import msgspec
import pytest

from asides.providers.endpoint import Choice, EndpointRequest, choose_endpoint, is_canonical, is_responses_disabled
from asides.providers.provider import ModelRule, ModelVariant, Provider, Target
from asides.values.errors import ConfigError
from asides.values.notices import Notice

CHAT, RESPONSES = "openai_chat", "openai_responses"
OWN, PROXY = "https://own.example/v1", "https://proxy.example/v1"
CHOOSES = Provider(name="own", base_url=OWN, chooses=True, also=(ModelVariant(dialect=RESPONSES),))
NAMES_CHAT = msgspec.structs.replace(CHOOSES, chooses=False)
NAMES_RESPONSES = Provider(name="own", base_url=OWN, dialect=RESPONSES, host="o", also=(ModelVariant(dialect=CHAT),))
ONLY_CHAT = Provider(name="plain", base_url=OWN)
ELSEWHERE = Provider(name="other", base_url=OWN, dialect="anthropic")
PLAIN = ModelRule(thinking="never")
THINKS = ModelRule(thinking="optional")
ONLY_RESPONSES = ModelRule(thinking="always", endpoint="responses")
SWITCHED_OFF = "OPENAI_RESPONSES_DISABLE switches Responses off"
DISABLED = Notice(
    "responses_disabled",
    "OPENAI_RESPONSES_DISABLE is set, so chat completions are used",
    "endpoint",
    "responses",
    "chat",
)
IGNORED = Notice(
    "endpoint_ignored", "the endpoint is chat or responses; the given value is neither and was ignored", "endpoint"
)


def wish(
    *,
    thinking: bool = False,
    stateful: bool = False,
    endpoint: str | None = None,
    enabled: bool | None = None,
    disabled: bool = False,
) -> EndpointRequest:
    return EndpointRequest(thinking, stateful, endpoint, enabled, disabled)


@pytest.mark.parametrize(
    ("row", "rule", "url", "wanted", "choice"),
    [
        # 1. The environment disables Responses.
        (CHOOSES, THINKS, OWN, wish(disabled=True, thinking=True), Choice(CHAT, SWITCHED_OFF)),
        (CHOOSES, THINKS, OWN, wish(disabled=True, endpoint="responses"), Choice(CHAT, SWITCHED_OFF, (DISABLED,))),
        (NAMES_RESPONSES, PLAIN, OWN, wish(disabled=True), Choice(CHAT, SWITCHED_OFF, (DISABLED,))),
        # 2. The caller names an endpoint.
        (
            CHOOSES,
            THINKS,
            OWN,
            wish(endpoint=" Chat_Completions ", thinking=True),
            Choice(CHAT, "chosen by the caller"),
        ),
        (CHOOSES, PLAIN, OWN, wish(endpoint="responses"), Choice(RESPONSES, "chosen by the caller")),
        (ONLY_CHAT, PLAIN, OWN, wish(endpoint="chat"), Choice(CHAT, "chosen by the caller")),
        (CHOOSES, PLAIN, OWN, wish(endpoint="post"), Choice(CHAT, "nothing here needs Responses", (IGNORED,))),
        # 3. The row leaves no choice.
        (ONLY_CHAT, THINKS, OWN, wish(thinking=True), Choice(CHAT, "")),
        (ELSEWHERE, THINKS, OWN, wish(endpoint="responses"), Choice("anthropic", "")),
        (NAMES_CHAT, THINKS, OWN, wish(thinking=True), Choice(CHAT, "")),
        (NAMES_CHAT, THINKS, OWN, wish(enabled=True), Choice(RESPONSES, "openai_responses_enabled is set")),
        (NAMES_RESPONSES, PLAIN, PROXY, wish(), Choice(RESPONSES, "set in the provider row")),
        # 4. The model exists only there; 5. the provider stores the conversation.
        (
            CHOOSES,
            ONLY_RESPONSES,
            PROXY,
            wish(enabled=False),
            Choice(RESPONSES, "the model exists only at this endpoint"),
        ),
        (
            CHOOSES,
            PLAIN,
            PROXY,
            wish(stateful=True),
            Choice(RESPONSES, "the provider stores conversations only at this endpoint"),
        ),
        # 6. The settings, at an address that is not the provider's own.
        (CHOOSES, PLAIN, PROXY, wish(enabled=True), Choice(RESPONSES, "openai_responses_enabled is set")),
        (CHOOSES, THINKS, PROXY, wish(thinking=True), Choice(CHAT, "the address is not the provider's own")),
        # 7. The provider's own address.
        (
            CHOOSES,
            PLAIN,
            OWN,
            wish(thinking=True),
            Choice(RESPONSES, "thinking was requested, and only this endpoint returns it"),
        ),
        (
            CHOOSES,
            THINKS,
            OWN,
            wish(),
            Choice(RESPONSES, "the model thinks, and only this endpoint keeps its thoughts between turns"),
        ),
        (CHOOSES, PLAIN, OWN, wish(enabled=True), Choice(CHAT, "nothing here needs Responses")),
        (
            CHOOSES,
            ModelRule(tools_while_thinking=False, tools_need_off=True),
            OWN,
            EndpointRequest(tools=True),
            Choice(RESPONSES, "the model accepts tools only at this endpoint"),
        ),
        (CHOOSES, THINKS, OWN, wish(enabled=False), Choice(CHAT, "openai_responses_enabled is false")),
    ],
)
def test_the_first_condition_that_applies_decides(
    row: Provider, rule: ModelRule, url: str, wanted: EndpointRequest, choice: Choice
) -> None:
    assert choose_endpoint(Target(row, "m", url, rule), wanted) == choice


@pytest.mark.parametrize(
    ("row", "rule", "wanted", "says"),
    [
        (CHOOSES, ONLY_RESPONSES, wish(disabled=True), "own:m exists only on .*Unset OPENAI_RESPONSES_DISABLE"),
        (CHOOSES, ONLY_RESPONSES, wish(endpoint="chat"), "own:m exists only on the Responses endpoint"),
        (ONLY_CHAT, ONLY_RESPONSES, wish(), "plain:m exists only on the Responses endpoint"),
        (ONLY_CHAT, PLAIN, wish(endpoint="responses"), "plain is not known to speak openai_responses"),
    ],
)
def test_an_endpoint_that_cannot_serve_the_model_raises(
    row: Provider, rule: ModelRule, wanted: EndpointRequest, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        choose_endpoint(Target(row, "m", OWN, rule), wanted)


@pytest.mark.parametrize(
    ("rule", "asked", "choice"),
    [
        (ModelRule(), None, Choice("gemini", "")),
        (ModelRule(), "interactions", Choice("gemini_interactions", "chosen by the caller")),
        (
            ModelRule(endpoint="interactions"),
            None,
            Choice("gemini_interactions", "the model exists only at this endpoint"),
        ),
        (
            ModelRule(endpoint="interactions"),
            "chat",
            Choice("gemini_interactions", "the model exists only at this endpoint"),
        ),
    ],
)
def test_an_endpoint_that_is_neither_chat_nor_responses_is_chosen(
    rule: ModelRule, asked: str | None, choice: Choice
) -> None:
    row = Provider(name="own", base_url=OWN, dialect="gemini", also=(ModelVariant(dialect="gemini_interactions"),))
    assert choose_endpoint(Target(row, "m", OWN, rule), EndpointRequest(endpoint=asked)) == choice
    forced = msgspec.structs.replace(row, dialect="gemini_interactions", also=())
    assert choose_endpoint(Target(forced, "m", OWN, rule), EndpointRequest()) == Choice("gemini_interactions", "")


def test_another_server_at_another_address_may_translate() -> None:
    assert choose_endpoint(Target(ONLY_CHAT, "m", PROXY, ONLY_RESPONSES), wish()) == Choice(CHAT, "")


AZURE = Provider(name="cloud", own_hosts=(".openai.example", "one.example"))


@pytest.mark.parametrize(
    ("row", "url", "own"),
    [
        (CHOOSES, OWN, True),
        (CHOOSES, "https://OWN.example:443/v1/", True),
        (CHOOSES, "http://own.example/v1", False),
        (CHOOSES, "https://own.example:8443/v1", False),
        (CHOOSES, "https://own.example/v2", False),
        (CHOOSES, "https://own.example.evil/v1", False),
        (CHOOSES, "https:///v1", False),
        (AZURE, "https://resource.openai.example/anything", True),
        (AZURE, "https://one.example", True),
        (AZURE, "https://a.b.openai.example", True),
        (AZURE, "https://openai.example", False),
        (AZURE, "https://.openai.example", False),
        (AZURE, "https://..openai.example", False),
        (AZURE, "https://a..openai.example", False),
        (AZURE, "https://evilopenai.example", False),
        (AZURE, "https://resource.openai.example.evil", False),
        (AZURE, "https://two.one.example", False),
        (AZURE, "https://resource.openai.example:8443", False),
        (AZURE, "https://resource.openai.example/openai/deployments/mine", False),
    ],
)
def test_an_address_is_the_provider_s_own_or_it_is_not(row: Provider, url: str, own: bool) -> None:
    assert is_canonical(Target(row, "m", url)) is own


@pytest.mark.parametrize(
    ("word", "disabled"),
    [("true", True), (" YES ", True), ("1", True), ("on", True), ("", False), ("0", False), ("false", False)],
)
def test_the_environment_disables_responses_with_a_word_that_means_yes(word: str, disabled: bool) -> None:
    assert is_responses_disabled({"OPENAI_RESPONSES_DISABLE": word}) is disabled
    assert not is_responses_disabled({})
