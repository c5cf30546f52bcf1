"""The metrics of calls, by the GenAI conventions: durations, tokens, and the time to the first chunk.

The number of series is bounded: of the names that others choose, the first 200 are kept, and all later ones are
"_OTHER".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asides.telemetry.span_attributes import (
    ADDRESS,
    ERROR,
    FIRST_ANSWER,
    FIRST_CHUNK,
    FIRST_THOUGHT,
    OPERATION,
    PORT,
    PROVIDER,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    Attributes,
)
from asides.values.usage import Usage

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68)
"""Bounds of durations: those of the conventions, and two more, since models think for minutes."""
FIRST_SECONDS = (0.001, 0.005, *SECONDS)
_TOKENS = tuple(4**power for power in range(14))
OTHER = "_OTHER"
_MAX_NAMES = 200
_LABELS = (OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, ADDRESS, PORT, "gen_ai.tool.name", ERROR)


class BoundedNames:
    """Names that others choose: the first ones are kept, all later ones become "_OTHER"."""

    def __init__(self, most: int = _MAX_NAMES) -> None:
        self._most = most
        self._known: set[str] = set()

    def bound(self, name: str) -> str:
        """The name, or "_OTHER"."""
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


class ClientMetrics:
    """Records what calls, runs and tools took."""

    def __init__(self, meter: Meter) -> None:
        make = meter.create_histogram
        self._duration = make(
            "gen_ai.client.operation.duration",
            "s",
            "Duration of calls, runs of agents and tools.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._tokens = make(
            "gen_ai.client.token.usage", "{token}", "Tokens of calls.", explicit_bucket_boundaries_advisory=_TOKENS
        )
        self._reasoning = make(
            "asides.client.reasoning_token.usage",
            "{token}",
            "Tokens of thinking, which those of the output include.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._first = {
            attribute: make(
                name,
                "s",
                f"Time until the first {what} of a streamed reply.",
                explicit_bucket_boundaries_advisory=FIRST_SECONDS,
            )
            for attribute, name, what in (
                (FIRST_CHUNK, "gen_ai.client.operation.time_to_first_chunk", "chunk"),
                (FIRST_THOUGHT, "asides.client.operation.time_to_first_thought", "thinking"),
                (FIRST_ANSWER, "asides.client.operation.time_to_first_answer", "word of the answer"),
            )
        }
        self._names: dict[str, BoundedNames] = {label: BoundedNames() for label in (REQUEST_MODEL, RESPONSE_MODEL)}

    def record(self, attributes: Attributes, seconds: float, usage: Usage | None = None) -> None:
        """Record an operation that has ended. `attributes`: those of its span."""
        labels = self._select(attributes)
        self._duration.record(seconds, labels)
        if ERROR in labels:
            del labels[ERROR]
        for attribute, histogram in self._first.items():
            if (first := attributes.get(attribute)) is not None:
                histogram.record(first, labels)
        if usage is None:
            return
        for kind, count in (("input", usage.input), ("output", usage.output)):
            if count is not None:
                self._tokens.record(count, {**labels, "gen_ai.token.type": kind})
        if usage.thinking is not None:
            self._reasoning.record(usage.thinking, labels)

    def _select(self, attributes: Attributes) -> Attributes:
        labels = {name: attributes[name] for name in _LABELS if name in attributes}
        for name, names in self._names.items():
            if name in labels:
                labels[name] = names.bound(labels[name])
        return labels
