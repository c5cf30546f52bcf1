"""One line for each request: what it says, and what it never says."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Generator
from typing import Any

import pytest

from asides.relay.relay_request import RelayOutcome, RelayRequest
from asides.values.errors import RateLimited
from asides.values.notices import Notice
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.usage import Usage
from asides_gateway.access.key_store import make_key
from asides_gateway.access_log import AccessLog, describe_request, flush_log, start_log, write_line
from asides_gateway.request_record import RequestRecord
from asides_gateway.watcher import RequestWatch, RequestWatcher
from tests.gateway.request_records import end_request, make_record

CANARY = "canary-77c1"
_BODY = CANARY.encode()


def _end(
    *watchers: RequestWatcher, outcome: RelayOutcome | None = None, has_outcome: bool = True, **changed: Any
) -> RequestRecord:
    """A request that has ended, with content and keys where there may be some."""
    fields: dict[str, Any] = {"client": "claude-cli/2.1", "tenant": "deadbeef", "address": "127.0.0.1"}
    ended: dict[str, Any] = {"sent_bytes": 900, "seconds": 0.34567, "first_byte": 0.0123}
    for name in ("ended", "status", "first_byte"):
        if name in changed:
            ended[name] = changed.pop(name)
    usual = RelayOutcome(
        200,
        "translate",
        "other dialects",
        "google:gemini-3-pro",
        reply=Reply((Text(CANARY),), usage=Usage(12, 30, 20, 4)),
        notices=(Notice("effort_mapped", CANARY), Notice("effort_mapped"), Notice("system_moved")),
        attempts=2,
        restored=1,
        asked="claude-best",
    )
    request = RelayRequest("", "POST", "/v1/messages", "key=sk-ant-secret", {"x-api-key": "sk-ant-secret"}, _BODY)
    fields |= {"started": 1.0, "at": 2.0, **changed}
    record = make_record(**fields)
    RequestWatch((RequestWatcher(),), record).begin(request)
    return end_request(record, *watchers, outcome=(outcome or usual) if has_outcome else None, **ended)


def test_a_line_says_who_asked_what_and_what_came_of_it() -> None:
    line = write_line(describe_request(_end()))
    assert line == (
        "127.0.0.1 POST /v1/messages 200 345.7ms id=req_1 dialect=anthropic client=claude-cli/2.1 bytes=900 "
        "first_ms=12.3 model=claude-best target=google:gemini-3-pro mode=translate attempts=2 restored=1 "
        "notices=effort_mapped,system_moved input_tokens=12 output_tokens=30 thinking_tokens=20 cached_tokens=4"
    )


def test_a_line_names_the_key_by_its_id() -> None:
    made = make_key()
    line = write_line(describe_request(_end(key_id=made.id, status=429)))
    assert f" key_id={made.id} " in line
    assert made.key not in line


def test_a_line_says_how_a_request_failed_and_that_its_client_left() -> None:
    outcome = RelayOutcome(429, "forward", error=RateLimited(f"slow down {CANARY}"))
    failed = write_line(describe_request(_end(ended="failed", status=429, outcome=outcome)))
    assert "429" in failed
    assert failed.endswith(
        "ended=failed dialect=anthropic client=claude-cli/2.1 bytes=900 first_ms=12.3 mode=forward error=RateLimited"
    )
    left = write_line(describe_request(_end(ended="left", status=0, has_outcome=False, first_byte=None)))
    assert left.startswith("127.0.0.1 POST /v1/messages 0 345.7ms id=req_1 ended=left ")
    assert "mode=" not in left


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_private_is_in_a_line(form: str) -> None:
    fields = describe_request(_end())
    text = write_line(fields) if form == "text" else json.dumps(fields)
    assert CANARY not in text
    assert "sk-ant-secret" not in text
    assert "deadbeef" not in text


@pytest.mark.parametrize(
    "text",
    [
        "a\nGET / 200",
        "a\r\n",
        "\x1b[31mred",
        "a\u2028b",
        "a\u202eb",
        "\x00",
        "a" * 5000,
        "a=b c",
        'a"b',
        "\ud800",
        "é\x85",
    ],
)
def test_no_client_can_forge_a_line_or_hide_a_part_of_one(text: str) -> None:
    outcome = RelayOutcome(200, "own", asked=text, model=text)
    fields = describe_request(_end(path=text, client=text, method=text, outcome=outcome))
    line = write_line(fields)
    assert len(line) < 2000
    assert line.isprintable()
    for name in ("dialect", "bytes", "mode"):
        assert line.count(f" {name}=") == 1
    json.dumps(fields).encode()


def test_a_key_in_a_path_or_a_model_is_blacked_out() -> None:
    key = "sk-ant-api03-" + "abcDEF123456" * 4
    outcome = RelayOutcome(404, "own", asked=key)
    line = write_line(describe_request(_end(path=f"/v1/{key}", outcome=outcome)))
    assert key not in line


# --- where it goes ----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _put_back() -> Generator[None]:
    logger = logging.getLogger("asides")
    before = logger.level, logger.propagate
    yield
    flush_log()
    logger.setLevel(before[0])
    logger.propagate = before[1]


def test_the_log_is_text_or_json_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "json"):
        start_log(form)
        _end(AccessLog())
        logging.getLogger("asides.gateway").warning("a file %s\nchanged", "x")
        logging.getLogger("asides").debug("too much")
        flush_log()
    text, warning, *documents = capsys.readouterr().err.splitlines()
    assert text.endswith(write_line(describe_request(_end())))
    assert text[:2] == "20"
    assert text[23] == "Z"
    assert warning.endswith("Z warning: a file x\\x0achanged")
    first, second = map(json.loads, documents)
    assert first["target"] == "google:gemini-3-pro"
    assert first["input_tokens"] == 12
    assert first["log"] == "asides.access"
    assert second["message"] == "a file x\\x0achanged"
    assert second["level"] == "warning"


def test_without_a_log_there_are_only_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    start_log("off")
    start_log("json")  # It is started once.
    _end(AccessLog())
    logging.getLogger("asides.gateway").error("broken")
    flush_log()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("error: broken")


def test_a_reader_that_does_not_read_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides_gateway.access_log._MOST_LINES", 10)
    stuck = threading.Event()
    written: list[str] = []

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            stuck.wait(40)
            written.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stderr", Stuck())
    start_log("text")
    for _ in range(100):
        _end(AccessLog())
    assert written == [], "somebody waited for the reader"
    stuck.set()
    flush_log()
    assert len(written) <= 13
    assert "lines of the log were lost" in written[-1]


def test_other_handlers_get_the_fields_of_a_request(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "asides.access"):
        _end(AccessLog())
    (record,) = caplog.records
    assert record.access["restored"] == 1  # type: ignore[attr-defined]
    assert record.getMessage().startswith("127.0.0.1 POST")


def test_a_stream_that_is_closed_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    start_log("text")
    _end(AccessLog())
    flush_log()


def test_lines_of_many_requests_are_written_together_and_before_what_is_logged_later(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    write = sys.stderr.write

    def note(text: str) -> int:
        writes.append(text)
        return write(text)

    monkeypatch.setattr(sys.stderr, "write", note)
    start_log("text")

    async def end_requests() -> None:
        for number in range(20):
            _end(AccessLog(), name=f"req_{number}")
        logging.getLogger("asides.gateway").warning("afterwards")
        _end(AccessLog(), name="req_last")
        await asyncio.sleep(0.3)

    asyncio.run(end_requests())
    lines = capsys.readouterr().err.splitlines()
    shown = [line.partition("id=")[2].partition(" ")[0] or line.split()[-1] for line in lines]
    assert sorted(shown) == sorted([*(f"req_{number}" for number in range(20)), "afterwards", "req_last"])
    assert shown.index("req_19") < shown.index("afterwards")
    assert len(writes) < 15
    assert all(len(text) < 4096 for text in writes), "a pipe takes each in one piece"


def test_a_handler_of_others_gets_each_request_though_a_log_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keeping()
    start_log("text")
    logging.getLogger("asides.access").addHandler(handler)
    try:
        _end(AccessLog())
    finally:
        logging.getLogger("asides.access").removeHandler(handler)
    flush_log()
    assert "id=req_1" in capsys.readouterr().err
    assert records[0].access["id"] == "req_1"  # type: ignore[attr-defined]
