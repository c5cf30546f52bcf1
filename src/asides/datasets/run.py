"""Separates files of rows into one output, in order, with several processes if asked, and resumable at any time.

The rows go to a file beside the output, and a file of progress says how far they are certain. So a run that was
killed continues where it was.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from asides.datasets.block_job import BlockJob, BlockResult, check_first_block, separate_block
from asides.datasets.files import STDIN, Compression, FileFormat, find_form, load_zstd
from asides.datasets.parquet import check_compression
from asides.datasets.parquet_output import add_columns
from asides.datasets.rows import PARTIAL, Block, convert_lines, read_blocks
from asides.datasets.separation import Separation
from asides.datasets.tally import Tally
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Generator

PROGRESS = ".progress"
_CHECKPOINT_SECONDS = 1.0
_VERSION = 1


class Plan(msgspec.Struct, frozen=True):
    """What to read, what to write, and how."""

    inputs: tuple[str, ...]
    job: BlockJob
    output: str = STDIN
    undecided: str | None = None
    """The file that lists the rows that a person has to look at."""
    input_format: FileFormat | None = None
    output_format: FileFormat | None = None
    processes: int = 1

    @property
    def format(self) -> FileFormat:
        """The format of the output."""
        return self.output_format or find_form(self.output).format or "jsonl"

    @property
    def joins_parquet(self) -> bool:
        """Whether Parquet files get new columns: their own keep their types."""
        return self.format == "parquet" and all(
            (self.input_format or find_form(path).format) == "parquet" for path in self.inputs
        )

    def settle(self) -> Plan:
        """The plan with what follows from its formats."""
        return msgspec.structs.replace(self, job=msgspec.structs.replace(self.job, only_new=self.joins_parquet))

    @property
    def digest(self) -> str:
        """The same for the same job on the same files."""
        files = [(path, *_describe_file(path)) for path in self.inputs]
        described = (_VERSION, files, self.job, self.input_format, self.format)
        return hashlib.sha256(msgspec.json.encode(described, order="deterministic")).hexdigest()[:24]


def _describe_file(path: str) -> tuple[int, int]:
    if path == STDIN:
        return 0, 0
    try:
        found = Path(path).stat()
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror}.") from None
    return found.st_size, found.st_mtime_ns


class Progress(msgspec.Struct):
    """How far a run is; what the file of progress holds."""

    digest: str = ""
    file: int = 0
    """The place of the current input."""
    next_row: int = 1
    """The number of the first row of it that is not written."""
    written: int = 0
    """The certain bytes of the rows."""
    listed: int = 0
    """The certain bytes of the list of undecided rows."""
    tally: Tally = msgspec.field(default_factory=Tally)
    resumed_rows: int = 0
    """The rows that earlier runs had written."""
    share: float | None = None
    """How much of the current input was read."""
    has_rows: bool = False
    """Whether a row was written."""
    read_digest: str = ""
    """Of what was read of standard input."""


class SeparationRun:
    """One run of a plan."""

    def __init__(self, plan: Plan, on_progress: Callable[[Progress], object] | None = None) -> None:
        self.plan = plan
        self._on_progress = on_progress
        self._is_file = plan.output != STDIN
        self._beside = Path(plan.output)
        self.progress = self._load()

    def run(self) -> Tally:
        """Write all rows and return the counts. Raises ConfigError if a file cannot be read or written."""
        try:
            self._write_all()
        except ConfigError:
            if self._is_file and not self.progress.tally.rows:
                self._remove_all()
            raise
        if self._is_file:
            self._finish()
        return self.progress.tally

    def _write_all(self) -> None:
        plan, progress = self.plan, self.progress
        with ExitStack() as stack:
            rows = stack.enter_context(self._open_rows())
            listed = stack.enter_context(_open_output(plan.undecided, progress.listed, "")) if plan.undecided else None
            writer = _Writer(plan, rows, listed, progress, self._save if self._is_file else None)
            try:
                for place, block, result in self._separate():
                    writer.write(place, block, result)
                    if self._on_progress is not None:
                        self._on_progress(progress)
            finally:
                # Also after Ctrl-C: what was written is certain.
                writer.checkpoint()
            writer.end()

    # --- the parts of a run -------------------------------------------------------------------------------------------

    @property
    def _spools(self) -> bool:
        """Whether the rows are collected as lines first: CSV and Parquet need to know all columns."""
        return self.plan.format in ("csv", "parquet")

    @property
    def _rows_path(self) -> str:
        return f"{self.plan.output}.rows" if self._spools else f"{self.plan.output}{PARTIAL}"

    def _load(self) -> Progress:
        plan = self.plan
        fresh = Progress(plan.digest)
        check_compression(plan.output)
        if not self._is_file:
            if plan.format not in ("jsonl", "json"):
                raise ConfigError(f"{plan.format} is not written to a pipe. Name a file with -o.")
            return fresh
        path = Path(f"{plan.output}{PROGRESS}")
        try:
            saved = msgspec.json.decode(path.read_bytes(), type=Progress)
        except FileNotFoundError:
            if self._beside.exists():
                raise ConfigError(f"{plan.output} exists. Remove it, or name another file with -o.") from None
            return fresh
        except (OSError, msgspec.DecodeError):
            raise ConfigError(f"{path} cannot be read. Remove it to begin again.") from None
        if saved.digest != plan.digest:
            raise ConfigError(
                f"{path} belongs to another job: the input, its content or an option differs. Run that command again "
                "to continue it, or remove the file to start over."
            )
        saved.resumed_rows = saved.tally.rows
        return saved

    def _save(self) -> None:
        path = Path(f"{self.plan.output}{PROGRESS}")
        draft = path.with_name(f"{path.name}.new")
        draft.write_bytes(msgspec.json.encode(self.progress))
        draft.replace(path)

    def _open_rows(self) -> AbstractContextManager[_OutputFile]:
        compression: Compression = "" if self._spools else find_form(self.plan.output).compression
        path = self._rows_path if self._is_file else STDIN
        return _open_output(path, self.progress.written, compression)

    def _finish(self) -> None:
        plan, rows = self.plan, Path(self._rows_path)
        if plan.joins_parquet:
            target = Path(f"{plan.output}{PARTIAL}")
            add_columns([Path(path) for path in plan.inputs], rows, target)
            target.replace(plan.output)
            rows.unlink()
        elif self._spools:
            convert_lines(rows, plan.output, plan.format)
            rows.unlink()
        else:
            rows.replace(plan.output)
        with suppress(FileNotFoundError):
            Path(f"{plan.output}{PROGRESS}").unlink()

    def _remove_all(self) -> None:
        """Leave nothing of a run that could not begin."""
        for path in (self._rows_path, f"{self.plan.output}{PROGRESS}", self.plan.undecided):
            if path is not None:
                Path(path).unlink(missing_ok=True)

    def _separate(self) -> Iterator[tuple[int, Block, BlockResult]]:
        """The blocks that are not written yet, each with the place of its file and its result, in order."""
        if self.plan.processes < 2:
            for place, block in self._read():
                yield place, block, separate_block(block, self.plan.job)
            return
        from concurrent.futures import Future, ProcessPoolExecutor
        from multiprocessing import get_context

        waiting: deque[tuple[int, Block, Future[BlockResult]]] = deque()
        pool = ProcessPoolExecutor(self.plan.processes, get_context("spawn"), _start_worker)
        try:
            for place, block in self._read():
                waiting.append((place, block, pool.submit(separate_block, block, self.plan.job)))
                if len(waiting) > 2 * self.plan.processes:
                    place, block, result = waiting.popleft()
                    yield place, block, result.result()
            while waiting:
                place, block, result = waiting.popleft()
                yield place, block, result.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(self) -> Iterator[tuple[int, Block]]:
        """The blocks that are not written yet, each with the place of its file."""
        plan, start, next_row = self.plan, self.progress.file, self.progress.next_row
        separator = plan.job.separator
        columns = None
        if plan.joins_parquet and separator.source is not None and not plan.job.stats:
            columns = [name for name in (separator.source, separator.prompt) if name]
        for place, path in enumerate(plan.inputs[start:], start):
            is_first = True
            blocks = read_blocks(path, plan.input_format, columns)
            for block in self._follow_stdin(blocks) if path == STDIN else blocks:
                if is_first:
                    check_first_block(block, separator)
                    is_first = False
                if place > start or block.first >= next_row:
                    yield place, block

    def _follow_stdin(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks with digests. Raises ConfigError if what was read before is not what comes now."""
        seen, expected, next_row = hashlib.sha256(), self.progress.read_digest, self.progress.next_row
        for block in blocks:
            if expected and block.first >= next_row:
                break
            seen.update(b"\n".join(block.lines))
            seen.update(repr((block.first, block.rows, block.problems)).encode("utf-8", "surrogatepass"))
            found = seen.hexdigest()[:24]
            if expected and block.first + block.count >= next_row:
                if found != expected:
                    break
                expected = ""
            yield msgspec.structs.replace(block, digest=found)
        else:
            if not expected:
                return
        raise ConfigError(
            f"standard input is not what {self.plan.output}{PROGRESS} was made of. Give the same input again, or "
            "remove that file to begin again."
        )


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        if (parent := parent_process()) is not None:
            wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- writing ----------------------------------------------------------------------------------------------------------


