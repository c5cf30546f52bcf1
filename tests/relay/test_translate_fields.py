"""A request for another dialect: nothing of the caller's own dialect leaks, what is left out is told or refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import DIALECTS
from asides.providers.find import find_target
from asides.relay.field_rules import FIELD_RULES, find_rule, split_fields
from asides.relay.translate_fields import UntranslatableField, fit_prompt
from asides.relay.translate_reply import write_refusal
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.relay.translated import TARGETS, Translated, read, target_of, translate

USER = [{"role": "user", "content": "hi"}]
BASES: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 1000, "messages": USER},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "cohere": {"model": "m", "messages": USER},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "ollama": {"model": "m", "messages": USER, "stream": False},
    "openai_chat": {"model": "m", "messages": USER},
    "openai_responses": {"model": "m", "input": "hi"},
}
PAIRS = [(caller, to) for caller in sorted(BASES) for to in sorted(TARGETS) if caller != to]


def put(body: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The body with a field; "a.b" is the field b of the object a."""
    outer, _, inner = name.partition(".")
    return {**body, outer: {**body.get(outer, {}), inner: value} if inner else value}


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
    with pytest.raises(UntranslatableField, match="To do: leave") as refused:
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


def test_the_error_says_what_clients_look_for() -> None:
    with pytest.raises(UntranslatableField) as refused:
        translate("anthropic", {**BASES["anthropic"], "thread": {"type": "create"}}, "openai_chat")
    error = json.loads(write_refusal("anthropic", refused.value))["error"]
    assert error["details"]["error_code"] == "thread_unsupported_request"
    assert error["type"] == "invalid_request_error"
    with pytest.raises(UntranslatableField) as refused:
        translate("openai_chat", {**BASES["openai_chat"], "n": 2}, "gemini")
    for caller in ("openai_chat", "openai_responses"):
        assert json.loads(write_refusal(caller, refused.value))["error"]["param"] == "n"
    for caller in sorted(set(DIALECTS) - {"openai_chat", "openai_responses"}):
        assert b"one reply" in write_refusal(caller, refused.value)


def test_the_table_knows_every_dialect() -> None:
    assert set(FIELD_RULES) == set(DIALECTS)
    assert split_fields("gemini", {"generationConfig": {"a": 1}, "b": 2}) == {"generationConfig.a": 1, "b": 2}


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


def test_sampling_stays_within_the_bounds_of_the_target() -> None:
    body = put(put(BASES["gemini"], "generationConfig.temperature", 1.7), "generationConfig.topK", 64)
    body = put(body, "generationConfig.topP", 0.95)
    chat = translate("gemini", body, "openai_chat")
    assert "top_k" not in chat.body
    assert "top_k" in chat.told
    cohere = translate("gemini", body, "cohere").body
    assert (cohere["temperature"], cohere["k"]) == (1, 64)
    bedrock = translate("gemini", put(body, "generationConfig.thinkingConfig", {"thinkingBudget": 0}), "bedrock")
    assert bedrock.body["inferenceConfig"]["temperature"] == 1
    assert "topP" not in bedrock.body["inferenceConfig"]


def test_stop_sequences_are_as_many_as_the_target_takes() -> None:
    stops = ["a", "b", "c", "d", "e", "f", " "]
    body = {**BASES["anthropic"], "stop_sequences": stops}
    assert translate("anthropic", body, "gemini").body["generationConfig"]["stopSequences"] == stops[:5]
    sent = translate("openai_chat", {**BASES["openai_chat"], "stop": ["a", " "]}, "anthropic")
    assert sent.body["stop_sequences"] == ["a"]
    assert "blank" in sent.told


def test_a_cache_of_the_whole_request_is_asked_for_elsewhere_too() -> None:
    body = {**BASES["anthropic"], "cache_control": {"type": "ephemeral"}}
    translated = translate("anthropic", body, "bedrock")
    assert translated.prompt.cache is True
    assert "cache_control" not in json.dumps(translated.body)


