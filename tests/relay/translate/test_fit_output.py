"""The form of an answer reaches every model: as a setting that it takes, or as words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.providers.find import find_target
from tests.relay.translated import BASES, PAIRS, Translated, put, read, translate

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


def test_the_older_field_of_messages_is_read_too() -> None:
    body = {**BASES["anthropic"], "output_format": {"type": "json_schema", "schema": SCHEMA}}
    assert '"word"' in json.dumps(translate("anthropic", body, "gemini").body)
    assert "output_format" not in translate("anthropic", body, "anthropic").body
