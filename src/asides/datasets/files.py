"""The form of a file of rows (JSON lines, a JSON array, CSV, Parquet), and its bytes without gzip or zstd."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

import msgspec

from asides.values.errors import ConfigError

FileFormat: TypeAlias = Literal["jsonl", "json", "csv", "parquet"]
Compression: TypeAlias = Literal["", "gzip", "zstd"]

STDIN = "-"
"""The name of standard input, and of standard output."""
MAX_ROW_BYTES = 64_000_000
"""The longest row that is read; a longer one is reported as unreadable."""

_ENDINGS: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".log": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD = 4096
# A few bytes of zstd may decompress to very many.
_ZSTD_BYTES = 8192
_UTF16_BYTES = 1 << 16


class FileForm(msgspec.Struct, frozen=True):
    """How the rows of a file are written."""

    format: FileFormat | None
    """None: not in the name; detected from the first bytes."""
    compression: Compression = ""


def find_form(path: str) -> FileForm:
    """The form in a name: `answers.jsonl.zst`."""
    name = Path(path)
    compression = COMPRESSIONS.get(name.suffix.lower(), "")
    ending = Path(name.stem).suffix if compression else name.suffix
    return FileForm(_ENDINGS.get(ending.lower()), compression)


def check_format(name: str | None) -> FileFormat | None:
    """The format with this name. Raises ConfigError for an unknown one."""
    for known in cast("tuple[FileFormat, ...]", get_args(FileFormat)):
        if name == known:
            return known
    if name is None:
        return None
    raise ConfigError(f"unknown file format {name[:40]!r}. Use {', '.join(get_args(FileFormat))}.")


@contextmanager
def open_content(
    path: str, format_name: FileFormat | None = None
) -> Generator[tuple[BinaryIO, FileFormat, Callable[[], float | None]]]:
    """Open a file for reading, decompressed by its first bytes. Not for Parquet.

    Yields it with its format, and a function that returns the share of it that was read.
    """
    file = _open_file(path)
    try:
        head = file.peek(_HEAD)
        compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
        content = file if not compression else io.BufferedReader(_decompress(file, compression), 1 << 20)
        if content.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            content = io.BufferedReader(cast("Any", _Utf16File(content)), 1 << 20)
        size = 0 if path == STDIN else os.fstat(file.fileno()).st_size
        chosen = format_name or find_form(path).format or _guess_format(content.peek(_HEAD))
        yield content, chosen, lambda: file.tell() / size if size else None
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise ConfigError(f"{path} is damaged: {problem}. Compress it again.") from None
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror or problem}.") from None
    finally:
        if path != STDIN:
            file.close()


def _open_file(path: str) -> io.BufferedReader:
    if path == STDIN:
        return cast("io.BufferedReader", sys.stdin.buffer)
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as problem:
        words = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise ConfigError(f"{path} cannot be read: {words}.") from None


def _decompress(file: BinaryIO, compression: str) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file)
    return _ZstdFile(file)


class _Utf16File(io.RawIOBase):
    """A file in UTF-16 as UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            data = self._file.read(_UTF16_BYTES)
            self._ready = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                break
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


class _ZstdFile(io.RawIOBase):
    """The content of a zstd file. Raises EOFError if it is damaged or cut off; zstandard's own reader ends silently."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._zstd = load_zstd()
        self._decompressor = self._zstd.ZstdDecompressor()
        self._frame: Any = None
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            if not self._fill():
                return 0
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _fill(self) -> bool:
        """Decompress some more; False at the end."""
        data = self._rest or self._file.read(_ZSTD_BYTES)
        self._rest = b""
        if not data:
            if self._frame is not None:
                raise EOFError("it ends in the middle")
            return False
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        try:
            self._ready = memoryview(self._frame.decompress(data))
        except self._zstd.ZstdError as problem:
            raise EOFError(str(problem)) from None
        if self._frame.eof:
            self._rest = self._frame.unused_data
            self._frame = None
        return True


def load_zstd() -> Any:
    """The module `zstandard`. Raises a ConfigError if it is not installed."""
    try:
        return import_module("zstandard")
    except ImportError:
        raise ConfigError("zstd files need zstandard. Run: pip install 'asides[data]'; or use gzip.") from None


def _guess_format(head: bytes) -> FileFormat:
    if head.startswith(b"PAR1"):
        return "parquet"
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[" else "jsonl"
