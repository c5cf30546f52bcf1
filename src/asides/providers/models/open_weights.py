"""Open models by name, at every host: whether they think, their tags, and whether their chat template opens a tag."""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, never_thinks
from asides.providers.models.makers import QWEN_3_8, QWEN_EFFORT_MAP, QWEN_EFFORTS
from asides.providers.provider import ModelRule
from asides.providers.quirks import Tags, fits_glob
from asides.values.thinking import Effort

_CARDS = "parsers of vLLM, SGLang and llama.cpp for the tags; unsure: switches, defaults and what templates open"

_AUGUST = "2026-08"

_NOVEMBER = "2026-11-15"

_GRAMMARS = "2026-11-18"

_TEXT_ONLY = f"{_CARDS}; it reads text only: its model card"

StartsInside = bool | Literal["auto"]


def _always(
    models: str,
    *,
    starts_inside: StartsInside = False,
    tags: tuple[str, ...] = ("think",),
    efforts: tuple[Effort, ...] = (),
    pictures: bool | None = None,
    since: str = _AUGUST,
    source: str = _CARDS,
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="always",
        default="on",
        efforts=efforts,
        off_as_effort=not efforts,
        tags=tags,
        starts_inside=starts_inside,
        pictures=pictures,
        refuses_files=None if pictures is None else ("audio", "video"),
        since=since,
        source=_TEXT_ONLY if pictures is False else source,
    )


def _optional(
    models: str,
    *,
    default: Literal["on", "off"] = "on",
    starts_inside: StartsInside = False,
    tags: tuple[str, ...] = ("think",),
    template_key: Literal["enable_thinking", "thinking"] = "enable_thinking",
    pictures: bool | None = None,
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="optional",
        default=default,
        efforts=(),
        tags=tags,
        starts_inside=starts_inside,
        template_key=template_key,
        pictures=pictures,
        refuses_files=None if pictures is None else ("audio", "video"),
        since=_AUGUST,
        source=_TEXT_ONLY if pictures is False else _CARDS,
    )


def _reads(models: str, *tags: str, starts_inside: StartsInside = False) -> ModelRule:
    """A model known only by the grammar of its text: requests are those for an unknown model."""
    return ModelRule(
        models=models,
        tags=(*tags, "think"),
        starts_inside=starts_inside,
        since=_GRAMMARS,
        source=f"{_CARDS} (wire/inline_tags/grammar_table.py); unsure: what its template opens",
    )


