"""The models at Amazon Bedrock, as Converse serves them: each family has its own fields for thinking.

Not here: the row (table), and Claude's own rules (claude), which hold here too.
"""

from __future__ import annotations

import msgspec

from asides.providers.models import LOW_TO_HIGH
from asides.providers.models.claude import claude_models
from asides.providers.provider import ModelRule, ReplayRule

_CONVERSE = "vercel/ai packages/amazon-bedrock; pydantic-ai models/bedrock.py"


def _claude() -> tuple[ModelRule, ...]:
    """Claude's rules under Bedrock's names. Before 3.7, models with tools think in tags in the text (recorded)."""
    return tuple(
        msgspec.structs.replace(
            rule,
            ask_by="thinking_toggle",
            tags=("thinking",) if rule.thinking == "never" else (),
        )
        for rule in claude_models("*")
    )


def _rule(models: str, **facts: object) -> ModelRule:
    given: dict[str, object] = {"since": "2026-08", "source": _CONVERSE, **facts}
    return msgspec.convert({"models": models, **given}, ModelRule)


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
    ),
    _rule("*openai.gpt-*", thinking="always", default="on", kind="hidden", ask_by="reasoning_object", tags=()),
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
        source="docs.aws.amazon.com nova2-userguide extended-thinking; vercel/ai packages/amazon-bedrock",
    ),
    _rule(
        "*amazon.nova*",
        thinking="never",
        efforts=(),
        tags=("thinking",),
        top_k_in="inferenceConfig.topK",
        structured_output="nothing",
        source="recorded",
    ),
    _rule(
        "*qwen.qwen3*",
        thinking="optional",
        efforts=("low", "high"),
        ask_by="reasoning_config",
        tags=("think",),
        source="pydantic-ai models/bedrock.py; unsure: what happens unasked",
    ),
    _rule(
        "*deepseek.r1*",
        thinking="always",
        default="on",
        efforts=(),
        tags=("think",),
        tools=False,
        structured_output="nothing",
        source=f"{_CONVERSE}; unsure: no tools, no schema (docs.aws.amazon.com bedrock userguide "
        "conversation-inference-supported-models-features)",
    ),
)

BEDROCK_REPLAY = (
    ReplayRule(
        when="sealed",
        since="2026-08",
        source="vercel/ai packages/amazon-bedrock: signed thoughts go back, others leak into the answer; recorded",
    ),
)
"""Earlier thinking goes back if it is signed."""
