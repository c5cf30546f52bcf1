"""The models of DeepSeek, Moonshot, Alibaba, Z.ai, Cohere, xAI, MiniMax and Mistral, as their makers serve them.

Not here: the makers' rows (table), and the same weights at other hosts (open_weights).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_XHIGH, never_thinks
from asides.providers.provider import ModelRule, Sampled
from asides.values.thinking import Effort

_DEEPSEEK_EFFORTS: tuple[Effort, ...] = ("low", "high", "max")

_DEEPSEEK_MAP: tuple[tuple[Effort, Effort], ...] = (("minimal", "low"), ("medium", "high"), ("xhigh", "high"))

DEEPSEEK_GUIDE = "api-docs.deepseek.com/guides/thinking_mode"

_DEEPSEEK_FORBIDS: tuple[Sampled, ...] = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
)


def _deepseek(
    models: str, thinking: Literal["always", "optional"], default: Literal["on", "off"], since: str
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        efforts=_DEEPSEEK_EFFORTS,
        effort_map=_DEEPSEEK_MAP,
        forbids=_DEEPSEEK_FORBIDS,
        forced_tools=False,
        since=since,
        source=DEEPSEEK_GUIDE,
    )


KIMI = "vercel/ai packages/moonshotai, measured on the live API; MoonshotAI/kimi-cli kosong"

_KIMI_FORBIDS: tuple[Sampled, ...] = ("temperature", "top_p", "presence_penalty", "frequency_penalty")


def _kimi(models: str, thinking: Literal["always", "optional"]) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default="on",
        efforts=(),
        forbids=_KIMI_FORBIDS,
        forced_tools=False,
        since="2026-08",
        source=KIMI,
    )


ALIYUN = "alibabacloud.com/help/en/model-studio/deep-thinking; unsure: the defaults of single models"


def _qwen(models: str, thinking: Literal["always", "optional"], default: Literal["on", "off"] | None) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        efforts=(),
        budget=(1, None),
        # 400 "does not support being set to required or object in thinking mode" (cloudwego/eino#994, 2026-04).
        forced_tools=False,
        since="2026-10-29",
        source=ALIYUN,
    )


_ZAI = "docs.z.ai guides/capabilities/thinking-mode; docs.bigmodel.cn; unsure: forced tools, glm-4"


def _glm(models: str) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="optional",
        default="on",
        efforts=(),
        forced_tools=False,
        since="2026-08",
        source=_ZAI,
    )


GLM_MODELS = (
    # It silently reads `none` as max (measured by ceulen v0.23.0, 2026-10-19), so `none` must never be sent.
    ModelRule(
        models="glm-5.3*",
        thinking="always",
        default="on",
        efforts=("low", "high", "max"),
        off_as_effort=False,
        forced_tools=False,
        ask_by="reasoning_effort",
        since="2026-10-19",
        source=_ZAI,
    ),
    ModelRule(
        models="glm-5.2*",
        thinking="optional",
        default="on",
        efforts=("high", "max"),
        effort_map=(("low", "high"), ("medium", "high"), ("xhigh", "max")),
        forced_tools=False,
        ask_by="thinking_toggle_and_effort",
        since="2026-08",
        source=_ZAI,
    ),
    _glm("glm-5*"),
    # Vision models: nothing is documented.
    ModelRule(models="glm-4.[56]v*", since="2026-08", source="pydantic-ai profiles/zai.py"),
    _glm("glm-4.[567]*"),
    never_thinks("glm-4*", "2026-08", _ZAI),
)


def _command(models: str) -> ModelRule:
    """A reasoning model of Cohere: thinks unless the request switches it off; the request may give a budget."""
    return ModelRule(
        models=models,
        thinking="optional",
        default="on",
        efforts=(),
        budget=(1, None),
        since="2026-08",
        source="docs.cohere.com reasoning; cohere-python types/thinking.py; recorded",
    )


_XAI = "docs.x.ai guides/reasoning; BerriAI/litellm#16265; unsure: whose thinking is hidden, 4.7, 2 and 3"

_XAI_FORBIDS: tuple[Sampled, ...] = ("presence_penalty", "frequency_penalty", "stop")


def _grok(
    models: str,
    thinking: Literal["always", "optional"],
    efforts: tuple[Effort, ...],
    *,
    kind: Literal["raw", "hidden"] = "hidden",
    since: str = "2026-08",
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default="on" if thinking == "always" else None,
        kind=kind,
        efforts=efforts,
        off_as_effort=thinking == "optional",
        forbids=_XAI_FORBIDS,
        since=since,
        source=_XAI,
    )


GROK_MODELS = (
    never_thinks("*non-reasoning*", "2026-08-16", "400 on any reasoning_effort (neavo/LinguaGacha#771)"),
    _grok("grok-4.20*", "always", ()),
    _grok("grok-4.3*", "optional", LOW_TO_HIGH),
    _grok("grok-4.5*", "always", LOW_TO_HIGH),
    _grok("grok-4.[67]*", "always", LOW_TO_XHIGH, since="2026-11"),
    _grok("grok-4*", "always", ()),
    # Recorded: it sends its thinking and refuses an effort.
    _grok("grok-code*", "always", (), kind="raw"),
    # Only the fourth family takes schema and tools together (docs.x.ai structured-outputs; hexdocs.pm req_llm, 2026).
    msgspec.structs.replace(_grok("grok-3-mini*", "always", ("low", "high"), kind="raw"), output_with_tools=False),
    msgspec.structs.replace(never_thinks("grok-[23]*", "2026-08", _XAI), output_with_tools=False),
)

MISTRAL = "docs.mistral.ai capabilities/reasoning; mistralai/client-python examples"

MINIMAX = "platform.minimax.io docs/api-reference/text-openai-api; vercel/ai packages/minimax"

DEEPSEEK_MODELS = (
    _deepseek("deepseek-v4*", "optional", "on", "2026-04-24"),
    _deepseek("deepseek-flash*", "optional", "on", "2026-11"),
    # Since 2026-04 these two names are V4 Flash with thinking and without; retired on 2026-07-24.
    _deepseek("deepseek-reasoner*", "always", "on", "2026-04-24"),
    _deepseek("deepseek-chat*", "optional", "off", "2026-04-24"),
)

KIMI_MODELS = (
    ModelRule(
        models="kimi-k3*",
        thinking="always",
        default="on",
        efforts=("low", "high", "max"),
        off_as_effort=False,
        forbids=_KIMI_FORBIDS,
        forced_tools=False,
        ask_by="reasoning_effort",
        since="2026-08",
        source=KIMI,
    ),
    _kimi("kimi-k2.7*", "always"),
    _kimi("kimi-k2.[56]*", "optional"),
    _kimi("kimi-k2-thinking*", "always"),
    _kimi("kimi-thinking*", "always"),
    never_thinks("kimi-k2*", "2026-08", KIMI),
    never_thinks("moonshot-v1*", "2026-08", KIMI),
)

QWEN_MODELS = (
    _qwen("*-thinking*", "always", "on"),
    _qwen("qwq*", "always", "on"),
    _qwen("qvq*", "always", "on"),
    never_thinks("*-instruct*", "2026-10-29", ALIYUN),
    never_thinks("qwen3-coder*", "2026-10-29", ALIYUN),
    never_thinks("qwen2*", "2026-10-29", ALIYUN),
    _qwen("qwen3-max*", "optional", "off"),
    _qwen("qwen3.[0-9]*", "optional", None),
    _qwen("qwen3-*", "optional", "on"),
    _qwen("qwen-plus*", "optional", "off"),
    _qwen("qwen-flash*", "optional", "off"),
    _qwen("qwen-turbo*", "optional", "off"),
)

MINIMAX_MODELS = (
    ModelRule(
        models="minimax-m2*",
        thinking="always",
        default="on",
        efforts=(),
        forced_tools=False,
        since="2026-08",
        source=MINIMAX,
    ),
    ModelRule(
        models="minimax-m*",
        thinking="optional",
        default="on",
        efforts=(),
        forced_tools=False,
        since="2026-08",
        source=MINIMAX,
    ),
)

MISTRAL_MODELS = (
    ModelRule(
        models="magistral*",
        thinking="always",
        default="on",
        efforts=(),
        since="2026-06-30",
        source=MISTRAL,
    ),
    *(
        ModelRule(
            models=models,
            thinking="optional",
            default="off",
            efforts=("high",),
            since="2026-06-30",
            source=MISTRAL,
        )
        for models in ("mistral-small-latest", "mistral-small-26*", "mistral-medium-3[.-]5*")
    ),
)

COMMAND_MODELS = (
    _command("command-a-reasoning*"),
    _command("command-a-plus*"),
    never_thinks("command-a-0*", "2026-08", "recorded: no thinking"),
    never_thinks("command-a-vision*", "2026-08", "docs.cohere.com models"),
    never_thinks("command-a-translate*", "2026-08", "docs.cohere.com models"),
    never_thinks("command-r*", "2026-08", "docs.cohere.com models"),
    never_thinks("c4ai-*", "2026-08", "docs.cohere.com models"),
)
