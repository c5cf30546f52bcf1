"""A request for another dialect: nothing of the caller's own dialect leaks, what is left out is told or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.relay.translate.field_rules import FIELD_RULES, find_rule
from asides.relay.translate.translate_fields import UntranslatableField, fit_prompt
from tests.relay.translated import BASES, PAIRS, put, read, target_of, translate


@pytest.mark.parametrize(("caller", "to"), PAIRS)
def test_a_plain_request_needs_no_words_and_is_accepted(caller: str, to: str) -> None:
    translated = translate(caller, BASES[caller], to)
    assert translated.find_refusal() is None
    assert not [notice for notice in translated.notices if "not_sent" in notice.code]


@pytest.mark.parametrize(("caller", "to"), PAIRS)
def test_an_unknown_field_is_told_by_its_name_and_never_leaks(caller: str, to: str) -> None:
    translated = translate(caller, put(BASES[caller], "tomorrow", {"a": "leaked"}), to)
    assert "tomorrow" in translated.told
    assert "leaked" not in json.dumps(translated.body)
    assert translated.find_refusal() is None


@pytest.mark.parametrize("caller", sorted(BASES))
def test_in_its_own_dialect_every_field_stays(caller: str) -> None:
    served = read(caller, put(BASES[caller], "tomorrow", 1))
    prompt, notices = fit_prompt(served, caller, target_of(caller))
    assert prompt.extra["tomorrow"] == 1
    assert notices == ()


RULES = [(caller, name, rule) for caller, rules in FIELD_RULES.items() for name, rule in rules.items()]


@pytest.mark.parametrize(
    ("caller", "name"), [(caller, name) for caller, name, rule in RULES if rule.action == "refuse"]
)
def test_a_field_without_which_the_answer_is_wrong_is_refused_by_name(caller: str, name: str) -> None:
    body = put(BASES[caller], name, {"type": "create"} if name == "thread" else 5)
    to = "gemini" if caller != "gemini" else "anthropic"
    with pytest.raises(UntranslatableField, match="Leave") as refused:
        translate(caller, body, to)
    assert refused.value.param == name
    assert find_rule(caller, name).why in str(refused.value)


@pytest.mark.parametrize(
    ("caller", "name", "value"),
    [(caller, name, value) for caller, name, rule in RULES for value in rule.harmless],
)
def test_a_value_that_asks_for_nothing_passes_in_silence(caller: str, name: str, value: Any) -> None:
    translated = translate(caller, put(BASES[caller], name, value), "anthropic" if caller != "anthropic" else "gemini")
    assert name.rpartition(".")[2] not in translated.told
    assert translated.find_refusal() is None


TOLD = [(caller, name) for caller, name, rule in RULES if rule.action in ("tell", "quiet")]
# The reader of the dialect takes these; what it cannot read stays.
_VALUES: dict[tuple[str, str], Any] = {
    ("bedrock", "system"): [{"guardContent": {}}],
    ("bedrock", "requestMetadata"): {"purpose": "test"},
    ("ollama", "format"): "yaml",
    ("openai_chat", "metadata"): {"purpose": "test"},
}
# It concerns the stream that the relay writes itself; every other effort is an effort.
_READ = {("openai_responses", "stream_options"), ("openai_chat", "reasoning_effort")}


@pytest.mark.parametrize(("caller", "name"), [each for each in TOLD if each not in _READ])
def test_every_other_field_of_the_table_is_told(caller: str, name: str) -> None:
    value = _VALUES.get((caller, name), {"type": "x"})
    translated = translate(caller, put(BASES[caller], name, value), "gemini" if caller != "gemini" else "anthropic")
    assert name.rpartition(".")[2].replace("requestMetadata", "metadata") in translated.told


@pytest.mark.parametrize("caller", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("setting", [{"top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}])
def test_log_probabilities_are_refused_everywhere(caller: str, setting: dict[str, Any]) -> None:
    given = setting if caller == "openai_chat" else {"top_logprobs": 3}
    for to in ("anthropic", caller):
        with pytest.raises(UntranslatableField, match="no log probabilities"):
            translate(caller, {**BASES[caller], **given}, to)


def test_several_replies_are_refused_in_the_same_dialect_too() -> None:
    with pytest.raises(UntranslatableField, match="one reply"):
        fit_prompt(read("openai_chat", {**BASES["openai_chat"], "n": 2}), "openai_chat", target_of("openai_chat"))


def test_a_stored_conversation_is_refused() -> None:
    for field in ("previous_response_id", "conversation"):
        with pytest.raises(UntranslatableField, match="stored only"):
            translate("openai_responses", {**BASES["openai_responses"], field: "x_1"}, "gemini")


# --- fields with a twin -----------------------------------------------------------------------------------------------


def test_settings_of_one_maker_go_between_its_two_dialects() -> None:
    body = {**BASES["openai_chat"], "verbosity": "low", "service_tier": "flex", "prompt_cache_key": "k"}
    sent = translate("openai_chat", body, "openai_responses").body
    assert (sent["text"], sent["service_tier"], sent["prompt_cache_key"]) == ({"verbosity": "low"}, "flex", "k")
    body = {**BASES["openai_responses"], "text": {"verbosity": "low"}, "service_tier": "flex"}
    sent = translate("openai_responses", body, "openai_chat").body
    assert (sent["verbosity"], sent["service_tier"]) == ("low", "flex")
    told = translate("openai_responses", body, "anthropic").told
    assert "text.verbosity" in told
    assert "service_tier" in told


def test_the_user_goes_by_the_name_of_each_dialect() -> None:
    sent = translate("openai_chat", {**BASES["openai_chat"], "safety_identifier": "u1"}, "anthropic").body
    assert sent["metadata"] == {"user_id": "u1"}
    long = "user_" + "x" * 150
    translated = translate("anthropic", {**BASES["anthropic"], "metadata": {"user_id": long}}, "openai_responses")
    assert len(translated.body["user"]) == 64
    assert long not in json.dumps(translated.body)
    assert "user_shortened" in translated.told


def test_a_limit_below_the_least_is_raised() -> None:
    translated = translate("anthropic", {**BASES["anthropic"], "max_tokens": 1}, "openai_responses")
    assert translated.body["max_output_tokens"] == 16
    assert "max_tokens_raised" in translated.told


def test_a_cache_of_the_whole_request_is_asked_for_elsewhere_too() -> None:
    body = {**BASES["anthropic"], "cache_control": {"type": "ephemeral"}}
    translated = translate("anthropic", body, "bedrock")
    assert translated.prompt.cache is True
    assert "cache_control" not in json.dumps(translated.body)


def test_fields_without_number_are_told_of_together() -> None:
    odd = {f"field_{number}": number for number in range(3000)} | {"x" * 5000: 1}
    served = read("openai_chat", {**BASES["openai_chat"], **odd})
    _, notices = fit_prompt(served, "openai_chat", target_of("anthropic"))
    assert len(notices) < 60
    assert any("2951 more fields" in notice.detail for notice in notices)
    assert all(len(notice.detail) < 500 for notice in notices)
