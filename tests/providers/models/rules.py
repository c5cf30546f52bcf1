"""The rule that a list of rules has for a model, found as a row finds it."""

from __future__ import annotations

from asides.providers.provider import ModelRule, Provider, ReplayRule


def rule_of(model: str, rules: tuple[ModelRule, ...]) -> ModelRule:
    return Provider(name="example", models=rules).rule(model)


def without_proof(rules: tuple[ModelRule | ReplayRule, ...]) -> list[str]:
    """The rules that lack a date or a source."""
    return [rule.models for rule in rules if not (rule.since and rule.source)]
