"""`BatchProgress`: shows how far a run of a batch is. At a terminal it is one line, drawn again and again; elsewhere,
such as in a log, it is a line at the beginning, at each change of a batch at a vendor, and every few minutes.
"""

from __future__ import annotations

import threading
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress

from asides.cli.terminal import LiveLine, Terminal
from asides_batch.batch_status import BatchStatus
from asides_batch.commands.batch_texts import describe_progress, describe_vendor_batch, write_command

FIRST_SECONDS = 30.0
"""A run without a vendor that takes less prints its end only."""
EVERY_SECONDS = 180.0
_LOOK_SECONDS = 1.0


class BatchProgress:
    """The progress of one run."""

    def __init__(self, arguments: Namespace, terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self.status: BatchStatus | None = None
        """As it was reported last."""
        self._arguments = arguments
        self._terminal = terminal
        self._clock = clock
        self._began = self._printed = clock()
        self._has_begun = False
        self._known: dict[str, str] = {}
        """The state of each batch at a vendor that was printed last."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.is_plain = False
        """Whether lines are printed now."""
        self._live = LiveLine(terminal, self.write_line)

    def start(self) -> None:
        """Show it from now on."""
        self._stopped.clear()
        self.is_plain = not self._terminal.can_redraw and not self._terminal.quiet
        self._live.start()
        if self.is_plain:
            threading.Thread(target=self._run, name="asides-batch-progress", daemon=True).start()

    def stop(self) -> None:
        """Show nothing more. May be called twice."""
        self._stopped.set()
        with self._lock:
            self.is_plain = False
        self._live.stop()

    def take(self, status: BatchStatus) -> None:
        """Take what a run reports."""
        self.status = status
        self.print_lines()

    def write_line(self) -> str:
        """The line at a terminal: counts, rate, tokens, cost and time left, and nothing of the content."""
        if self.status is None:
            return f"reading the rows, {int(self._clock() - self._began)} s"
        return describe_progress(self.status)

    def print_lines(self) -> None:
        """Print the lines that are due where no line can be drawn again."""
        with self._lock:
            lines = self._list_due() if self.is_plain else []
            for line in lines:
                self._terminal.print_note(line)

    def _list_due(self) -> list[str]:
        now, status = self._clock(), self.status
        lines: list[str] = []
        if status is not None:
            is_due = status.via == "vendor" or now - self._began >= FIRST_SECONDS
            if not self._has_begun and is_due:
                self._has_begun = True
                lines.append(self._write_beginning(status))
            lines += self._list_changes(status)
        if not lines and now - self._printed >= (EVERY_SECONDS if self._has_begun else FIRST_SECONDS):
            lines.append(self.write_line())
        if lines:
            self._printed = now
        return lines

    def _write_beginning(self, status: BatchStatus) -> str:
        return (
            f"{status.rows} rows, {status.requests} requests, {status.model or 'each row its own model'} via "
            f"{status.via}. To look: `{write_command(self._arguments, 'status')}`. To continue after this process has "
            f"ended: `{write_command(self._arguments, 'resume')}`."
        )

    def _list_changes(self, status: BatchStatus) -> list[str]:
        lines: list[str] = []
        found = {batch.id: batch for batch in status.vendor_batches if batch.id is not None}
        for name, batch in found.items():
            if self._known.get(name) != batch.state:
                self._known[name] = batch.state
                lines.append(f"{batch.provider or 'at the vendor'}: {describe_vendor_batch(batch)}")
        for name in [name for name in self._known if name not in found]:
            del self._known[name]
            lines.append(f"{name} has ended; {describe_progress(status)}")
        return lines

    def _run(self) -> None:
        # The stream may be closed; the thread that runs the batch reports that.
        with suppress(OSError, ValueError):
            while not self._stopped.wait(_LOOK_SECONDS):
                self.print_lines()
