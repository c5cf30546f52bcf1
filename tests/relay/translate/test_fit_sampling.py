"""Sampling settings of a caller within the bounds of other providers."""

from __future__ import annotations

from tests.relay.translated import BASES, put, translate


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
