"""The log of a gateway: one line for each request, as text or as JSON, without content or keys.

`AccessLog` writes to the logger "asides.access"; `start_log` sends it and our other loggers to stderr. Nothing that a
client chose can forge a line, or hide a part of one.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from logging.handlers import QueueHandler, QueueListener
from typing import Any

import msgspec

from asides.settings import LogFormat
from asides.values.errors import redact_keys
from asides.values.notices import Notice, escape_controls
from asides_gateway.request_record import RequestRecord
from asides_gateway.watcher import RequestWatcher

_access = logging.getLogger("asides.access")
_ours = logging.getLogger("asides")
_LONGEST = 200
_MOST_NOTICES = 10
# A reader that is slow, such as a full disk, must not hold up replies: beyond this many lines, lines are lost.
_MOST_LINES = 10_000
_LONGEST_WORD, _MOST_WORDS = 32, 256
_FLUSH_SECONDS = 0.05
"""Lines are handed to the writing thread in batches of this duration: waking it costs more than a line."""
# What a pipe takes in one piece; a line is shorter than the rest.
_MOST_AT_ONCE = 2048
_PLAIN = re.compile(r"[^\s\"\\=]+")


class AccessLog(RequestWatcher):
    """Logs every request when it has ended."""

    def end(self, record: RequestRecord) -> None:
        """Log one request. Its fields are in the record's `access`, for handlers of others."""
        if not _access.isEnabledFor(logging.INFO):
            return
        if _listeners and (handler := _listeners[0][1]).is_alone():
            handler.add(_collect(record))
        else:
            fields = describe_request(record)
            _access.info("%s", _Line(fields), extra={"access": fields})


class _Line:
    """The line of a request, written when a handler wants it."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return write_line(self._fields)


def describe_request(record: RequestRecord) -> dict[str, Any]:
    """The log's fields of a request. Texts are at most one line long and contain no control characters."""
    return _clean_fields(_collect(record))


def _collect(record: RequestRecord) -> dict[str, Any]:
    """The log's fields of a request, not escaped."""
    usage = record.usage
    fields: dict[str, Any] = {
        "id": record.id,
        "from": record.address,
        "key_id": record.key_id,
        "method": record.method,
        "path": record.path,
        "status": record.status,
        "ended": record.ended,
        "dialect": record.dialect,
        "client": record.client,
        "bytes": record.sent_bytes,
        "first_ms": None if record.first_byte is None else round(record.first_byte * 1000, 1),
        "ms": round(record.seconds * 1000, 1),
    }
    if record.has_begun:
        fields |= {
            "model": record.asked,
            "target": record.model,
            "mode": record.mode,
            "attempts": record.attempts,
            "restored": record.restored,
            "missed": record.missed,
            "notices": _list_codes(record.notices) if record.notices else None,
            "error": None if record.error is None else record.error.name,
            "thought_ms": None if record.first_thought is None else round(record.first_thought * 1000, 1),
            "answer_ms": None if record.first_answer is None else round(record.first_answer * 1000, 1),
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "thinking_tokens": usage.thinking,
            "cached_tokens": usage.cached,
        }
    return fields


def _list_codes(notices: Iterable[Notice]) -> list[str]:
    return list(dict.fromkeys(notice.code for notice in notices))[:_MOST_NOTICES]


def _clean_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _clean(value) for name, value in fields.items() if value is not None and value != ""}


_clean_words: set[str] = set()
"""Short texts that need no cleaning: most requests repeat them. Ids are longer."""


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if not isinstance(value, str):
        return value
    if value in _clean_words:
        return value
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    # A key in a path, or sent as a model.
    shown = escape_controls(redact_keys(shown))
    if shown == value and len(value) <= _LONGEST_WORD:
        if len(_clean_words) >= _MOST_WORDS:
            _clean_words.clear()
        _clean_words.add(value)
    return shown


def write_line(fields: Mapping[str, Any]) -> str:
    """A request as one line of text: the usual first, then NAME=VALUE."""
    path = _quote(str(fields.get("path", "")))
    words = [fields.get("from", "-"), fields.get("method", "-"), path, fields.get("status", 0), f"{fields['ms']}ms"]
    named = {name: value for name, value in fields.items() if name not in ("from", "method", "path", "status", "ms")}
    if named.get("ended") == "done":
        del named["ended"]
    words += [f"{name}={_write_value(value)}" for name, value in named.items() if value != 0]
    return " ".join(map(str, words))


