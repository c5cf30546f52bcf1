"""Histories that some providers would refuse: each dialect adjusts them, with a notice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought

ENVIRON = {"AWS_REGION": "us-east-1"}
CLAUDES = ["anthropic:claude-sonnet-4-5", "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"]
LOOK = ToolCall("call_0", "look", {"at": 1})
DONE = Message("tool", (ToolResult("call_0", "fine", "look"),))


def sent(model: str, *messages: Message) -> tuple[dict[str, Any], list[str]]:
    """The body of the request, and the codes of its notices."""
    target = find_target(model, environ=ENVIRON)
    planned = plan(Prompt(messages), target)
    request, notices = find_dialect(target.dialect).encode(planned.prompt, target)
    return msgspec.json.decode(request.body), [notice.code for notice in (*planned.notices, *notices)]


@pytest.mark.parametrize("model", CLAUDES)
def test_a_user_message_is_added_first_if_required(model: str) -> None:
    body, codes = sent(model, assistant("Hello!"), user("Hi."))
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert codes == ["turn_added"]
    assert sent(model, user("Hi."))[1] == []


def test_a_user_message_is_added_before_a_call_too() -> None:
    body, codes = sent("google:gemini-2.5-flash", assistant(LOOK), DONE)
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    assert codes == ["turn_added"]


def test_two_messages_of_the_model_in_a_row_are_one_turn() -> None:
    body, _ = sent("google:gemini-2.5-flash", user("go"), assistant("hm"), assistant(LOOK), DONE)
    assert [list(part) for part in body["contents"][1]["parts"]] == [["text"], ["functionCall"]]
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]


def test_an_id_that_two_turns_have_is_sent_as_two_ids() -> None:
    body, _ = sent(
        "anthropic:claude-sonnet-4-5",
        *(user("go"), assistant(LOOK), DONE, assistant(LOOK), DONE, assistant(ToolCall("call_0_2", "look", {"at": 3}))),
    )
    blocks = [block for turn in body["messages"] for block in turn["content"] if isinstance(block, dict)]
    ids = [(block["type"], block.get("id") or block.get("tool_use_id")) for block in blocks]
    assert ids == [
        *(("tool_use", "call_0"), ("tool_result", "call_0")),
        *(("tool_use", "call_0_2"), ("tool_result", "call_0_2")),
        *(("tool_use", "call_0_2_2"), ("tool_result", "call_0_2_2")),
    ]


def test_a_longer_history_has_the_ids_of_a_shorter_one() -> None:
    history = (user("go"), assistant(LOOK), DONE, assistant(LOOK), DONE)
    shorter, _ = sent("anthropic:claude-sonnet-4-5", *history)
    longer, _ = sent("anthropic:claude-sonnet-4-5", *history, assistant(LOOK), DONE)
    assert longer["messages"][: len(shorter["messages"])] == shorter["messages"]


def test_a_message_of_the_model_is_added_after_results_if_required() -> None:
    body, codes = sent("mistral:mistral-large-latest", user("go"), assistant(LOOK), DONE, user("stop"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert "turn_added" in codes
    body, codes = sent("mistral:mistral-large-latest", user("go"), assistant(LOOK), DONE)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert "turn_added" not in codes
    body, _ = sent("groq:openai/gpt-oss-120b", user("go"), assistant(LOOK), DONE, user("stop"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "user"]


def test_a_call_of_another_provider_has_the_stand_in_over_chat_too() -> None:
    """Only the first call of a step is signed, and it stays so when the turn is over."""
    two = assistant(LOOK, ToolCall("call_1", "look", {"at": 2}))
    answers = Message("tool", (ToolResult("call_0", "fine"), ToolResult("call_1", "fine")))
    body, codes = sent("google-openai:gemini-3-pro-preview", user("go"), two, answers, user("on"), two, answers)
    first, second = (message["tool_calls"] for message in body["messages"] if message["role"] == "assistant")
    stand_in = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert [call.get("extra_content") for call in (*first, *second)] == [stand_in, None, stand_in, None]
    assert codes == ["signature_stand_in"]
    assert "extra_content" not in sent("google-openai:gemini-2.5-flash", user("go"), assistant(LOOK), DONE)[0]


def test_a_call_of_the_model_has_its_signature() -> None:
    origin = find_target("google-openai:gemini-3-pro-preview", environ=ENVIRON).origin
    entry = '{"google":{"thought_signature":"bXkgb3du"}}'
    own = msgspec.structs.replace(LOOK, seals=(Seal("thought_signature", "bXkgb3du", origin, entry),))
    body, codes = sent("google-openai:gemini-3-pro-preview", user("go"), assistant(own), DONE)
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "bXkgb3du"}}
    assert codes == []


def test_a_blank_line_is_no_content_in_chat() -> None:
    blank, mere = assistant(Text("\n\n"), LOOK), assistant(Text("\n"))
    body, _ = sent("moonshot:kimi-k2.6", user("go"), blank, DONE, mere, user("?"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert "content" not in body["messages"][1]


@pytest.mark.parametrize("model", CLAUDES)
def test_a_turn_does_not_end_with_a_thought(model: str) -> None:
    origin = find_target(model, environ=ENVIRON).origin
    thought = Thought("mull", "summary", "block", origin, (Seal("signature", "c2VhbA==", origin),))
    body, _ = sent(model, user("go"), assistant("hm", thought), user("?"))
    assert b"mull" not in msgspec.json.encode(body)
    body, _ = sent(model, user("go"), assistant(thought, "hm"), user("?"))
    assert b"mull" in msgspec.json.encode(body)


FEEL = ToolCall("call_1", "feel", {})
FELT = Message("tool", (ToolResult("call_1", "warm", "feel"),))


@pytest.mark.parametrize("model", ["openai:gpt-4o", "anthropic:claude-sonnet-4-5", "google:gemini-2.5-pro", "ollama:m"])
@pytest.mark.parametrize(
    "turn",
    [
        (assistant(LOOK), assistant("hm"), DONE),
        (assistant(LOOK), assistant("hm"), assistant("so"), DONE),
        (assistant(LOOK), assistant(FEEL), DONE, FELT),
        (assistant(LOOK), assistant(FEEL), FELT, DONE),
        (assistant(LOOK), assistant("hm", FEEL), Message("user", (*DONE.parts, *FELT.parts))),
    ],
)
def test_a_result_after_another_message_of_the_model_belongs_to_its_call(model: str, turn: tuple[Message, ...]) -> None:
    body, codes = sent(model, user("go"), *turn, user("so?"))
    assert not {"orphan_tool_result", "dangling_tool_call"} & set(codes)
    said = msgspec.json.encode(body).decode()
    assert ("fine" in said, "cancelled" in said) == (True, False)


def test_a_result_after_another_question_stays_lost() -> None:
    """The request before had a made-up result there, and the provider's cache begins with it."""
    _, codes = sent("openai:gpt-4o", user("go"), assistant(LOOK), user("so?"), DONE)
    assert {"orphan_tool_result", "dangling_tool_call"} <= set(codes)
