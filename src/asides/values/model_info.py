"""Models as their provider lists them today."""

from __future__ import annotations

import re
from typing import Any

import msgspec

NO_CHAT = re.compile(
    r"embed|rerank|whisper|tts|dall-e|image|moderation|audio|speech|transcri|clip|guard|ocr|video|realtime|vision-only"
    r"|(?<![a-z])(?:flux|lyria|sora|stable-diffusion|veo)(?![a-z])",
    re.IGNORECASE,
)
"""Words in the names of models that are not chat models."""


class ThinkingInfo(msgspec.Struct, frozen=True):
    """A model's thinking, as its provider lists it. None means that the provider does not say."""

    supported: bool
    always: bool | None = None
    """Whether the model cannot stop thinking."""
    types: tuple[str, ...] = ()
    """The types of request it accepts ("enabled", "adaptive" …), by the provider's names; () where it names none."""
    efforts: tuple[str, ...] | None = None
    """The efforts it accepts, by the provider's names; () when it accepts none."""


class ModelInfo(msgspec.Struct, frozen=True):
    """One model of a provider's list. None means that the provider does not say."""

    id: str
    """The name to use in requests."""
    name: str | None = None
    """The name to show."""
    created: int | None = None
    """Unix time."""
    context: int | None = None
    """The largest input, in tokens."""
    max_output: int | None = None
    """The largest output, in tokens, thinking included."""
    thinking: ThinkingInfo | None = None
    raw: dict[str, Any] = {}
    """The entry as received."""
    tools: bool | None = None
    """Whether it calls tools."""
    pictures: bool | None = None
    """Whether it accepts pictures."""


class ModelPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    models: tuple[ModelInfo, ...]
    after: str | None = None
    """The cursor of the next page; None on the last."""
