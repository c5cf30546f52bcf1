"""Telemetry in memory, for tests: the SDK's own exporter and reader. Not a test."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

import asides


class _Starts(SpanProcessor):
    """Counts spans that began."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.count += 1


class Recorded:
    """What was recorded."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._starts = _Starts()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(self._starts)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = self.tracer_provider.get_tracer("test")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended. Each that began has ended, and once."""
        ended = self._exporter.get_finished_spans()
        ids = [identify(span).span_id for span in ended]
        assert len(set(ids)) == len(ids), "a span ended twice"
        assert len(ids) == self._starts.count, f"{self._starts.count} spans began and {len(ids)} ended"
        return ended

    def count_ended(self) -> int:
        """How many spans have ended, while others may be open."""
        return len(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """The names of the spans, in the order of their ends."""
        return [span.name for span in self.spans]

    def find(self, name: str, number: int = 0) -> ReadableSpan:
        """A span by its name."""
        return [span for span in self.spans if span.name == name][number]

    def list_metrics(self) -> dict[str, list[Any]]:
        """The points of each metric."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def dump(self) -> str:
        """Everything that left, as text: to look for what must not be there."""
        data = self._reader.get_metrics_data()
        metrics = "" if data is None else data.to_json()
        return "".join(span.to_json() for span in self.spans) + metrics


def identify(span: ReadableSpan) -> SpanContext:
    """The ids of a span."""
    context = span.get_span_context()
    assert context is not None
    return context


def get(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def is_inside(child: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether a span is directly inside another."""
    return child.parent is not None and child.parent.span_id == identify(parent).span_id


@contextmanager
def recording(**options: Any) -> Generator[Recorded]:
    """Telemetry in memory during the block."""
    recorded = Recorded()
    asides.instrument(recorded.tracer_provider, recorded.meter_provider, **options)
    try:
        yield recorded
    finally:
        asides.uninstrument()