def open_weights(opened: StartsInside, hybrid: StartsInside) -> tuple[ModelRule, ...]:
    """The rules of open models by name. How to ask for thinking is a fact of the host.

    Flags that we cannot see decide whether a server returns thinking inline. If it does, and the model's template opens
    the tag, the content begins with thinking and has only the closing tag; without that fact, all of it would be the
    answer. If it does not, the thinking arrives in a field first, and the decoder sees that.

    `opened` is for models that always think and whose template opens the tag: their content begins inside the tag, so
    a reply that is cut off was thinking. `hybrid` is for models that can be asked not to think. "auto" holds the
    content back until a tag or the end decides, so the answer arrives in one piece.
    """
    # For models that may skip the thinking although their template opens the tag.
    perhaps: StartsInside = "auto" if opened else False
    return (
        ModelRule(
            models="*gpt-oss*",
            thinking="always",
            default="on",
            efforts=LOW_TO_HIGH,
            off_as_effort=False,
            ask_by="reasoning_effort",
            # Servers that do not parse its channels write them as tags with one of two names.
            tags=("harmony", "harmony-text", "reasoning", "think"),
            pictures=False,
            since=_AUGUST,
            source="openai/harmony docs/format.md; its model card: text alone",
        ),
        _always("*deepseek-r1*", starts_inside=opened, pictures=False),
        _always("*qwq*", starts_inside=opened),
        _always("*qwen3*thinking*", starts_inside=opened),
        never_thinks("*qwen3*instruct*", _AUGUST, _CARDS),
        never_thinks("*qwen3-coder*", _AUGUST, _CARDS),
        # Its template reads an effort too.
        msgspec.structs.replace(
            _optional("*qwen3.8*", starts_inside=perhaps),
            efforts=QWEN_EFFORTS,
            effort_map=QWEN_EFFORT_MAP,
            budget_excludes_effort=True,
            since=_NOVEMBER,
            source=f"{QWEN_3_8}; its chat template: lmstudio.ai qwen3.8-27b, huggingface.co EschaLabs",
        ),
        # From 3.5 on the template opens the tag; before, the model writes it itself.
        _optional("*qwen3.[5-9]*", starts_inside=perhaps),
        _optional("*qwen3*", starts_inside=hybrid),
        _optional("*deepseek-v3.[12]*", default="off", starts_inside=hybrid, template_key="thinking", pictures=False),
        _optional("*deepseek-v4*", starts_inside=hybrid, template_key="thinking"),
        _always("*minimax-m2*", starts_inside=perhaps, pictures=False),
        _always(
            "*minimax-m3.1*",
            tags=("mm", "think"),
            efforts=LOW_TO_MAX,
            since=_NOVEMBER,
            source="vercel.com ai-gateway minimax-m3.1-flash; docs.venice.ai minimax-m3-1-flash; unsure: its tags",
        ),
        _optional("*minimax-m3*", tags=("mm", "think"), starts_inside=hybrid),
        _optional("*glm-[45].[1-9]*", starts_inside=hybrid),
        _optional("*glm-5*", starts_inside=hybrid),
        _reads("*apriel*", "apriel", "thinking", starts_inside=perhaps),  # also Apriel-Nemotron
        _optional("*nemotron*", starts_inside=hybrid),
        _always("*step3*", starts_inside=perhaps),
        _always(
            "*kimi-k3*",
            tags=("kimi-k3", "think"),
            efforts=("low", "high", "max"),
            since=_NOVEMBER,
            source=f"{_CARDS}; platform.kimi.ai guide/use-reasoning-effort; Together and Fireworks in litellm 1.108",
        ),
        _always("*kimi-k2.7*", since=_NOVEMBER, source="platform.kimi.ai guide/use-thinking-models: always"),
        _always("*kimi-k2-thinking*", pictures=False),
        _optional("*kimi-k2.[56]*", template_key="thinking"),
        # Magistral sees from 2509 on (huggingface.co/mistralai/Magistral-Small-2506 and -2509, 2026-11).
        _always("*magistral*250[67]*", tags=("[think]", "think"), pictures=False),
        _always("*magistral*", tags=("[think]", "think")),
        _optional("*gemma-4*", default="off", tags=("gemma", "think")),
        _optional("*gemma4*", default="off", tags=("gemma", "think")),
        _optional("*seed-oss*", tags=("seed", "think")),
        _optional("*command-a*", tags=("command", "think")),
        _optional(
            "*granite-3*",
            default="off",
            tags=("granite", "ernie-response", "think"),
            template_key="thinking",
            pictures=False,
        ),
        _optional("*apertus*", default="off", tags=("apertus", "think")),
        # They write the whole block themselves.
        _reads("*muse*glimmer*", "muse-glimmer"),
        _reads("*inkling*", "inkling-blocks"),
        _reads("*kimi-vl*thinking*", "kimi"),
        _reads("*openthinker*", "begin-of-thought"),
        _reads("*sky-t1*", "begin-of-thought"),
        # From here on the template opens the block, always or with thinking turned on.
        _reads("*hy[34]*", "hy", starts_inside=perhaps),
        _reads("*longcat*", "longcat_think", starts_inside=perhaps),
        _reads("*k2*horizon*", "ifm", starts_inside=perhaps),
        _reads("*solar-open2*", "solar-open2", starts_inside=perhaps),
        _reads("*solar-open-2*", "solar-open2", starts_inside=perhaps),
        _reads("*solar-open*", "solar-open"),
        _reads("*pangu*", "pangu", starts_inside=hybrid),
        _reads("*hunyuan*", "hunyuan-answer", starts_inside=hybrid),
        _reads("*ernie*thinking*", "ernie-response", starts_inside=perhaps),
        _reads("*plamo*3*", "plamo", starts_inside=perhaps),
        _reads("*hyperclovax*14b*", "hyperclovax", starts_inside=perhaps),
    )


# Their chat templates raise an exception unless user and assistant take turns (vllm-project/vllm#6862, 2024-07-27;
# suitenumerique/conversations#197, 2025-12-05).
ALTERNATING_TEMPLATES = ("*gemma-[1-3]*", "*gemma[1-3]*", "*mistral-7b*", "*mixtral*", "*llama-2*", "*llama2*")

# For the user's own servers. A Qwen3 writes its opening tag itself (recorded with vLLM). Only llama.cpp was recorded
# with a closing tag alone, and has SELF_HOSTED_AUTO.
SELF_HOSTED = open_weights(opened=True, hybrid=False)

SELF_HOSTED_AUTO = open_weights(opened=True, hybrid="auto")


def find_written_tags(model: str) -> Tags:
    """The grammars that a model writes itself, known by its name alone; () if it has no rule."""
    name = model.lower()
    return next((rule.tags or () for rule in SELF_HOSTED if fits_glob(name, rule.models)), ())


OWN_GRAMMARS = {rule.models: rule.tags for rule in SELF_HOSTED if rule.tags and rule.tags != ("think",)}
"""The tags of the models, by glob, that write another grammar than "think"."""

# Commercial hosts parse the tags, or send both (recorded: DeepSeek-R1 at Together through Hugging Face, at Azure, at
# Groq).
HOSTED = open_weights(opened=False, hybrid=False)


def extend_hosted(*own: ModelRule) -> tuple[ModelRule, ...]:
    """A host's own rules, followed by `HOSTED` for the other open models."""
    special = {rule.models for rule in own}
    return (*own, *(rule for rule in HOSTED if rule.models not in special))


def spell_with_p(rules: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """The same rules for a host that writes the point of a version as `p`: `kimi-k2p6`, `glm-4p7`."""
    pairs = (
        (rule, msgspec.structs.replace(rule, models=rule.models.replace(".", "p"))) if "." in rule.models else (rule,)
        for rule in rules
    )
    return tuple(rule for pair in pairs for rule in pair)


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
