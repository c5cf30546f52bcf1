"""The models at Amazon Bedrock, as Converse serves them: each family has its own fields for thinking."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, LOW_TO_XHIGH
from asides.providers.models.claude import claude_models
from asides.providers.provider import ModelRule, ReplayRule

_CONVERSE = "vercel/ai packages/amazon-bedrock; pydantic-ai models/bedrock.py"
_NOVEMBER = "2026-11-15"
_LIVE = "pydantic-ai 2.66 providers/bedrock.py, measured on the live API"
_CARDS = "docs.aws.amazon.com bedrock userguide model cards, in litellm 1.108 and models.dev"


def _claude() -> tuple[ModelRule, ...]:
    """Claude's rules under Bedrock's names. Before 3.7, models with tools think in tags in the text (recorded)."""
    return tuple(
        msgspec.structs.replace(
            rule,
            ask_by="thinking_toggle",
            tags=("thinking",) if rule.thinking == "never" else (),
            cache_points="everywhere",
            enforces=("alternation", "claude_rules"),
        )
        for rule in claude_models("*")
    )


def _rule(models: str, **facts: object) -> ModelRule:
    # Not converted: reading the types of a rule costs more than all of these, and tests check each rule.
    given: dict[str, Any] = {"since": "2026-08", "source": _CONVERSE, **facts}
    return ModelRule(models=models, **given)


BEDROCK_MODELS: tuple[ModelRule, ...] = (
    *_claude(),
    # Their thinking is hidden in redactedContent, which only the provider can read.
    _rule(
        "*openai.gpt-oss*",
        thinking="always",
        default="on",
        efforts=LOW_TO_HIGH,
        ask_by="reasoning_effort",
        tags=("reasoning",),
        pictures=False,
    ),
    *(
        _rule(
            models,
            thinking=thinking,
            default="on",
            kind="hidden",
            efforts=LOW_TO_MAX,
            ask_by="reasoning_object",
            tags=(),
            since=_NOVEMBER,
            source=_LIVE,
        )
        for models, thinking in (
            ("*openai.gpt-6-astra*", "always"),
            ("*openai.gpt-6.1-sol*", "always"),
            ("*openai.gpt-*", "optional"),
        )
    ),
    # The first generation thinks in tags in the text when it has tools (recorded).
    _rule(
        "*amazon.nova-2*",
        thinking="optional",
        default="off",
        efforts=LOW_TO_HIGH,
        ask_by="max_reasoning_effort",
        tags=("thinking",),
        top_k_in="inferenceConfig.topK",
        structured_output="nothing",
        cache_points="messages",
        enforces=(),  # Neighbouring messages of one role are accepted (recorded).
        source="docs.aws.amazon.com nova2-userguide extended-thinking; vercel/ai packages/amazon-bedrock",
    ),
    _rule(
        "*amazon.nova*",
        thinking="never",
        efforts=(),
        tags=("thinking",),
        top_k_in="inferenceConfig.topK",
        structured_output="nothing",
        # The system prompt and messages, not tools: docs.aws.amazon.com bedrock userguide prompt-caching, 2026-11.
        cache_points="messages",
        enforces=(),
        source="recorded",
    ),
    _rule("*qwen.qwen3-coder*", thinking="never", efforts=(), pictures=False, since=_NOVEMBER, source=_LIVE),
    # It thinks only when asked.
    _rule(
        "*qwen.qwen3*",
        thinking="optional",
        default="off",
        efforts=LOW_TO_HIGH,
        ask_by="reasoning_config",
        tags=("think",),
        since=_NOVEMBER,
        source=_LIVE,
    ),
    _rule(
        "*deepseek.r1*",
        thinking="always",
        default="on",
        efforts=(),
        tags=("think",),
        tools=False,
        enforces=("alternation", "no_tools"),
        structured_output="nothing",
        source=f"{_CONVERSE}; unsure: no tools, no schema (docs.aws.amazon.com bedrock userguide "
        "conversation-inference-supported-models-features)",
    ),
    _rule(
        "*deepseek.v3*",
        thinking="optional",
        efforts=LOW_TO_HIGH,
        ask_by="reasoning_effort",
        pictures=False,
        since=_NOVEMBER,
        source="litellm 1.108 llms/bedrock/chat; unsure: what happens unasked",
    ),
    # No value turns it off. Converse refuses its sampling settings.
    _rule(
        "*xai.grok-4.[67]*",
        thinking="always",
        default="on",
        efforts=LOW_TO_XHIGH,
        ask_by="reasoning_object",
        refuses=("temperature", "top_p", "top_k"),
        structured_output="nothing",
        since=_NOVEMBER,
        source=f"model-card-xai-grok-4-6 and -4-7; {_LIVE}",
    ),
    _rule(
        "*moonshot*kimi-k3*",
        thinking="always",
        default="on",
        efforts=("low", "high", "max"),
        ask_by="reasoning_effort",
        since=_NOVEMBER,
        source=f"model-card-moonshot-ai-kimi-k3; {_CARDS}; unsure: not measured",
    ),
    _rule(
        "*zai.glm-5.3*",
        thinking="always",
        default="on",
        efforts=("low", "high", "max"),
        ask_by="reasoning_effort",
        pictures=False,
        since=_NOVEMBER,
        source=f"model-card-zai-glm-5-3: its sample sends reasoning_effort; {_CARDS}; unsure: not measured",
    ),
    # How a request changes the thinking of these is not documented.
    *(
        _rule(
            models,
            thinking=thinking,
            default="on",
            efforts=(),
            pictures=pictures,
            since=_NOVEMBER,
            source=f"{_CARDS}; unsure: whether it can be turned off",
        )
        for models, thinking, pictures in (
            ("*moonshot*kimi-k2-thinking*", "always", False),
            ("*moonshot*kimi-k2.[56]*", "optional", None),
            ("*minimax.minimax-m2*", "always", False),
            ("*zai.glm-[45]*", "optional", False),
            ("*nvidia.nemotron-nano-12b*", "optional", None),
            ("*nvidia.nemotron*", "optional", False),
            ("*mistral.magistral*", "always", None),
        )
    ),
)

BEDROCK_REPLAY = (
    *(
        ReplayRule(
            models=models,
            when="never",
            since="2026-08-20",
            source="can1357/oh-my-pi#9086, langchain-ai/langchain-aws#401: they refuse any reasoning",
        )
        for models in ("*amazon.nova*", "*deepseek.*")
    ),
    *(
        ReplayRule(
            models=models,
            when="tool_turns",
            since="2026-09-07",
            source="maximhq/bifrost#6942: models other than Claude take unsigned blocks, without a signature" + unsure,
        )
        for models, unsure in (
            ("*minimax*", ""),
            ("*moonshot*", "; unsure: Kimi, whose maker requires them in a loop"),
            ("*zai.glm*", "; unsure: GLM, whose maker requires them in a loop"),
            ("*qwen.qwen3*", "; anomalyco/models.dev#6823 marks Qwen as interleaved; unsure: not measured"),
            # It refuses only the signature (strands-agents/harness-sdk#682).
            ("*openai.gpt-oss*", "; unsure: gpt-oss, which needs them in a loop (openai/harmony docs/format.md)"),
        )
    ),
    ReplayRule(
        when="sealed",
        since="2026-08",
        source="vercel/ai packages/amazon-bedrock: signed thoughts go back, others leak into the answer; recorded",
    ),
)
"""Earlier thinking goes back if it is signed, and if the model signs."""
