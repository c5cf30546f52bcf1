"""The Gemini models, at every host: how to ask them for thinking, what they refuse, and which thinking goes back."""

from __future__ import annotations

from typing import Literal

from asides.providers.models import LOW_TO_HIGH
from asides.providers.provider import ModelRule, ReplayRule
from asides.values.thinking import Effort

_MINIMAL_TO_HIGH: tuple[Effort, ...] = ("minimal", *LOW_TO_HIGH)

_BUDGETS = "vercel/ai packages/google for the most; litellm constants.py for the least"
_LEAST = "pydantic-ai profiles/google.py; vercel/ai packages/google getMinimumThinkingLevelForGemini3Model"
_LOW_AND_HIGH = (
    "ai.google.dev thinking, as pydantic-ai 2.66 profiles/google.py and ai-sdk.dev google have it; ended 2026-03-09"
)
_FLASH_LITE = (
    "docs.cloud.google.com models/gemini/3-5-flash-lite: four levels, MINIMAL by default; unsure: which model the name "
    "means today"
)
_GEMMA = (
    "ai.google.dev pricing, in litellm 1.108: it thinks, takes tools and pictures; MINIMAL and HIGH alone, no way to "
    "turn it off (OpenWhispr/openwhispr#897, 2026-06; earendil-works/pi#2812, 2026-04); unsure: signatures"
)
_GEMINI_4 = "google-genai 3.3 names gemini-4-argon, -carbon and -hydrogen; litellm 1.109: no level minimal"
_NEWEST = "unsure: ai.google.dev names these models; their levels are taken from the family before"
_APART = (
    "schema and tools together are for 3 and later: pydantic-ai profiles/google.py; before, 400 "
    "(googleapis/python-genai#867, 2025-05; csells/dartantic#96, 2026-01)"
)
_SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"


def _by_budget(
    models: str, thinking: Literal["always", "optional"], default: Literal["on", "off"], budget: tuple[int, int]
) -> ModelRule:
    """A model of the second family: a request gives a budget of tokens; an effort means a number of tokens."""
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        kind="summary",
        efforts=_MINIMAL_TO_HIGH,
        budget=budget,
        refuses_zero_budget=thinking == "always",
        ask_by="thinking_budget",
        output_with_tools=False,
        since="2026-08",
        source=f"{_BUDGETS}; {_APART}",
    )


def _by_level(
    models: str,
    efforts: tuple[Effort, ...],
    *,
    since: str = "2026-08",
    source: str = _LEAST,
    signed: bool = True,
    tools: bool | Literal["native"] = True,
) -> ModelRule:
    """A model of the third family and later: it takes a level, always thinks, and demands the signatures of calls."""
    return ModelRule(
        models=models,
        thinking="always",
        default="on",
        kind="summary",
        efforts=efforts,
        # "Budget 0 is invalid. This model only works in thinking mode.": ai.google.dev thinking, 2026-07-16.
        refuses_zero_budget="-pro" in models,
        ask_by="thinking_level",
        signed_calls=signed,
        tools=tools,
        since=since,
        source=source,
    )


def _without_thinking(
    models: str, *, tools: bool = True, schema: bool = True, pictures: bool | None = None
) -> ModelRule:
    return ModelRule(
        models=models,
        thinking="never",
        efforts=(),
        tools=tools,
        pictures=pictures,
        structured_output=None if schema else "nothing",
        output_with_tools=False,
        since="2026-08",
        source=f"unsure: from memory; {_APART}",
    )


GEMINI_MODELS: tuple[ModelRule, ...] = (
    # Models that speak or draw take no tools, and those before 3 no schema (pydantic-ai profiles/google.py).
    _without_thinking("gemini-*-tts*", tools=False, schema=False, pictures=False),
    _without_thinking("gemini-2.5-flash-image*", tools=False, schema=False),
    # Models that draw do not check signatures, and take no level.
    _by_level("gemini-3*-image*", (), source=_SIGNATURES, signed=False, tools="native"),
    _by_level("gemini-3.[7-9]*", LOW_TO_HIGH),
    _by_level("gemini-3-pro*", ("low", "high"), since="2026-11-15", source=_LOW_AND_HIGH),
    _by_level("gemini-3*-pro*", LOW_TO_HIGH),
    _by_level("gemini-3*-flash*", _MINIMAL_TO_HIGH),
    _by_level("gemini-3*", LOW_TO_HIGH),
    _by_level("gemini-pro-latest", LOW_TO_HIGH),
    _by_level("gemini-flash-latest", LOW_TO_HIGH),
    _by_level("gemini-flash-lite-latest", _MINIMAL_TO_HIGH, since="2026-11-15", source=_FLASH_LITE),
    _by_level("gemini-4*", LOW_TO_HIGH, since="2026-11-18", source=_GEMINI_4),
    ModelRule(
        models="gemini-[5-9]*",
        kind="summary",
        ask_by="thinking_level",
        signed_calls=True,
        since="2026-11",
        source="unsure: not known yet; asked as the newest family is",
    ),
    _by_budget("gemini-2.5-pro*", "always", "on", (128, 32_768)),
    _by_budget("gemini-2.5-flash-lite*", "optional", "off", (512, 24_576)),
    _by_budget("gemini-2.5-flash*", "optional", "on", (1, 24_576)),
    _without_thinking("gemini-[12].*"),
    ModelRule(
        models="gemma-4*",
        thinking="always",
        default="on",
        efforts=("minimal", "high"),
        ask_by="thinking_level",
        context=262_144,
        since="2026-11-15",
        source=_GEMMA,
    ),
)

GEMINI_REPLAY: tuple[ReplayRule, ...] = (
    # A signature goes back inside the part that carried it. Thoughts without one cost tokens and are not needed.
    ReplayRule(when="sealed", since="2026-08", source=f"{_SIGNATURES}; pydantic-ai models/google.py"),
)
