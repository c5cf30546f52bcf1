"""Turning telemetry on and off."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import asides
from asides.flows.steps import Tracing
from asides.telemetry.instrument import get_sources
from asides_stage.stage import Say, Stage
from tests.telemetry.recorded import Recorded, recording

MODEL = "openai-compatible:m"


def test_it_is_off_until_it_is_turned_on_and_after_it_was_turned_off() -> None:
    recorded = Recorded()
    with Stage() as stage, asides.Client(base_url=stage.url, api_key="k") as client:
        assert Tracing.tracer is None
        client.ask(MODEL, "?")
        asides.instrument(recorded.tracer_provider, recorded.meter_provider)
        client.ask(MODEL, "?")
        asides.uninstrument()
        assert get_sources() is None
        client.ask(MODEL, "?")
    assert recorded.names == ["chat m"]


def test_a_flow_under_way_keeps_its_span_when_it_is_turned_off() -> None:
    with recording() as recorded, Stage([Say(text="a b c")]) as stage, asides.Client() as client:
        stream = client.stream(MODEL, "?", base_url=stage.url, api_key="k")
        next(stream)
        asides.uninstrument()
        assert stream.reply.text == "a b c"
    assert recorded.names == ["chat m"]


def test_a_second_call_replaces_the_first() -> None:
    second = Recorded()
    with recording() as first, Stage() as stage:
        asides.instrument(second.tracer_provider, second.meter_provider)
        asides.ask(MODEL, "?", base_url=stage.url, api_key="k")
    assert (first.names, second.names) == ([], ["chat m"])


def test_without_providers_those_of_the_program_are_used(run_python: Any) -> None:
    done = run_python(
        "import asides\n"
        "from opentelemetry import trace\n"
        "from asides_stage.stage import Stage\n"
        "asides.instrument()\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))\n"
        "trace.set_tracer_provider(provider)\n"
        "with Stage() as stage: asides.ask('openai-compatible:m', '?', base_url=stage.url, api_key='k')\n"
    )
    assert done.returncode == 0, done.stderr
    assert '"name": "chat m"' in done.stdout


def test_without_the_packages_the_error_says_what_to_install(run_python: Any) -> None:
    done = run_python(
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('opentelemetry'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import asides\n"
        "from asides.telemetry.exporters import start_telemetry\n"
        "told = []\n"
        "assert start_telemetry('x', environ={'OTEL_TRACES_EXPORTER': 'otlp'}, on_note=told.append) is None\n"
        "assert 'asides[otel]' in told[0], told\n"
        "try: asides.instrument()\n"
        "except asides.ConfigError as error: print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'asides[otel]'" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_spans_of_its_own(run_python: Any) -> None:
    done: subprocess.CompletedProcess[str] = run_python(
        "import os, sys, asides\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter\n"
        "from asides_stage.stage import Stage\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(formatter=lambda s: s.name + '\\n')))\n"
        "asides.instrument(provider)\n"
        "with Stage() as stage:\n"
        "    asides.ask('openai-compatible:parent', '?', base_url=stage.url, api_key='k')\n"
        "    if (child := os.fork()) == 0:\n"
        "        asides.ask('openai-compatible:child', '?', base_url=stage.url, api_key='k')\n"
        "        provider.force_flush(); sys.stdout.flush(); os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "provider.force_flush()\n"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "chat child", "chat parent"]
    assert sys.platform != "win32"
