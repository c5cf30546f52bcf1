"""Refusals of what goes back of earlier turns."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

import asides
from asides.providers.learned_rules import forget
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from tests.flows.heal.healing import (
    CHAT,
    CLAUDE,
    GPT,
    LOOK,
    NEW_CLAUDE,
    OTHER_CLAUDE,
    Ask,
    Case,
    ask,
    ask_async,
    called,
    check_healed_once,
    encrypted,
    if_has,
    show,
    show_second,
    signed,
)
from tests.strict_servers import Body, Refuse, anthropic_error, google_error, openai_error, refusing

SIGNATURE = anthropic_error("messages.1.content.0: Invalid `signature` in `thinking` block")


BOUND = (
    "messages.{}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


MODIFIED = (
    "messages.{}.content.[]: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)


WRONG_ACCOUNT = (
    "The encrypted content gAAA... could not be verified. Reason: Encrypted content organization_id did not match the "
    "target organization."
)


def _refuse_named(number: int, words: str, signature: str) -> Refuse:
    """Refuse the block with this signature, at its place."""

    def refuse(body: Body) -> Any:
        for place, message in enumerate(body["messages"]):
            for at, block in enumerate(message["content"] if isinstance(message["content"], list) else []):
                if block.get("signature") == signature:
                    return anthropic_error(words.replace("{}", str(place)).replace("[]", str(at)))
        return None

    return refuse


def _refuse_items(body: Body) -> Any:
    for item in body["input"]:
        if item.get("encrypted_content") == "gAAAbwXBV":
            return openai_error(
                "The encrypted content gAAA...wXBV could not be verified.", code="invalid_encrypted_content"
            )
    return None


def _refuse_orphan(body: Body) -> Any:
    if any(item.get("id") == "rs_b" for item in body["input"]):
        return openai_error(
            "Item 'rs_b' of type 'reasoning' was provided without its required following item.", "input"
        )
    return None


def _refuse_missing(body: Body) -> Any:
    if any(item.get("id") == "msg_a" for item in body["input"]):
        text = "Item 'msg_a' of type 'message' was provided without its required 'reasoning' item: 'rs_a'."
        return openai_error(text, "input")
    return None


def _refuse_id(body: Body) -> Any:
    for item in body["input"]:
        if item.get("type") == "reasoning" and "id" in item:
            text = f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
            return 404, openai_error(text, "input")
    return None


def _need_thinking(body: Body) -> Any:
    missing = [each for each in body["messages"] if each["role"] == "assistant" and "reasoning_content" not in each]
    text = "The `reasoning_content` in the thinking mode must be passed back to the API."
    return openai_error(text, code="invalid_request_error") if missing else None


def _need_a_word(body: Body) -> Any:
    missing = [each for each in body["messages"] if each.get("tool_calls") and not each.get("reasoning_content")]
    text = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    return openai_error(text) if missing else None


def _refuse_user_after_tool(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    said = {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "code": "3230"}
    return said if any(pair == ("tool", "user") for pair in pairwise(roles)) else None


def _refuse_row_of_roles(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    text = "Conversation roles must alternate user/assistant/user/assistant/..."
    return openai_error(text) if any(one == two for one, two in pairwise(roles)) else None


def _refuse_words_beside(kind: str, shown: str) -> Refuse:
    def refuse(body: Body) -> Any:
        for place, message in enumerate(body["messages"]):
            kinds = {name for block in message["content"] for name in block} - {"cachePoint"}
            if kind in kinds and len(kinds) > 1:
                text = f"Conversation blocks and {shown} blocks cannot be provided in the same turn."
                return {"message": f"messages.{place}.content: {text}"}
        return None

    return refuse


_refuse_words_beside_results = _refuse_words_beside("toolResult", "tool result")


def _refuse_late_system(body: Body) -> Any:
    roles = [message["role"] for message in body["messages"]]
    return openai_error("System message must be at the beginning.") if "system" in roles[1:] else None


def _refuse_unsigned(body: Body) -> Any:
    parts = [part for content in body["contents"] for part in content["parts"]]
    text = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."
    return (
        google_error(text) if any("functionCall" in part and "thoughtSignature" not in part for part in parts) else None
    )


def _refuse_seals(body: Body) -> Any:
    return google_error("Corrupted thought signature.") if "bad-seal" in show(body) else None


def _refuse_arguments(words: str) -> Refuse:
    """Refuse calls whose arguments are not the JSON of an object."""

    def refuse(body: Body) -> Any:
        calls = [call for message in body["messages"] for call in message.get("tool_calls", ())]
        texts = [call["function"]["arguments"] for call in calls]
        return openai_error(words) if any(not text.startswith("{") or text == '{"at":' for text in texts) else None

    return refuse


def called_with(raw: str) -> list[Message]:
    call = ToolCall("call_1", "look", raw_arguments=raw)
    return [user("?"), assistant(call), Message("tool", (ToolResult("call_1", "blue", "look"),))]


def _refuse_blank(words: str) -> Refuse:
    return lambda body: (
        openai_error(words) if any("content" in m and not m["content"] for m in body["messages"]) else None
    )


def _refuse_field(name: str, words: str) -> Refuse:
    return lambda body: openai_error(words) if any(name in message for message in body["messages"]) else None


TWO = signed(1, 2)
THOUGHT = Thought("hm", via="reasoning_content")


CASES = [
    Case(
        "thinking_signature_invalid",
        CLAUDE,
        if_has("s1", said=SIGNATURE),
        {"thinking": 2000},
        TWO,
        "thoughts_rejected",
        lambda served: "s1" not in show_second(served) and "ok" in show_second(served),
    ),
    Case(
        "thinking_prefix_mismatch",
        NEW_CLAUDE,
        _refuse_named(3, BOUND, "s2"),
        {"thinking": "high"},
        signed(1, 2, 3),
        "thoughts_rejected",
        lambda served: (
            "s1" in show_second(served) and "s2" not in show_second(served) and "s3" not in show_second(served)
        ),
    ),
    Case(
        "thinking_block_modified",
        CLAUDE,
        _refuse_named(
            3,
            MODIFIED,
            "s2",
        ),
        {"thinking": 2000},
        TWO,
        "thoughts_rejected",
        lambda served: "s1" in show_second(served) and "s2" not in show_second(served),
    ),
    Case(
        "thinking_signature_missing",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error("messages.1.content.0.thinking.signature: Field required")
            if '"signature": ""' in show(body)
            else None
        ),
        {"thinking": "high"},
        [user("?"), assistant(Thought("unsigned", source="block"), "ok")],
        "thoughts_rejected",
    ),
    Case(
        "encrypted_reasoning_invalid",
        GPT,
        _refuse_items,
        {},
        encrypted("a", "b"),
        "thoughts_rejected",
        lambda served: "gAAAbwXBV" not in show_second(served),
    ),
    Case("reasoning_item_orphaned", GPT, _refuse_orphan, {}, encrypted("a", "b"), "thoughts_rejected"),
    Case("reasoning_item_missing", GPT, _refuse_missing, {}, encrypted("a", "b")),
    Case("item_not_persisted", GPT, _refuse_id, {}, encrypted("a", "b")),
    Case(
        "encrypted_reasoning_unsupported",
        GPT,
        lambda body: (
            openai_error("Encrypted content is not supported with this model", "include")
            if body.get("include")
            else None
        ),
    ),
    Case(
        "encrypted_reasoning_wrong_account",
        GPT,
        if_has(
            "gAAAa",
            said=openai_error(WRONG_ACCOUNT, code="invalid_encrypted_content"),
        ),
        {},
        encrypted("a", "b"),
        "thoughts_rejected",
    ),
    Case(
        "reasoning_item_id_invalid",
        GPT,
        lambda body: (
            openai_error(
                "Invalid 'input[1].id': 'rs_a'. Expected an ID that begins with 'rs'.", "input[1].id", "invalid_value"
            )
            if '"id": "rs_' in show(body)
            else None
        ),
        {},
        encrypted("a"),
    ),
    Case(
        "thought_signature_missing",
        "gemini:gemini-2.5-pro",
        _refuse_unsigned,
        {"tools": [LOOK]},
        called(),
        "signature_stand_in",
        ends_with=None,
    ),
    Case(
        "thought_signature_invalid",
        "gemini:gemini-3-pro-preview",
        _refuse_seals,
        {"tools": [LOOK]},
        called(Seal("thought_signature", "bad-seal")),
        "thoughts_rejected",
        lambda served: "skip_thought_signature_validator" in show_second(served),
        ends_with=None,
    ),
    Case("reasoning_content_required", CHAT, _need_thinking, {"thinking": "high"}, [user("?"), assistant("ok")]),
    Case(
        "reasoning_content_required with a word",
        CHAT,
        _need_a_word,
        {"tools": [LOOK]},
        called(),
        ends_with=None,
    ),
    Case(
        "reasoning_field_rejected",
        "vllm:m",
        lambda body: (
            openai_error("'messages.1' : property 'reasoning' is unsupported")
            if '"reasoning": "hm' in show(body)
            else None
        ),
        {"tools": [LOOK]},
        called(thought=Thought("hm", via="reasoning_content")),
        "thoughts_rejected",
    ),
    Case(
        "reasoning_field_rejected, DeepSeek",
        "vllm:m",
        _refuse_field("reasoning", "The reasoning_content field must not be included in the input messages."),
        {"tools": [LOOK]},
        called(thought=THOUGHT),
        "thoughts_rejected",
    ),
    *(
        Case(
            f"tool_arguments_invalid, {raw}",
            CHAT,
            _refuse_arguments(words),
            {"tools": [LOOK]},
            called_with(raw),
            "arguments_not_sent",
            lambda served: "{}" in show_second(served),
        )
        for raw, words in (
            ('{"at":', "invalid params, invalid function arguments json string, tool_call_id: call_1 (2013)"),
            ("[1]", "Can only get item pairs from a mapping."),
            ("null", "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error"),
            (
                "",
                "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments",
            ),
        )
    ),
    Case("tool_turn_order", CHAT, _refuse_user_after_tool, {"tools": [LOOK]}, called(), "turn_added"),
    Case(
        "tool_turn_order, results beside words",
        "bedrock:maker.new-model-v1:0",
        _refuse_words_beside_results,
        {"tools": [LOOK]},
        called(),
        "turn_added",
    ),
    Case(
        "tool_turn_order, calls beside words",
        "bedrock:maker.new-model-v1:0",
        _refuse_words_beside("toolUse", "tool use"),
        {"tools": [LOOK]},
        [user("Look."), assistant("I look.", *called()[1].parts), *called()[2:]],
        "turn_added",
    ),
    Case("role_alternation", CHAT, _refuse_row_of_roles, {}, [user("One."), user("Two.")], "messages_merged"),
    Case(
        "role_alternation, no user",
        CHAT,
        lambda body: (
            openai_error("Jinja Exception: No user query found in messages.")
            if not any(message["role"] == "user" for message in body["messages"])
            else None
        ),
        {"tools": [LOOK]},
        called()[1:],
        "turn_added",
        ends_with=None,
    ),
    Case(
        "system_position",
        CHAT,
        _refuse_late_system,
        {},
        [user("One."), Message("system", (Text("Be brief."),))],
        "system_moved",
    ),
    Case(
        "empty_content",
        CHAT,
        lambda body: (
            openai_error("Invalid request content: Each message must have at least one content element.")
            if any(message.get("content") == "" for message in body["messages"])
            else None
        ),
        {"tools": [LOOK]},
        [*called()[:2], Message("tool", (ToolResult("call_1", "", "look"),))],
    ),
    *(
        Case(
            f"empty_content, {words[:24]}",
            CHAT,
            _refuse_blank(words),
            {"tools": [LOOK]},
            [*called()[:2], Message("tool", (ToolResult("call_1", "", "look"),))],
        )
        for words in (
            "invalid request: messages[1]: an assistant message has content or tool_calls.",
            "invalid request: messages[2]: a content item of type text is empty.",
            "messages[1]: an assistant message says nothing",
        )
    ),
    Case(
        "empty_content, MiniMax",
        CHAT,
        _refuse_blank("invalid params, chat content is empty (2013)"),
        {"tools": [LOOK]},
        [*called()[:2], Message("tool", (ToolResult("call_1", "", "look"),))],
    ),
]


@pytest.mark.parametrize("asking", [ask, ask_async])
@pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "-", case.kind) for case in CASES])
def test_a_refusal_is_healed_once_in_the_whole_conversation(case: Case, asking: Ask) -> None:
    check_healed_once(case, asking)


@pytest.mark.parametrize(
    ("model", "requests"),
    [
        ("bedrock:meta.llama4-maverick-17b-instruct-v1:0", 1),
        ("bedrock:us.meta.llama3-3-70b-instruct-v1:0", 1),
        ("bedrock:mistral.mistral-large-2407-v1:0", 1),
        ("bedrock:cohere.command-r-plus-v1:0", 1),
        ("bedrock:amazon.nova-pro-v1:0", 2),
        ("bedrock:openai.gpt-oss-120b-1:0", 2),
        ("bedrock:qwen.qwen3-32b-v1:0", 2),
        ("bedrock:deepseek.v3-v1:0", 2),
        ("bedrock:maker.new-model-v1:0", 2),
    ],
)
@pytest.mark.parametrize("after", ["a question", "no result, and a question", "a result, a system message, a question"])
def test_results_that_bedrock_refuses_beside_words_are_kept_apart(model: str, requests: int, after: str) -> None:
    forget()
    history = called()
    if after == "no result, and a question":
        history = history[:2]
    elif after == "a result, a system message, a question":
        history = [*history, Message("system", (Text("Be brief."),))]
    options: dict[str, Any] = {"api_key": "k", "tools": [LOOK], "stream": False, "retries": 0}
    with refusing(_refuse_words_beside_results) as served:
        reply = asides.ask(model, [*history, user("And now?")], base_url=served.base, **options)
        assert reply.text == "42"
        assert served.count() == requests
        asides.ask(model, [*history, user("So?")], base_url=served.base, **options)
        assert served.count() == requests + 1
    forget()


STORED_PAIRS = (
    (400, "No tool call found for function call output with call_id call_1."),
    (400, "No tool output found for function call call_1."),
    (400, "No function call found for the function result with call_id 'call_1'."),
)


@pytest.mark.parametrize(("status", "words"), STORED_PAIRS)
def test_calls_that_the_stored_turn_does_not_pair_are_sent_with_the_whole_history(status: int, words: str) -> None:
    forget()
    with refusing(
        lambda body: (status, openai_error(words, "input")) if body.get("previous_response_id") else None
    ) as served:
        history = called()
        reply = asides.ask(
            GPT, history, base_url=served.url, api_key="sk-heal-123456", retries=0, stream=False, tools=[LOOK],
            previous_response_id="resp_1",
        )  # fmt: skip
        assert (reply.text, served.count()) == ("42", 2)
        assert "parent_rejected" in [notice.code for notice in reply.warnings]
        assert {"function_call", "function_call_output"} <= {item.get("type") for item in served.bodies[1]["input"]}


@pytest.mark.parametrize(("status", "words"), STORED_PAIRS)
def test_results_of_a_stored_turn_that_is_not_known_here_are_an_error(status: int, words: str) -> None:
    forget()
    with refusing(lambda body: (status, openai_error(words, "input"))) as served:
        with pytest.raises(asides.ProviderError, match=r"call_1"):
            asides.ask(
                GPT, called()[2:], base_url=served.url, api_key="sk-heal-123456", retries=0, stream=False,
                previous_response_id="resp_1",
            )  # fmt: skip
        assert served.count() == 1
