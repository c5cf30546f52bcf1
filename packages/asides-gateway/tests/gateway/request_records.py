"""Records of requests, filled as a gateway fills them. Not a test."""

from __future__ import annotations

import time
from typing import Any

from asides.relay.relay_request import RelayOutcome
from asides_gateway.request_record import End, RequestRecord
from asides_gateway.watcher import RequestWatch, RequestWatcher


def make_record(name: str = "req_1", **changed: Any) -> RequestRecord:
    """A request that has arrived, or whatever else its fields say."""
    fields: dict[str, Any] = {
        "id": name,
        "method": "POST",
        "path": "/v1/messages",
        "dialect": "anthropic",
        "client": "curl/8",
        "tenant": "",
        "started": time.monotonic(),
        "at": time.time(),
    }
    return RequestRecord(**{**fields, **changed})


def end_request(
    record: RequestRecord,
    *watchers: RequestWatcher,
    ended: End = "done",
    status: int = 200,
    seconds: float = 0.1,
    outcome: RelayOutcome | None = None,
    **more: Any,
) -> RequestRecord:
    """End a request after so many seconds, and tell the watchers."""
    watch = RequestWatch(watchers or (RequestWatcher(),), record, lambda: record.started + seconds)
    watch.end(ended, status=status, outcome=outcome, **more)
    return record


def run_request(record: RequestRecord, *watchers: RequestWatcher, **end: Any) -> RequestRecord:
    """Begin a request and end it."""
    RequestWatch(watchers, record).begin()
    return end_request(record, *watchers, **end)
