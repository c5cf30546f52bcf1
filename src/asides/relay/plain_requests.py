"""Whether a host may need a request in its own dialect to change: `differs_for(prompt, target)`.

A host differs from its dialect in a few fields, and most requests have none of them.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

from asides.dialects import plain_row
from asides.dialects.openai_chat.encode import OUTPUT_LIMITS
from asides.history.check import FREE_CHOICES
from asides.providers.provider import ModelRule, Target, merge_facts
from asides.providers.quirks import NO_RESTRICTIONS, Quirks, Restrictions, fits_glob
from asides.relay.endpoints import PLAIN_DIALECT
from asides.relay.known_calls import KnownCalls
from asides.values.messages import Prompt, Sampling
from asides.values.traits import (
    CHANGES_EFFORT,
    HAS_BREAKPOINTS,
    HAS_CALLS,
    HAS_FILE_IDS,
    HAS_MEDIA,
    HAS_RESULTS,
    HAS_THOUGHTS,
    HAS_WITHHELD,
    IS_BLANK,
    IS_BOUND,
)

# What a request has, as bits: the traits of its messages, and these.
_HAS_SYSTEM = 1 << 16
_HAS_TOOLS = 1 << 17
_HAS_NATIVE_TOOLS = 1 << 18
"""Tools that only some hosts run."""
_HAS_OUTPUT = 1 << 19
_HAS_SAMPLING = 1 << 20
_HAS_THINKING = 1 << 21
_HAS_NO_LIMIT = 1 << 22
_HAS_PREFILL = 1 << 23
_HAS_CACHE = 1 << 24
_IS_WHOLE = 1 << 25
"""It asks for a whole reply."""
_FORCES_TOOLS = 1 << 26
"""It demands a call."""
_IS_ANY = 1 << 27
"""Every request has it."""

_NOTHING = 0
_STATE = HAS_THOUGHTS | HAS_WITHHELD | IS_BOUND
_CALLS = HAS_CALLS | HAS_RESULTS
_MEDIA = HAS_MEDIA | HAS_FILE_IDS

# The plan decides about these at every host.
_ALWAYS = _STATE | IS_BLANK | CHANGES_EFFORT | HAS_FILE_IDS | _HAS_NATIVE_TOOLS | _HAS_OUTPUT

# What a request must have for a difference to matter. A name that is missing here matters for every request.
_FACTS = {
    **dict.fromkeys(("tags", "tag_position", "starts_inside", "thinking_in", "heuristics", "enforces"), _NOTHING),
    "output_limit": _NOTHING,  # its name decides
    **dict.fromkeys(("ask_by", "budget_in"), _HAS_THINKING),
    **dict.fromkeys(("replay_as", "account_bound"), _STATE),
    **dict.fromkeys(("structured_output", "output_with_tools"), _HAS_OUTPUT),
    **dict.fromkeys(("pictures", "refuses_files"), _MEDIA),
    "system_role": _HAS_SYSTEM,
    "empty_thinking": _CALLS,
}
_QUIRKS = {
    # How replies are read, where requests go, and what a host takes besides.
    **dict.fromkeys(("fragmented_tags", "snapshots", "output_excludes_thinking", "hides_truncation"), _NOTHING),
    **dict.fromkeys(("raw_reasoning", "auth", "path", "compacts", "continues", "cache_key", "any_tool"), _NOTHING),
    **dict.fromkeys(("cache_control", "server_tools", "encrypted_reasoning", "reports_input"), _NOTHING),
    **dict.fromkeys(("replay_field", "refuses_thinking", "raw_items", "refuses_thoughts_while_off"), _STATE),
    **dict.fromkeys(("blank_content", "tool_call_ids", "after_results", "call_order"), _CALLS),
    **dict.fromkeys(("results_alone", "calls_alone"), _CALLS),
    **dict.fromkeys(("schema_words", "output_while_thinking"), _HAS_OUTPUT),
    "toggle_on": _HAS_THINKING,
    # Their names decide.
    **dict.fromkeys(("refused_fields", "stream_usage", "message_fields"), _NOTHING),
}
_RULE = {
    **dict.fromkeys(("models", "kind", "thinks_though_off", "input_limit", "context", "endpoint"), _NOTHING),
    **dict.fromkeys(("named_in", "since", "source"), _NOTHING),
    **dict.fromkeys(("thinking", "default", "efforts", "effort_map", "max_effort_while_off"), _HAS_THINKING),
    **dict.fromkeys(("off_as_effort", "effort_updates", "budget", "refuses_zero_budget"), _HAS_THINKING),
    **dict.fromkeys(("budget_excludes_effort", "forms", "assumed", "interleaves"), _HAS_THINKING),
    **dict.fromkeys(("begins_with_thinking", "display", "displays", "template_key"), _HAS_THINKING),
    **dict.fromkeys(("forbids", "temperature", "top_p", "off_sampling", "refuses"), _HAS_SAMPLING),
    **dict.fromkeys(("temperature_or_top_p", "top_k_in"), _HAS_SAMPLING),
    "tools": _HAS_TOOLS | _CALLS,
    **dict.fromkeys(("tools_while_thinking", "tools_need_off", "tool_stream"), _HAS_TOOLS),
    **dict.fromkeys(("forced_tools", "forced_tools_with_budget"), _FORCES_TOOLS),
    **dict.fromkeys(("prefix_bound", "prefix_bound_since", "reads"), _STATE),
    "prefill": _HAS_PREFILL,
    "signed_calls": _CALLS,
    "max_output": _HAS_THINKING,
    "default_max_tokens": _HAS_NO_LIMIT,
    "stream_only": _IS_WHOLE,
    "cache_points": _HAS_CACHE | HAS_BREAKPOINTS,
}
_OF_FACTS = frozenset(("tags", "fields", "message_rules", *_FACTS))
_PLAIN_RULE = ModelRule()
_NO_SAMPLING = Sampling()
# Restrictions that only concern what we would ask for.
_OPTIONAL = frozenset(("stores", "summaries", "includes_reasoning", "calls_need_tools"))


class _Differences(NamedTuple):
    """How a target differs from its dialect."""

    concerns: int
    """What a request must have, some of it, for any difference to matter."""
    names: frozenset[str]
    """Fields that the host refuses, or knows by another name."""
    refuses_unknown: bool
    """Whether it refuses unknown fields of messages."""


def differs_for(
    prompt: Prompt, target: Target, traits: int, known: KnownCalls | None = None, *, has_developer: bool = False
) -> bool:
    """Whether the target differs from its dialect in something that this prompt has. The prompt was read from a
    request in that dialect. `traits`: those of its messages. `has_developer`: whether a message may have that role.
    """
    find = partial(_find_differences, target)
    differences = find() if known is None else known.find_fact(target, "differences", find)
    source = prompt.source
    if source is None or differences.concerns & _list_features(prompt, traits):
        return True
    if has_developer and target.facts.system_role != "developer":
        return True
    if not differences.names.isdisjoint(source.fields):
        return True
    if source.fields.get("tool_choice") == "any" and not target.quirks.any_tool:
        return True
    return differences.refuses_unknown and any(message.source is not None for message in prompt.messages)


def _list_features(prompt: Prompt, traits: int) -> int:
    """What a prompt has that a target may treat in its own way."""
    messages = prompt.messages
    features = traits | _IS_ANY
    if prompt.system is not None or any(message.role == "system" for message in messages):
        features |= _HAS_SYSTEM
    if prompt.tools or prompt.tool_choice is not None:
        features |= _HAS_TOOLS
        if prompt.tool_choice not in FREE_CHOICES or "tool_choice" in prompt.extra:
            features |= _FORCES_TOOLS
    if "tools" in prompt.extra or any(tool.native is not None for tool in prompt.tools):
        features |= _HAS_NATIVE_TOOLS | _HAS_TOOLS
    if prompt.output is not None:
        features |= _HAS_OUTPUT
    if prompt.stop or prompt.sampling != _NO_SAMPLING:
        features |= _HAS_SAMPLING
    if prompt.thinking.asked or prompt.thinking.display is not None:
        features |= _HAS_THINKING
    if prompt.max_tokens is None:
        features |= _HAS_NO_LIMIT
    if prompt.cache or any(tool.cache for tool in prompt.tools):
        features |= _HAS_CACHE
    if messages and messages[-1].role == "assistant":
        features |= _HAS_PREFILL
    return features if prompt.stream else features | _IS_WHOLE


def _find_differences(target: Target) -> _Differences:
    quirks, rule, facts = target.quirks, target.rule, target.facts
    plain = plain_row(target.dialect).quirks
    plain_facts = merge_facts(_PLAIN_RULE, plain)
    concerns = _ALWAYS | _list_restricted(target.restrictions, target.model)
    for name in type(facts).__struct_fields__:
        if getattr(facts, name) != getattr(plain_facts, name):
            concerns |= _FACTS.get(name, _IS_ANY)
    for name in ModelRule.__struct_fields__:
        if name not in _OF_FACTS and getattr(rule, name) != getattr(_PLAIN_RULE, name):
            concerns |= _RULE.get(name, _IS_ANY)
    names = frozenset(field.partition(".")[0] for field in quirks.refused_fields)
    if not quirks.stream_usage:
        names |= {"stream_options"}
    concerns |= _list_quirks(quirks, plain)
    if target.dialect == PLAIN_DIALECT:
        names |= {*OUTPUT_LIMITS} - {facts.output_limit}
        if not quirks.cache_control:
            concerns |= _HAS_CACHE | HAS_BREAKPOINTS
    return _Differences(concerns, names, bool(quirks.message_fields))


@lru_cache(maxsize=256)
def _list_quirks(quirks: Quirks, plain: Quirks) -> int:
    concerns = 0
    for name in Quirks.__struct_fields__:
        if name not in _OF_FACTS and getattr(quirks, name) != getattr(plain, name):
            concerns |= _QUIRKS.get(name, _IS_ANY)
    return concerns


def _list_restricted(restrictions: Restrictions, model: str) -> int:
    concerns = _CALLS if any(fits_glob(model.lower(), glob) for glob in restrictions.calls_need_tools) else 0
    for name in Restrictions.__struct_fields__:
        if name not in _OPTIONAL and getattr(restrictions, name) != getattr(NO_RESTRICTIONS, name):
            concerns |= _IS_ANY
    return concerns
