"""The models of DeepSeek, Moonshot, Alibaba, Z.ai, Cohere, xAI, MiniMax and Mistral, as their makers serve them."""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, LOW_TO_XHIGH, never_thinks
from asides.providers.provider import ModelRule, Sampled
from asides.providers.quirks import StreamOnly
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


_ACCEPTED = "accepted in recorded requests of 2026"


def _deepseek(
    models: str,
    thinking: Literal["always", "optional"],
    default: Literal["on", "off"],
    since: str,
    *,
    pictures: bool | None = None,
    context: int | None = 1_000_000,
    forbids: tuple[Sampled, ...] = _DEEPSEEK_FORBIDS,
    source: str = DEEPSEEK_GUIDE,
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        efforts=_DEEPSEEK_EFFORTS,
        effort_map=_DEEPSEEK_MAP,
        forbids=forbids,
        forced_tools=False,
        pictures=pictures,
        context=context,
        since=since,
        source=source,
    )


_KIMI_K3 = (
    "platform.kimi.ai guide/use-reasoning-effort; forced tools: `required` is taken, a name is not "
    "(UKGovernmentBEIS/inspect_ai#5152, 2026-08-31); unsure: harn-vm measured a refusal of both (2026-07-18)"
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
        # MoonshotAI/kimi-code#686: 0.6 with thinking off; platform.moonshot.ai kimi-k2-5, 2026-01-27.
        off_sampling=(("temperature", 0.6), ("top_p", 0.95)) if thinking == "optional" else (),
        forced_tools=False,
        since="2026-08",
        source=KIMI,
    )


ALIYUN = "alibabacloud.com/help/en/model-studio/deep-thinking; unsure: the defaults of single models"


QWEN_EFFORTS: tuple[Effort, ...] = ("low", "medium", "xhigh")
QWEN_EFFORT_MAP: tuple[tuple[Effort, Effort], ...] = (("high", "xhigh"), ("max", "xhigh"))
QWEN_3_8 = (
    "docs.qwencloud.com developer-guides/text-generation/thinking, in models.dev (2026-08-04): high means xhigh, a "
    "budget excludes an effort; measured by docs.apiyi.com qwen-3-8"
)


def _qwen(
    models: str,
    thinking: Literal["always", "optional"],
    default: Literal["on", "off"] | None,
    *,
    stream_only: StreamOnly = False,
    fields: tuple[tuple[str, str | bool], ...] = (),
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        efforts=(),
        budget=(1, None),
        fields=fields,
        # 400 "does not support being set to required or object in thinking mode" (cloudwego/eino#994, 2026-04).
        forced_tools=False,
        stream_only=stream_only,
        since="2026-10-29",
        source=ALIYUN,
    )


_ZAI = "docs.z.ai guides/capabilities/thinking-mode; docs.bigmodel.cn; unsure: forced tools, glm-4"
_ZAI_STREAM = f"{_ZAI}; tool_stream: docs.z.ai guides/tools/stream-tool, from GLM-4.6 on"


def _glm(models: str, *, tool_stream: bool = True) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="optional",
        default="on",
        efforts=(),
        forced_tools=False,
        tool_stream=tool_stream,
        since="2026-11-15" if tool_stream else "2026-08",
        source=_ZAI_STREAM if tool_stream else _ZAI,
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
        tool_stream=True,
        ask_by="reasoning_effort",
        since="2026-11-15",
        source=_ZAI_STREAM,
    ),
    ModelRule(
        models="glm-5.2*",
        thinking="optional",
        default="on",
        efforts=("high", "max"),
        effort_map=(("low", "high"), ("medium", "high"), ("xhigh", "max")),
        forced_tools=False,
        tool_stream=True,
        ask_by="thinking_toggle_and_effort",
        since="2026-11-15",
        source=_ZAI_STREAM,
    ),
    _glm("glm-5*"),
    # Vision models: nothing is documented.
    ModelRule(models="glm-4.[56]v*", since="2026-08", source="pydantic-ai profiles/zai.py"),
    _glm("glm-4.5*", tool_stream=False),
    msgspec.structs.replace(_glm("glm-4.7-flash*"), forced_tools=True, source=f"{_ZAI_STREAM}; {_ACCEPTED}"),
    _glm("glm-4.[67]*"),
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
    source: str = _XAI,
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
        source=source,
    )


