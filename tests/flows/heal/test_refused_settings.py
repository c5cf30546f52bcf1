"""Refusals of other settings."""

from __future__ import annotations

import re
from typing import Any

import pytest

from asides.values.messages import assistant, user
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
    check_healed_once,
    encrypted,
    show,
)
from tests.strict_servers import Body, anthropic_error, openai_error


def _refuse_whole(body: Body) -> Any:
    text = "parameter.enable_thinking must be set to false for non-streaming calls"
    return None if body.get("stream") else openai_error(text, code="invalid_parameter_error")


def _refuse_sum(body: Body) -> Any:
    limit = body["max_tokens"]
    text = f"input length and `max_tokens` exceed context limit: 196000 + {limit} > 200000, decrease input length"
    return anthropic_error(text) if limit > 4000 else None


def _summary(body: Body) -> Any:
    text = "Your organization must be verified to generate reasoning summaries."
    return (
        openai_error(text, "reasoning.summary", "unsupported_value") if "summary" in body.get("reasoning", {}) else None
    )


CASES = [
    Case(
        "context_length",
        CLAUDE,
        _refuse_sum,
        {"max_tokens": 8000},
        check=lambda served: served.bodies[1]["max_tokens"] == 4000,
        is_fact=False,
    ),
    Case(
        "reasoning_params_conflict",
        "vllm:m",
        lambda body: (
            openai_error("cannot specify both 'chat_template_kwargs' and 'reasoning_effort'")
            if "chat_template_kwargs" in body and "reasoning_effort" in body
            else None
        ),
        {"thinking": "high"},
    ),
    Case(
        "sampling_with_thinking",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
            if "temperature" in body
            else None
        ),
        {"thinking": "high", "temperature": 0.5},
    ),
    Case(
        "sampling_unsupported",
        CHAT,
        lambda body: (
            openai_error(
                "Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"
            )
            if "top_p" in body
            else None
        ),
        {"top_p": 0.5, "temperature": 0.4},
        check=lambda served: served.bodies[1]["temperature"] == 0.4,
    ),
    Case(
        "reasoning_params_conflict, Google",
        CHAT,
        lambda body: (
            openai_error("Expected one of either `reasoning_effort` or custom `thinking_config`; found both.")
            if "reasoning_effort" in body
            else None
        ),
        {"thinking": "high", "extra": {"google": {"thinking_config": {"include_thoughts": True}}}},
    ),
    Case(
        "sampling_unsupported, stop",
        CHAT,
        lambda body: (
            openai_error("Unsupported parameter: 'stop' is not supported with this model.", "stop")
            if "stop" in body
            else None
        ),
        {"stop": ["END"]},
    ),
    Case(
        "sampling_unsupported, a model that thinks by its name",
        CHAT,
        lambda body: (
            openai_error("Model grok-4-fast-reasoning does not support parameter temperature.")
            if "temperature" in body
            else None
        ),
        {"temperature": 0.5},
    ),
    Case(
        "tool_choice_with_thinking",
        CHAT,
        lambda body: (
            openai_error("Thinking mode does not support this tool_choice")
            if body.get("tool_choice") == "required"
            else None
        ),
        {"thinking": "high", "tools": [LOOK], "tool_choice": "required"},
    ),
    Case(
        "tool_choice_unsupported",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error('tool_choice: type "tool" and "any" are not supported for this model.')
            if body.get("tool_choice", {}).get("type") in ("tool", "any")
            else None
        ),
        {"tools": [LOOK], "tool_choice": "required"},
    ),
    Case(
        "prefill_unsupported",
        OTHER_CLAUDE,
        lambda body: (
            anthropic_error(
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
            if body["messages"][-1]["role"] == "assistant"
            else None
        ),
        {},
        [user("?")],
        "prefill_adjusted",
        ends_with=assistant("It is"),
    ),
    Case(
        "context_edit_needs_thinking",
        CLAUDE,
        lambda body: (
            anthropic_error("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive")
            if "clear_thinking" in show(body)
            else None
        ),
        {"extra": {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}},
    ),
    Case(
        "binding_control_unavailable",
        NEW_CLAUDE,
        lambda body: (
            anthropic_error("thinking.block_binding: Extra inputs are not permitted")
            if "block_binding" in show(body)
            else None
        ),
        {"thinking": "high", "extra": {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}},
    ),
    Case("summary_not_allowed", GPT, _summary, {"thinking": "high"}, (), "summary_refused"),
    Case("stream_required", CHAT, _refuse_whole, {"thinking": "high"}, (), "streamed"),
    Case(
        "unknown_param",
        CHAT,
        lambda body: (
            openai_error("Unrecognized request argument supplied: parallel_tool_calls")
            if "parallel_tool_calls" in body
            else None
        ),
        {"tools": [LOOK], "parallel_tool_calls": False},
    ),
    Case(
        "opaque_provider_error, foreign state",
        GPT,
        lambda body: (400, "400 Bad Request\n") if "gAAAa" in show(body) else None,
        {},
        encrypted("a"),
        "thoughts_rejected",
    ),
]


@pytest.mark.parametrize("asking", [ask, ask_async])
@pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "-", case.kind) for case in CASES])
def test_a_refusal_is_healed_once_in_the_whole_conversation(case: Case, asking: Ask) -> None:
    check_healed_once(case, asking)
