"""Reads and writes rows of files: JSON lines, JSON arrays, CSV and Parquet, also with gzip and zstd."""

from __future__ import annotations

import base64
import codecs
import csv
import gzip
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Protocol, Self

import msgspec

from asides.datasets.files import MAX_ROW_BYTES, STDIN, FileFormat, find_form, load_zstd, open_content
from asides.datasets.parquet import check_compression, iterate_parquet, plain_row
from asides.datasets.parquet_output import write_parquet
from asides.values.errors import ConfigError

_BLOCK_BYTES = 1 << 20
_BLOCK_ROWS = 500
_BOM = "\ufeff"
_GZIP_LEVEL = 4
_NOT_UTF8 = "the row is not UTF-8"
PARTIAL = ".partial"
"""The ending of a file that is being written."""


class Row(NamedTuple):
    """A row of a file."""

    number: int
    """Its number in the file; the first is 1. Blank lines are counted too."""
    fields: dict[str, Any]
    problem: str = ""
    """Why the row could not be read; its fields are empty then."""


class Block(msgspec.Struct, frozen=True):
    """Some rows in a row, as they were read: lines of JSON, or fields."""

    first: int
    """The number of the first row."""
    count: int
    """How many row numbers it has; the next block continues after them."""
    lines: tuple[bytes, ...] = ()
    rows: tuple[tuple[int, dict[str, Any]], ...] = ()
    problems: tuple[tuple[int, str], ...] = ()
    """The rows that could not be read, and why."""
    remains: tuple[tuple[int, bytes], ...] = ()
    """What the file has in place of some of these rows."""
    digest: str = ""
    """Of standard input up to here; only there."""
    share: float | None = None
    """How much of the file was read by then, from 0 to 1; None if its size is not known."""


def read_rows(path: str | Path, *, format_name: FileFormat | None = None) -> Iterator[Row]:
    """The rows of a file, read as they are taken; `-` is standard input.

    A row that cannot be read has a problem, and costs no other row. Raises ConfigError if the file cannot be read.
    """
    for block in read_blocks(str(path), format_name):
        found = [Row(number, {}, problem) for number, problem in block.problems]
        found += [Row(number, fields) for number, fields in block.rows]
        found += [_read_line(number, line) for number, line in enumerate(block.lines, block.first) if line.strip()]
        yield from sorted(found, key=lambda row: row.number)


def read_blocks(
    path: str, format_name: FileFormat | None = None, columns: Sequence[str] | None = None
) -> Iterator[Block]:
    """The rows of a file in blocks of about a megabyte. `columns` limits those of Parquet that are read."""
    if (format_name or find_form(path).format) == "parquet":
        yield from _block_parquet(path, columns)
        return
    with open_content(path, format_name) as (file, form, measure):
        match form:
            case "jsonl":
                blocks = _block_lines(file)
            case "json":
                blocks = _block_values(file)
            case "csv":
                blocks = _block_csv(file)
            case "parquet":
                raise ConfigError("Parquet cannot be read from a pipe. Name a file that ends with .parquet.")
        for block in blocks:
            yield msgspec.structs.replace(block, share=measure())