def _write_value(value: Any) -> str:
    if isinstance(value, list):
        return _quote(",".join(map(str, value)))
    return _quote(value) if isinstance(value, str) else str(value)


def _quote(text: str) -> str:
    """The text as one word: quoted if it has blanks or quotes."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- where it goes ----------------------------------------------------------------------------------------------------


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        # Other loggers may quote what a server sent.
        return f"{_format_time(record.created)} {level}{escape_controls(record.getMessage())}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": _format_time(record.created), "level": record.levelname.lower(), "log": record.name}
        access = getattr(record, "access", None)
        fields |= {"message": escape_controls(record.getMessage())} if access is None else access
        return msgspec.json.encode(fields).decode()


def _write_text(at: float, fields: dict[str, Any]) -> str:
    return f"{_format_time(at)} {write_line(fields)}"


def _write_json(at: float, fields: dict[str, Any]) -> str:
    first = {"time": _format_time(at), "level": "info", "log": _access.name}
    return msgspec.json.encode(first | fields).decode()


def _format_time(seconds: float) -> str:
    whole = int(seconds)
    return f"{_format_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=4)
def _format_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


class _StderrHandler(logging.Handler):
    """Writes each record in one piece, so that the lines of several processes do not mix; lines of requests first."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
        self._write = _write_json if form == "json" else _write_text
        self.requests: deque[tuple[float, dict[str, Any]]] = deque()
        """The requests that have ended, and when. One thread adds to it, another one takes from it."""

    def emit(self, record: logging.LogRecord) -> None:
        requests = self.requests
        with suppress(OSError, ValueError):  # The reader is gone.
            while requests:
                lines: list[str] = []
                size = 0
                while requests and size < _MOST_AT_ONCE:
                    at, fields = requests.popleft()
                    lines.append(f"{self._write(at, _clean_fields(fields))}\n")
                    size += len(lines[-1])
                sys.stderr.write("".join(lines))
            if record is not _WAKE:
                sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()


class _Queue(QueueHandler):
    """Hands records to the thread that writes them. One too many is lost, and counted."""

    def __init__(self, lines: queue.Queue[Any], writer: _StderrHandler) -> None:
        super().__init__(lines)
        self._requests = writer.requests
        self._is_due = False
        self.lost = 0

    def is_alone(self) -> bool:
        """Whether no other handler takes the lines of requests."""
        return not _access.handlers and not _access.filters and len(_ours.handlers) == 1 and not _ours.propagate

    def add(self, fields: dict[str, Any]) -> None:
        """Take a request that has ended."""
        if len(self._requests) >= _MOST_LINES:
            self.lost += 1
            return
        self._requests.append((time.time(), fields))
        if not self._is_due:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self.wake()
            else:
                self._is_due = True
                loop.call_later(_FLUSH_SECONDS, self.wake)

    def wake(self) -> None:
        """Let the thread write the requests."""
        self._is_due = False
        with suppress(queue.Full):  # Then it is awake.
            self.queue.put_nowait(_WAKE)

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


_WAKE = logging.makeLogRecord({"name": _access.name, "levelno": logging.INFO})
"""Placeholder record that wakes the listener: requests were added."""
_listeners: list[tuple[QueueListener, _Queue, queue.Queue[Any]]] = []


def start_log(form: LogFormat) -> None:
    """Send our loggers to stderr, in this form; "off": warnings only, as text. A second call does nothing."""
    if _listeners:
        return
    lines: queue.Queue[Any] = queue.Queue(_MOST_LINES)
    writer = _StderrHandler(form)
    handler = _Queue(lines, writer)
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
        handler.wake()
        if handler.lost:
            with suppress(queue.Full):
                lost = logging.makeLogRecord({"name": "asides.gateway", "levelno": logging.WARNING})
                lost.levelname, lost.msg = "WARNING", f"{handler.lost} lines of the log were lost"
                lines.put(lost, timeout=1.0)
        with suppress(queue.Full):
            lines.put(None, timeout=1.0)
        if (thread := listener._thread) is not None:
            thread.join(1.0)
