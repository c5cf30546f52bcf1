"""What happens to request fields that only the caller's dialect has: one table, with a reason for each field."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects import find_facts
from asides.providers.switches.table import HOST_DEFAULT

Action: TypeAlias = Literal["tell", "quiet", "refuse", "translate"]
"""tell: left out, with a notice of its own. quiet: left out; one notice names all of these. refuse: the request is
refused, since the answer would be wrong. translate: it becomes something else, in translate_fields."""


class FieldRule(msgspec.Struct, frozen=True):
    """What happens to a field on the way to another dialect, and why."""

    action: Action
    why: str
    harmless: tuple[Any, ...] = ()
    """Values that ask for nothing: the field is then left out in silence."""
    everywhere: bool = False
    """For fields that are refused: also on the way to the same dialect, since our events cannot hold their answer."""


UNKNOWN = FieldRule("tell", "it exists only in the caller's dialect")
"""The rule of a field that is in no table."""

_ONE_REPLY = FieldRule("refuse", "a translated request has one reply", (1,), everywhere=True)
_NO_LOGPROBS = FieldRule("refuse", "a translated reply has no log probabilities", (False, 0), everywhere=True)
_ROUTING = FieldRule("quiet", "it concerns how the caller's provider stores, routes or caches the request")
_ONLY_THERE = FieldRule("refuse", "only the caller's provider can do it", (False,))
_TIER = FieldRule("translate", "a service tier is a price of one provider", ("auto", "default", "standard_only"))
_VERBOSITY = FieldRule("translate", "only this maker has a verbosity")

_OPENAI = {
    "service_tier": _TIER,
    "prompt_cache_key": FieldRule("translate", "only some caches have keys"),
    "prompt_cache_retention": FieldRule("translate", "only some caches have lifetimes"),
    "prompt_cache_options": _ROUTING,
    "safety_identifier": FieldRule("translate", "it names the caller's user, as `user` does"),
    "stream_options": _ROUTING,
    "client_metadata": _ROUTING,
    "moderation": FieldRule("tell", "only this provider checks requests on demand"),
}

FIELD_RULES: dict[str, dict[str, FieldRule]] = {
    "openai_chat": {
        **_OPENAI,
        "n": _ONE_REPLY,
        "best_of": _ONE_REPLY,
        "audio": FieldRule("refuse", "the answer would be text instead of sound"),
        "modalities": FieldRule("refuse", "the answer would be only text", (["text"],)),
        "store": _ROUTING,
        "metadata": _ROUTING,
        "verbosity": _VERBOSITY,
        "prediction": FieldRule("tell", "it only makes some answers faster"),
        "web_search_options": FieldRule("refuse", "the model cannot search the web here"),
        "usage": _ROUTING,
        HOST_DEFAULT[0]: FieldRule("tell", "it asks for the default of the caller's host", HOST_DEFAULT[1:]),
        "reasoning_split": _ROUTING,
        "include_reasoning": _ROUTING,
        "separate_reasoning": _ROUTING,
        "stream_reasoning": _ROUTING,
        "reasoning_format": _ROUTING,
        "return_token_ids": _ROUTING,
        "tool_stream": _ROUTING,
    },
    "openai_responses": {
        **_OPENAI,
        "background": FieldRule("refuse", "a translated request is answered immediately", (False,), everywhere=True),
        "prompt": FieldRule("refuse", "the stored prompt is known only to the caller's provider"),
        "max_tool_calls": FieldRule("tell", "tools of the provider are not run"),
        "text.verbosity": _VERBOSITY,
        "context_management": FieldRule("tell", "the conversation is not compacted by the provider"),
    },
    "anthropic": {
        "thread": FieldRule("refuse", "the conversation is stored only at the caller's provider", everywhere=True),
        "service_tier": _TIER,
        "context_management": FieldRule("tell", "the provider does not edit the conversation"),
        "container": FieldRule("tell", "the provider runs no code"),
        "mcp_servers": FieldRule("refuse", "the provider does not call the tools of these servers", ([],)),
        "betas": _ROUTING,
        "metadata": _ROUTING,
        "inference_geo": FieldRule("tell", "where the request is computed cannot be chosen"),
        "cache_control": FieldRule("translate", "it asks for a cache of the whole request"),
    },
    "gemini": {
        "cachedContent": FieldRule("refuse", "the beginning of the prompt is stored only at the caller's provider"),
        "safetySettings": FieldRule("tell", "the filters of the provider cannot be set"),
        "labels": _ROUTING,
        "store": _ROUTING,
        "serviceTier": _TIER,
        "generationConfig.candidateCount": _ONE_REPLY,
        "generationConfig.responseModalities": FieldRule("refuse", "the answer would be only text", (["TEXT"],)),
        "generationConfig.speechConfig": FieldRule("refuse", "the answer would be text instead of sound"),
        "generationConfig.responseMimeType": FieldRule("tell", "this form of an answer is unknown", ("text/plain",)),
        "generationConfig.mediaResolution": FieldRule("tell", "the resolution of pictures cannot be set"),
    },
    "bedrock": {
        "guardrailConfig": FieldRule("refuse", "the answer would bypass the guardrail"),
        "promptVariables": FieldRule("refuse", "the stored prompt is known only to the caller's provider"),
        "requestMetadata": _ROUTING,
        "performanceConfig": _ROUTING,
        "serviceTier": FieldRule("quiet", "a service tier is a price of one provider"),
        "additionalModelResponseFieldPaths": FieldRule("tell", "the reply has no more fields"),
        "additionalModelRequestFields.anthropic_beta": _ROUTING,
        "system": FieldRule("tell", "blocks of the system prompt that only the caller's provider understands"),
    },
    "ollama": {
        "keep_alive": _ROUTING,
        "raw": FieldRule("refuse", "the prompt is written for one template", (False,)),
        "template": FieldRule("refuse", "the prompt is written for one template", ("",)),
        "context": FieldRule("refuse", "the conversation is encoded for one model", ([],)),
        "suffix": FieldRule("refuse", "the answer would not fit between two texts", ("",)),
        "format": FieldRule("tell", "this form of an answer is unknown", ("",)),
        "truncate": _ROUTING,
        "shift": _ROUTING,
        "options.num_ctx": _ROUTING,
        "options.num_batch": _ROUTING,
        "options.num_gpu": _ROUTING,
        "options.main_gpu": _ROUTING,
        "options.num_thread": _ROUTING,
        "options.num_keep": _ROUTING,
        "options.use_mmap": _ROUTING,
        "options.use_mlock": _ROUTING,
        "options.numa": _ROUTING,
    },
    "cohere": {
        "documents": FieldRule("refuse", "the answer would ignore the documents", ([],)),
        "citation_options": FieldRule("tell", "the answer has no citations"),
        "safety_mode": FieldRule("tell", "the filters of the provider cannot be set"),
        "priority": _ROUTING,
    },
}
"""By dialect and field. "a.b" is the field b of the object a, which has rules of its own then. Facts: the official
clients and the captured requests of 2026-11-15."""

SAMPLING_RULES: dict[str, FieldRule] = {"logprobs": _NO_LOGPROBS, "top_logprobs": _NO_LOGPROBS}
"""Sampling settings that no translated reply can answer."""


def find_rule(dialect: str, name: str) -> FieldRule:
    """Return the rule of a field."""
    known = FIELD_RULES.get(dialect, {}).get(name)
    if known is not None:
        return known
    facts = find_facts(dialect)
    return _ONLY_THERE if name in facts.untranslatable else _ROUTING if name in facts.routing_fields else UNKNOWN


@cache
def _list_parents(dialect: str) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in FIELD_RULES.get(dialect, {}) if "." in name)


def split_fields(dialect: str, extra: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request by name; those of an object that has rules for its fields as "a.b"."""
    parents = _list_parents(dialect) if extra else frozenset[str]()
    fields: dict[str, Any] = {}
    for name, value in extra.items():
        if name in parents and isinstance(value, dict):
            fields |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            fields[name] = value
    return fields
