"""What could not be settled, on the disk: `UnsettledFiles(folder)`. A process that is killed while its database is down
forgets nothing that way.

Each process has a file of its own, which is there only while something waits. A process that starts takes over the
files of others. Settling twice changes nothing, so that it does not matter whether their owners still live.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from asides.values.outage_log import OutageLog
from asides_gateway.access.budget_store import Reservation

_log = logging.getLogger("asides.gateway")

PATTERN = "unsettled-*.jsonl"
_MOST_BYTES = 64 * 1024 * 1024
"""More than a process ever writes."""
_MOST_ADDED = 10**18
"""What both engines can add to a sum: more than a request ever costs (MOST_SPENT)."""


class UnsettledUse(msgspec.Struct, frozen=True):
    """A reservation, and what has to replace it, in billionths of a US dollar. It names a key by its id."""

    reservation: Reservation
    spent: Annotated[int, msgspec.Meta(ge=0, le=_MOST_ADDED)]


_DECODER = msgspec.json.Decoder(UnsettledUse)


class UnsettledFiles:
    """The files in a folder. It belongs to one event loop."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: None: nothing is kept."""
        self._folder = folder
        self._own = None if folder is None else folder / PATTERN.replace("*", secrets.token_hex(6))
        self._is_used = False
        """Whether the own file may be there."""
        self._taken: dict[Path, int] = {}
        """The files that were taken over, and how large they were."""
        self._outage = OutageLog(
            _log.warning,
            "what could not be settled is not kept on the disk ({reason}): it is lost if this process is killed before "
            "its database answers",
        )

    def __repr__(self) -> str:
        return f"UnsettledFiles({len(self._taken)} taken over)"

    def add(self, uses: Iterable[UnsettledUse]) -> None:
        """Keep uses. It waits for the disk: that is done only while the database is down, for requests under way."""
        if self._own is None:
            return
        # A full disk may have cut the last line off: what is added begins a line of its own.
        lines = b"".join(b"\n" + msgspec.json.encode(use) + b"\n" for use in uses)
        self._is_used = True
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            handle = os.open(self._own, flags, 0o600)
            try:
                os.write(handle, lines)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as problem:
            self._outage.begin(problem)

    def take_over(self) -> list[UnsettledUse]:
        """What other processes have left. Their files stay until `clear`."""
        found: list[UnsettledUse] = []
        with suppress(OSError):  # Then writing there fails too, which is logged.
            for path in [] if self._folder is None else sorted(self._folder.glob(PATTERN)):
                if path != self._own:
                    found += self._read(path)
        return found

    def _read(self, path: Path) -> list[UnsettledUse]:
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES)
        except OSError as problem:
            _log.warning("%s cannot be read (%s): its sums are not settled", path.name, type(problem).__name__)
            return []
        self._taken[path] = len(content)
        uses = [use for line in content.splitlines() if (use := _read_line(line)) is not None]
        _log.info("%d reservations that another process could not settle are settled now", len(uses))
        return uses

    def clear(self) -> None:
        """Everything is settled: remove the files."""
        if self._is_used and self._own is not None:
            self._is_used = False
            with suppress(OSError):
                self._own.unlink()
        for path, size in self._taken.items():
            with suppress(OSError):
                # One that has grown is of a process that lives, and has more to settle.
                if path.stat().st_size == size:
                    path.unlink()
        self._taken = {}


def _read_line(line: bytes) -> UnsettledUse | None:
    """One use; None for a line that was cut off."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