def parse_line(line: bytes) -> dict[str, Any]:
    """The fields of a line of JSON. Raises ValueError that says what is wrong, without content."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Python writes NaN and lone surrogates, which JSON does not have.
        try:
            value = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError(_NOT_UTF8) from None
        except (ValueError, RecursionError):
            raise ValueError("the row is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("the row is not an object")  # noqa: TRY004 - of the file, not of a caller
    return value


def read_value(value: Any) -> Any:
    """A value of a row, decoded if it is raw JSON."""
    if type(value) is not msgspec.Raw:
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:  # half a character
        return json.loads(bytes(value))


def _read_line(number: int, line: bytes) -> Row:
    try:
        return Row(number, parse_line(line))
    except ValueError as problem:
        return Row(number, {}, str(problem))


# --- reading ----------------------------------------------------------------------------------------------------------


def _block_lines(file: BinaryIO) -> Iterator[Block]:
    number = 1
    rest = b""
    while data := file.read(_BLOCK_BYTES):
        data = rest + data
        whole, line_end, rest = data.rpartition(b"\n")
        if line_end:
            lines = tuple(whole.split(b"\n"))
            yield Block(number, len(lines), lines)
            number += len(lines)
        elif len(rest) > MAX_ROW_BYTES:
            rest = _skip_line(file)
            yield Block(number, 1, problems=((number, f"the row is longer than {MAX_ROW_BYTES:,} bytes"),))
            number += 1
    if rest:
        yield Block(number, 1, (rest,))


def _skip_line(file: BinaryIO) -> bytes:
    """Read to the end of a line; return the bytes read past it."""
    while data := file.read(_BLOCK_BYTES):
        _, line_end, rest = data.partition(b"\n")
        if line_end:
            return rest
    return b""


def _block_values(file: BinaryIO) -> Iterator[Block]:
    """The elements of a JSON array, or JSON objects one after the other, each as its own text."""
    decode = json.JSONDecoder().raw_decode
    text = _TextReader(file)
    text.skip_blanks()
    is_array = text.take("[")
    number, first, lines, size = 1, 1, list[bytes](), 0
    first_name: str | None = None
    while text.skip_blanks() and not (is_array and text.take("]")):
        value = text.read_value(decode)
        line = None if value is None else value.encode("utf-8", "surrogateescape")
        if line is None or not _is_utf8(line):
            first_name = _find_first_name(lines) or first_name
            lost, problem = text.skip_damage(decode, first_name) if line is None else (line, _NOT_UTF8)
            remains = ((number, lost),)
            yield Block(first, len(lines) + 1, tuple(lines), problems=((number, problem),), remains=remains)
            number += 1
            first, lines, size = number, [], 0
            text.skip_blanks()
            text.take(",")
            continue
        lines.append(line.replace(b"\n", b" "))
        size += len(line)
        number += 1
        text.skip_blanks()
        text.take(",")
        if size >= _BLOCK_BYTES or len(lines) >= _BLOCK_ROWS:
            yield Block(first, len(lines), tuple(lines))
            first_name = _find_first_name(lines)
            first, lines, size = number, [], 0
    if lines:
        yield Block(first, len(lines), tuple(lines))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _find_first_name(lines: list[bytes]) -> str | None:
    """The name of the first field of the last row; rows of a file mostly begin with the same one."""
    return next(iter(parse_line(lines[-1])), None) if lines and lines[-1][:1] == b"{" else None


_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|["{}\[\],]')
_NEXT_OBJECT = re.compile(r"[,\n]\s*(?=\{)")
_PAIRS = {"}": "{", "]": "["}
# An error this close to the end of the buffer may be caused by the cut.
_CUT = 16


class _TextReader:
    """Text of a file, read as needed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = ""
        self._place = 0
        self._is_over = False

    def _fill(self) -> bool:
        if self._is_over:
            return False
        # Reading more each time keeps the time for a long value linear.
        data = self._file.read(max(_BLOCK_BYTES, len(self._text) - self._place))
        self._is_over = not data
        self._text = self._text[self._place :] + self._decoder.decode(data, final=self._is_over)
        self._place = 0
        return True

    def skip_blanks(self) -> bool:
        """Skip blanks; False at the end."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in f" \t\r\n{_BOM}":
                    return True
                self._place += 1
            if not self._fill():
                return False

    def take(self, mark: str) -> bool:
        """Skip this character if it comes next."""
        found = self._text.startswith(mark, self._place)
        self._place += found
        return found

    def read_value(self, decode: Any) -> str | None:
        """The text of the next value; None if it is not JSON."""
        while True:
            try:
                _, end = decode(self._text, self._place)
            except json.JSONDecodeError as problem:
                if problem.pos < len(self._text) - _CUT and not problem.msg.startswith("Unterminated string"):
                    return None
            except RecursionError:
                return None
            else:
                if end < len(self._text) or self._is_over:
                    value = self._text[self._place : end]
                    self._place = end
                    return value
            if len(self._text) - self._place > MAX_ROW_BYTES or not self._fill():
                return None

    def skip_damage(self, decode: Any, first_name: str | None) -> tuple[bytes, str]:
        """Skip a value that is not JSON: to its end, or else to the next object. Return it, and what to say of it."""
        while True:
            end = self._find_end()
            words = "the row is not JSON"
            if end is None:
                end = self._find_object(decode, first_name)
                words = "the file is not JSON here: {:,} characters up to the next row were left out"
            if end is not None:
                break
            if len(self._text) - self._place > MAX_ROW_BYTES or not self._fill():
                return self._drop_rest()
        if end == self._place and self._text[end] != ",":
            end += 1  # a bracket that ends nothing
        lost = self._text[self._place : end]
        self._place = end
        return lost.encode("utf-8", "surrogateescape"), words.format(len(lost))

    def _find_end(self) -> int | None:
        """The end of a value whose brackets and quotes are in pairs; None if they are not, so far."""
        inside: list[str] = []
        for found in _TOKENS.finditer(self._text, self._place):
            mark = found[0]
            if mark in ("{", "["):
                inside.append(mark)
            elif mark in _PAIRS:
                if not inside:  # the end of the array
                    return found.start()
                if inside.pop() != _PAIRS[mark]:
                    return None
            elif mark == "," and not inside:
                return found.start()
            elif mark == '"':
                return None
        return None

    def _find_object(self, decode: Any, first_name: str | None) -> int | None:
        """The place of the next object that is a row: it begins with the same field, if that is known."""
        for found in _NEXT_OBJECT.finditer(self._text, self._place + 1):
            with suppress(ValueError, RecursionError):
                value, end = decode(self._text, found.end())
                if (end < len(self._text) or self._is_over) and first_name in (None, next(iter(value), None)):
                    return found.end()
        return None

    def _drop_rest(self) -> tuple[bytes, str]:
        """Skip the rest of the file."""
        lost, count = self._text[self._place :].encode("utf-8", "surrogateescape"), len(self._text) - self._place
        self._place = len(self._text)
        while self._fill():
            count += len(self._text)
            self._place = len(self._text)
        return lost, f"the file is not JSON from here on: {count:,} characters were left out"


class CsvRow(NamedTuple):
    """A row of CSV."""

    values: list[str]
    raw: str
    """The row as the file has it, with its end of line."""
    problem: str = ""
    """Why it could not be read."""


def read_csv(file: BinaryIO) -> Iterator[CsvRow]:
    """The rows of CSV; the first has the names of the columns. Raises ConfigError if two are the same."""
    csv.field_size_limit(MAX_ROW_BYTES)
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    try:
        yield from _read_csv(text)
    finally:
        text.detach()  # its user closes the file


def _read_csv(text: Iterable[str]) -> Iterator[CsvRow]:
    raw: list[str] = []
    reader = csv.reader(_record(text, raw))
    names: list[str] | None = None
    while True:
        try:
            values, problem = next(reader, None), ""
        except csv.Error as error:
            values, problem = [], f"the row is not CSV: {error}"
        if values is None:
            return
        if names is None:
            names = values
            if len(set(names)) < len(names):
                raise ConfigError("two columns of the CSV file have the same name. Give each its own name.")
        elif values and len(values) != len(names):
            problem = f"the row has {len(values)} columns, and the header has {len(names)}"
        yield CsvRow(values, "".join(raw), problem)
        raw.clear()


def _record(lines: Iterable[str], raw: list[str]) -> Iterator[str]:
    for line in lines:
        raw.append(line)
        yield line


def _block_csv(file: BinaryIO) -> Iterator[Block]:
    found = read_csv(file)
    names = next(found, CsvRow([], "")).values
    first, rows, problems, size, number = 1, list[tuple[int, dict[str, Any]]](), list[tuple[int, str]](), 0, 0
    for number, row in enumerate(found, 1):
        if row.problem:
            problems.append((number, row.problem))
        elif row.values:
            rows.append((number, dict(zip(names, row.values, strict=True))))
            size += len(row.raw)
        if size >= _BLOCK_BYTES or len(rows) + len(problems) >= _BLOCK_ROWS:
            yield Block(first, number + 1 - first, rows=tuple(rows), problems=tuple(problems))
            first, rows, problems, size = number + 1, [], [], 0
    if rows or problems:
        yield Block(first, number + 1 - first, rows=tuple(rows), problems=tuple(problems))


def _block_parquet(path: str, columns: Sequence[str] | None) -> Iterator[Block]:
    first = 1
    for rows, share in iterate_parquet(Path(path), path, columns):
        found = [(number, plain_row(row)) for number, row in enumerate(rows, first)]
        yield Block(first, len(found), rows=tuple(found), share=share)
        first += len(found)


# --- writing ----------------------------------------------------------------------------------------------------------


class RowWriter(Protocol):
    """Writes rows to a file. Use it in a `with` block."""

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write one row."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def encode_row(fields: Mapping[str, Any]) -> bytes:
    """A row as JSON."""
    try:
        return msgspec.json.encode(fields)
    except (UnicodeEncodeError, TypeError, ValueError):
        # Lone surrogates; and NaN, which msgspec would write as null.
        plain = {
            name: json.loads(bytes(value)) if type(value) is msgspec.Raw else value for name, value in fields.items()
        }
        return json.dumps(plain, default=encode_bytes).encode()


def encode_bytes(value: object) -> str:
    """Bytes as text in base64, as msgspec writes them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a row has a value of the type {type(value).__name__}")