# --- the form of the answer -------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "word": {"type": "string"}},
    "required": ["n"],
}
FORMS: dict[str, dict[str, Any]] = {
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "bedrock": {
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA), "name": "a"}},
            }
        }
    },
    "cohere": {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
    "gemini": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    "ollama": {"format": SCHEMA},
    "openai_chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    "openai_responses": {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
}


@pytest.mark.parametrize(("caller", "to"), PAIRS)
def test_a_schema_reaches_every_model_as_a_setting_or_as_words(caller: str, to: str) -> None:
    translated = translate(caller, {**BASES[caller], **FORMS[caller]}, to)
    sent = json.dumps(translated.body).replace("\\", "")
    assert '"word"' in sent
    assert '"integer"' in sent
    assert "schema_not_sent" not in translated.told
    assert translated.find_refusal() is None


def test_a_host_without_schemas_gets_it_in_the_instructions_in_the_same_dialect_too() -> None:
    served = read("openai_chat", {**BASES["openai_chat"], **FORMS["openai_chat"]})
    translated = Translated(served, "openai_chat", find_target("deepseek:deepseek-v4-pro"))
    assert '"word"' in (translated.prompt.system or "")
    assert translated.body["response_format"] == {"type": "json_object"}
    assert "schema_instructed" in translated.told


def test_strict_mode_is_not_asked_for_a_schema_that_it_refuses() -> None:
    sent = translate("anthropic", {**BASES["anthropic"], **FORMS["anthropic"]}, "openai_chat")
    assert sent.body["response_format"]["json_schema"]["strict"] is False
    assert "schema_not_strict" in sent.told


def test_a_gemini_schema_becomes_a_json_schema() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["a"]},
            "l": {"type": "ARRAY", "minItems": "1"},
        },
        "propertyOrdering": ["type", "l"],
    }
    body = put(
        put(BASES["gemini"], "generationConfig.responseSchema", schema),
        "generationConfig.responseMimeType",
        "application/json",
    )
    prompt = read("gemini", body).prompt
    assert prompt.output is not None
    assert prompt.output != "json"
    assert prompt.output.schema == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", None]},
            "l": {"type": "array", "minItems": 1},
        },
    }


# --- messages ---------------------------------------------------------------------------------------------------------

LINE = "x-anthropic-billing-header: cc_version=2.1.197.abc; cc_entrypoint=cli; cch=12ab3;"


@pytest.mark.parametrize("to", sorted(set(TARGETS) - {"anthropic"}))
@pytest.mark.parametrize(
    "system",
    [
        [{"type": "text", "text": LINE}, {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}],
        [{"type": "text", "text": f"{LINE}\nYou help."}],
        f"{LINE}\n\nYou help.",
    ],
)
def test_the_line_that_changes_with_every_request_is_dropped_only_for_others(to: str, system: Any) -> None:
    body = {**BASES["anthropic"], "system": system}
    sent = json.dumps(translate("anthropic", body, to).body)
    assert "billing" not in sent
    assert "You help." in sent
    assert "billing" in json.dumps(translate("anthropic", body, "anthropic").body)


@pytest.mark.parametrize("to", ["openai_chat", "openai_responses", "ollama", "cohere"])
def test_a_system_message_behind_the_question_stands_before_it(to: str) -> None:
    body = {**BASES["anthropic"], "messages": [*USER, {"role": "system", "content": "Be brief."}]}
    translated = translate("anthropic", body, to)
    assert [message.role for message in translated.prompt.messages] == ["system", "user"]
    assert "system_moved" in translated.told
    assert translated.find_refusal() is None


