"""Telemetry of the command line and of `asides serve`: exporters as the variables of OpenTelemetry name them.

`start_telemetry` turns it on if OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER or their like are set. A collector
that does not answer fails no request, and delays the end by a few seconds at most.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from asides.telemetry.instrument import instrument, is_installed, uninstrument
from asides.values.outage_log import OutageLog

if TYPE_CHECKING:
    from asides.telemetry.current_span import Propagate

Signal: TypeAlias = Literal["traces", "metrics"]
OnNote: TypeAlias = Callable[[str], None]

END_SECONDS = 3.0
"""How long the end of a gateway waits for a collector."""
_COMMAND_SECONDS = 1.0
"""The same for a command: someone waits for the prompt of the shell."""
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = frozenset({"true", "1", "span_only", "span_and_event"})
_HTTP = "http/protobuf"
_log = logging.getLogger("asides")


class Telemetry:
    """Telemetry of this process, until it is closed."""

    def __init__(self, providers: tuple[Any, Any], *, owns: bool) -> None:
        """`providers`: those of spans and of metrics. `owns`: whether to shut them down at the end."""
        self.tracer_provider, self.meter_provider = providers
        self._owns = owns

    def close(self, seconds: float = END_SECONDS) -> None:
        """Send what is left, for `seconds` at most, and turn telemetry off."""
        uninstrument()
        ends = [self._end(provider) for provider in (self.tracer_provider, self.meter_provider)]
        for end in ends:
            end.start()
        deadline = time.monotonic() + seconds
        for end in ends:
            end.join(max(deadline - time.monotonic(), 0.0))

    def _end(self, provider: Any) -> threading.Thread:
        # In a daemon thread: exporters may wait for long, and must not delay the end of the process.
        end = provider.shutdown if self._owns else provider.force_flush
        return threading.Thread(target=end, name="asides-telemetry", daemon=True)


def start_telemetry(
    service: str,
    *,
    content: bool = False,
    propagate: Propagate = "loopback",
    environ: Mapping[str, str] | None = None,
    on_note: OnNote = _log.debug,
    seconds: float | None = None,
) -> Telemetry | None:
    """Turn telemetry on as the variables of OpenTelemetry say; None if they do not ask for it, or the packages are not
    installed. `service`: the name of the service, unless OTEL_SERVICE_NAME is set. `on_note` gets messages about what
    is wrong. `seconds`: how long sending may take, unless OTEL_EXPORTER_OTLP_TIMEOUT says so; None: as OpenTelemetry
    has it.
    """
    environ = os.environ if environ is None else environ
    if not is_wanted(environ):
        return None
    if not is_installed() or find_spec("opentelemetry.sdk") is None:
        on_note("telemetry is not sent: the packages are missing. Run pip install 'asides[otel]'.")
        return None
    content = content or environ.get(_CONTENT, "").strip().lower() in _YES
    from opentelemetry import metrics, trace

    running = trace.get_tracer_provider()
    if not isinstance(running, trace.ProxyTracerProvider):
        # Another tool has set up OpenTelemetry, such as opentelemetry-instrument.
        instrument(content=content, propagate=propagate)
        return Telemetry((running, metrics.get_meter_provider()), owns=False)
    try:
        providers = _Setup(service, environ, on_note, seconds).make_providers()
    except Exception as problem:  # noqa: BLE001 - a wrong variable must not fail a call
        on_note(f"telemetry is not sent: an OTEL_ variable is wrong ({type(problem).__name__}). Check them.")
        return None
    instrument(*providers, content=content, propagate=propagate)
    return Telemetry(providers, owns=True)


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the variables ask for telemetry."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(_find_exporters(signal, environ) for signal in ("traces", "metrics"))


def _find_exporters(signal: Signal, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The exporters of a signal, by their names."""
    named = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
    if named:
        return tuple(name for part in named.split(",") if (name := part.strip()) not in ("", "none"))
    variables = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return ("otlp",) if any(environ.get(name, "").strip() for name in variables) else ()


@contextmanager
def send_telemetry(service: str) -> Generator[None]:
    """Send telemetry of the code in the block, if the variables ask for it."""
    telemetry = start_telemetry(service, seconds=_COMMAND_SECONDS)
    try:
        yield
    finally:
        if telemetry is not None:
            telemetry.close(_COMMAND_SECONDS)


