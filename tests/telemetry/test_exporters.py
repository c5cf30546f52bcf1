"""Telemetry of the command line and the gateway's processes, to a collector in a process of its own."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.flows.steps import Tracing
from asides.telemetry.exporters import Telemetry, is_wanted, start_telemetry
from asides_stage.stage import Say, Stage
from tests.gateway.served import make_environment
from tests.telemetry.collector import Collector, collecting

MODEL = "openai-compatible:m"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Generator[Collector]:
    with collecting(tmp_path_factory.mktemp("collector")) as collector:
        yield collector


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """Leave the loggers of OpenTelemetry as they were."""
    theirs = logging.getLogger("opentelemetry")
    before = theirs.propagate, theirs.handlers[:]
    yield
    theirs.propagate, theirs.handlers[:] = before
    asides.uninstrument()


def _ask(model: str, url: str) -> None:
    with asides.Client(base_url=url, api_key="sk-canary-key") as client:
        client.ask(model, "canary-prompt")


# --- whether ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://h:4318/v1/metrics"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_variables_of_opentelemetry_decide(variables: dict[str, str], wanted: bool) -> None:
    assert is_wanted(variables) is wanted
    if not wanted:
        assert start_telemetry("x", environ=variables) is None
        assert Tracing.tracer is None


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "jaeger"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "http/json"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "variable is wrong"),
    ],
)
def test_what_cannot_be_done_is_told_and_costs_nothing(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    told: list[str] = []
    telemetry = start_telemetry("x", on_note=told.append)
    if telemetry is not None:
        telemetry.close()
    assert words in told[0]


# --- what arrives -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-56")
def test_a_real_collector_gets_spans_and_metrics(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    telemetry = start_telemetry("asides-test")
    assert telemetry is not None
    with Stage([Say(text="canary-answer", thinking="canary-thinking")]) as stage:
        _ask("openai-compatible:exported", stage.url)
    telemetry.close()
    assert Tracing.tracer is None
    (span,) = [each for each in collector.list_spans() if each["name"] == "chat exported"]
    assert span["kind"] == "SPAN_KIND_CLIENT"
    assert span["resource"]["service.name"] == "asides-test"
    assert span["resource"]["service.version"] == asides.__version__
    assert span["attributes"]["gen_ai.request.model"] == "exported"
    assert span["attributes"]["gen_ai.usage.reasoning.output_tokens"] > 0
    assert int(span["endTimeUnixNano"]) > int(span["startTimeUnixNano"])
    names = {metric["name"] for metric in collector.list_metrics()}
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= names
    assert "canary" not in collector.text


def test_the_service_has_the_users_name(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/v1/traces")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,deployment.environment.name=test")
    telemetry = start_telemetry("asides-test")
    assert telemetry is not None
    with Stage() as stage:
        _ask("openai-compatible:named", stage.url)
    telemetry.close()
    (span,) = [each for each in collector.list_spans() if each["name"] == "chat named"]
    assert span["resource"]["service.name"] == "mine"
    assert span["resource"]["deployment.environment.name"] == "test"


def _run_command(
    folder: Path, stage: Stage, *arguments: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    more = {"OPENAI_COMPATIBLE_API_KEY": "sk-canary-key", "ASIDES_TIMEOUTS_CONNECT": "5", **variables}
    own = {"PATH": os.environ["PATH"], **make_environment(folder, more)}
    (folder / "asides.toml").write_text(f'[providers.openai-compatible]\nbase_url = "{stage.url}"\n')
    own["ASIDES_CONFIG"] = str(folder / "asides.toml")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "asides", *arguments],
        capture_output=True,
        text=True,
        env=own,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done, time.monotonic() - began


def test_the_command_line_sends_its_spans(collector: Collector, tmp_path: Path) -> None:
    with Stage([Say(text="canary-answer"), Say(text="wanted-answer")]) as stage:
        done, _ = _run_command(
            tmp_path,
            stage,
            "ask",
            "-m",
            "openai-compatible:cli",
            "canary-prompt",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
        assert done.stdout.strip() == "canary-answer", done.stderr
        (span,) = [each for each in collector.list_spans() if each["name"] == "chat cli"]
        assert span["resource"]["service.name"] == "asides"
        assert "canary" not in collector.text
        done, _ = _run_command(
            tmp_path,
            stage,
            *("ask", "-m", "openai-compatible:content", "wanted-prompt"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        )
    (span,) = [each for each in collector.list_spans() if each["name"] == "chat content"]
    assert "wanted-prompt" in span["attributes"]["gen_ai.input.messages"]
    assert "canary" not in collector.text


@pytest.mark.parametrize("kind", ["refuses", "is silent"])
def test_a_collector_that_does_not_answer_breaks_nothing(tmp_path: Path, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if kind == "refuses":
            server.close()
        with Stage([Say(text="the answer")]) as stage:
            done, seconds = _run_command(
                tmp_path,
                stage,
                *("ask", "-m", MODEL, "?"),
                OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            )
    assert (done.returncode, done.stdout.strip()) == (0, "the answer")
    assert "opentelemetry" not in done.stderr.lower()
    assert "Traceback" not in done.stderr
    plain, without = _run_command(tmp_path, stage, "config")
    assert plain.returncode == 0
    assert seconds - without < 8


def test_an_outage_is_told_once_and_its_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://user:canary@127.0.0.1:{port}/v1/traces")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    told: list[str] = []
    telemetry = start_telemetry("x", on_note=told.append)
    assert telemetry is not None
    with Stage() as stage:
        for _ in range(2):
            _ask(MODEL, stage.url)
            telemetry.tracer_provider.force_flush()
    telemetry.close(1.0)
    assert len(told) == 1
    assert f"127.0.0.1:{port}" in told[0]
    assert "canary" not in told[0]


def test_closing_waits_no_longer_than_it_may() -> None:
    class Provider:
        def shutdown(self) -> None:
            time.sleep(30)

    began = time.monotonic()
    provider: Any = Provider()
    Telemetry((provider, provider), owns=True).close(0.2)
    assert time.monotonic() - began < 15


def test_a_console_exporter_leaves_the_answer_alone(tmp_path: Path) -> None:
    with Stage([Say(text="the answer")]) as stage:
        done, _ = _run_command(tmp_path, stage, "ask", "-m", MODEL, "?", OTEL_TRACES_EXPORTER="console")
    assert done.stdout.strip() == "the answer"
    assert '"name": "chat m"' in done.stderr
