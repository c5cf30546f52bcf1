"""Open models by name, wherever they run: whether they think, their tags, and whether their template opens one.

Not here: how a host is asked (table).
"""

from __future__ import annotations

from typing import Literal

from asides.providers.models import LOW_TO_HIGH, never_thinks
from asides.providers.provider import ModelRule

# Every grammar that a server without a parser may leave in the content.
ANY_TAGS = (
    "think",
    "thinking",
    "thought",
    "reasoning",
    "analysis",
    "[think]",
    "harmony",
    "gemma",
    "seed",
    "mm",
    "kimi",
)

_CARDS = "parsers of vLLM, SGLang and llama.cpp for the tags; unsure: switches, defaults and what templates open"

_AUGUST = "2026-08"

StartsInside = bool | Literal["auto"]


def _always(models: str, *, starts_inside: StartsInside = False, tags: tuple[str, ...] = ("think",)) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="always",
        default="on",
        efforts=(),
        tags=tags,
        starts_inside=starts_inside,
        since=_AUGUST,
        source=_CARDS,
    )


def _optional(
    models: str,
    *,
    default: Literal["on", "off"] = "on",
    starts_inside: StartsInside = False,
    tags: tuple[str, ...] = ("think",),
    template_key: Literal["enable_thinking", "thinking"] = "enable_thinking",
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="optional",
        default=default,
        efforts=(),
        tags=tags,
        starts_inside=starts_inside,
        template_key=template_key,
        since=_AUGUST,
        source=_CARDS,
    )


def open_weights(opened: StartsInside, hybrid: StartsInside) -> tuple[ModelRule, ...]:
    """What is known of open models by name; the asking is the host's.

    Whether a server returns thinking inline depends on flags that we cannot see. If it does, content of a model whose
    template opens the tag begins in thinking and has only the closing tag; read without that fact, all of it would be
    the answer. If it does not, the thought came in a field before, and the decoder knows by that. So the models that
    always think and whose template opens the tag begin inside (`opened`): should such a reply be cut off, it was
    thinking. For those that may skip it (`perhaps`) or be told not to think (`hybrid`), "auto" holds the content back
    until a tag or the end tells, at the price of an answer that comes in one piece.
    """
    perhaps: StartsInside = "auto" if opened else False

    return (
        ModelRule(
            models="*gpt-oss*",
            thinking="always",
            default="on",
            efforts=LOW_TO_HIGH,
            off_as_effort=False,
            ask_by="reasoning_effort",
            # Its servers write the channels out as tags of two names, where they do not set them apart.
            tags=("harmony", "reasoning", "think"),
            since=_AUGUST,
            source="openai/harmony docs/format.md",
        ),
        _always("*deepseek-r1*", starts_inside=opened),
        _always("*qwq*", starts_inside=opened),
        _always("*qwen3*thinking*", starts_inside=opened),
        never_thinks("*qwen3*instruct*", _AUGUST, _CARDS),
        never_thinks("*qwen3-coder*", _AUGUST, _CARDS),
        # From 3.5 on the template opens the tag; before, the model writes it itself.
        _optional("*qwen3.[5-9]*", starts_inside=perhaps),
        _optional("*qwen3*", starts_inside=hybrid),
        _optional("*deepseek-v3.[12]*", default="off", starts_inside=hybrid, template_key="thinking"),
        _optional("*deepseek-v4*", starts_inside=hybrid, template_key="thinking"),
        _always("*minimax-m2*", starts_inside=perhaps),
        _optional("*minimax-m3*", tags=("mm", "think"), starts_inside=hybrid),
        _optional("*glm-[45].[1-9]*", starts_inside=hybrid),
        _optional("*glm-5*", starts_inside=hybrid),
        _optional("*nemotron*", starts_inside=hybrid),
        _always("*step3*", starts_inside=perhaps),
        _always("*kimi-k3*", tags=("kimi-k3", "think")),
        _always("*kimi-k2-thinking*"),
        _optional("*kimi-k2.[56]*", template_key="thinking"),
        _always("*magistral*", tags=("[think]", "think")),
        _optional("*gemma-4*", default="off", tags=("gemma", "think")),
        _optional("*gemma4*", default="off", tags=("gemma", "think")),
        _optional("*seed-oss*", tags=("seed", "think")),
        _optional("*command-a*", tags=("command", "think")),
        _optional("*granite-3*", default="off", tags=("granite", "think"), template_key="thinking"),
        _optional("*apertus*", default="off", tags=("apertus", "think")),
    )


# Servers of the user's own, where anything is possible. A Qwen3 writes its opening tag itself (recorded under vLLM);
# only llama.cpp was recorded with a lone closing tag of one.
SELF_HOSTED = open_weights(opened=True, hybrid=False)

SELF_HOSTED_AUTO = open_weights(opened=True, hybrid="auto")

# Hosts for hire parse, or send both tags (recorded: DeepSeek-R1 at Together through Hugging Face, at Azure, at Groq).
HOSTED = open_weights(opened=False, hybrid=False)


def hosted_and(*own: ModelRule) -> tuple[ModelRule, ...]:
    """A host's own rules, and behind them what is known of the other open models."""
    special = {rule.models for rule in own}
    return (*own, *(rule for rule in HOSTED if rule.models not in special))


# The small model that this project is tested with.
TINY_REASONER = ModelRule(
    models="*tiny-reasoner*",
    thinking="optional",
    default="on",
    efforts=LOW_TO_HIGH,
    tags=("think",),
    since="2026-11",
    source="its chat template",
)
