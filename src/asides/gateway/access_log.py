"""The log of a gateway: one line for each request, as text or as JSON, without content or keys.

`AccessLog` writes to the logger "asides.access"; `start_log` sends it and our other loggers to stderr. Nothing that a
client chose can forge a line, or hide a part of one. Not here: figures (metrics).
"""

from __future__ import annotations

import logging
import queue
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any

import msgspec

from asides.gateway.watcher import RequestEnd, RequestInfo, RequestWatcher
from asides.values.errors import redact_keys
from asides.values.gateway_table import LogFormat
from asides.values.notices import escape_controls

_access = logging.getLogger("asides.access")
_ours = logging.getLogger("asides")
_LONGEST = 200
_MOST_NOTICES = 10
# A reader that is slow, such as a full disk, must not hold up replies: beyond this many lines, lines are lost.
_MOST_LINES = 10_000
_PLAIN = re.compile(r"[^\s\"\\=]+")


class AccessLog(RequestWatcher):
    """Logs every request when it has ended."""

    def end(self, info: RequestInfo, end: RequestEnd) -> None:
        """Log one request. Its fields are in the record's `access`, for handlers of others."""
        if _access.isEnabledFor(logging.INFO):
            fields = describe_request(info, end)
            _access.info("%s", _Line(fields), extra={"access": fields})


class _Line:
    """The line of a request, written when a handler wants it."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return write_line(self._fields)


def describe_request(info: RequestInfo, end: RequestEnd) -> dict[str, Any]:
    """What the log tells of a request, by name. No text in it is longer than a line, or moves the cursor."""
    fields: dict[str, Any] = {
        "id": info.id,
        "from": info.address,
        "method": info.method,
        "path": info.path,
        "status": end.status,
        "ended": end.how,
        "dialect": info.dialect,
        "client": info.client,
        "bytes": end.sent_bytes,
        "first_ms": None if end.first_byte is None else round(end.first_byte * 1000, 1),
        "ms": round(end.seconds * 1000, 1),
    }
    if (outcome := end.outcome) is not None:
        reply = outcome.reply
        usage = None if reply is None else reply.usage
        fields |= {
            "model": outcome.asked,
            "target": outcome.model,
            "mode": outcome.mode,
            "attempts": outcome.attempts,
            "restored": outcome.restored,
            "missed": outcome.missed,
            "notices": list(dict.fromkeys(notice.code for notice in outcome.notices))[:_MOST_NOTICES],
            "error": None if outcome.error is None else type(outcome.error).__name__,
        }
        if usage is not None:
            names = ("input", "output", "thinking", "cached")
            fields |= {f"{name}_tokens": getattr(usage, name) for name in names}
    return {name: _clean(value) for name, value in fields.items() if value not in (None, "", [], ())}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if not isinstance(value, str):
        return value
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    # A key that someone wrote into a path, or sent as a model.
    return escape_controls(redact_keys(shown))


def write_line(fields: Mapping[str, Any]) -> str:
    """A request as one line of text: the usual first, then NAME=VALUE."""
    path = _quote(str(fields.get("path", "")))
    words = [fields.get("from", "-"), fields.get("method", "-"), path, fields.get("status", 0), f"{fields['ms']}ms"]
    named = {name: value for name, value in fields.items() if name not in ("from", "method", "path", "status", "ms")}
    if named.get("ended") == "done":
        del named["ended"]
    words += [f"{name}={_quote(_join(value))}" for name, value in named.items() if value != 0]
    return " ".join(map(str, words))


def _join(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _quote(text: str) -> str:
    """The text as one word: what has blanks or quotes stands in quotes."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- where it goes ----------------------------------------------------------------------------------------------------


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        # Other loggers may quote what a server sent.
        return f"{_format_time(record)} {level}{escape_controls(record.getMessage())}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": _format_time(record), "level": record.levelname.lower(), "log": record.name}
        access = getattr(record, "access", None)
        fields |= {"message": escape_controls(record.getMessage())} if access is None else access
        return msgspec.json.encode(fields).decode()


def _format_time(record: logging.LogRecord) -> str:
    return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z"


class _StderrHandler(logging.Handler):
    """Writes each record in one piece, so that the lines of several processes do not mix."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # Nobody reads it any more.
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()


class _Queue(QueueHandler):
    """Hands records to the thread that writes them. One too many is lost, and counted."""

    lost = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        # Written in this process, so nothing has to be made ready for another one; but words must not change any more.
        if not hasattr(record, "access"):
            record.msg, record.args = record.getMessage(), None
        record.exc_info = record.exc_text = None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.lost += 1


_listeners: list[tuple[QueueListener, _Queue, queue.Queue[Any]]] = []


def start_log(form: LogFormat) -> None:
    """Send our loggers to stderr, in this form; "off": warnings only, as text. A second call does nothing."""
    if _listeners:
        return
    lines: queue.Queue[Any] = queue.Queue(_MOST_LINES)
    writer = _StderrHandler()
    writer.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    handler = _Queue(lines)
    listener = QueueListener(lines, writer)
    listener.start()
    _ours.addHandler(handler)
    _ours.setLevel(logging.WARNING if form == "off" else logging.INFO)
    _ours.propagate = False
    _listeners.append((listener, handler, lines))


def flush_log() -> None:
    """Write what has not been written yet, and end the log. A reader that takes too long gets no more."""
    while _listeners:
        listener, handler, lines = _listeners.pop()
        _ours.removeHandler(handler)
        if handler.lost:
            with suppress(queue.Full):
                lost = logging.makeLogRecord({"name": "asides.gateway", "levelno": logging.WARNING})
                lost.levelname, lost.msg = "WARNING", f"{handler.lost} lines of the log were lost"
                lines.put(lost, timeout=1.0)
        with suppress(queue.Full):
            lines.put(None, timeout=1.0)
        if (thread := listener._thread) is not None:
            thread.join(1.0)
