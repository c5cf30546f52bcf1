"""Usage with every documented extra field reads the same from a whole response and from a stream, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.values.usage import Usage, find_cost
from asides.wire.aws_frames import write_frame
from tests.decoding import decoded, sse, target

DETAILS = [{"modality": "TEXT", "tokenCount": 20}]

# As documented up to 2026-11, with the fields that are not read.
USAGE: dict[str, dict[str, Any]] = {
    "anthropic": {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens_details": {"thinking_tokens": 3},
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
        "service_tier": "standard",
        "inference_geo": "global",
    },
    "bedrock": {
        "inputTokens": 5,
        "outputTokens": 7,
        "totalTokens": 52,
        "cacheReadInputTokens": 10,
        "cacheWriteInputTokens": 30,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 10}, {"ttl": "1h", "inputTokens": 20}],
        "serverToolUsage": {"webSearchRequests": 1},
    },
    "cohere": {
        "billed_units": {"input_tokens": 4, "output_tokens": 7, "search_units": 1, "classifications": 0},
        "tokens": {"input_tokens": 45.0, "output_tokens": 7.0, "reasoning_tokens": 3.0},
        "cached_tokens": 10,
    },
    "gemini": {
        "promptTokenCount": 45,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 10,
        "toolUsePromptTokenCount": 0,
        "totalTokenCount": 52,
        "promptTokensDetails": DETAILS,
        "cacheTokensDetails": DETAILS,
        "candidatesTokensDetails": DETAILS,
        "toolUsePromptTokensDetails": DETAILS,
        "trafficType": "ON_DEMAND",
        "serviceTier": "standard",
    },
    "ollama": {
        "prompt_eval_count": 45,
        "eval_count": 7,
        "total_duration": 5191566416,
        "load_duration": 2154458,
        "prompt_eval_duration": 383809000,
        "eval_duration": 4799921000,
    },
    "openai_chat": {
        "prompt_tokens": 45,
        "completion_tokens": 7,
        "total_tokens": 52,
        "prompt_tokens_details": {"cached_tokens": 10, "audio_tokens": 0, "cache_write_tokens": 30},
        "completion_tokens_details": {
            "reasoning_tokens": 3,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        "cost": 0.25,
        "is_byok": False,
        "cost_details": {"upstream_inference_cost": None},
    },
    "openai_responses": {
        "input_tokens": 45,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 30},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 52,
        "num_sources_used": 0,
        "num_server_side_tools_used": 1,
    },
}


def write_bodies(dialect: str, usage: dict[str, Any]) -> tuple[bytes, bytes]:
    """Write the answer "42" with these counts: whole, and as a stream."""
    match dialect:
        case "anthropic":
            message = {"type": "message", "id": "m", "model": "made-up"}
            text, block = {"type": "text", "text": "42"}, {"type": "text", "text": ""}
            whole: Any = {**message, "content": [text], "stop_reason": "end_turn", "usage": usage}
            stream = sse(
                {"type": "message_start", "message": {**message, "content": []}},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "42"}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
                {"type": "message_stop"},
                done=False,
            )
        case "bedrock":
            whole = {
                "output": {"message": {"role": "assistant", "content": [{"text": "42"}]}},
                "stopReason": "end_turn",
                "usage": usage,
                "metrics": {"latencyMs": 1},
            }
            frames: list[tuple[str, Any]] = [
                ("messageStart", {"role": "assistant"}),
                ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "42"}}),
                ("contentBlockStop", {"contentBlockIndex": 0}),
                ("messageStop", {"stopReason": "end_turn"}),
                ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
            ]
            stream = b"".join(write_frame({":event-type": name}, json.dumps(data).encode()) for name, data in frames)
        case "cohere":
            content = {"type": "text", "text": "42"}
            whole = {
                "id": "m",
                "message": {"role": "assistant", "content": [content]},
                "finish_reason": "COMPLETE",
                "usage": usage,
            }
            stream = sse(
                {"type": "message-start", "id": "m"},
                {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
                {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "42"}}}},
                {"type": "content-end", "index": 0},
                {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
            )
        case "gemini":
            candidate = {"content": {"role": "model", "parts": [{"text": "42"}]}, "index": 0}
            whole = {"candidates": [{**candidate, "finishReason": "STOP"}], "usageMetadata": usage, "responseId": "m"}
            stream = sse({"candidates": [candidate], "responseId": "m"}, {**whole, "candidates": [{
                "content": {"role": "model", "parts": [{"text": ""}]}, "index": 0, "finishReason": "STOP",
            }]}, done=False)  # fmt: skip
        case "ollama":
            first = {"model": "made-up", "message": {"role": "assistant", "content": "42"}, "done": False}
            last = {"model": "made-up", "done": True, "done_reason": "stop", **usage}
            whole = {**last, "message": first["message"]}
            message = {"role": "assistant", "content": ""}
            stream = b"".join(json.dumps(line).encode() + b"\n" for line in (first, {**last, "message": message}))
        case "openai_chat":
            top = {"id": "m", "model": "made-up"}
            choice = {"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}
            whole = {**top, "choices": [choice], "usage": usage}
            stream = sse(
                {**top, "choices": [{"index": 0, "delta": {"content": "42"}, "finish_reason": None}]},
                {**top, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {**top, "choices": [], "usage": usage},
            )
        case _:
            item = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
            done = {**item, "content": [{"type": "output_text", "text": "42", "annotations": []}]}
            top = {"id": "m", "object": "response", "model": "made-up"}
            whole = {**top, "status": "completed", "output": [done], "usage": usage}
            place = {"output_index": 0, "item_id": "i", "content_index": 0}
            stream = sse(
                {"type": "response.created", "response": {**top, "status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
                {"type": "response.output_text.delta", "delta": "42", **place},
                {"type": "response.output_item.done", "output_index": 0, "item": done},
                {"type": "response.completed", "response": whole},
                done=False,
            )
    return json.dumps(whole).encode(), stream


@pytest.mark.parametrize("dialect", USAGE)
def test_documented_usage_reads_the_same_whole_and_streamed(dialect: str) -> None:
    bodies = write_bodies(dialect, USAGE[dialect])
    whole, streamed = (decoded(body, target(), dialect) for body in bodies)
    assert (whole.text, whole.warnings) == ("42", ())
    assert whole.usage == streamed.usage
    assert (whole.parts, whole.stop) == (streamed.parts, streamed.stop)
    assert (whole.usage.input, whole.usage.output, whole.usage.total) == (45, 7, 52)
    assert whole.usage.cached == (None if dialect == "ollama" else 10)


def test_the_hour_of_the_cache_is_read_where_a_dialect_reports_it() -> None:
    for dialect in ("anthropic", "bedrock"):
        whole: Usage = decoded(write_bodies(dialect, USAGE[dialect])[0], target(), dialect).usage
        assert (whole.cache_written, whole.cache_written_hour) == (30, 20)


# --- what people pay for besides tokens -------------------------------------------------------------------------------

_ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6",
    "content": [{"type": "text", "text": "42"}],
    "stop_reason": "end_turn",
}
_COUNTS = {"input_tokens": 10, "output_tokens": 5}
_CHAT = {"id": "c", "model": "m", "choices": [{"index": 0, "message": {"content": "42"}, "finish_reason": "stop"}]}
_CHAT_COUNTS = {"prompt_tokens": 10, "completion_tokens": 5}
_ITEM = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}
_RESPONSE = {"id": "r", "object": "response", "status": "completed", "output": [_ITEM], "usage": _COUNTS}
_CONTENT = {"candidates": [{"index": 0, "content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]}
_CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "42"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
}
PAID: list[tuple[str, dict[str, Any], int | None, str | None]] = [
    ("anthropic", _ANTHROPIC | {"usage": _COUNTS | {"server_tool_use": {"web_search_requests": 3}}}, 3, None),
    ("anthropic", _ANTHROPIC | {"usage": _COUNTS | {"service_tier": "priority"}}, None, "priority"),
    ("anthropic", _ANTHROPIC | {"usage": _COUNTS | {"service_tier": "standard", "speed": "fast"}}, None, "fast"),
    ("anthropic", _ANTHROPIC | {"usage": _COUNTS | {"server_tool_use": {"web_search_requests": 0}}}, None, None),
    ("openai_chat", _CHAT | {"usage": _CHAT_COUNTS, "service_tier": "flex"}, None, "flex"),
    ("openai_chat", _CHAT | {"usage": _CHAT_COUNTS, "service_tier": "default"}, None, None),
    ("openai_chat", _CHAT | {"usage": _CHAT_COUNTS | {"num_search_queries": 2}}, 2, None),
    ("openai_chat", _CHAT | {"usage": _CHAT_COUNTS | {"num_server_side_tools_used": 1}}, 1, None),
    ("openai_responses", _RESPONSE | {"service_tier": "priority"}, None, "priority"),
    ("openai_responses", _RESPONSE | {"tool_usage": {"web_search": {"num_requests": 4}}}, 4, None),
    (
        "gemini",
        _CONTENT | {"usageMetadata": {"promptTokenCount": 3, "trafficType": "ON_DEMAND_FLEX"}},
        None,
        "on_demand_flex",
    ),
    ("bedrock", _CONVERSE | {"serviceTier": {"type": "flex"}}, None, "flex"),
]


@pytest.mark.parametrize(("dialect", "body", "requests", "tier"), PAID)
def test_what_is_billed_besides_tokens_is_in_the_usage(
    dialect: str, body: dict[str, Any], requests: int | None, tier: str | None
) -> None:
    usage = decoded(json.dumps(body).encode(), dialect=dialect).usage
    assert (usage.tool_requests, usage.tier) == (requests, tier)
    assert (usage + usage).tool_requests == (requests and 2 * requests)
    assert (usage + usage).tier == tier


def test_an_unusual_tier_has_no_estimate_of_the_cost() -> None:
    usual, fast = Usage(1000, 1000, tier=None), Usage(1000, 1000, tier="fast")
    assert find_cost(fast, ["gpt-4o"], "openai") is None
    assert usual.tier is None


def test_what_other_models_used_is_named_as_not_counted() -> None:
    advisor = {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": 100, "output_tokens": 20}
    declined = {"type": "message", "model": "claude-fable-5", "input_tokens": 40, "output_tokens": 1}
    served = {"type": "fallback_message", "model": "claude-opus-4-6", **_COUNTS}
    body = _ANTHROPIC | {"usage": _COUNTS | {"iterations": [advisor, declined, served]}}
    reply = decoded(json.dumps(body).encode(), dialect="anthropic")
    assert reply.usage.input == 10
    told = [notice.detail for notice in reply.warnings if notice.code == "not_counted"]
    assert [detail.partition(" for")[0] for detail in told] == [
        "claude-opus-5-5 used 100 input and 20 output tokens",
        "claude-fable-5 used 40 input and 1 output tokens",
    ]