_XAI_NAMES = "docs.x.ai developers/models, as pydantic-ai 2.66 profiles/grok.py measured it"
_XAI_BUILD = "docs.x.ai; vercel.com ai-gateway grok-build-0.1: always thinks, no effort; LovelaceLoom/grok-plugin-cc#7"
_XAI_AGENTS = "api.x.ai language-models, in litellm 1.108: Responses alone, and no tools of the caller"

GROK_MODELS = (
    # Names that stay while the model changes: the newest, and the newest for code.
    _grok("grok-latest", "optional", LOW_TO_HIGH, since="2026-11-15", source=_XAI_NAMES),
    _grok("grok-build-latest", "always", LOW_TO_HIGH, since="2026-11-15", source=_XAI_NAMES),
    _grok("grok-build*", "always", (), since="2026-11-15", source=_XAI_BUILD),
    msgspec.structs.replace(
        _grok("grok-4.20-multi-agent*", "always", (), since="2026-11-15", source=_XAI_AGENTS),
        endpoint="responses",
        tools="native",
    ),
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

_MISTRAL_NAMES = "docs.mistral.ai capabilities/reasoning/adjustable; models.dev: the name means Medium 3.5, 2604"
_MISTRAL_LIST = "unsure: litellm 1.108 alone; docs.mistral.ai capabilities/reasoning/adjustable names fewer"
_MISTRAL_GLM: tuple[tuple[str, Literal["always", "optional"], tuple[Effort, ...]], ...] = (
    ("*glm-5-2*", "optional", ("minimal", *LOW_TO_MAX)),
    ("zai-glm-5-3-flash*", "always", ("low", "high", "max")),
    ("zai-glm-*", "always", ("low", "high", "max")),
)

MINIMAX = "platform.minimax.io docs/api-reference/text-openai-api; vercel/ai packages/minimax"

_V4_1 = f"{DEEPSEEK_GUIDE}; api-docs.deepseek.com quick_start/pricing: V4.1 Flash, which reads pictures"

DEEPSEEK_MODELS = (
    # The older name is served by V4.1 too.
    _deepseek(
        "deepseek-v4-flash*",
        "optional",
        "on",
        "2026-11-15",
        pictures=True,
        forbids=("top_p", "presence_penalty", "frequency_penalty"),
        source=f"{_V4_1}; temperature and logprobs: {_ACCEPTED}",
    ),
    _deepseek("deepseek-v4*", "optional", "on", "2026-04-24"),
    _deepseek("deepseek-flash*", "optional", "on", "2026-11-15", pictures=True, source=_V4_1),
    # Since 2026-04 these two names are V4 Flash with thinking and without; ended on 2026-07-24.
    _deepseek("deepseek-reasoner*", "always", "on", "2026-04-24", context=None),
    _deepseek("deepseek-chat*", "optional", "off", "2026-04-24", context=None),
)

KIMI_MODELS = (
    ModelRule(
        models="kimi-k3*",
        thinking="always",
        default="on",
        efforts=("low", "high", "max"),
        off_as_effort=False,
        forbids=_KIMI_FORBIDS,
        forced_tools="required",
        ask_by="reasoning_effort",
        context=1_048_576,
        since="2026-11-15",
        source=_KIMI_K3,
    ),
    _kimi("kimi-k2.7*", "always"),
    _kimi("kimi-k2.[56]*", "optional"),
    _kimi("kimi-k2-thinking*", "always"),
    _kimi("kimi-thinking*", "always"),
    never_thinks("kimi-k2*", "2026-08", KIMI),
    never_thinks("moonshot-v1*", "2026-08", KIMI),
)

QWEN_PRESERVES = "vercel/ai#20871; QwenLM/qwen-code#5637, 2026-06-22: preserve_thinking, from Qwen 3.6 on"
# Without it, the host drops thinking before the last question. Models that do not know the field ignore it.
_PRESERVE = (("preserve_thinking", True),)
_QWEN_3_8 = ModelRule(
    models="qwen3.8*",
    thinking="optional",
    default="on",
    efforts=QWEN_EFFORTS,
    effort_map=QWEN_EFFORT_MAP,
    budget=(1, 262_144),
    budget_excludes_effort=True,
    forced_tools=False,
    ask_by="enable_thinking_and_effort",
    fields=_PRESERVE,
    context=1_000_000,
    since="2026-11-15",
    source=f"{QWEN_3_8}; {QWEN_PRESERVES}",
)

QWEN_MODELS = (
    # "The value of the enable_thinking parameter is restricted to True." (ten public files, 2026-07-26). qwen3.8-max
    # itself can be switched (help.aliyun.com deep-thinking, 2026-11).
    msgspec.structs.replace(_QWEN_3_8, models="qwen3.8-max-preview*", thinking="always"),
    _QWEN_3_8,
    _qwen("qwen3.7-max-preview*", "always", "on", fields=_PRESERVE),
    _qwen("*-thinking*", "always", "on"),
    # "This model only support stream mode" (langgenius/dify#15484, 2025-03).
    _qwen("qwq*", "always", "on", stream_only=True),
    _qwen("qvq*", "always", "on", stream_only=True),
    never_thinks("*-instruct*", "2026-10-29", ALIYUN),
    never_thinks("qwen3-coder*", "2026-10-29", ALIYUN),
    never_thinks("qwen2*", "2026-10-29", ALIYUN),
    _qwen("qwen3-max*", "optional", "off"),
    _qwen("qwen3.[679]*", "optional", None, fields=_PRESERVE),
    _qwen("qwen3.[0-9]*", "optional", None),
    # Open weights: "enable_thinking must be set to false for non-streaming calls" (infiniflow/ragflow#8972, 2025-07).
    _qwen("qwen3-[0-9]*b*", "optional", "on", stream_only="thinking"),
    _qwen("qwen3-*", "optional", "on"),
    _qwen("qwen-plus*", "optional", "off"),
    _qwen("qwen-flash*", "optional", "off"),
    _qwen("qwen-turbo*", "optional", "off"),
    # Other makers' models at this host.
    _qwen("deepseek-v[34]*", "optional", None),
    _qwen("glm-[45]*", "optional", "on"),
    _qwen("kimi-k2.7*", "always", "on"),
)

_MINIMAX_3_1 = (
    "platform.minimax.io guides/text-generation: five efforts, max by default; off is refused: 400, 2013 (measured by "
    "aihubmix, 2026-10-19); stop and forced tools: help.aliyun.com model-studio/minimax-m3-1-flash"
)

MINIMAX_MODELS = (
    ModelRule(
        models="minimax-m3.1*",
        thinking="always",
        default="on",
        efforts=LOW_TO_MAX,
        off_as_effort=False,
        forbids=("stop",),
        forced_tools=False,
        ask_by="reasoning_effort",
        context=1_000_000,
        since="2026-11-15",
        source=_MINIMAX_3_1,
    ),
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
    *(
        ModelRule(
            models=models,
            thinking="always",
            default="on",
            efforts=(),
            pictures=pictures,
            refuses_files=("audio", "video"),
            since="2026-11-16",
            source=f"{MISTRAL}; huggingface.co/mistralai/Magistral-Small-2509: it sees from then on",
        )
        for models, pictures in (("magistral*250[67]*", False), ("magistral*", None))
    ),
    *(
        ModelRule(
            models=models,
            thinking="optional",
            default="off",
            efforts=("high",),
            since=since,
            source=source,
        )
        for models, since, source in (
            ("mistral-small-latest", "2026-06-30", MISTRAL),
            ("mistral-small-26*", "2026-06-30", MISTRAL),
            ("mistral-medium-3[.-]5*", "2026-06-30", MISTRAL),
            ("mistral-medium-latest", "2026-11-15", _MISTRAL_NAMES),
            ("mistral-medium-2604*", "2026-11-15", _MISTRAL_NAMES),
            ("mistral-medium", "2026-11-15", _MISTRAL_LIST),
            ("mistral-medium-3", "2026-11-15", _MISTRAL_LIST),
            ("mistral-large-4*", "2026-11-15", _MISTRAL_LIST),
            ("mistral-vibe-cli*", "2026-11-15", _MISTRAL_LIST),
            ("mistral-code-agent-latest", "2026-11-18", _MISTRAL_LIST),
            ("devstral-latest", "2026-11-18", _MISTRAL_LIST),
            ("devstral-small-latest", "2026-11-18", _MISTRAL_LIST),
            ("devstral-medium-latest", "2026-11-18", _MISTRAL_LIST),
            ("mistral-small", "2026-11-18", _MISTRAL_LIST),
        )
    ),
    # Z.ai's models at this host.
    *(
        ModelRule(
            models=models,
            thinking=thinking,
            default="on",
            efforts=efforts,
            off_as_effort=thinking == "optional",
            ask_by="reasoning_effort",
            # litellm 1.109, 2026-11-18: the small one sees.
            pictures=models.startswith("zai-glm-5-3-flash"),
            since="2026-11-15",
            source=_MISTRAL_LIST,
        )
        for models, thinking, efforts in _MISTRAL_GLM
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
