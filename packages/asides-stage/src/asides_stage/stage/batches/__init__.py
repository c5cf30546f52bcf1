"""Vendor batches on the stage: many requests in one, answered later at half the price.

Each row is answered by the stage's script, as a live request is: `Say` is its reply, `Fail` its error, and a row whose
scene is `Hang` expires.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

RowKind: TypeAlias = Literal["answered", "failed", "expired", "cancelled"]
BatchForm: TypeAlias = Literal["files", "messages", "contents"]
"""The three forms: a batch over an uploaded file, a list of messages, a list or file of contents."""
_DAY = 24 * 60 * 60.0


class BatchScript(msgspec.Struct, frozen=True, kw_only=True):
    """How the stage plays vendor batches: their times, their limits, and what goes wrong."""

    seconds: float = 0.2
    """How long a batch is processed. Its rows are answered evenly over this time."""
    cancel_seconds: float = 0.05
    """How long a batch that is cancelled takes to end."""
    expires_seconds: float = _DAY
    """When a batch that is not ready ends. Its other rows expire."""
    list_seconds: float = 0.0
    """How long a new batch is missing in the list."""
    lost_creations: int = 0
    """So many batches are created and their answers are lost: the connection closes."""
    limited_creations: int = 0
    """So many creations, after those, are refused with status 429."""
    crowded_batches: int = 0
    """So many batches over files fail their checks because too much is waiting."""
    most_requests: int | None = None
    """None: the limit of the vendor."""
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        if min(self.seconds, self.cancel_seconds, self.expires_seconds, self.list_seconds) < 0:
            raise ValueError("the times of a batch are seconds and cannot be negative.")


class BatchRow(msgspec.Struct, frozen=True):
    """One request of a batch."""

    id: str
    path: str
    """The path that a live request would have."""
    body: bytes


class RowResult(msgspec.Struct, frozen=True):
    """What became of a row."""

    id: str
    kind: RowKind
    status: int = 0
    body: bytes = b""
    """The reply, or the error, in the dialect of the row."""


AnswerRow: TypeAlias = Callable[[BatchRow], RowResult]
Phase: TypeAlias = Literal["waiting", "running", "finishing", "cancelling", "ended"]


class PlayedBatch:
    """One batch of the stage: its rows, how far it is, and what became of each row."""

    def __init__(
        self,
        form: BatchForm,
        batch_id: str,
        account: str,
        rows: Sequence[BatchRow],
        answer_row: AnswerRow,
        script: BatchScript,
        facts: dict[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.id = batch_id
        self.account = account
        self.rows = tuple(rows)
        self.results: list[RowResult] = []
        """In the order of the rows until the batch has ended, and then in any order."""
        self.facts = facts or {}
        """What else the vendor remembers of it: its name, its files, its model."""
        self.problems: list[dict[str, Any]] = []
        """Why the whole batch failed."""
        self.created_at = time.time()
        self.cancelled_at: float | None = None
        self.ended_at: float | None = None
        self._answer_row = answer_row
        self._script = script
        self._began = time.monotonic()
        self._cancelled: float | None = None

    @property
    def custom_ids(self) -> tuple[str, ...]:
        """The ids of the rows, in their order."""
        return tuple(row.id for row in self.rows)

    @property
    def answered(self) -> tuple[str, ...]:
        """The ids of the rows that were answered, and so are paid for."""
        return tuple(result.id for result in list(self.results) if result.kind == "answered")

    def count(self, kind: RowKind) -> int:
        """Count the rows of a kind."""
        return sum(result.kind == kind for result in self.results)

    def has_hung(self) -> bool:
        """Return whether a row or the whole batch has expired."""
        return any(result.kind == "expired" for result in self.results)

    def cancel(self) -> None:
        """Answer no more rows."""
        self.advance()
        if self.ended_at is None and self._cancelled is None:
            self._cancelled, self.cancelled_at = time.monotonic(), time.time()

    def advance(self) -> Phase:
        """Answer the rows that are due; return how far the batch is."""
        if self.ended_at is not None:
            return "ended"
        now, script = time.monotonic(), self._script
        expiry = self._began + script.expires_seconds
        until = min(now, expiry, now if self._cancelled is None else self._cancelled)
        share = 1.0 if self.problems or not script.seconds else min((until - self._began) / script.seconds, 1.0)
        if not self.problems:
            for row in self.rows[len(self.results) : int(len(self.rows) * share)]:
                self.results.append(self._answer_row(row))
        if self._cancelled is not None:
            if now < self._cancelled + script.cancel_seconds and now < expiry:
                return "cancelling"
        elif share < 1.0 and now < expiry:
            return "waiting" if share < 0.1 else "running" if share < 0.9 else "finishing"
        self._end("expired" if self._cancelled is None else "cancelled")
        return "ended"

    def _end(self, kind: RowKind) -> None:
        if not self.problems:
            self.results += [RowResult(row.id, kind) for row in self.rows[len(self.results) :]]
            # The vendors promise no order.
            random.Random(len(self.rows)).shuffle(self.results)
        self.ended_at = time.time()

    def __repr__(self) -> str:
        return f"PlayedBatch({self.id}, {len(self.rows)} rows, {len(self.results)} done)"


class StoredFile(msgspec.Struct, frozen=True):
    """A file that a client has sent, or that holds results."""

    id: str
    account: str
    name: str
    purpose: str
    content: bytes
    created_at: float


class BatchStore:
    """The batches and files of one stage. Its thread changes them; other threads may read `batches`."""

    def __init__(self, script: BatchScript | None = None) -> None:
        self.script = script or BatchScript()
        self.batches: list[PlayedBatch] = []
        self.files: dict[str, StoredFile] = {}
        self.uploads: dict[str, dict[str, str]] = {}
        """Uploads that have begun: what was said about their files."""
        self._deleted: set[str] = set()
        self._created = 0
        self._limited = 0

    def add(
        self,
        form: BatchForm,
        batch_id: str,
        account: str,
        rows: Sequence[BatchRow],
        answer_row: AnswerRow,
        facts: dict[str, Any] | None = None,
    ) -> PlayedBatch:
        """Create a batch."""
        batch = PlayedBatch(form, batch_id, account, rows, answer_row, self.script, facts)
        self.batches.append(batch)
        return batch

    def loses_creation(self) -> bool:
        """Return whether the answer to this creation is lost."""
        self._created += 1
        return self._created <= self.script.lost_creations

    def limits_creation(self) -> bool:
        """Return whether this creation comes too soon."""
        if self._created < self.script.lost_creations or self._limited >= self.script.limited_creations:
            return False
        self._limited += 1
        return True

    def is_crowded(self) -> bool:
        """Return whether too much is waiting for the batch that was created last."""
        return len(self.batches) <= self.script.crowded_batches

    def find(self, form: BatchForm, batch_id: str, account: str) -> PlayedBatch | None:
        """Return the batch of an account; None if it has none of this id."""
        return next((batch for batch in self._select(form, account) if batch.id == batch_id), None)

    def delete(self, batch: PlayedBatch) -> None:
        """Forget a batch. It stays in `batches`, which tests read."""
        self._deleted.add(batch.id)

    def list(self, form: BatchForm, account: str) -> list[PlayedBatch]:
        """Return the batches of an account, the newest first."""
        shown = time.time() - self.script.list_seconds
        return [batch for batch in self._select(form, account) if batch.created_at <= shown][::-1]

    def _select(self, form: BatchForm, account: str) -> Iterator[PlayedBatch]:
        for batch in self.batches:
            if (batch.form, batch.account) == (form, account) and batch.id not in self._deleted:
                yield batch

    def store_file(self, prefix: str, account: str, name: str, purpose: str, content: bytes) -> StoredFile:
        """Store a file."""
        file = StoredFile(make_id(prefix), account, name, purpose, content, time.time())
        self.files[file.id] = file
        return file

    def find_file(self, file_id: str, account: str) -> StoredFile | None:
        """Return a file of an account."""
        file = self.files.get(file_id)
        return file if file is not None and file.account == account else None


def make_id(prefix: str) -> str:
    """Make an id that nothing else has."""
    return f"{prefix}{secrets.token_hex(12)}"
