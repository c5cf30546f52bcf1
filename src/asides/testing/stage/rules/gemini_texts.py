"""Gemini's generations, and what its servers say when they refuse: the words, and where and when they were seen.

Stated independent of the providers' rows, so that tests compare the two. Data only; not here: when a rule is broken
(gemini).
"""

from __future__ import annotations

import msgspec

from asides.testing.stage.rules import Rule

_LEARN_MORE = "Learn more: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"


class GeminiGeneration(msgspec.Struct, frozen=True, kw_only=True):
    """What one generation of models accepts, stated independent of the providers' rows."""

    models: str
    """A regular expression."""
    budget: tuple[int, int] | None = None
    can_turn_off: bool = True
    levels: tuple[str, ...] = ()
    signed_calls: bool = False
    source: str


_ALL_LEVELS = ("minimal", "low", "medium", "high")
_THINKING = "ai.google.dev thinking, 2026-11; vercel/ai packages/google"
_SIGNED = "ai.google.dev thought-signatures; vercel/ai getMinimumThinkingLevelForGemini3Model"
GENERATIONS = (
    GeminiGeneration(models=r"gemini-3.*-image", source=_SIGNED),
    GeminiGeneration(models=r"gemini-3\.[7-9]", levels=_ALL_LEVELS[1:], signed_calls=True, source=_SIGNED),
    GeminiGeneration(
        models=r"gemini-3-pro", levels=("low", "high"), can_turn_off=False, signed_calls=True, source=_SIGNED
    ),
    GeminiGeneration(
        models=r"gemini-3.*-pro", levels=_ALL_LEVELS[1:], can_turn_off=False, signed_calls=True, source=_SIGNED
    ),
    GeminiGeneration(models=r"gemini-3.*-flash", levels=_ALL_LEVELS, signed_calls=True, source=_SIGNED),
    GeminiGeneration(models=r"gemini-[3-9]", levels=_ALL_LEVELS[1:], signed_calls=True, source=_SIGNED),
    GeminiGeneration(models=r"gemini-2\.5-pro", budget=(128, 32_768), can_turn_off=False, source=_THINKING),
    GeminiGeneration(models=r"gemini-2\.5-flash-lite", budget=(512, 24_576), source=_THINKING),
    GeminiGeneration(models=r"gemini-2\.5-flash", budget=(0, 24_576), source=_THINKING),
)

MISSING = Rule(
    kind="thought_signature_missing",
    text=(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        "call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    ),
    since="2026-08-02",
    source="niki914/zafiro#100; ai.google.dev thought-signatures",
)
MISSING_VERTEX = Rule(
    kind="thought_signature_missing",
    text=(
        "Unable to submit request because function call `{name}` in the {position}. content block is missing a "
        f"`thought_signature`. {_LEARN_MORE}"
    ),
    since="2025-12-20",
    source="GewoonJaap/gemini-cli-openai#156",
)
CORRUPTED = Rule(
    kind="thought_signature_invalid",
    text="Corrupted thought signature.",
    since="2025-11-20",
    source="google-gemini/gemini-cli#13467",
)
INVALID = Rule(
    kind="thought_signature_invalid",
    text="Thought signature is not valid",
    since="2026-03",
    source="diegosouzapw/OmniRoute#1410: after a switch of models or keys",
)
INVALID_VERTEX = Rule(
    kind="thought_signature_invalid",
    text=f"Unable to submit request because Thought signature is not valid. {_LEARN_MORE}",
    since="2026-03",
    source="docs.cloud.google.com thought-signatures; reports of 2026",
)
NO_BASE64 = Rule(
    kind="thought_signature_invalid",
    text=(
        "Invalid value at 'contents[{content}].parts[{part}].thought_signature' (TYPE_BYTES), Base64 decoding failed "
        'for "{value}"'
    ),
    since="2026-09",
    source="ai.google.dev api/generate-content: bytes in base64; reports of 2026",
)
CALL_ORDER = Rule(
    kind="tool_turn_order",
    text=(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    ),
    since="2026-03-07",
    source="continuedev/continue#11164",
)
RESPONSE_ORDER = Rule(
    kind="tool_turn_order",
    text="Please ensure that function response turn comes immediately after a function call turn",
    since="2024-11",
    source="langchain-ai/langchain#27799",
)
RESPONSE_COUNT = Rule(
    kind="tool_result_missing",
    text=(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn."
    ),
    since="2026-01-21",
    source="google-gemini/gemini-cli#17208",
)
EMPTY_PARTS = Rule(
    kind="empty_content",
    text="* GenerateContentRequest.contents[{content}].parts: contents.parts must not be empty.\n",
    since="2024-05",
    source="ai.google.dev api/generate-content",
)
BOTH = Rule(
    kind="reasoning_params_conflict",
    text="You can only set only one of thinking budget and thinking level.",
    since="2025-11-26",
    source="ai.google.dev thinking",
)
ALWAYS_THINKS = Rule(
    kind="thinking_cannot_disable",
    text="Budget 0 is invalid. This model only works in thinking mode.",
    since="2026-07-16",
    source="ai.google.dev thinking",
)
BUDGET_RANGE = Rule(
    kind="budget_out_of_range",
    text="The thinking budget {budget} is invalid. Please choose a value between {least} and {most}.",
    since="2026-10-04",
    source="ai.google.dev thinking; measured by others",
)
LEVEL_UNSUPPORTED = Rule(
    kind="effort_unsupported_param",
    text="Thinking level is not supported for this model.",
    since="2026-09-16",
    source="ai.google.dev thinking; reports of 2026 for 2.5",
)
LEVEL_VALUE = Rule(
    kind="effort_unsupported_value",
    text="Thinking level {level} is not supported for this model. Please retry with other thinking level.",
    since="2026-11",
    source="ai.google.dev thinking: minimal on 3.8 Flash is an error; unsure: the words",
)
LEVEL_VALUE_VERTEX = Rule(
    kind="effort_unsupported_value",
    text=(
        "Unable to submit request because thinking_level {level} is not supported by this model. Learn more: "
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
    ),
    since="2025-12-17",
    source="jenslys/opencode-gemini-auth#14",
)
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))