def test_parts_of_the_callers_provider_are_left_out_and_named() -> None:
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "found"},
    ]
    messages = [
        *USER,
        {"role": "assistant", "content": content},
        *USER,
        {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
    ]
    for to in sorted(set(TARGETS) - {"anthropic"}):
        translated = translate("anthropic", {**BASES["anthropic"], "messages": messages}, to)
        sent = json.dumps(translated.body)
        assert "found" in sent
        assert "srvtoolu" not in sent
        assert "container_upload" not in sent
        assert all(name in translated.told for name in ("web_search", "container_upload"))


def test_a_search_result_of_the_caller_is_text_elsewhere() -> None:
    block = {
        "type": "search_result",
        "title": "T",
        "source": "https://x",
        "content": [{"type": "text", "text": "the facts"}],
    }
    body = {**BASES["anthropic"], "messages": [{"role": "user", "content": [block, {"type": "text", "text": "?"}]}]}
    assert "the facts" in json.dumps(translate("anthropic", body, "openai_chat").body)


def test_seals_of_unknown_origin_stay_behind_and_others_go_on() -> None:
    origin = Origin("anthropic", "https://api.anthropic.com", "claude-opus-5-5")
    known = Thought("a", "summary", "block", origin, (Seal("signature", "s1", origin),))
    ours = Thought("b", "summary", "block", None, (Seal("signature", "asd1.k.x"),))
    unknown = Thought("c", "summary", "block", None, (Seal("signature", "s3"),))
    served = read("openai_chat", BASES["openai_chat"])
    message = Message("assistant", (known, ours, unknown, Text("t"), UnknownPart("{}", origin)))
    prompt = msgspec.structs.replace(
        served.prompt, messages=(*served.prompt.messages, message, *served.prompt.messages)
    )
    fitted, _ = fit_prompt(msgspec.structs.replace(served, prompt=prompt), "openai_chat", target_of("anthropic"))
    parts = fitted.messages[1].parts
    assert [part.seals for part in parts if isinstance(part, Thought)] == [known.seals, ours.seals, ()]
    assert isinstance(parts[-1], UnknownPart)


def test_a_result_that_is_an_error_says_so_where_there_is_no_field() -> None:
    call = {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "no such file", "is_error": True}
    messages = [*USER, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body = {**BASES["anthropic"], "messages": messages, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
    assert "Error: no such file" in json.dumps(translate("anthropic", body, "openai_chat").body)
    gemini = translate("anthropic", body, "gemini").body
    assert gemini["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"error": "no such file"}
    bedrock = translate("anthropic", body, "bedrock").body
    assert bedrock["messages"][-1]["content"][0]["toolResult"]["status"] == "error"


def test_a_resumed_history_with_every_result_twice_is_whole() -> None:
    call = {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "skip_thought_signature_validator"}
    result = {"functionResponse": {"name": "f", "response": {"output": "42"}}}
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
        {"role": "user", "parts": [result]},
        {"role": "user", "parts": [{"text": "and now?"}]},
    ]
    for to in sorted(set(TARGETS) - {"gemini"}):
        translated = translate("gemini", {"contents": contents}, to)
        sent = json.dumps(translated.body)
        assert sent.count("42") == 1
        assert "skip_thought" not in sent
        assert translated.find_refusal() is None


def test_the_pictures_of_a_result_are_kept() -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    answer = {
        "name": "f",
        "response": {"output": "seen"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": picture}}],
    }
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
    ]
    for to in ("anthropic", "bedrock", "openai_responses"):
        sent = json.dumps(translate("gemini", {"contents": contents}, to).body)
        assert picture[:40] in sent
        assert "seen" in sent


def test_a_custom_call_of_chat_keeps_its_text() -> None:
    call = {"id": "call_9hQvL2mXbT7sYwKd", "type": "custom", "custom": {"name": "patch", "input": "*** begin"}}
    messages = [
        *USER,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"},
    ]
    tools = [{"type": "custom", "custom": {"name": "patch", "description": "Patches."}}]
    translated = translate("openai_chat", {**BASES["openai_chat"], "messages": messages, "tools": tools}, "anthropic")
    (made,) = [part for part in translated.prompt.messages[1].parts if isinstance(part, ToolCall)]
    assert made.arguments == {"input": "*** begin"}
    assert translated.body["tools"][0]["input_schema"]["required"] == ["input"]
    assert translated.find_refusal() is None
