"""OpenAI's models by generation: which efforts each takes, which it has without one, and what it takes beside thinking.

For chat completions and for Responses. Written from public facts, independent of the providers' rows, so that tests
compare the two. Not here: the words of a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

_TO_HIGH = ("low", "medium", "high")
_TO_XHIGH = (*_TO_HIGH, "xhigh")
_TO_MAX = (*_TO_XHIGH, "max")
# Measured on the live service by pydantic-ai (profiles/openai.py, 2026-07), unless a line says otherwise.


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the models of one generation."""

    efforts: tuple[str, ...] = ()
    """The efforts that it takes; () for a model that does not think or takes no effort."""
    chat_efforts: tuple[str, ...] | None = None
    """Those in chat completions, if they differ."""
    default: str | None = "medium"
    """Its effort without one; None if it does not think, "" if it is not known."""
    tools_in_chat: Literal["always", "without_effort", "with_none"] = "always"
    """When chat completions takes function tools: always · with no effort or "none" · only with "none"."""
    input_limit: int = 0
    """The most tokens of a request; 0 if it is not known."""

    @property
    def thinks(self) -> bool:
        """Whether it thinks at all."""
        return self.default is not None

    def thinks_at(self, effort: str | None) -> bool:
        """Return whether it thinks at this effort, as far as that is known; None: a request without one."""
        return self.thinks and (effort or self.default) not in ("none", "")


_GENERATIONS: tuple[tuple[re.Pattern[str], Generation], ...] = tuple(
    (re.compile(pattern), generation)
    for pattern, generation in (
        # openrouter.ai guide to GPT-6; docs.laozhang.ai, 2026-11-04: in chat it stops at xhigh.
        (
            r"gpt-6\.1-sol",
            Generation(efforts=_TO_MAX, chat_efforts=_TO_XHIGH, tools_in_chat="with_none"),
        ),
        (r"gpt-6-astra", Generation(efforts=_TO_MAX, tools_in_chat="with_none")),
        (r"gpt-6\.1-terra", Generation(efforts=("none", *_TO_MAX), tools_in_chat="with_none")),
        (r"gpt-[6-9]", Generation(efforts=("none", *_TO_MAX), default="", tools_in_chat="with_none")),
        # litellm#34569, 2026-07: tools are refused also without an effort.
        (
            r"gpt-5\.6",
            Generation(efforts=("none", *_TO_MAX), tools_in_chat="with_none", input_limit=272_000),
        ),
        (r"gpt-5\.[245]-pro", Generation(efforts=("medium", "high", "xhigh"), tools_in_chat="without_effort")),
        (r"gpt-5\.[1-9]-chat|(?:gpt-)?chat-latest", Generation(efforts=("medium",))),
        (
            r"gpt-5\.5",
            Generation(efforts=("none", *_TO_XHIGH), tools_in_chat="without_effort", input_limit=272_000),
        ),
        (
            r"gpt-5\.4",
            Generation(
                efforts=("none", *_TO_XHIGH), default="none", tools_in_chat="without_effort", input_limit=272_000
            ),
        ),
        (r"gpt-5\.1-codex-max", Generation(efforts=_TO_XHIGH, input_limit=272_000)),
        (r"gpt-5\.1-codex", Generation(efforts=_TO_HIGH, input_limit=272_000)),
        # opencode#4451, 2025-11-18: the list of the refusal.
        (r"gpt-5\.1", Generation(efforts=("none", *_TO_HIGH), default="none", input_limit=272_000)),
        (r"gpt-5\.", Generation(efforts=("none", *_TO_XHIGH), default="none", input_limit=272_000)),
        (r"gpt-5-chat", Generation(default=None, input_limit=128_000)),
        (r"gpt-5-pro", Generation(efforts=("high",), default="high", input_limit=272_000)),
        (r"gpt-5-codex", Generation(efforts=_TO_HIGH, input_limit=272_000)),
        (r"gpt-5", Generation(efforts=("minimal", *_TO_HIGH), input_limit=272_000)),
        (r"o1-(?:mini|preview)", Generation(input_limit=128_000)),
        (r"o\d", Generation(efforts=_TO_HIGH, input_limit=200_000)),
        (r"codex-mini", Generation(efforts=_TO_HIGH, input_limit=200_000)),
        (r"gpt-4\.1", Generation(default=None, input_limit=1_047_576)),
        (r"gpt-4|gpt-3\.5|chatgpt-4o|gpt-audio", Generation(default=None, input_limit=128_000)),
    )
)
NAMES = re.compile(r"gpt-(?!oss)(?:\d|audio|chat)|o\d(?:-|$)|chatgpt-|codex-|chat-latest")
"""The names of OpenAI's own models."""


def find_generation(model: str) -> Generation | None:
    """Return what is known of this model; None if it is none of OpenAI's, or a newer one than is known here."""
    name = model.lower().removeprefix("openai/")
    return next((generation for pattern, generation in _GENERATIONS if pattern.match(name)), None)


def list_values(values: Sequence[str]) -> str:
    """Return the values as OpenAI lists them: 'a', 'b', and 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def count_tokens(text: str) -> int:
    """Count words as tokens, as all counts of the stage do."""
    return len(text.split())
