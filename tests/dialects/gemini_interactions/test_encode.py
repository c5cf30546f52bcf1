"""Requests: settings, state, tools, signatures, media."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.message_encoder import STAND_IN
from asides.values.errors import Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, Sampling, system, user
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool, read_tool
from tests.dialects.gemini_interactions.interactions import CALL, DIALECT, FLASH, GO, encode, target

PRO = "gemini-3-pro-preview"
ASKED = user("go")


def test_every_setting_has_its_place() -> None:
    prompt = Prompt(
        (ASKED,),
        system="Be brief.",
        thinking=Thinking(effort="low"),
        tools=(Tool("look", "see", {"type": "object", "properties": {}, "required": []}),),
        tool_choice="look",
        output=OutputSchema("answer", {"type": "object"}),
        max_tokens=77,
        sampling=Sampling(temperature=0.5, top_p=0.9, seed=5),
        stop=("END",),
        stream=True,
        metadata={"team": "a"},
    )
    body, notices = encode(prompt)
    assert body == {
        "model": FLASH,
        "system_instruction": "Be brief.",
        "input": [GO],
        # An empty `required` is refused.
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "see",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
        "generation_config": {
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 5,
            "max_output_tokens": 77,
            "stop_sequences": ["END"],
            "thinking_level": "low",
            "thinking_summaries": "auto",
            "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["look"]}},
        },
        "response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
        "stream": True,
        "labels": {"team": "a"},
        "store": False,
    }
    assert notices == []
    request, _ = DIALECT.encode(prompt, target())
    assert request.url == "https://generativelanguage.googleapis.com/v1beta/interactions"
    assert request.credential_header == ("x-goog-api-key", "")
    assert request.headers["Accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("state", "extra", "sent"),
    [
        (ProviderState(), {}, {"store": False}),
        (ProviderState(store=False), {}, {"store": False}),
        (ProviderState(store=True), {}, {}),
        (ProviderState(resume=True), {}, {}),
        (ProviderState(previous_response_id="v1_1"), {}, {"previous_interaction_id": "v1_1"}),
        (ProviderState(), {"background": True}, {"background": True}),
    ],
)
def test_nothing_is_stored_unless_something_needs_it(state: ProviderState, extra: dict[str, Any], sent: Any) -> None:
    body, _ = encode(Prompt((ASKED,), state=state, extra=extra))
    names = ("store", "previous_interaction_id", "background")
    assert {name: body[name] for name in names if name in body} == sent


def test_settings_of_other_stores_are_told() -> None:
    _, notices = encode(Prompt((ASKED,), state=ProviderState(conversation="c", truncation="auto")))
    assert [notice.setting for notice in notices] == ["conversation", "truncation"]


def test_a_thought_goes_back_with_its_signature_and_one_without_stays() -> None:
    signed = Thought("hm", "summary", "block", seals=(Seal("step_signature", "c2ln"),))
    body, notices = encode(Prompt((ASKED, Message("assistant", (signed, Text("42"))), user("so?"))))
    assert body["input"][1:3] == [
        {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "42"}]},
    ]
    assert notices == []
    unsigned = msgspec.structs.replace(signed, seals=())
    body, notices = encode(Prompt((ASKED, Message("assistant", (unsigned, Text("42"))), user("so?"))))
    assert [step["type"] for step in body["input"]] == ["user_input", "model_output", "user_input"]
    assert [notice.code for notice in notices] == ["reasoning_not_sent"]


def test_a_call_without_a_signed_thought_gets_the_stand_in() -> None:
    call, result = ToolCall("c1", "look", {"at": "sea"}), Message("tool", (ToolResult("c1", "blue"),))
    body, notices = encode(Prompt((ASKED, Message("assistant", (call,)), result)), PRO)
    assert body["input"][1:3] == [{"type": "thought", "signature": STAND_IN}, CALL]
    assert [notice.code for notice in notices] == ["signature_stand_in"]
    thought = Thought("", "hidden", "block", seals=(Seal("step_signature", "c2ln"),))
    body, notices = encode(Prompt((ASKED, Message("assistant", (thought, call)), result)), PRO)
    assert body["input"][1:3] == [{"type": "thought", "signature": "c2ln"}, CALL]
    assert notices == []


def test_a_signature_of_generate_content_stays() -> None:
    call = ToolCall("c1", "look", {"at": "sea"}, seals=(Seal("thought_signature", "b3RoZXI="),))
    body, _ = encode(Prompt((ASKED, Message("assistant", (call,)), Message("tool", (ToolResult("c1", "blue"),)))), PRO)
    assert "b3RoZXI=" not in msgspec.json.encode(body).decode()


def test_results_are_texts_or_contents_and_may_be_errors() -> None:
    results = (ToolResult("c1", "blue", "look"), ToolResult("c2", (Text("a"), Image(data=b"\x89PNG")), is_error=True))
    body, _ = encode(Prompt((ASKED, Message("tool", results))))
    assert body["input"][1] == {"type": "function_result", "call_id": "c1", "name": "look", "result": "blue"}
    assert body["input"][2]["is_error"] is True
    assert [item["type"] for item in body["input"][2]["result"]] == ["text", "image"]


def test_instructions_inside_the_conversation_join_the_others() -> None:
    body, notices = encode(Prompt((ASKED, system("Now be long.")), system="Be brief."))
    assert body["system_instruction"] == "Be brief.\n\nNow be long."
    assert [notice.code for notice in notices] == ["system_moved"]


def test_an_agent_has_a_field_of_its_own_and_no_settings_of_models() -> None:
    body, notices = encode(Prompt((ASKED,), sampling=Sampling(temperature=0.5)), "deep-research-preview-04-2026")
    assert body == {"agent": "deep-research-preview-04-2026", "input": [GO], "stream": True, "store": False}
    assert [notice.setting for notice in notices] == ["temperature"]


@pytest.mark.parametrize("tool", [{"google_search": {}}, {"type": "web_search"}, {"type": "bash_20250124"}], ids=str)
def test_a_tool_of_another_api_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        encode(Prompt((ASKED,), tools=(read_tool(tool),)))


@pytest.mark.parametrize(
    ("thinking", "config"),
    [
        (Thinking(), {}),
        (Thinking(effort="high", show="none"), {"thinking_level": "high", "thinking_summaries": "none"}),
        (Thinking(mode="on"), {"thinking_summaries": "auto"}),
        (Thinking(budget=1000), {"thinking_level": "low", "thinking_summaries": "auto"}),
    ],
)
def test_thinking_is_a_level_and_summaries(thinking: Thinking, config: dict[str, Any]) -> None:
    assert encode(Prompt((ASKED,), thinking=thinking))[0].get("generation_config", {}) == config
