"""The progress of a batch where standard error is no terminal: a beginning, changes, and a line every few minutes."""

from __future__ import annotations

import io
from argparse import Namespace

import msgspec
import pytest

from asides.cli.terminal import Terminal
from asides_batch.batch_status import BatchStatus, VendorBatchStatus, build_status
from asides_batch.commands.batch_progress import EVERY_SECONDS, FIRST_SECONDS, BatchProgress
from asides_batch.ledger_values import create_record


class Log:
    """A log of a run, with a clock that is set by hand."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.now = 1000.0
        self._err = io.StringIO()
        self.terminal = Terminal(io.StringIO(), self._err, {})
        self.terminal.quiet = quiet
        arguments = Namespace(path="in.jsonl", output="out.jsonl", ledger="postgresql://me:hunter2@host/x", name=None)
        self.progress = BatchProgress(arguments, self.terminal, clock=lambda: self.now)
        self.progress.is_plain = not quiet

    def after(self, seconds: float, status: BatchStatus | None = None) -> list[str]:
        """The lines of a run that reports this after so many seconds."""
        self.now += seconds
        self._err.seek(0)
        self._err.truncate()
        if status is None:
            self.progress.print_lines()
        else:
            self.progress.take(status)
        return self._err.getvalue().splitlines()


@pytest.fixture
def log() -> Log:
    return Log()


def make_status(via: str, done: int = 0, *batches: VendorBatchStatus) -> BatchStatus:
    record = create_record("b", state="open", via=via, model="m", row_count=9, requests=8, done=done)
    return msgspec.structs.replace(build_status(record, 0.0), vendor_batches=batches)


def test_a_vendor_is_told_at_once_and_each_state_once(log: Log) -> None:
    (first,) = log.after(0, make_status("vendor"))
    assert first.startswith("9 rows, 8 requests, m via vendor. To look: `asides batch status out.jsonl --ledger URL`.")
    assert "hunter2" not in first
    waits = VendorBatchStatus("x-1", "in_progress", 8, None, "openai")
    assert log.after(1, make_status("vendor", 0, VendorBatchStatus(None, "creating", 8, None, "openai"))) == []
    assert log.after(1, make_status("vendor", 0, waits)) == ["openai: x-1, in_progress, 8 requests"]
    assert log.after(60, make_status("vendor", 0, waits)) == []
    more = msgspec.structs.replace(waits, done=3)
    assert log.after(60, make_status("vendor", 0, more)) == []
    (line,) = log.after(EVERY_SECONDS - 120)
    assert line == "0/8 requests, 0 tokens in, 0 out; at the vendor: x-1, in_progress, 3 of 8 requests"
    assert log.after(1) == []
    (line,) = log.after(1, make_status("vendor", 8))
    assert line.startswith("x-1 has ended; 8/8 requests, ")


def test_a_short_run_says_nothing_and_a_long_one_something_now_and_then(log: Log) -> None:
    assert log.after(FIRST_SECONDS / 2, make_status("live")) == []
    (first,) = log.after(FIRST_SECONDS / 2)
    assert first.startswith("9 rows, 8 requests, m via live. ")
    assert log.after(EVERY_SECONDS - 1, make_status("live", 1)) == []
    (line,) = log.after(1)
    assert line.startswith("1/8 requests, ")


def test_reading_many_rows_is_told_too(log: Log) -> None:
    assert log.after(FIRST_SECONDS) == [f"reading the rows, {FIRST_SECONDS:.0f} s"]


def test_nothing_is_printed_before_the_start_after_the_end_or_when_quiet(log: Log) -> None:
    log.progress.stop()
    assert log.after(1, make_status("vendor")) == []
    log.progress.start()
    assert log.after(1, make_status("vendor")) != []
    log.progress.stop()
    assert log.after(1, make_status("live")) == []
    quiet = Log(quiet=True)
    quiet.progress.start()
    assert quiet.after(1000, make_status("vendor")) == []
