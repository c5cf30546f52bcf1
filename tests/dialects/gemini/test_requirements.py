"""G1–G5, H1, H5, FT-38, pains A3 and C9: Gemini's thoughts, signatures and levels, through the public API."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.errors import ContentFiltered, ProviderError
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides_stage.stage import OpenStage, Say
from tests.decoding import sse

GEMINI_3 = "google:gemini-3-pro-preview"
SIGNATURE = "EvIPCu8PAQw51sd5nj4b+/=="


def response(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({} if finish is None else {"finishReason": finish})], "responseId": "r"}


def decode(*parts: dict[str, Any], model: str = "gemini-3-pro-preview") -> asides.Reply:
    """The reply of these parts, which is the same streamed and whole."""
    whole = asides.decode("gemini", json.dumps(response(*parts)).encode(), provider="google", model=model)
    chunks = [response(part, finish=None) for part in parts]
    streamed = asides.decode("gemini", sse(*chunks, response(), done=False), provider="google", model=model)
    assert streamed == whole
    return whole


def sent(history: list[Message], model: str = GEMINI_3, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = asides.explain(model, history, **options).body
    return body


def message_of(reply: asides.Reply) -> Message:
    message = reply.to_message()
    assert message is not None
    return message


CALL = {"functionCall": {"name": "look", "args": {"at": "x"}, "id": "c1"}, "thoughtSignature": SIGNATURE}
SECOND = {"functionCall": {"name": "look", "args": {"at": "y"}, "id": "c2"}}
RESULTS = [Message("tool", (ToolResult("c1", "one"),)), Message("tool", (ToolResult("c2", "two"),))]


def test_G1_FT_38_parts_marked_as_thought_are_thinking_and_others_text() -> None:
    reply = decode({"text": "plan", "thought": True}, {"text": "42"}, {"text": " then", "thought": True}, {"text": "."})
    assert reply.text == "42."
    assert reply.thinking
    assert (reply.thinking.text, reply.thinking.kind) == ("plan\n\n then", "summary")


def test_G2_a_signature_on_a_call_is_kept_and_sent_back_byte_for_byte() -> None:
    reply = decode({"text": "plan", "thought": True}, CALL, SECOND)
    assert [seal.value for seal in reply.seals] == [SIGNATURE]
    body = sent([user("look"), message_of(reply), *RESULTS])
    assert body["contents"][1] == {"role": "model", "parts": [CALL, SECOND]}


@pytest.mark.parametrize(
    ("model", "thinking", "config"),
    [
        ("google:gemini-2.5-flash", None, None),
        ("google:gemini-2.5-flash", True, {"thinkingBudget": -1, "includeThoughts": True}),
        ("google:gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("google:gemini-2.5-flash", 2048, {"thinkingBudget": 2048, "includeThoughts": True}),
        ("google:gemini-3.5-flash", None, None),
        ("google:gemini-3.5-flash", "low", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("google:gemini-3.5-flash", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("google:gemini-3.5-flash", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("google:gemini-3.5-flash", True, {"includeThoughts": True}),
    ],
)
def test_G3_budgets_for_the_second_family_and_levels_from_the_third_on(
    model: str, thinking: Any, config: dict[str, Any] | None
) -> None:
    body = sent([user("?")], model, thinking=thinking, max_tokens=60_000)
    assert body["generationConfig"].get("thinkingConfig") == config


@pytest.mark.requirement("pain C9")
def test_G4_a_call_without_signature_in_the_turn_under_way_gets_the_documented_stand_in() -> None:
    imported = assistant(ToolCall("c1", "look", {"at": "x"}), ToolCall("c2", "look", {"at": "y"}))
    explained = asides.explain(GEMINI_3, [user("look"), imported, *RESULTS])
    parts = explained.body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    assert "signature_stand_in" in [notice.code for notice in explained.notices]
    assert "signature_stand_in" in explained.to_text()


def test_G4_the_stand_in_stays_when_its_turn_is_over_and_older_models_need_none() -> None:
    imported = assistant(ToolCall("c1", "look", {"at": "x"}), ToolCall("c2", "look", {"at": "y"}))
    under_way = [user("look"), imported, *RESULTS]
    over = [*under_way, assistant("fine"), user("thanks")]
    before = sent(under_way)["contents"]
    assert sent(over)["contents"][: len(before)] == before
    assert "thoughtSignature" not in json.dumps(sent([user("look"), imported, *RESULTS], "google:gemini-2.5-pro"))


def test_G5_no_candidate_is_an_error() -> None:
    blocked = json.dumps({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}).encode()
    with pytest.raises(ContentFiltered, match="PROHIBITED_CONTENT"):
        asides.decode("gemini", blocked, streaming=False)
    with pytest.raises(ProviderError, match="no candidate"):
        asides.decode("gemini", b'{"usageMetadata": {"promptTokenCount": 3}}', streaming=False)


def test_H1_the_next_request_has_no_thinking_in_the_words_of_the_assistant() -> None:
    reply = decode({"text": "secret plan", "thought": True}, {"text": "42", "thoughtSignature": SIGNATURE})
    body = sent([user("?"), message_of(reply), user("why?")])
    assert body["contents"][1]["parts"] == [{"text": "42", "thoughtSignature": SIGNATURE}]
    assert "secret plan" not in json.dumps(body)


@pytest.mark.parametrize("model", ["google:gemini-2.5-pro", "vertex:gemini-3-pro-preview", "openai:gpt-4.1"])
def test_H5_another_model_or_endpoint_gets_no_foreign_signature(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    reply = decode({"text": "plan", "thought": True}, CALL, SECOND)
    only_thought = assistant(
        Thought("alone", "summary", "block", reply.origin, (Seal("thought_signature", "x", reply.origin),))
    )
    history = [user("look"), message_of(reply), *RESULTS, only_thought, user("go on")]
    told = json.dumps(sent(history, model))
    assert SIGNATURE not in told
    assert "plan" not in told
    assert "alone" not in told
    assert told.count('"one"') == told.count('"two"') == 1, "the pairs of call and result are whole"


def test_H5_back_at_its_maker_a_signature_goes_again_however_the_address_is_spelled() -> None:
    reply = decode(CALL, SECOND)
    history = [user("look"), message_of(reply), *RESULTS]
    address = "https://GenerativeLanguage.googleapis.com:443/v1beta/"
    assert sent(history, base_url=address)["contents"][1]["parts"][0]["thoughtSignature"] == SIGNATURE


def test_C9_pain_text_only_turns_parallel_calls_and_empty_texts_keep_their_signature() -> None:
    said = decode({"text": "4"}, {"text": "2"}, {"text": "", "thoughtSignature": SIGNATURE})
    assert [type(part) for part in said.parts] == [Text, Text]
    assert sent([user("?"), message_of(said), user("why?")])["contents"][1]["parts"] == [
        {"text": "42"},
        {"text": "", "thoughtSignature": SIGNATURE},
    ]
    called = decode(CALL, SECOND)
    assert [len(call.seals) for call in called.tool_calls] == [1, 0]


def test_A3_pain_a_thought_of_which_only_the_signature_is_shown_is_hidden_and_goes_back() -> None:
    reply = decode({"text": "", "thought": True, "thoughtSignature": SIGNATURE}, {"text": "42"})
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.text, len(reply.parts)) == ("hidden", "", 2)
    body = sent([user("?"), message_of(reply), user("why?")])
    assert body["contents"][1]["parts"][0] == {"text": "", "thought": True, "thoughtSignature": SIGNATURE}


def test_chat_of_the_same_maker_is_still_read_with_its_own_quirks() -> None:
    """The native dialect is the default now; bytes of the other endpoint keep the facts of that endpoint."""
    choice = {"index": 0, "message": {"content": "<thought>plan</thought>42"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 30}}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    reply = asides.decode("openai_chat", body, provider="google")
    assert (reply.text, reply.metadata["thinking"], reply.usage.output) == ("42", "plan", 35)


def test_S3_45_and_S3_46_four_deltas_are_four_events_and_their_sum_is_the_thinking(stage: OpenStage) -> None:
    deltas = ["First ", "this, ", "then ", "that."]
    events: list[Event] = [ReplyStarted("m", "r")]
    events += [ThinkingDelta(text, 0, "summary", "block") for text in deltas]
    events += [TextDelta("42", 1), ReplyEnded(StopReason("stop"))]
    base_url = stage(Say(events=tuple(events))).url
    with asides.stream(GEMINI_3, "?", base_url=base_url, api_key="k", thinking="low") as arriving:
        seen = [event.text for event in arriving if isinstance(event, ThinkingDelta)]
        reply = arriving.reply
    assert seen == deltas
    assert reply.metadata["thinking"] == "".join(deltas)
    assert reply.text == "42"


def test_S3_50_thinking_and_a_call_in_one_run(stage: OpenStage) -> None:
    base_url = stage(Say(thinking="plan", tool_calls=(ToolCall("c1", "look", {"at": "x"}),))).url
    reply = asides.ask(GEMINI_3, "look", base_url=base_url, api_key="k", thinking="low")
    assert (reply.metadata["thinking"], reply.tool_calls[0].arguments) == ("plan", {"at": "x"})


@pytest.mark.parametrize("provider", ["google", "vertex"])
def test_S3_51_FT_38_what_the_models_can_do_is_declared(provider: str) -> None:
    old, new = (asides.find_provider(provider).capabilities(model) for model in ("gemini-2.5-flash", "gemini-3.1-pro"))
    assert (old.thinking, old.budget, old.can_stop, old.kind) == ("optional", (1, 24_576), True, "summary")
    assert (new.thinking, new.efforts, new.can_stop) == ("always", ("low", "medium", "high"), False)
