"""Prometheus metrics: `Metrics` counts requests, and /metrics shows the counts.

No client can add a series: labels are names of dialects, of providers, and of ours; anything else is "other". With
several processes, each answers for all of them: they share a folder, which PROMETHEUS_MULTIPROC_DIR names.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from asides_gateway import web

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        disable_created_metrics,
        generate_latest,
        multiprocess,
    )
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "a gateway needs prometheus-client, which is not installed. Run pip install 'asides[gateway]'.",
        name=missing.name,
    ) from None

from asides import __version__
from asides.dialects import DIALECTS
from asides.providers.find import list_providers
from asides.relay.relay_request import RelayRequest
from asides.relay.state.restore_state import STORE_FAILED
from asides.values.notices import Notice
from asides_gateway.request_record import RequestRecord
from asides_gateway.request_summaries import RequestSummaries
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatcher

_Metric = TypeVar("_Metric", Counter, Histogram)

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_FOLDER_PREFIX = "asides-metrics-"
METRICS_PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
_HEAL_CODES = frozenset({"request_repaired", "thoughts_rejected", "thinking_paused"})
_CODE = re.compile(r"[a-z][a-z0-9_]{1,48}")
_MOST_CODES = 300
_LIMITS = {"rate_limit_exceeded": "rate", "insufficient_quota": "budget", "budget_unavailable": "outage"}
"""The refusals by limits of a key. `outage`: its budget could not be reserved."""
_TOKENS = ("input", "output", "thinking", "cached")
# Replies take from milliseconds, out of a cache, to minutes of thinking.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics(RequestWatcher):
    """Counts what happens to requests."""

    def __init__(self, service: Service) -> None:
        # The start time of a series is not useful, and doubles the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._service = service
        self._rows: object = None
        self._providers: frozenset[str] = frozenset()
        self._codes: set[str] = set()
        self._known: dict[tuple[Any, ...], Any] = {}
        """Figures with labels, by what they belong to and their labels."""
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "asides_requests",
            "Requests that have ended.",
            ["dialect", "provider", "mode", "status"],
            registry=registry,
        )
        self._tokens = Counter("asides_tokens", "Tokens of replies.", ["provider", "kind"], registry=registry)
        self._times = {
            name: Histogram(
                f"asides_{name}_seconds",
                f"Seconds from the arrival of a request to {words}.",
                ["provider"],
                buckets=_SECONDS,
                registry=registry,
            )
            for name, words in (
                ("first_event", "the first event of its reply"),
                ("first_thought", "the first thinking"),
                ("first_answer", "the first word of the answer, a refusal, or the first call"),
                ("request", "the end of its response"),
            )
        }
        self._restored = Counter(
            "asides_state_restored", "Turns whose reasoning state was put back.", registry=registry
        )
        self._missed = Counter("asides_state_missed", "Turns whose reasoning state was not found.", registry=registry)
        self._attempts = Counter("asides_attempts", "Requests to providers.", ["provider"], registry=registry)
        self._retries = Counter(
            "asides_retries", "Requests to providers after the first.", ["provider"], registry=registry
        )
        self._heals = Counter("asides_heals", "Requests that were repaired and sent again.", registry=registry)
        self._notices = Counter("asides_notices", "Notices by their codes.", ["code"], registry=registry)
        self._store_failures = Counter("asides_store_failures", "Failures of the store of state.", registry=registry)
        self._redis_failures = Counter(
            "asides_redis_failures", "Checks of limits that Redis did not answer.", registry=registry
        )
        self._limited = Counter(
            "asides_limited_requests", "Requests that the limits of their keys refused.", ["limit"], registry=registry
        )
        self._keys = Gauge(
            "asides_keys", "Valid keys of the database that are known.", registry=registry, multiprocess_mode="max"
        )
        self._summaries = Counter(
            "asides_request_summaries", "Rows of requests, by what became of them.", ["result"], registry=registry
        )
        self._reloads = Counter("asides_reloads", "Reloads of the settings.", ["result"], registry=registry)
        self._under_way = _make_gauge("asides_requests_under_way", "Requests that have not ended.", registry)
        self._streams = _make_gauge("asides_open_streams", "Replies that have begun and not ended.", registry)
        self._processes = _make_gauge("asides_processes", "Processes that answer.", registry)
        self._processes.set(1)
        build = Gauge(
            "asides_build_info",
            "The version of asides.",
            ["version"],
            registry=registry,
            multiprocess_mode="max",
        )
        build.labels(__version__).set(1)
        for result in ("done", "failed"):
            self._reloads.labels(result)
        for result in ("written", "dropped"):
            self._summaries.labels(result)
        for limit in _LIMITS.values():
            self._limited.labels(limit)
        if service.redis is not None:
            service.redis.on_failure = self._redis_failures.inc

    # --- what happens -------------------------------------------------------------------------------------------------

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:  # noqa: ARG002
        """A request is under way."""
        self._under_way.inc()

    def begin_reply(self, record: RequestRecord) -> None:  # noqa: ARG002
        """A reply has begun."""
        self._streams.inc()

    def end(self, record: RequestRecord) -> None:
        """A request has ended."""
        if record.has_begun:
            self._under_way.dec()
        if record.first_event is not None:
            self._streams.dec()
        provider = self._find_provider(record.model)
        for name in ("first_event", "first_thought", "first_answer"):
            if (seconds := getattr(record, name)) is not None:
                self._find(self._times[name], provider).observe(seconds)
        dialect = record.dialect if record.dialect in DIALECTS else OTHER
        status = record.status
        shown = "left" if record.ended == "left" else f"{status // 100}xx" if 100 <= status < 600 else OTHER
        self._find(self._requests, dialect, provider, record.mode or "none", shown).inc()
        self._find(self._times["request"], provider).observe(record.seconds)
        for kind in _TOKENS:
            if number := getattr(record.usage, kind):
                self._find(self._tokens, provider, kind).inc(number)
        if record.restored:
            self._restored.inc(record.restored)
        if record.missed:
            self._missed.inc(record.missed)
        if record.attempts:
            self._find(self._attempts, provider).inc(record.attempts)
            if record.attempts > 1:
                self._find(self._retries, provider).inc(record.attempts - 1)
        if record.notices:
            self._count_notices(record.notices)
        if record.error is not None and (limit := _LIMITS.get(record.error.code or "")):
            self._find(self._limited, limit).inc()

    def count_reload(self, succeeded: bool) -> None:
        """The settings were reloaded, or could not be."""
        self._reloads.labels("done" if succeeded else "failed").inc()

    def count_summaries(self, summaries: RequestSummaries) -> None:
        """Count the rows of requests."""
        summaries.on_written = self._summaries.labels("written").inc
        summaries.on_dropped = self._summaries.labels("dropped").inc

    def _count_notices(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            code = notice.code
            if code == STORE_FAILED:
                self._store_failures.inc()
            elif code in _HEAL_CODES:
                self._heals.inc()
            if code not in self._codes:
                # Our code chooses them all; this limit holds even if a part of it does not.
                if len(self._codes) >= _MOST_CODES or not _CODE.fullmatch(code):
                    code = OTHER
                self._codes.add(code)
            self._find(self._notices, code).inc()

    def _find(self, metric: _Metric, *labels: str) -> _Metric:
        """A figure by its labels. All labels have few values, so that those that were found are kept."""
        found: _Metric | None = self._known.get(key := (metric, labels))
        if found is None:
            found = self._known[key] = metric.labels(*labels)
        return found

    def _find_provider(self, model: str) -> str:
        """The provider of a target; "none" if none was asked."""
        if not model:
            return "none"
        rows = self._service.builder.rows
        if rows is not self._rows:
            self._rows, self._providers = rows, frozenset(row.name for row in list_providers(rows))
        name = model.partition(":")[0]
        return name if name in self._providers else OTHER

    # --- the figures --------------------------------------------------------------------------------------------------

    def write(self) -> bytes:
        """All figures, of all processes."""
        self._keys.set(len(self._service.keys))
        if os.environ.get(FOLDER_VARIABLE):
            everyone = CollectorRegistry()
            multiprocess.MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
            return generate_latest(everyone)
        return generate_latest(self._registry)


def _make_gauge(name: str, words: str, registry: CollectorRegistry) -> Gauge:
    # What a process that died had under way is under way no more.
    return Gauge(name, words, registry=registry, multiprocess_mode="livesum")


def add_metrics(app: web.Application, metrics: Metrics) -> None:
    """Answer /metrics, to GET and HEAD. Access is checked before."""

    async def answer(_: web.Request) -> web.Response:
        headers = {"content-type": CONTENT_TYPE, "cache-control": "no-store", "server": "asides"}
        return web.Response(body=metrics.write(), headers=headers)

    app.add_get(METRICS_PATH, answer)


def make_folder() -> str:
    """A folder for the figures of several processes."""
    return tempfile.mkdtemp(prefix=_FOLDER_PREFIX)


def remove_folder() -> None:
    """Remove the folder that this process shares with others, if it is one that `make_folder` made."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if Path(folder).name.startswith(_FOLDER_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def forget_process(pid: int, folder: str) -> None:
    """Forget what a process that has died had under way. What it has counted stays."""
    multiprocess.mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