def open_writer(path: str | Path, *, format_name: FileFormat | None = None) -> RowWriter:
    """Open a file for rows; the ending of its name says the format and the compression. `-` is standard output.

    The file gets its name when the writer is closed without an error; until then it is called `….partial`. Parquet
    and CSV get the columns of all rows.
    """
    chosen: FileFormat = format_name or find_form(str(path)).format or "jsonl"
    check_compression(str(path))
    if chosen in ("csv", "parquet"):
        return _TableWriter(str(path), chosen)
    return _JsonWriter(str(path), is_array=chosen == "json")


def open_compressed(path: Path, mode: str) -> BinaryIO:
    """Open a file for writing, compressed as its name says (without `.partial`)."""
    match find_form(path.name.removesuffix(PARTIAL)).compression:
        case "gzip":
            return gzip.open(path, mode, compresslevel=_GZIP_LEVEL)  # type: ignore[return-value]
        case "zstd":
            file: BinaryIO = load_zstd().open(path, mode)
            return file
        case _:
            return path.open(mode)  # type: ignore[return-value]


class _JsonWriter:
    """Writes JSON lines, or an array with an element in each line."""

    def __init__(self, path: str, *, is_array: bool) -> None:
        self._path = path
        self._file = sys.stdout.buffer if path == STDIN else open_compressed(Path(path + PARTIAL), "wb")
        self._between, self._end = (b",\n", b"\n]\n") if is_array else (b"\n", b"\n")
        self._next = b"[\n" if is_array else b""

    def write(self, fields: Mapping[str, Any]) -> None:
        self._file.write(self._next + encode_row(fields))
        self._next = self._between

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._next != self._between:  # Not a row was written.
            self._file.write(self._next)
        if self._next:
            self._file.write(self._end)
        if self._path == STDIN:
            self._file.flush()
            return
        self._file.close()
        partial = Path(self._path + PARTIAL)
        if kind is None:
            partial.replace(self._path)
        else:
            partial.unlink()


