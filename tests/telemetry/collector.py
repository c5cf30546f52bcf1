"""A collector of OpenTelemetry as a process of its own: it takes OTLP over HTTP, decodes it, and writes lines of JSON.

    python collector.py FILE        prints its port; the file gets one line for each request

`collecting(folder)` runs one for a test. Not a test."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE = 20.0


def _serve(path: Path) -> None:
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
        ExportMetricsServiceResponse,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    kinds: dict[str, tuple[Any, Any]] = {
        "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
        "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            asked, answer = kinds[self.path]
            line = {"path": self.path, "message": MessageToDict(asked.FromString(body))}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            content = answer().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass  # Nobody reads it.

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


class Collector:
    """A collector that runs."""

    def __init__(self, port: int, path: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._path = path

    @property
    def text(self) -> str:
        """All that it got."""
        return self._path.read_text(encoding="utf-8") if self._path.exists() else ""

    def _list(self, path: str, kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        lines = [json.loads(line) for line in self.text.splitlines()]
        return [
            (_read_attributes(resource["resource"]), item)
            for line in lines
            if line["path"] == path
            for resource in line["message"][f"resource{kind.capitalize()}"]
            for scope in resource[f"scope{kind.capitalize()}"]
            for item in scope[kind]
        ]

    def list_spans(self) -> list[dict[str, Any]]:
        """The spans, with plain attributes, and those of their resource."""
        return [
            {**span, "attributes": _read_attributes(span), "resource": resource}
            for resource, span in self._list("/v1/traces", "spans")
        ]

    def list_metrics(self) -> list[dict[str, Any]]:
        """The metrics, with their resources."""
        return [{**metric, "resource": resource} for resource, metric in self._list("/v1/metrics", "metrics")]

    def wait_for(self, has_all: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Wait until the spans are there."""
        began = time.monotonic()
        while not has_all(spans := self.list_spans()):
            assert time.monotonic() - began < PATIENCE, f"the collector has only {[span['name'] for span in spans]}"
            time.sleep(0.02)
        return spans


def _read_attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: _read_value(each["value"]) for each in item.get("attributes", ())}


def _read_value(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_read_value(each) for each in inner.get("values", ())]
    return int(inner) if kind == "intValue" else inner


@contextmanager
def collecting(folder: Path) -> Generator[Collector]:
    """Run a collector during the block."""
    path = folder / "collected.jsonl"
    command = [sys.executable, __file__, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield Collector(int(process.stdout.readline()), path)
        finally:
            process.kill()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
