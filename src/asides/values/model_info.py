"""A model as its provider lists it today, in the provider's own account. What our rules know stands in the rows."""

from __future__ import annotations

from typing import Any

import msgspec


class ThinkingInfo(msgspec.Struct, frozen=True):
    """What a provider itself says of a model's thinking."""

    supported: bool
    always: bool | None = None
    """Whether it cannot be told to stop; None: they do not say."""
    types: tuple[str, ...] = ()
    """The forms in which it can be asked ("enabled", "adaptive" …), in their words; () where they name none."""
    efforts: tuple[str, ...] | None = None
    """The efforts that it takes, in their words; None: they do not say, () none."""


class ModelInfo(msgspec.Struct, frozen=True):
    """One model of a provider's list. None is what they do not say."""

    id: str
    """The name to ask it by."""
    name: str | None = None
    """The name for people."""
    created: int | None = None
    """Unix time."""
    context: int | None = None
    """The tokens that it can take in."""
    max_output: int | None = None
    """The tokens that it can put out, thinking included."""
    thinking: ThinkingInfo | None = None
    raw: dict[str, Any] = {}
    """Their entry, as it came."""


class ModelPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    models: tuple[ModelInfo, ...]
    after: str | None = None
    """What to ask for the next page with; None on the last."""
