"""Sampling settings and stop sequences within the bounds of another dialect: `fit_sampling(prompt, target, notices)`.

A caller's client sends the defaults of its own dialect with every request; a value that another provider refuses must
not end the conversation.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.providers.quirks import fits_glob
from asides.values.messages import Prompt, Sampling
from asides.values.notices import Notice

# Most chat hosts refuse these, or ignore them; only hosts of open weights know them, each some of them.
_OF_OPEN_WEIGHTS = ("top_k", "min_p", "repetition_penalty")

_BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    # platform.claude.com api/messages: 0 to 1 (2026-11).
    "anthropic": {"temperature": (0, 1)},
    # AWS InferenceConfiguration: 0 to 1 (2026-11).
    "bedrock": {"temperature": (0, 1)},
    # docs.cohere.com reference/chat (2026-11).
    "cohere": {
        "temperature": (0, 1),
        "top_p": (0.01, 0.99),
        "top_k": (0, 500),
        "presence_penalty": (0, 1),
        "frequency_penalty": (0, 1),
    },
    # platform.openai.com and ai.google.dev: 0 to 2 (2026-11).
    "openai_chat": {"temperature": (0, 2)},
    "openai_responses": {"temperature": (0, 2)},
    "gemini": {"temperature": (0, 2)},
}
# platform.openai.com: up to 4; ai.google.dev and docs.cohere.com: up to 5 (2026-11).
_MOST_STOPS = {"openai_chat": 4, "gemini": 5, "cohere": 5}


def fit_sampling(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[Sampling, tuple[str, ...]]:
    """Return the settings that can be sent, and add a notice for each change."""
    given = prompt.sampling.to_dict()
    changes: dict[str, Any] = {}
    for name, (least, most) in _BOUNDS.get(target.dialect, {}).items():
        value = given.get(name)
        if value is not None and not least <= value <= most:
            changes[name] = sent = type(value)(min(max(value, least), most))
            detail = f"{name} is {least:g} to {most:g} here"
            notices.append(Notice("setting_adjusted", detail, name, f"{value:g}", f"{sent:g}"))
    left_out = [name for name in _OF_OPEN_WEIGHTS if name in given] if target.dialect == "openai_chat" else []
    if _is_claude(target) and {"temperature", "top_p"} <= given.keys():
        # "`temperature` and `top_p` cannot both be specified for this model" (Claude 4.5 and later, 2026-01-26).
        left_out.append("top_p")
    for name in left_out:
        changes[name] = None
        notices.append(Notice("setting_dropped", f"{name} was left out: many hosts refuse it", name, "set", "nothing"))
    sampling = msgspec.structs.replace(prompt.sampling, **changes) if changes else prompt.sampling
    return sampling, _fit_stops(prompt.stop, target, notices)


def _is_claude(target: Target) -> bool:
    return target.dialect == "anthropic" or (
        target.dialect == "bedrock" and fits_glob((target.family or target.model).lower(), "*claude*")
    )


def _fit_stops(stops: tuple[str, ...], target: Target, notices: list[Notice]) -> tuple[str, ...]:
    most = _MOST_STOPS.get(target.dialect)
    kept = stops if most is None else stops[:most]
    if target.dialect == "anthropic":
        # "stop_sequences: each stop sequence must contain non-whitespace" (Messages, 2026-11).
        kept = tuple(stop for stop in kept if stop.strip())
    if len(kept) < len(stops):
        detail = f"{len(stops) - len(kept)} stop sequence(s) were left out: they are too many, or blank"
        notices.append(Notice("setting_adjusted", detail, "stop", str(len(stops)), str(len(kept))))
    return kept