class _Writer:
    """Writes the results of blocks, and notes how far they are certain."""

    def __init__(
        self,
        plan: Plan,
        rows: _OutputFile,
        listed: _OutputFile | None,
        progress: Progress,
        save: Callable[[], None] | None,
    ) -> None:
        self._plan = plan
        self._rows = rows
        self._listed = listed
        self._progress = progress
        self._save = save
        self._saved_at = -math.inf  # the first block is certain immediately
        is_array = plan.format == "json"
        self._between = b",\n" if is_array else b"\n"
        self._start, self._end = (b"[\n", b"\n]\n") if is_array else (b"", b"\n")

    def write(self, place: int, block: Block, result: BlockResult) -> None:
        """Write the rows of a block."""
        progress = self._progress
        path = self._plan.inputs[place]
        if result.lines:
            self._rows.write((self._between if progress.has_rows else self._start) + self._between.join(result.lines))
            progress.has_rows = True
        if self._listed is not None:
            for number, found in result.undecided:
                self._listed.write(_list_row(path, number, found))
        progress.file, progress.next_row, progress.share = place, block.first + block.count, block.share
        progress.read_digest = block.digest
        progress.tally.merge(result.tally, path if len(self._plan.inputs) > 1 else "", self._plan.job.show)
        if self._save is not None and time.monotonic() - self._saved_at >= _CHECKPOINT_SECONDS:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Make certain what was written."""
        self._progress.written = self._rows.flush()
        if self._listed is not None:
            self._progress.listed = self._listed.flush()
        if self._save is not None:
            self._save()
        self._saved_at = time.monotonic()

    def end(self) -> None:
        """Write what ends the output."""
        self._rows.write(self._end if self._progress.has_rows else self._start + self._end.lstrip(b"\n"))
        self._rows.flush()


def _list_row(path: str, number: int, found: Separation) -> bytes:
    row = {"file": path, "row": number, "verdict": found.verdict, "grammar": found.grammar, "reason": found.reason}
    return msgspec.json.encode(row) + b"\n"


class _OutputFile:
    """A file that is written from a certain place on, compressed in parts that each can be the last."""

    def __init__(self, file: BinaryIO, compression: Compression) -> None:
        self._file = file
        self._compression: Compression = compression
        self._compressor: Any = None

    def write(self, data: bytes) -> None:
        """Write more."""
        if self._compression and data:
            if self._compressor is None:
                self._compressor = _make_compressor(self._compression)
            data = self._compressor.compress(data)
        self._file.write(data)

    def flush(self) -> int:
        """Hand everything to the system; return the size of the file, 0 for a pipe."""
        if self._compressor is not None:
            self._file.write(self._compressor.flush())
            self._compressor = None
        self._file.flush()
        return self._file.tell() if self._file.seekable() else 0


def _make_compressor(compression: Compression) -> Any:
    if compression == "gzip":
        return zlib.compressobj(_GZIP_LEVEL, wbits=16 + zlib.MAX_WBITS)
    return load_zstd().ZstdCompressor().compressobj()


_GZIP_LEVEL = 4


@contextmanager
def _open_output(path: str, size: int, compression: Compression) -> Generator[_OutputFile]:
    """Open a file to append after its first `size` bytes; the rest is truncated."""
    if path == STDIN:
        yield _OutputFile(sys.stdout.buffer, "")
        return
    try:
        file = Path(path).open("r+b" if size else "wb")  # noqa: SIM115 - closed below
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem.strerror}.") from None
    with file:
        if size:
            file.truncate(size)
            file.seek(size)
        yield _OutputFile(file, compression)
