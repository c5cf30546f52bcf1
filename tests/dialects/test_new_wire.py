"""What providers added in the autumn of 2026, by their newest SDKs: stop reasons, errors, forms of parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.history.plan import encode_plan, plan
from asides.intake.read import read
from asides.providers.find import find_target
from asides.providers.provider_errors import from_status
from asides.values.errors import BadRequest, ContentFiltered
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.tools import read_tool, read_tool_choice
from tests.decoding import chunk, decoded, sse, whole
from tests.strict_servers import message_of

GREP = {"type": "custom", "custom": {"name": "grep", "description": "Search.", "format": {"type": "text"}}}


def encode(model: str, prompt: Prompt) -> dict[str, Any]:
    target = find_target(model, environ={})
    request, _ = encode_plan(plan(prompt, target), target, find_dialect(target.dialect))
    body: dict[str, Any] = json.loads(request.body)
    return body


# --- custom tools in chat completions ---------------------------------------------------------------------------------

CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "grep", "input": "<think>.*\nword"}}


def pieces(text: str) -> list[dict[str, Any]]:
    first = {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "grep", "input": text[:3]}}
    return [
        chunk({"tool_calls": [first]}),
        *[chunk({"tool_calls": [{"index": 0, "custom": {"input": letter}}]}) for letter in text[3:]],
        chunk(finish="tool_calls"),
    ]


@pytest.mark.parametrize("body", [whole({"tool_calls": [CUSTOM]}, "tool_calls"), sse(*pieces("<think>.*\nword"))])
def test_a_custom_call_of_chat_is_free_text_and_goes_back_as_one(body: bytes) -> None:
    reply = decoded(body)
    (call,) = reply.tool_calls
    assert (call.name, call.custom, call.raw_arguments) == ("grep", True, "<think>.*\nword")
    assert not reply.thinking
    assert reply.warnings == ()
    history = (user("?"), message_of(reply), Message("tool", (ToolResult("call_1", "found"),)))
    sent = encode("openai:gpt-4o", Prompt(history, tools=(read_tool(GREP),), tool_choice="grep"))
    assert sent["messages"][1]["tool_calls"] == [CUSTOM]
    assert sent["tools"] == [GREP]


def test_a_custom_call_in_a_history_is_one() -> None:
    (message,) = read([{"role": "assistant", "tool_calls": [CUSTOM]}])
    (call,) = message.tool_calls
    assert (call.custom, call.raw_arguments) == (True, "<think>.*\nword")


def test_a_custom_tool_can_be_forced() -> None:
    choice = {"type": "custom", "custom": {"name": "grep"}}
    tool = read_tool(GREP)
    prompt = Prompt((user("?"),), tools=(tool,), tool_choice=read_tool_choice(choice))
    sent = encode("openai:gpt-4o", prompt)
    assert sent["tool_choice"] == choice


def test_the_word_any_of_mistral_is_no_name_of_a_function() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": tools, "tool_choice": "any"}
    served = find_dialect("openai_chat").read(json.dumps(body).encode())
    assert served.prompt.tool_choice == "required"


# --- several messages in a choice -------------------------------------------------------------------------------------


def test_the_messages_of_a_choice_of_mistral_are_the_reply() -> None:
    ran = {"id": "call_a", "type": "function", "function": {"name": "web", "arguments": "{}"}}
    own = {"id": "call_b", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [ran], "index": 0},
        {"role": "tool", "content": "found", "tool_call_id": "call_a", "index": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "42"}], "tool_calls": [own], "index": 2},
    ]
    choice = {"index": 0, "messages": messages, "finish_reason": "tool_calls"}
    reply = decoded(json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode())
    assert (reply.text, [call.id for call in reply.tool_calls]) == ("42", ["call_b"])
    assert [notice.code for notice in reply.warnings] == ["unknown_part"]


# --- responses --------------------------------------------------------------------------------------------------------


def responses(**fields: Any) -> Reply:
    body = {"id": "resp_1", "object": "response", "model": "m", "usage": {"input_tokens": 3, "output_tokens": 0}}
    return decoded(json.dumps(body | fields).encode(), dialect="openai_responses")


def test_a_counted_response_without_output_and_status_is_an_empty_reply() -> None:
    reply = responses()
    assert (reply.text, reply.usage.input, reply.stop.reason) == ("", 3, "stop")


@pytest.mark.parametrize(("reason", "ours"), [("max_messages", "length"), ("steered", "pause")])
def test_new_reasons_why_a_response_is_incomplete(reason: str, ours: str) -> None:
    reply = responses(status="incomplete", incomplete_details={"reason": reason}, output=[])
    assert (reply.stop.reason, reply.warnings) == (ours, ())


STEER = {
    "detailed_explanation": "It would delete backups.",
    "steer": {"message": "Ask the user before you delete anything."},
}
BLOCKED = {"code": "misalignment_policy_violation", "message": "Blocked.", "misalignment": STEER}


@pytest.mark.parametrize("status", [200, 400])
def test_a_block_for_misalignment_is_filtered_and_shows_how_to_go_on(status: int) -> None:
    if status == 200:
        with pytest.raises(ContentFiltered) as raised:
            responses(status="failed", error=BLOCKED, output=[])
        error: Exception = raised.value
    else:
        body = json.dumps({"error": {**BLOCKED, "type": "invalid_request_error"}}).encode()
        error = find_dialect("openai_responses").error(status, {}, body, find_target("openai:gpt-5", environ={}))
        assert isinstance(error, ContentFiltered)
    assert "Ask the user before you delete anything." in str(error)


def test_a_block_of_a_policy_is_filtered() -> None:
    with pytest.raises(ContentFiltered):
        responses(status="failed", error={"code": "bio_policy", "message": "Blocked."}, output=[])


# --- other stop reasons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["ESCALATION", "PUP_LIMITED_DISABLED"])
def test_blocks_of_gemini_are_filtered(reason: str) -> None:
    candidate = {"index": 0, "content": {"parts": [{"text": "a"}]}, "finishReason": reason}
    reply = decoded(json.dumps({"candidates": [candidate]}).encode(), dialect="gemini")
    assert (reply.stop.reason, reply.outcome, reply.warnings) == ("content_filter", "filtered", ())


def test_compaction_pauses_a_reply_of_converse() -> None:
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}}, "stopReason": "compaction"}
    reply = decoded(json.dumps(body).encode(), dialect="bedrock")
    assert (reply.stop.reason, reply.warnings) == ("pause", ())


# --- thinking that is no text -----------------------------------------------------------------------------------------

DRAFT = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thought": True, "thoughtSignature": "c2ln"}


def gemini_body(streams: bool) -> bytes:
    parts = [{"text": "a sketch", "thought": True}, DRAFT, {"text": "Here it is."}]
    documents = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    ending = {"candidates": [{"index": 0, "finishReason": "STOP"}]}
    content = {"role": "model", "parts": parts}
    joined = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}
    return sse(*documents, ending, done=False) if streams else json.dumps(joined).encode()


@pytest.mark.parametrize("streams", [True, False])
def test_a_picture_inside_a_thought_is_thinking_and_goes_back_as_it_came(streams: bool) -> None:
    target = find_target("gemini:gemini-3-pro-image", environ={})
    reply = decoded(gemini_body(streams), target, dialect="gemini")
    assert [type(part).__name__ for part in reply.parts] == ["Thought", "Thought", "Text"]
    assert (reply.text, reply.warnings) == ("Here it is.", ())
    draft = reply.parts[1]
    assert isinstance(draft, Thought)
    assert (draft.text, draft.kind) == ("", "hidden")
    sent = encode("gemini:gemini-3-pro-image", Prompt((user("Draw."), message_of(reply), user("Again."))))
    assert DRAFT in sent["contents"][1]["parts"]
    writer = find_dialect("gemini").writer(model="m", stream=streams)
    from asides.values.fold import simulate

    written = b"".join(writer.write([event]) for event in simulate(reply))
    assert decoded(written, target, "gemini").parts == reply.parts


# --- refusals that look like overload ---------------------------------------------------------------------------------

CHANNEL = (
    "You have passed a message containing <|channel|> tags in the content field. Instead of doing this, you should"
)
INSIDE = (
    "All variants failed with errors: glm-5.2: All model providers failed to infer with errors: zai: Inference stream "
    'closed due to error from openai server: Invalid status code: 400 Bad Request: {"error":{"code":"1214","message":'
    '"The messages parameter is illegal. Please check the documentation."}}'
)


@pytest.mark.parametrize(("status", "message"), [(500, CHANNEL), (502, INSIDE)])
def test_a_refusal_inside_a_failure_of_a_gateway_is_not_tried_again(status: int, message: str) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    assert isinstance(from_status(status, provider="x", message=message, body=body), BadRequest)
