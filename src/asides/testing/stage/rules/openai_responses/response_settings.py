"""Rules for the settings of a Responses request: fields, efforts, summaries, sampling, earlier responses, lengths.

Written from the documented rules and from reported errors. Not here: the models (openai_generations), and items.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from asides.testing.stage.rules import Wire
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule
from asides.testing.stage.rules.openai_chat.openai_settings import UNKNOWN
from asides.testing.stage.rules.openai_generations import Generation, count_tokens, list_values

# The fields that the endpoint accepts (openai-python 3.49, types/responses/response_create_params.py, 2026-11), and
# client_metadata, which the vendor's own agent sends (Codex 0.166, 2026-11).
_FIELDS = frozenset({
    "access_programs", "background", "client_metadata", "conversation", "context_management", "image", "include",
    "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
    "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
_REASONING_FIELDS = frozenset({"effort", "summary", "generate_summary", "context", "mode"})
_SAMPLING = {"temperature": 1, "top_p": 1, "top_logprobs": 0}

_MOVED = HostRule(
    kind="effort_unsupported_param",
    text="Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
    "'reasoning.effort'. Try again with the new parameter. See the API documentation for more information: "
    "https://platform.openai.com/docs/api-reference/responses/create.",
    code="unsupported_parameter",
    since="2025-10-15",
    source="OpenHands/software-agent-sdk#755",
)
_UNVERIFIED = HostRule(
    kind="summary_not_allowed",
    text="Your organization must be verified to generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, "
    "it can take up to 15 minutes for access to propagate.",
    param="reasoning.summary",
    code="unsupported_value",
    since="2026-04-03",
    source="continuedev/continue#12031",
)
_EFFORT_PARAM = HostRule(
    kind="effort_unsupported_param",
    text="Unsupported parameter: 'reasoning.{name}' is not supported with this model.",
    param="reasoning.{name}",
    code="unsupported_parameter",
    since="2025-11-08",
    source="BoundaryML/baml#2708; BerriAI/litellm#38842",
)
_EFFORT_VALUE = HostRule(
    kind="effort_unsupported_value",
    text="Unsupported value: '{value}' is not supported with the '{model}' model. Supported values are: {values}.",
    param="reasoning.effort",
    code="unsupported_value",
    since="2025-11-18",
    source="anomalyco/opencode#4451",
)
_ENCRYPTED = HostRule(
    kind="encrypted_reasoning_unsupported",
    text="Encrypted content is not supported with this model.",
    param="include",
    since="2025-09-15",
    source="pydantic/pydantic-ai#2915; NousResearch/hermes-agent#24234",
)
_SAMPLING_PARAM = HostRule(
    kind="sampling_unsupported",
    text="Unsupported parameter: '{name}' is not supported with this model.",
    param="{name}",
    since="2025-03-14",
    source="vercel/ai fixture reasoning-model-temperature-error; langchain4j/langchain4j#2699",
)
_EXCLUSIVE = HostRule(
    kind="",
    text="Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
    since="2025-08",
    source="openai-python types/responses/response_create_params.py; unsure: the words",
)
_PREVIOUS_MISSING = HostRule(
    kind="previous_response_missing",
    text="Previous response with id '{name}' not found.",
    param="previous_response_id",
    code="previous_response_not_found",
    since="2025-03",
    source="errors of the live service in public files; 400 or 404 in different captures",
)
_PREVIOUS_FORBIDDEN = HostRule(
    kind="previous_response_forbidden",
    text="Previous response cannot be used for this organization due to Zero Data Retention.",
    param="previous_response_id",
    since="2026-06-12",
    source="can1357/oh-my-pi#2341",
)
_TOO_LONG = HostRule(
    kind="context_length",
    text="Your input exceeds the context window of this model. Please adjust your input and try again.",
    param="input",
    code="context_length_exceeded",
    in_stream=True,
    since="2025-09-24",
    source="openai/codex#4116; the-open-agent/openagent#2344",
)


def check_fields(body: Wire) -> Iterator[Fault]:
    """Check that every field is known."""
    for name in body:
        if name == "reasoning_effort":
            yield _MOVED.fault()
        elif name not in _FIELDS:
            yield UNKNOWN.fault(name=name)
    for name in body.get("reasoning") or ():
        if name not in _REASONING_FIELDS:
            yield UNKNOWN.fault(name=f"reasoning.{name}")


def check_reasoning(body: Wire, generation: Generation | None, *, may_summarise: bool) -> Iterator[Fault]:
    """Check the effort, the summary and the state that are asked for, against what the model has."""
    reasoning = body.get("reasoning") or {}
    effort, summary = reasoning.get("effort"), reasoning.get("summary")
    if summary and not may_summarise:
        yield _UNVERIFIED.fault()
    if generation is None:
        return
    if not generation.efforts:
        for name in ("effort", "summary"):
            if reasoning.get(name) is not None and (name == "effort" or not generation.thinks):
                yield _EFFORT_PARAM.fault(name=name)
    elif effort is not None and effort not in generation.efforts:
        yield _EFFORT_VALUE.fault(value=effort, model=body.get("model"), values=list_values(generation.efforts))
    if not generation.thinks and "reasoning.encrypted_content" in (body.get("include") or ()):
        yield _ENCRYPTED.fault()


def check_sampling(body: Wire, generation: Generation | None) -> Iterator[Fault]:
    """Check that a model that thinks gets no sampling but the default."""
    effort = (body.get("reasoning") or {}).get("effort")
    if generation is None or not generation.thinks_at(effort):
        return
    for name, default in _SAMPLING.items():
        if body.get(name) not in (None, default):
            yield _SAMPLING_PARAM.fault(name=name)


def check_previous(body: Wire, *, is_known: bool, retains: bool) -> Iterator[Fault]:
    """Check that an earlier response is there, and that the organisation keeps responses at all."""
    parent = body.get("previous_response_id")
    if parent is None:
        return
    if body.get("conversation") is not None:
        yield _EXCLUSIVE.fault()
    if not retains:
        yield _PREVIOUS_FORBIDDEN.fault()
    elif not is_known:
        yield _PREVIOUS_MISSING.fault(name=parent)


def check_length(body: Wire, generation: Generation | None) -> Iterator[Fault]:
    """Check that the input fits into the model."""
    limit = 0 if generation is None else generation.input_limit
    written = body.get("input")
    text = written if isinstance(written, str) else msgspec.json.encode(written).decode()
    if limit and len(text) >= 2 * limit and count_tokens(text) > limit:
        yield _TOO_LONG.fault()
