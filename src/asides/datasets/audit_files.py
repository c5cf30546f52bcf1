"""Audits files: JSON lines, logs, JSON, CSV, Parquet and SQLite databases, also compressed; and cleans copies."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from asides.datasets.audit import AuditFinding, make_finding
from asides.datasets.audit_database import MAGIC, audit_database
from asides.datasets.audit_report import FileReport
from asides.datasets.audit_streams import StreamJoiner
from asides.datasets.audit_text import check_text, has_closing_tag, list_tags
from asides.datasets.audit_walk import (
    AuditSettings,
    Document,
    FoundPlace,
    TooDeep,
    check_document,
    parse_inner,
    parse_json,
)
from asides.datasets.files import COMPRESSIONS, STDIN, FileFormat, find_form, open_content
from asides.datasets.parquet import check_compression, open_parquet, to_plain, to_rows
from asides.datasets.rows import PARTIAL, open_compressed, read_blocks, read_csv
from asides.values.errors import ConfigError

_Found: TypeAlias = Iterator[tuple[FoundPlace, int]]
_Write: TypeAlias = Callable[[bytes], object]

_FOLDER_ENDINGS = (".jsonl", ".ndjson", ".json", ".log", ".csv", ".parquet", ".db", ".sqlite", ".sqlite3")
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "node_modules", "__pycache__"})
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[\[{\"\]]")
_HEAD = 4096
_ROWS_AT_ONCE = 500


def list_files(paths: list[str]) -> Iterator[str]:
    """The files that paths name; of a folder, those below it whose names end like those of data.

    Links in a folder are not followed. Raises ConfigError for a missing path.
    """
    for path in paths:
        if path == STDIN or Path(path).is_file():
            yield path
        elif Path(path).is_dir():
            yield from _list_folder(path)
        else:
            raise ConfigError(f"{path} is neither a file nor a folder. Check the path.")


def _list_folder(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(root) / name
            if _name_without_compression(name).endswith(_FOLDER_ENDINGS) and path.is_file() and not path.is_symlink():
                yield str(path)


def _name_without_compression(name: str) -> str:
    return name.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".zstd")


def audit_file(
    path: str, settings: AuditSettings, report: FileReport, fix: Path | None = None
) -> Iterator[AuditFinding]:
    """Find thinking in a file, one row after the other. With `fix`, write a copy without it there.

    Raises ConfigError if the file cannot be read.
    """
    if path != STDIN and _read_head(path).startswith(MAGIC):
        report.form = "sqlite"
        audit = audit_database if Path(path).suffix.lower() not in COMPRESSIONS else _audit_compressed_database
        findings = audit(path, settings, report, fix)
    else:
        form = _find_format(path)
        report.form = form
        findings = _audit_rows(path, form, settings, report, fix)
    for finding in findings:
        report.found += 1
        report.left += not finding.is_removed
        yield finding


def _read_head(path: str) -> bytes:
    with open_content(path, "jsonl") as (file, _, _):
        return file.read(_HEAD)


def _audit_compressed_database(
    path: str, settings: AuditSettings, report: FileReport, fix: Path | None
) -> Iterator[AuditFinding]:
    """Audit a database in gzip or zstd: unpacked into a folder for the time of the audit."""
    with tempfile.TemporaryDirectory() as folder:
        plain, cleaned = Path(folder, "database"), Path(folder, "cleaned")
        with open_content(path, "jsonl") as (file, _, _), plain.open("wb") as target:
            shutil.copyfileobj(file, target)
        try:
            yield from audit_database(str(plain), settings, report, None if fix is None else cleaned)
        except ConfigError as problem:
            raise ConfigError(str(problem).replace(str(plain), path)) from None
        if fix is not None:
            with cleaned.open("rb") as file, _open_copy_file(path, fix) as copy:
                shutil.copyfileobj(file, copy)


def _find_format(path: str) -> FileFormat:
    """The format by the name, otherwise by the first bytes: a line of a log may begin with a bracket too."""
    named = find_form(path).format
    if named is not None or path == STDIN:
        return named or "jsonl"
    with open_content(path) as (file, guessed, _):
        return guessed if guessed != "json" or _ARRAY.match(file.read(_HEAD)) else "jsonl"


def _audit_rows(
    path: str, form: FileFormat, settings: AuditSettings, report: FileReport, fix: Path | None
) -> Iterator[AuditFinding]:
    if form == "json" and not _begins_with_json(path):
        form = report.form = "jsonl"  # Text with a name that says JSON: JSON with comments, say.
    match form:
        case "csv":
            findings = _audit_csv(path, settings, report, fix)
        case "parquet":
            findings = _audit_parquet(path, settings, report, fix)
        case "json":
            findings = _audit_values(path, settings, report, fix)
        case "jsonl":
            findings = _audit_lines(path, settings, report, fix)
    for place, number in findings:
        yield make_finding(place, number, report.file)


def _begins_with_json(path: str) -> bool:
    block = next(read_blocks(path, "json"), None)
    return block is None or not block.remains or block.remains[0][0] > 1 or _is_array(path)


def _is_array(path: str) -> bool:
    with open_content(path, "json") as (file, _, _):
        return _ARRAY.match(file.read(_HEAD)) is not None


def _check(
    value: Any, settings: AuditSettings, report: FileReport, number: int, thoughts: tuple[str, ...] = ()
) -> Document:
    report.rows += 1
    try:
        checked = check_document(value, settings, thoughts=thoughts)
    except TooDeep:
        report.add_problem(number, "nested too deeply")
        return Document(value, (), 0)
    report.mentions += checked.mentions
    return checked


# --- CSV and Parquet --------------------------------------------------------------------------------------------------


def _audit_csv(path: str, settings: AuditSettings, report: FileReport, fix: Path | None) -> _Found:
    """Audit CSV. A copy has all rows as they were, but for those that were cleaned."""
    with open_content(path, "csv") as (file, _, _), _open_copy(path, fix) as write:
        rows = read_csv(file)
        names: list[str] | None = None
        for number, row in enumerate(rows):
            raw = row.raw
            if names is None:
                names = row.values
            elif row.problem:
                report.add_problem(number, row.problem)
            elif row.values:
                fields: dict[str, Any] = dict(zip(names, row.values, strict=True))
                checked, cells = _check_cells(fields, settings, report, number)
                yield from ((place, number) for place in checked.found)
                if cells:
                    raw = _write_csv_row({**fields, **cells}.values(), raw)
            write(raw.encode("utf-8", "surrogateescape"))


def _write_csv_row(values: Iterable[Any], raw: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=raw[len(raw.rstrip("\r\n")) :]).writerow(values)
    return text.getvalue()


def _audit_parquet(path: str, settings: AuditSettings, report: FileReport, fix: Path | None) -> _Found:
    """Audit Parquet. A copy has the types, the values and the metadata of the original, but for cells that changed."""
    check_compression(path)
    number = 0
    with open_parquet(Path(path), path) as file, _open_parquet_copy(path, file.schema_arrow, fix) as write:
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
            changes: dict[str, dict[int, Any]] = {}
            for place, row in enumerate(to_rows(batch, path)):
                number += 1
                fields = {name: _read_text(to_plain(value)) for name, value in row.items()}
                checked, cells = _check_cells(fields, settings, report, number)
                yield from ((found, number) for found in checked.found)
                for name, value in cells.items():
                    changes.setdefault(name, {})[place] = _replace_texts(row[name], fields[name], value)
            write(batch, changes)


def _read_text(value: Any) -> Any:
    """Bytes as text, if they are text."""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    return value


def _replace_texts(value: Any, before: Any, after: Any) -> Any:
    """A value of Python in which the texts that changed between two values of JSON are changed."""
    if after is before:
        return value
    if isinstance(value, dict):
        return {name: _replace_texts(part, before[str(name)], after[str(name)]) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = zip(value, before, after, strict=True)
        return type(value)(_replace_texts(*each) for each in parts)
    return after.encode() if isinstance(value, bytes) else after


@contextmanager
def _open_parquet_copy(
    path: str, schema: Any, fix: Path | None
) -> Generator[Callable[[Any, Mapping[str, Mapping[int, Any]]], None]]:
    """Open the file of a copy; yield the function that writes a batch with these cells changed."""
    if fix is None:
        yield lambda *_: None
        return
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    with ExitStack() as stack:
        file = stack.enter_context(_open_copy_file(path, fix))
        writer = stack.enter_context(parquet.ParquetWriter(file, schema))

        def write(batch: Any, changes: Mapping[str, Mapping[int, Any]]) -> None:
            columns = [
                _change_cells(arrow, batch.column(place), changes.get(field.name, {}), field.type)
                for place, field in enumerate(schema)
            ]
            writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))

        yield write


def _change_cells(arrow: Any, column: Any, changes: Mapping[int, Any], kind: Any) -> Any:
    if not changes:
        return column
    parts, done = [], 0
    for place, value in sorted(changes.items()):
        parts += [column.slice(done, place - done), arrow.array([value], kind)]
        done = place + 1
    return arrow.concat_arrays([*parts, column.slice(done)])


def _check_cells(
    fields: dict[str, Any], settings: AuditSettings, report: FileReport, number: int
) -> tuple[Document, dict[str, Any]]:
    """Check the cells of a row; return what was found, and the cells that change."""
    decoded = {name: _decode_cell(value) for name, value in fields.items()}
    checked = _check(decoded, settings, report, number)
    cleaned = checked.cleaned.items() if checked.cleaned is not decoded else ()
    return checked, {name: _encode_cell(value, fields[name]) for name, value in cleaned if value is not decoded[name]}


def _decode_cell(value: Any) -> Any:
    document = parse_inner(value)
    return value if document is None else document


def _encode_cell(value: Any, before: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(before, str) and not isinstance(value, str) else value


# --- JSON -------------------------------------------------------------------------------------------------------------


def _audit_values(path: str, settings: AuditSettings, report: FileReport, fix: Path | None) -> _Found:
    """Audit the elements of an array, or a document. A copy of an array has an element in each line."""
    with open_content(path, "json") as (file, _, _):
        head = file.read(_HEAD)
    is_array = _ARRAY.match(head) is not None
    indent = None if is_array or b"\n" not in head.strip() else 2
    between = b"[\n" if is_array else b""
    with _open_copy(path, fix) as write:
        for number, line, is_json in _read_values(path, report):
            cleaned = line
            if is_json:
                document = parse_json(line)
                checked = _check(document, settings, report, number)
                yield from ((place, number) for place in checked.found)
                cleaned = _clean(line, checked.cleaned is not document, settings, indent)
            write(between + cleaned)
            between = b",\n" if is_array else b"\n"
        write((b"\n]\n" if between == b",\n" else b"[]\n") if is_array else b"\n")
    if fix is not None and report.found == report.left:  # Nothing was removed.
        with suppress(OSError):
            shutil.copyfile(path, fix)


def _clean(
    line: bytes, is_changed: bool, settings: AuditSettings, indent: int | None = None, thoughts: tuple[str, ...] = ()
) -> bytes:
    """A line of JSON without thinking. One that has none stays as it is, byte for byte."""
    if not is_changed:
        return line
    # Python's parser keeps whole numbers of any size.
    cleaned = check_document(json.loads(line), settings, thoughts=thoughts).cleaned
    return json.dumps(cleaned, ensure_ascii=line.isascii(), indent=indent).encode("utf-8", "surrogatepass")


def _read_values(path: str, report: FileReport) -> Iterator[tuple[int, bytes, bool]]:
    """The values of a JSON file, and in their places what is not JSON."""
    for block in read_blocks(path, "json"):
        for number, problem in block.problems:
            report.add_problem(number, problem)
        for number, line in enumerate(block.lines, block.first):
            yield number, line, True
        for number, remains in block.remains:
            yield number, remains, False


def _read_lines(path: str, report: FileReport) -> Iterator[tuple[int, bytes]]:
    for block in read_blocks(path, "jsonl"):
        for number, problem in block.problems:
            report.add_problem(number, problem)
        yield from enumerate(block.lines, block.first)


@contextmanager
def _open_copy(path: str, fix: Path | None) -> Generator[_Write]:
    """Open the file of a copy, compressed as its name says; yield the function that writes to it."""
    if fix is None:
        yield len
        return
    with _open_copy_file(path, fix) as file:
        yield file.write


@contextmanager
def _open_copy_file(path: str, fix: Path) -> Generator[BinaryIO]:
    """Open the file of a copy, with the permissions of the original; it gets its name at the end."""
    partial = Path(f"{fix}{PARTIAL}")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    try:
        with open_compressed(partial, "wb") as file:
            yield file
        if path != STDIN:
            shutil.copymode(path, partial)
        partial.replace(fix)
    finally:
        partial.unlink(missing_ok=True)


# --- JSON lines and logs ----------------------------------------------------------------------------------------------

# A record of a log ends where another one begins: at JSON, a level or a time.
_RECORD = re.compile(
    rb"[\[{]|data:|event:|TRACE\b|DEBUG\b|INFO\b|NOTICE\b|WARN|ERROR\b|FATAL\b|CRITICAL\b|\d{4}-\d\d-\d\d|\d\d:\d\d:"
    rb"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:"
)
_FENCE = "```"
_JSON_BEGINS = (b"{", b"[", b'"')
_OPENING = re.compile(r"\{|\[(?=[\[{\"])")
_MAX_LINES = 2000
_MAX_CHARACTERS = 1 << 20
_MAX_TRIES = 3
_MAX_THOUGHTS = 32


def _audit_lines(path: str, settings: AuditSettings, report: FileReport, fix: Path | None) -> _Found:
    """Audit lines: JSON, lines of a log with or without JSON inside, and the events of recorded streams."""
    streams = StreamJoiner(settings)
    log = _Log(settings)
    thoughts: deque[str] = deque(maxlen=_MAX_THOUGHTS)
    with _open_copy(path, fix) as write:
        for number, line in _read_lines(path, report):
            if _RECORD.match(line):
                yield from log.end()
            document = None if log.is_open else _parse_line(line)
            cleaned = line
            if document is None:
                report.rows += bool(line.strip())
                yield from log.feed(number, line, streams)
            elif (ended := streams.feed(document, number)) is not None:
                report.rows += 1
                yield from ended
            else:
                before = tuple(thoughts) if _is_of_transcript(document) else ()
                checked = _check(document, settings, report, number, before)
                yield from ((place, number) for place in checked.found)
                cleaned = _clean(line, checked.cleaned is not document, settings, thoughts=before)
                if _is_of_transcript(document):
                    thoughts.extend(checked.thoughts)
            write(cleaned + b"\n")
    yield from log.end()
    yield from streams.finish()


def _is_of_transcript(document: Any) -> bool:
    """Whether it is a record of Claude Code or Codex, which write thinking and answer in records of their own."""
    return isinstance(document, dict) and "type" in document and ("message" in document or "payload" in document)


def _parse_line(line: bytes) -> Any:
    """The JSON of a line; None if it has none."""
    if line[:1] not in _JSON_BEGINS and line.lstrip(b" \t\r\xef\xbb\xbf")[:1] not in _JSON_BEGINS:
        return None
    try:
        return parse_json(line.strip().removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, TooDeep):
        return None


class _Log:
    """Finds thinking in the lines of a log. Thoughts and code may span lines, until another record begins."""

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        tags = settings.tags
        self._tags = list_tags(settings.model, keeps_details=settings.keeps_details) if tags is None else tags
        self._first = 0
        self._lines: list[str] = []
        self._size = 0
        self._fenced = 0  # the number of lines in a fence of code so far

    @property
    def is_open(self) -> bool:
        """Whether the last line ended inside a thought."""
        return bool(self._lines)

    def feed(self, number: int, line: bytes, streams: StreamJoiner) -> list[tuple[FoundPlace, int]]:
        """Take a line that is not JSON as a whole."""
        text = line.decode("utf-8", "replace")
        if self._lines:
            self._lines.append(text)
            self._size += len(text)
            is_long = len(self._lines) > _MAX_LINES or self._size > _MAX_CHARACTERS
            return self.end() if is_long or has_closing_tag(text, self._tags) else []
        has_fence = text.count(_FENCE) % 2 == 1
        if self._fenced:
            self._fenced = 0 if has_fence or self._fenced > _MAX_LINES else self._fenced + 1
            return []
        self._fenced = int(has_fence)
        found: list[tuple[FoundPlace, int]] = []
        for document in _find_json(text):
            if isinstance(document, str):
                found += self._check_text(number, document)
                continue
            ended = streams.feed(document, number)
            places = ended if ended is not None else self._check_document(number, document)
            found += [(_keep(place), row) for place, row in places]
        return found

    def _check_document(self, number: int, document: Any) -> list[tuple[FoundPlace, int]]:
        try:
            return [(place, number) for place in check_document(document, self._settings).found]
        except TooDeep:
            return []

    def _check_text(self, number: int, text: str) -> list[tuple[FoundPlace, int]]:
        checked = check_text(text, self._tags, "anywhere")
        if checked.is_open:
            self._first, self._lines, self._size = number, [text], len(text)
            return []
        return [(_keep(FoundPlace("", self._settings.model, each)), number) for each in checked.found]

    def end(self) -> list[tuple[FoundPlace, int]]:
        """End the record; return what is found in a thought whose end was not seen so far."""
        found = check_text("\n".join(self._lines), self._tags, "anywhere").found if self._lines else ()
        self._lines, self._size, self._fenced = [], 0, 0
        return [(_keep(FoundPlace("", self._settings.model, each)), self._first) for each in found]


def _keep(place: FoundPlace) -> FoundPlace:
    """Lines of a log are never cleaned: only their program knows their format."""
    return place._replace(found=place.found._replace(is_removed=False))


def _find_json(text: str) -> Iterator[Any]:
    """The objects and lists in a line, and the text around them."""
    begin = 0
    decode = json.JSONDecoder().raw_decode
    for start in list(islice((found.start() for found in _OPENING.finditer(text)), _MAX_TRIES)):
        if start < begin:
            continue
        with suppress(ValueError, RecursionError):
            document, end = decode(text, start)
            if document:
                yield text[begin:start]
                yield document
                begin = end
    yield text[begin:]
