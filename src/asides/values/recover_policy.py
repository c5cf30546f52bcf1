"""`RecoverPolicy`: what to try, and how far, when a reply ends without an answer. It is the option `recover`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides.values.errors import ConfigError

RecoverStep: TypeAlias = Literal["continue", "less_effort", "more_tokens"]
"""continue: the thinking is closed and the model continues with its answer. less_effort: it is asked again with less
thinking. more_tokens: it is asked again with a higher limit."""

_STEPS: tuple[RecoverStep, ...] = get_args(RecoverStep)


class RecoverPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to try when a reply ends without an answer, and within which limits; None: no limit.

    A reply without an answer has the outcome "starved", "unterminated" or "unanswered". With `output=`, a cut answer
    counts as none.
    """

    steps: tuple[RecoverStep, ...] = _STEPS
    """What is tried, in this order, each step as often as it is named. One that a model does not allow is left out."""
    max_requests: int = 3
    """The most requests after the first."""
    max_tokens: int | None = None
    """The highest `max_tokens` that "more_tokens" asks for; None: the model's own limit, where it is known."""
    max_total_tokens: int | None = None
    """Maximum tokens of all requests together, input and output; then no further request is sent."""
    max_cost: Decimal | None = None
    """No further request once all of them together have cost so much, in US dollars, or while the cost is not known."""


def read_recover(given: object) -> RecoverPolicy | None:
    """Read the option `recover`: True, False, a policy, or a mapping of its fields. Raises a ConfigError for others."""
    if isinstance(given, bool):
        return RecoverPolicy() if given else None
    fields: Any = msgspec.structs.asdict(given) if isinstance(given, RecoverPolicy) else given
    if not isinstance(fields, Mapping):
        raise ConfigError(f"recover must be True, False or a RecoverPolicy, not {type(given).__name__}.")
    try:
        policy = msgspec.convert(_read_cost(dict(fields)), RecoverPolicy)
    except msgspec.ValidationError as problem:
        raise ConfigError(
            f"recover is not valid: {problem}. Its steps are {', '.join(_STEPS)}; see RecoverPolicy."
        ) from None
    for name, least in (("max_requests", 0), ("max_tokens", 1), ("max_total_tokens", 1)):
        limit: int | None = getattr(policy, name)
        if limit is not None and limit < least:
            raise ConfigError(f"recover: {name} is {limit}; give {least} or more, or leave it out.")
    if policy.max_cost is not None and not (policy.max_cost.is_finite() and policy.max_cost > 0):
        raise ConfigError("recover: max_cost is not an amount above zero; give one in US dollars, or leave it out.")
    return policy if policy.steps and policy.max_requests else None


def _read_cost(fields: dict[str, Any]) -> dict[str, Any]:
    cost = fields.get("max_cost")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool):
        fields["max_cost"] = str(cost)
    return fields
