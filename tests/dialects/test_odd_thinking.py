"""Thinking whose mark or text has an unexpected type: it is thinking in every dialect, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.providers.provider import ModelRule
from asides.values.reply import Reply
from tests.decoding import decoded, sse, stream, target, whole

SECRET = "my secret plan"
ODD_MARKS: tuple[Any, ...] = (True, 1, 1.5, -1, "true", "True", "yes", {}, {"a": 1}, [], [1], "thought")
PLAINLY_FALSE: tuple[Any, ...] = (None, False, 0, 0.0, "", "false", "False", "0")
ODD_TEXTS: tuple[Any, ...] = (
    SECRET,
    [SECRET],
    [{"type": "text", "text": SECRET}],
    {"text": SECRET},
    {"content": [{"text": SECRET}]},
    {"summary": [{"type": "summary_text", "text": SECRET}]},
)


def lines(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def check_apart(reply: Reply) -> None:
    assert reply.text == "42"
    assert reply.thinking
    assert reply.thinking.text == SECRET


def gemini_body(mark: object) -> dict[str, Any]:
    parts = [{"text": "my secret ", "thought": mark}, {"text": "plan", "thought": True}, {"text": "42"}]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}


@pytest.mark.parametrize("mark", ODD_MARKS, ids=repr)
def test_a_gemini_part_with_an_odd_mark_is_thinking(mark: object) -> None:
    check_apart(decoded(json.dumps(gemini_body(mark)).encode(), dialect="gemini"))
    chunks = [
        {"candidates": [{"content": {"parts": [part]}}]}
        for part in gemini_body(mark)["candidates"][0]["content"]["parts"]
    ]
    end = {"candidates": [{"finishReason": "STOP"}]}
    check_apart(decoded(sse(*chunks, end, done=False), dialect="gemini"))


@pytest.mark.parametrize("mark", PLAINLY_FALSE, ids=repr)
def test_a_gemini_part_with_a_false_mark_is_text(mark: object) -> None:
    body = {"candidates": [{"content": {"parts": [{"text": "42", "thought": mark}]}, "finishReason": "STOP"}]}
    reply = decoded(json.dumps(body).encode(), dialect="gemini")
    assert (reply.text, reply.thinking.text) == ("42", "")


@pytest.mark.parametrize("mark", ODD_MARKS, ids=repr)
def test_a_chat_content_part_with_an_odd_mark_is_thinking(mark: object) -> None:
    parts = [{"type": "text", "text": SECRET, "thought": mark}, {"type": "text", "text": "42"}]
    check_apart(decoded(whole({"content": parts})))
    check_apart(decoded(stream(*[{"content": [part]} for part in parts])))


@pytest.mark.parametrize(
    "kind", ["thinking", "reasoning", "redacted_thinking", "thought", "reasoning_text", "Reasoning", "reasoning.text"]
)
def test_a_chat_content_part_whose_type_names_thinking_is_thinking(kind: str) -> None:
    parts = [{"type": kind, "text": SECRET}, {"type": "text", "text": "42"}]
    check_apart(decoded(whole({"content": parts})))
    check_apart(decoded(stream(*[{"content": [part]} for part in parts])))


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details", "made_up_thinking"])
def test_a_chat_thinking_field_of_an_odd_type_is_thinking(field: str, value: object) -> None:
    check_apart(decoded(whole({field: value, "content": "42"})))
    check_apart(decoded(stream({field: value}, {"content": "42"})))


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
@pytest.mark.parametrize("holder", ["thinking", "text"])
def test_a_messages_block_of_thinking_with_an_odd_text_is_thinking(holder: str, value: object) -> None:
    blocks: list[dict[str, Any]] = [{"type": "thinking", holder: value}, {"type": "text", "text": "42"}]
    body = {"type": "message", "id": "m", "content": blocks, "stop_reason": "end_turn"}
    check_apart(decoded(json.dumps(body).encode(), dialect="anthropic"))
    documents: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m"}}]
    for index, block in enumerate(blocks):
        kind = block["type"]
        documents += [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind}},
            {"type": "content_block_delta", "index": index, "delta": {**block, "type": f"{kind}_delta"}},
            {"type": "content_block_stop", "index": index},
        ]
    documents += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    check_apart(decoded(sse(*documents, done=False), dialect="anthropic"))
    # The block was not begun, or as text: the delta says what it is.
    for skipped in (
        documents[:1] + documents[2:],
        [documents[0], {**documents[1], "content_block": {"type": "text"}}, *documents[2:]],
    ):
        check_apart(decoded(sse(*skipped, done=False), dialect="anthropic"))


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
def test_converse_reasoning_of_an_odd_type_is_thinking(value: object) -> None:
    forms = [{"reasoningText": value}, {"text": value}, {"reasoningText": {"text": value}}]
    for reasoning in forms if isinstance(value, dict) else [value, *forms]:
        content = [{"reasoningContent": reasoning}, {"text": "42"}]
        body = {"output": {"message": {"content": content}}, "stopReason": "end_turn", "usage": {}}
        check_apart(decoded(json.dumps(body).encode(), dialect="bedrock"))
        deltas = [
            {"contentBlockDelta": {"contentBlockIndex": index, "delta": block}} for index, block in enumerate(content)
        ]
        documents = [
            {"messageStart": {"role": "assistant"}},
            *deltas,
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {}},
        ]
        check_apart(decoded(lines(*documents), dialect="bedrock"))


def test_converse_text_beside_reasoning_in_one_block_is_the_answer_and_the_reasoning_is_apart() -> None:
    block = {"text": "42", "reasoningContent": {"reasoningText": {"text": SECRET}}}
    body = {"output": {"message": {"content": [block]}}, "stopReason": "end_turn", "usage": {}}
    check_apart(decoded(json.dumps(body).encode(), dialect="bedrock"))


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
@pytest.mark.parametrize("holder", ["thinking", "text"])
def test_a_cohere_item_of_thinking_with_an_odd_text_is_thinking(holder: str, value: object) -> None:
    items: list[dict[str, Any]] = [{"type": "thinking", holder: value}, {"type": "text", "text": "42"}]
    body = {"id": "c", "message": {"role": "assistant", "content": items}, "finish_reason": "COMPLETE"}
    check_apart(decoded(json.dumps(body).encode(), dialect="cohere"))
    documents: list[dict[str, Any]] = [
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}}
    ]
    for index, item in enumerate(items):
        content = {name: text for name, text in item.items() if name != "type"}
        documents += [
            {"type": "content-start", "index": index, "delta": {"message": {"content": {"type": item["type"]}}}},
            {"type": "content-delta", "index": index, "delta": {"message": {"content": content}}},
            {"type": "content-end", "index": index},
        ]
    documents.append({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}})
    check_apart(decoded(sse(*documents, done=False), dialect="cohere"))


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
@pytest.mark.parametrize("at_top", [False, True], ids=["chat", "generate"])
def test_ollama_thinking_of_an_odd_type_is_thinking(value: object, at_top: bool) -> None:
    text = "response" if at_top else "content"
    pieces: list[dict[str, Any]] = [{"thinking": value}, {text: "42"}]
    line = [{**piece, "done": False} if at_top else {"message": piece, "done": False} for piece in pieces]
    end = {"done": True, "done_reason": "stop"}
    check_apart(decoded(lines(*line, end), dialect="ollama"))
    both = {**pieces[0], **pieces[1]}
    check_apart(decoded(lines({**both, **end} if at_top else {"message": both, **end}), dialect="ollama"))


# --- Responses ------------------------------------------------------------------------------------------------------

PART_TYPES = ("summary_text", "reasoning_text", "output_text", "text", "made_up", "input_text", None, "refusal")


def responses_target() -> Any:
    return target(rule=ModelRule(models="*", kind="raw"))


@pytest.mark.parametrize("kind", PART_TYPES)
@pytest.mark.parametrize("field", ["summary", "content"])
def test_a_reasoning_item_is_thinking_whatever_the_type_of_its_parts(field: str, kind: str | None) -> None:
    part = {"type": kind, "text": SECRET} if kind else {"text": SECRET}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], field: [part]}
    message = {"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}
    check_reasoning_item(reasoning, message, part)


@pytest.mark.parametrize("value", ODD_TEXTS, ids=repr)
@pytest.mark.parametrize("field", ["summary", "content"])
def test_a_reasoning_item_is_thinking_whatever_the_form_of_its_text(field: str, value: object) -> None:
    message = {"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}
    for held in (value, [{"type": "output_text", "text": value}]):
        check_reasoning_item({"type": "reasoning", "id": "rs_1", field: held}, message, None)


def check_reasoning_item(reasoning: dict[str, Any], message: dict[str, Any], part: dict[str, Any] | None) -> None:
    response = {"object": "response", "id": "r", "status": "completed", "output": [reasoning, message]}
    check_apart(decoded(json.dumps(response).encode(), responses_target(), "openai_responses"))
    begin = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}
    part_done = {
        "type": "response.content_part.done",
        "output_index": 0,
        "item_id": "rs_1",
        "content_index": 0,
        "part": part,
    }
    delta = {
        "type": "response.output_text.delta",
        "output_index": 0,
        "item_id": "rs_1",
        "content_index": 0,
        "delta": SECRET,
    }
    text_done = {
        "type": "response.output_text.done",
        "output_index": 0,
        "item_id": "rs_1",
        "content_index": 0,
        "text": SECRET,
    }
    end = {"type": "response.output_item.done", "output_index": 0, "item": reasoning}
    last = [
        {"type": "response.output_item.added", "output_index": 1, "item": {**message, "content": []}},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": response},
    ]
    streams: list[list[Any]] = [
        [begin, end],
        [begin, delta, text_done, end],
        [begin, delta, end],
        [begin, text_done, end],
        [end],
    ]
    if part is not None and part.get("type") == "output_text":
        streams += [[begin, part_done, end], [begin, delta, text_done, part_done, end]]
    for documents in streams:
        check_apart(decoded(sse(*documents, *last), responses_target(), "openai_responses"))
