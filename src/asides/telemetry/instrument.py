"""`instrument()` and `uninstrument()`: turn the spans and the metrics of a process on and off.

A program sets up its own exporters; those of the command line are in `exporters`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from asides.flows.steps import Tracing
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

    from asides.telemetry.current_span import Propagate

SCOPE = "asides"
"""The name of the instrumentation."""


class _Sources:
    """Where spans and metrics come from, while telemetry is on."""

    current: ClassVar[tuple[Tracer, Meter] | None] = None


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    content: bool = False,
    propagate: Propagate = "loopback",
) -> None:
    """Make spans and metrics of each call, run of an agent and tool of this process, from now on.

    They go to these providers; None: to those that the program has set for OpenTelemetry. `content`: write prompts,
    answers, and calls of tools into spans too; thinking only as far as the visibility of `trace` allows. `propagate`:
    which servers get the `traceparent` of a request: "loopback", those on this machine; "all"; "none"; or a list of
    hosts besides those on this machine. A second call replaces the first. Raises a ConfigError without `asides[otel]`.
    """
    if not is_installed():
        raise ConfigError("telemetry needs opentelemetry, which is not installed. Run pip install 'asides[otel]'.")
    from opentelemetry import metrics, trace

    from asides import __version__
    from asides.telemetry.client_metrics import ClientMetrics
    from asides.telemetry.current_span import Propagation
    from asides.telemetry.flow_spans import FlowSpans

    tracer = trace.get_tracer(SCOPE, __version__, tracer_provider)
    meter = metrics.get_meter(SCOPE, __version__, meter_provider)
    Tracing.tracer = FlowSpans(tracer, ClientMetrics(meter), Propagation(propagate), content=content)
    _Sources.current = tracer, meter


def uninstrument() -> None:
    """Stop making spans and metrics. Open spans end with their flows."""
    Tracing.tracer = _Sources.current = None


def get_sources() -> tuple[Tracer, Meter] | None:
    """The tracer and the meter, for a gateway of this process; None while telemetry is off."""
    return _Sources.current


def is_installed() -> bool:
    """Whether the API of OpenTelemetry is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None