class _Setup:
    """Makes the providers of a process."""

    def __init__(self, service: str, environ: Mapping[str, str], on_note: OnNote, seconds: float | None) -> None:
        self._service = service
        self._environ = environ
        self._on_note = on_note
        is_set = any(name.startswith("OTEL_EXPORTER_OTLP_") and name.endswith("TIMEOUT") for name in environ)
        self._limits: dict[str, Any] = {} if seconds is None or is_set else {"timeout": seconds}

    def make_providers(self) -> tuple[Any, Any]:
        """The providers of spans and of metrics. They are not set globally: other code may have its own."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

        from asides import __version__

        # OpenTelemetry logs each failed attempt, and may quote answers of the collector. We note an outage once.
        theirs = logging.getLogger("opentelemetry")
        theirs.addHandler(logging.NullHandler())
        theirs.propagate = False
        named = self._environ.get("OTEL_SERVICE_NAME", "").strip()
        in_attributes = "service.name=" in self._environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        own = {} if named or in_attributes else {"service.name": self._service}
        resource = Resource.create({"service.version": __version__, **own})
        tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        for spans in self._make_exporters("traces", ConsoleSpanExporter):
            tracer_provider.add_span_processor(BatchSpanProcessor(spans))
        readers = [
            PeriodicExportingMetricReader(figures) for figures in self._make_exporters("metrics", ConsoleMetricExporter)
        ]
        return tracer_provider, MeterProvider(readers, resource=resource, shutdown_on_exit=False)

    def _make_exporters(self, signal: Signal, console: Callable[..., Any]) -> list[Any]:
        exporters: list[Any] = []
        for name in _find_exporters(signal, self._environ):
            if name == "console":
                exporters.append(console(out=sys.stderr))  # Standard output has the answers.
            elif name == "otlp":
                exporters += self._make_otlp(signal)
            else:
                known = "otlp, console or none"
                self._on_note(
                    f"OTEL_{signal.upper()}_EXPORTER names {name!r}, which asides does not know. Use {known}."
                )
        return exporters

    def _make_otlp(self, signal: Signal) -> list[Any]:
        names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
        protocol = next((value for name in names if (value := self._environ.get(name, "").strip())), _HTTP)
        if protocol == "grpc" and find_spec("opentelemetry.exporter.otlp.proto.grpc") is not None:
            from importlib import import_module

            package = "trace" if signal == "traces" else "metric"
            module = import_module(f"opentelemetry.exporter.otlp.proto.grpc.{package}_exporter")
            make = getattr(module, f"OTLP{'Span' if signal == 'traces' else 'Metric'}Exporter")
            return [self._watch(make(**self._limits), signal)]
        if protocol != _HTTP:
            more = "Install opentelemetry-exporter-otlp-proto-grpc, or point" if protocol == "grpc" else "Point"
            self._on_note(
                f"{names[1]} is {protocol}, which is not installed here: {signal} go by {_HTTP}. {more} it "
                "at the collector's port for HTTP, often 4318."
            )
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        make = OTLPSpanExporter if signal == "traces" else OTLPMetricExporter
        return [self._watch(make(**self._limits), signal)]

    def _watch(self, exporter: Any, signal: Signal) -> Any:
        """Note an outage of the collector when it begins and when it ends, not for each attempt."""
        export = exporter.export
        where = self._find_collector(signal)
        outage = OutageLog(
            self._on_note,
            f"{signal} could not be sent to {where} and are dropped until it answers; requests are not affected.",
            f"{signal} are sent to {where} again.",
        )

        def watch(*arguments: Any, **options: Any) -> Any:
            result = export(*arguments, **options)
            if getattr(result, "name", "") == "SUCCESS":
                outage.end()
            else:
                outage.begin()
            return result

        exporter.export = watch
        return exporter

    def _find_collector(self, signal: Signal) -> str:
        """The host of the collector. Its address may hold a password."""
        names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        url = next((value for name in names if (value := self._environ.get(name, "").strip())), "http://localhost:4318")
        try:
            parts = urlsplit(url)
            return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        except ValueError:
            return "an invalid address"
