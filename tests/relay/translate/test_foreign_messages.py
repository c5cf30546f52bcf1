"""Messages of a caller without what only its own provider understands."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.relay.translate.foreign_messages import fit_messages
from asides.relay.translate.translate_fields import fit_prompt
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.relay.translated import BASES, TARGETS, USER, read, target_of, translate

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


@pytest.mark.parametrize("to", ["openai_chat", "cohere"])
def test_pictures_of_results_follow_them_where_a_result_is_text(to: str) -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    notes = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the notes"}}
    ids = ("toolu_01A09q90qw90lq917835", "toolu_01B09q90qw90lq917835")
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids]
    results = [
        {"type": "tool_result", "tool_use_id": ids[0], "content": [{"type": "text", "text": "seen"}, image]},
        {"type": "tool_result", "tool_use_id": ids[1], "content": [notes]},
    ]
    messages = [*USER, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    tools = [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    translated = translate("anthropic", {**BASES["anthropic"], "messages": messages, "tools": tools}, to)
    assert [message.role for message in translated.prompt.messages] == ["user", "assistant", "tool", "user"]
    sent = json.dumps(translated.body)
    assert picture in sent
    assert "the notes" in sent
    assert "media_moved" in translated.told
    assert "result_part_not_sent" not in translated.told
    assert translated.find_refusal() is None


def test_what_another_agent_says_is_said_by_the_user() -> None:
    said = {"type": "agent_message", "author": "worker", "content": [{"type": "input_text", "text": "it is done"}]}
    items = [
        *USER,
        {"role": "assistant", "content": "I wait."},
        said,
        {"role": "assistant", "content": "Thanks."},
        *USER,
    ]
    translated = translate("openai_responses", {"model": "m", "input": items}, "anthropic")
    roles = [(message.role, message.text) for message in translated.prompt.messages]
    assert roles[1:4] == [("assistant", "I wait."), ("user", "worker: it is done"), ("assistant", "Thanks.")]
    assert translated.find_refusal() is None


@pytest.mark.parametrize(("dialect", "goes"), [("anthropic", False), ("openai_chat", True)])
def test_a_thought_that_loses_its_seal_stays_behind_where_seals_are_demanded(dialect: str, goes: bool) -> None:
    thought = Thought("hm", "summary", "responses_summary", seals=(Seal("encrypted", "gAAAA"),))
    (fitted,) = fit_messages((Message("assistant", (thought, Text("Yes."))),), dialect, [])
    kept = fitted.parts[0]
    assert isinstance(kept, Thought)
    assert not kept.seals
    assert kept.can_replay is goes
