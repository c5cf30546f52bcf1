"""Model rules, one module for each maker. They apply at every host that serves the model. Here: shared short forms."""

from __future__ import annotations

from asides.providers.provider import ModelRule
from asides.values.thinking import Effort

LOW_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")
LOW_TO_XHIGH: tuple[Effort, ...] = (*LOW_TO_HIGH, "xhigh")
LOW_TO_MAX: tuple[Effort, ...] = (*LOW_TO_XHIGH, "max")


def never_thinks(models: str, since: str, source: str) -> ModelRule:
    """The rule of models that do not think."""
    return ModelRule(models=models, thinking="never", efforts=(), since=since, source=source)
