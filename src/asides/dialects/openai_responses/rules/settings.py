"""Rules for the settings of a Responses request: fields, efforts, summaries, sampling, lengths.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from asides.dialects import find_facts
from asides.dialects.openai_chat.rules.settings import UNKNOWN, count_tokens, list_efforts, list_values, thinks_at
from asides.dialects.rulebook import BrokenRule, Rule, Wire
from asides.providers.provider import ModelRule

_REASONING_FIELDS = frozenset({"effort", "summary", "generate_summary", "context", "mode"})
_DEFAULTS = {"temperature": 1, "top_p": 1, "top_logprobs": 0}

_MOVED = Rule(
    kind="effort_unsupported_param",
    text="Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
    "'reasoning.effort'. Try again with the new parameter. See the API documentation for more information: "
    "https://platform.openai.com/docs/api-reference/responses/create.",
    code="unsupported_parameter",
    since="2025-10-15",
    source="OpenHands/software-agent-sdk#755",
)
_EFFORT_PARAM = Rule(
    kind="effort_unsupported_param",
    text="Unsupported parameter: 'reasoning.{name}' is not supported with this model.",
    param="reasoning.{name}",
    code="unsupported_parameter",
    since="2025-11-08",
    source="BoundaryML/baml#2708; BerriAI/litellm#38842",
)
_EFFORT_VALUE = Rule(
    kind="effort_unsupported_value",
    text="Unsupported value: '{value}' is not supported with the '{model}' model. Supported values are: {values}.",
    param="reasoning.effort",
    code="unsupported_value",
    since="2025-11-18",
    source="anomalyco/opencode#4451",
)
_ENCRYPTED = Rule(
    kind="encrypted_reasoning_unsupported",
    text="Encrypted content is not supported with this model.",
    param="include",
    since="2025-09-15",
    source="pydantic/pydantic-ai#2915; NousResearch/hermes-agent#24234",
)
_SAMPLING_PARAM = Rule(
    kind="sampling_unsupported",
    text="Unsupported parameter: '{name}' is not supported with this model.",
    param="{name}",
    since="2025-03-14",
    source="vercel/ai fixture reasoning-model-temperature-error; langchain4j/langchain4j#2699",
)
_EXCLUSIVE = Rule(
    kind=None,
    text="Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
    since="2025-08",
    source="openai-python types/responses/response_create_params.py; unsure: the words",
)
TOO_LONG = Rule(
    kind="context_length",
    text="Your input exceeds the context window of this model. Please adjust your input and try again.",
    param="input",
    code="context_length_exceeded",
    since="2025-09-24",
    source="openai/codex#4116; the-open-agent/openagent#2344",
)


def check_fields(body: Wire) -> Iterator[BrokenRule]:
    """Check that every field is known."""
    known = find_facts("openai_responses").request_fields
    for name in body:
        if name == "reasoning_effort":
            yield _MOVED.broken(name)
        elif name not in known:
            yield UNKNOWN.broken(name, name=name)
    for name in body.get("reasoning") or ():
        if name not in _REASONING_FIELDS:
            yield UNKNOWN.broken(f"reasoning.{name}", name=f"reasoning.{name}")


def check_reasoning(body: Wire, rule: ModelRule) -> Iterator[BrokenRule]:
    """Check the effort, the summary and the state that are asked for, against the model's."""
    reasoning = body.get("reasoning") or {}
    effort, efforts = reasoning.get("effort"), list_efforts(rule)
    thinks = rule.thinking != "never"
    if efforts == ():
        for name in ("effort", "summary"):
            if reasoning.get(name) is not None and (name == "effort" or not thinks):
                yield _EFFORT_PARAM.broken(f"reasoning.{name}", name=name)
    elif effort is not None and efforts and effort not in efforts:
        values = list_values(efforts)
        yield _EFFORT_VALUE.broken("reasoning.effort", value=effort, model=body.get("model"), values=values)
    if not thinks and "reasoning.encrypted_content" in (body.get("include") or ()):
        yield _ENCRYPTED.broken("include")


def check_sampling(body: Wire, rule: ModelRule) -> Iterator[BrokenRule]:
    """Check that a model that thinks gets no sampling but the default."""
    if not thinks_at(rule, (body.get("reasoning") or {}).get("effort")):
        return
    for name, default in _DEFAULTS.items():
        if name in rule.forbids and body.get(name) not in (None, default):
            yield _SAMPLING_PARAM.broken(name, name=name)


def check_exclusive(body: Wire) -> Iterator[BrokenRule]:
    """Check that an earlier response is named once."""
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        yield _EXCLUSIVE.broken("conversation")


def check_length(body: Wire, rule: ModelRule) -> Iterator[BrokenRule]:
    """Check that the input fits into the model."""
    limit, written = rule.input_limit, body.get("input")
    text = written if isinstance(written, str) else msgspec.json.encode(written).decode() if limit else ""
    if limit and len(text) >= 2 * limit and count_tokens(text) > limit:
        yield TOO_LONG.broken("input")
