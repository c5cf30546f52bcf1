"""Rules for the settings of a chat at OpenAI and Azure: efforts, tools beside them, sampling, unknown fields, lengths.

Written from the documented rules and from reported errors. Not here: the models (openai_generations), and messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule
from asides.testing.stage.rules.openai_generations import Generation, count_tokens, find_generation, list_values

# openai-python 3.49, types/chat/completion_create_params.py, 2026-11.
_FIELDS = frozenset({
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
    "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
})  # fmt: skip
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs")
_DEFAULTS = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": False}

UNKNOWN = HostRule(
    kind="unknown_param",
    text="Unknown parameter: '{name}'.",
    param="{name}",
    code="unknown_parameter",
    since="2024-10",
    source="errors of the live service; editor-code-assistant/eca 0.160.3 for Azure and `reasoning`",
)
_EFFORT_VALUE = HostRule(
    kind="effort_unsupported_value",
    text="Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are: "
    "{values}.",
    param="reasoning_effort",
    code="unsupported_value",
    since="2025-08",
    source="errors of the live service, such as Wei-Shaw/sub2api#6624; the same words at Kilo-Org/cloud#3807",
)
_EFFORT_PARAM = HostRule(
    kind="effort_unsupported_param",
    text="Unrecognized request argument supplied: reasoning_effort",
    since="2025-02-22",
    source="avante-corp/avante.nvim#1359: gpt-4o",
)
_TOOLS_54 = HostRule(
    kind="effort_tools_endpoint",
    text="Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. Please use "
    "/v1/responses instead.",
    param="reasoning_effort",
    since="2026-03-16",
    source="pipecat-ai/pipecat#4043; openai/openai-openapi#541",
)
_TOOLS_56 = HostRule(
    kind="effort_tools_endpoint",
    text="Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'.",
    param="reasoning_effort",
    since="2026-07-09",
    source="github/app#3268; BerriAI/litellm#34569: also without an effort",
)
_SAMPLING_PARAM = HostRule(
    kind="sampling_unsupported",
    text="Unsupported parameter: '{name}' is not supported with this model.",
    param="{name}",
    code="unsupported_parameter",
    since="2025-03-14",
    source="langchain4j/langchain4j#2699",
)
_SAMPLING_VALUE = HostRule(
    kind="sampling_unsupported",
    text="Unsupported value: '{name}' does not support {value} with this model. Only the default ({default}) value is "
    "supported.",
    param="{name}",
    code="unsupported_value",
    since="2025-05-09",
    source="obot-platform/obot#2862",
)
_MAX_TOKENS = HostRule(
    kind="unknown_param",
    text="Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param="max_tokens",
    code="unsupported_parameter",
    since="2024-09",
    source="openai-python types/chat/completion_create_params.py; errors of the live service",
)
_TOO_LONG = HostRule(
    kind="context_length",
    text="Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {count} tokens. Please "
    "reduce the length of the messages.",
    param="messages",
    code="context_length_exceeded",
    since="2026-03-05",
    source="archi-physics/archi#497",
)


def check_openai_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the fields, the effort, tools beside it, sampling, and the length."""
    yield from (UNKNOWN.fault(name=name) for name in asked.body if name not in _FIELDS)
    generation = find_generation(asked.name)
    if generation is None:
        return
    yield from _check_effort(asked, generation)
    yield from _check_tools(asked, generation)
    yield from _check_sampling(asked, generation)
    if generation.thinks and asked.body.get("max_tokens") is not None:
        yield _MAX_TOKENS.fault()
    yield from _check_length(asked, generation.input_limit)


def _check_effort(asked: ChatRequest, generation: Generation) -> Iterator[Fault]:
    efforts = generation.chat_efforts or generation.efforts
    if asked.effort is None:
        return
    if not efforts:
        yield _EFFORT_PARAM.fault()
    elif asked.effort not in efforts:
        yield _EFFORT_VALUE.fault(value=asked.effort, values=list_values(efforts))


def _check_tools(asked: ChatRequest, generation: Generation) -> Iterator[Fault]:
    if not asked.body.get("tools") or asked.effort == "none":
        return
    if generation.tools_in_chat == "with_none" and asked.today >= date(2026, 7, 9):
        yield _TOOLS_56.fault(model=asked.model)
    if generation.tools_in_chat == "without_effort" and asked.effort is not None:
        yield _TOOLS_54.fault(model=asked.model)


def _check_sampling(asked: ChatRequest, generation: Generation) -> Iterator[Fault]:
    if not generation.thinks_at(asked.effort):
        return
    for name in _SAMPLING:
        value, default = asked.body.get(name), _DEFAULTS.get(name)
        if value is None or value == default:
            continue
        if name == "temperature" and not asked.name.startswith("o"):
            yield _SAMPLING_VALUE.fault(name=name, value=value, default=default)
        else:
            yield _SAMPLING_PARAM.fault(name=name)


def _check_length(asked: ChatRequest, limit: int) -> Iterator[Fault]:
    # No text has more words than half of its characters: most requests need no counting.
    if not limit or sum(len(str(message.get("content"))) for message in asked.messages) < 2 * limit:
        return
    count = sum(count_tokens(str(message.get("content"))) for message in asked.messages)
    if count > limit:
        yield _TOO_LONG.fault(limit=limit, count=count)
