"""Refusals of the amount and the form of thinking."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.flows.heal.healing import (
    CHAT,
    LOOK,
    OTHER_CLAUDE,
    Ask,
    Case,
    ask,
    ask_async,
    check_healed_once,
)
from tests.strict_servers import Body, Refuse, anthropic_error, openai_error


def _refuse_effort(*taken: str) -> Refuse:
    def refuse(body: Body) -> Any:
        effort = body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")
        listed = ", ".join(f"'{value}'" for value in taken)
        text = f"Unsupported value: '{effort}' is not supported with the 'm' model. Supported values are: {listed}."
        return openai_error(text, "reasoning_effort", "unsupported_value") if effort and effort not in taken else None

    return refuse


def _refuse_form(form: str, said: str) -> Refuse:
    return lambda body: anthropic_error(said) if (body.get("thinking") or {}).get("type") == form else None


ADAPTIVE = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".'
)


DISABLED = (
    '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".'
)


def _refuse_budget(body: Body) -> Any:
    budget = (body.get("thinking") or {}).get("budget_tokens")
    text = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    return anthropic_error(text) if budget is not None and budget < 1024 else None


def _refuse_large_budget(body: Body) -> Any:
    budget = (body.get("thinking") or {}).get("budget_tokens") or 0
    text = "`max_tokens` must be greater than `thinking.budget_tokens`."
    return anthropic_error(text) if budget >= body["max_tokens"] else None


def _chat_only_without_effort(body: Body) -> Any:
    if "messages" in body and body.get("tools") and body.get("reasoning_effort", "medium") != "none":
        text = (
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Use /v1/responses."
        )
        return openai_error(text, "reasoning_effort")
    return None


CASES = [
    Case("thinking_mode_unsupported", OTHER_CLAUDE, _refuse_form("enabled", ADAPTIVE), {"thinking": 2000}),
    Case(
        "adaptive_unsupported",
        OTHER_CLAUDE,
        _refuse_form("adaptive", "adaptive thinking is not supported on this model"),
        {"thinking": "high"},
    ),
    Case(
        "between_tools_unsupported",
        "anthropic:claude-sonnet-5-5",
        _refuse_form("between_tools", '"thinking.type.between_tools" is not supported for this model.'),
        {"thinking": "off"},
    ),
    Case("thinking_cannot_disable", OTHER_CLAUDE, _refuse_form("disabled", DISABLED), {"thinking": "off"}),
    Case(
        "thinking_unsupported_model",
        "ollama:m",
        lambda body: {"error": '"m" does not support thinking'} if body.get("think") else None,
        {"thinking": "on"},
    ),
    Case(
        "effort_unsupported_param",
        CHAT,
        lambda body: (
            {"code": "x", "error": "Model m does not support parameter reasoningEffort."}
            if "reasoning_effort" in body
            else None
        ),
        {"thinking": "high"},
    ),
    Case(
        "effort_unsupported_value",
        CHAT,
        _refuse_effort("none", "low", "medium"),
        {"thinking": "xhigh"},
        check=lambda served: served.bodies[1]["reasoning_effort"] == "medium",
    ),
    Case(
        "effort_unsupported_value, xAI",
        CHAT,
        lambda body: (
            openai_error("Model grok-4 does not support reasoning effort 'minimal'. Supported values are: low, high.")
            if body.get("reasoning_effort") == "minimal"
            else None
        ),
        {"thinking": "minimal"},
        check=lambda served: served.bodies[1]["reasoning_effort"] == "low",
    ),
    Case(
        "effort_unsupported_value without a list",
        "ollama:m",
        lambda body: (
            {"error": 'think value "high" is not supported for this model'} if body.get("think") == "high" else None
        ),
        {"thinking": "high"},
        check=lambda served: served.bodies[1]["think"] is True,
    ),
    Case(
        "effort_tools_endpoint",
        "openai:made-up",
        _chat_only_without_effort,
        {"thinking": "high", "tools": [LOOK], "endpoint": "chat"},
        check=lambda served: "/responses" in served.paths[1],
    ),
    Case(
        "effort_tools_endpoint without another",
        "openai-chat:made-up",
        _chat_only_without_effort,
        {"thinking": "high", "tools": [LOOK]},
        check=lambda served: served.bodies[1]["reasoning_effort"] == "none",
    ),
    Case("budget_too_small", OTHER_CLAUDE, _refuse_budget, {"thinking": 100}),
    Case("budget_exceeds_max_tokens", OTHER_CLAUDE, _refuse_large_budget, {"thinking": 50_000}),
    Case(
        "opaque_provider_error, the effort",
        CHAT,
        lambda body: "400 Bad Request\n" if "reasoning_effort" in body else None,
        {"thinking": "high"},
    ),
]


@pytest.mark.parametrize("asking", [ask, ask_async])
@pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "-", case.kind) for case in CASES])
def test_a_refusal_is_healed_once_in_the_whole_conversation(case: Case, asking: Ask) -> None:
    check_healed_once(case, asking)