class _TableWriter:
    """Writes CSV or Parquet: collects the rows as JSON lines on the disk, since all columns must be known first."""

    def __init__(self, path: str, format_name: FileFormat) -> None:
        if path == STDIN and format_name == "parquet":
            raise ConfigError("Parquet cannot be written to a pipe. Name a file with -o.")
        self._path = path
        self._format: FileFormat = format_name
        self._spool = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed in __exit__
            dir=None if path == STDIN else Path(path).parent, suffix=".rows"
        )

    def write(self, fields: Mapping[str, Any]) -> None:
        self._spool.write(encode_row(fields) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._spool:
            self._spool.flush()
            if kind is None:
                convert_lines(Path(self._spool.name), self._path, self._format)


def convert_lines(lines: Path, path: str, format_name: FileFormat) -> None:
    """Write a file of JSON lines as CSV or Parquet."""
    if path == STDIN:
        _write_csv(lines, sys.stdout.buffer)
        return
    target = Path(path + PARTIAL)
    with open_compressed(target, "wb") as file:
        if format_name == "parquet":
            write_parquet(lines, file)
        else:
            _write_csv(lines, file)
    target.replace(path)


def _write_csv(lines: Path, target: BinaryIO) -> None:
    names: dict[str, None] = {}
    with lines.open("rb") as file:
        for line in file:
            names.update(dict.fromkeys(_read_cells(line)))
    text = io.TextIOWrapper(target, "utf-8", "surrogateescape", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_replace_halves, names))
    with lines.open("rb") as file:
        for line in file:
            cells = _read_cells(line)
            writer.writerow([cells.get(name) for name in names])
    text.flush()
    text.detach()


def _read_cells(line: bytes) -> dict[str, str | None]:
    """The cells of a line of JSON: texts as they are, nothing for null, everything else as JSON."""
    try:
        return {name: _read_cell(bytes(value)) for name, value in _decode_fields(line).items()}
    except msgspec.DecodeError:  # half a character, or NaN
        return {
            name: None if value is None else _replace_halves(value if isinstance(value, str) else json.dumps(value))
            for name, value in parse_line(line).items()
        }


def _read_cell(value: bytes) -> str | None:
    if value[:1] == b'"':
        text: str = msgspec.json.decode(value)
        return text
    return None if value == b"null" else value.decode()


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Those from U+DC80 to U+DCFF stand for bytes, which CSV keeps.
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def _replace_halves(text: str) -> str:
    """A text without halves of characters, which UTF-8 does not have."""
    return _HALVES.sub("\ufffd", text)
