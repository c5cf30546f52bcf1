"""Separates a block of rows: what one process does with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from asides.datasets.rows import Block, encode_bytes, parse_line
from asides.datasets.separation import Separation
from asides.datasets.separator import RowSeparator
from asides.datasets.stats import Stats
from asides.datasets.tally import Tally
from asides.values.errors import ConfigError


class BlockJob(msgspec.Struct, frozen=True):
    """What to do with every block."""

    separator: RowSeparator
    only_new: bool = False
    """Write only the new columns."""
    show: int = 0
    """How many rows of each verdict to show in the report."""
    stats: bool = False


class BlockResult(msgspec.Struct):
    """The rows of a block as lines of JSON, and what was found in them."""

    lines: list[bytes]
    tally: Tally
    undecided: list[tuple[int, Separation]]
    """The rows that a person has to look at: their numbers, and what was found, without their content."""


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def separate_block(block: Block, job: BlockJob) -> BlockResult:
    """Separate the rows of a block. An unreadable row does not affect the others."""
    separator, source = job.separator, job.separator.source
    result = BlockResult([], Tally(stats=Stats() if job.stats else None), [])
    for number, fields, problem, is_lenient in _list_rows(block):
        found = Separation("unreadable", reason=problem) if problem else separator.separate(fields, source)
        is_undecided = found.verdict in separator.undecided
        result.tally.add(number, found, is_undecided=is_undecided, show=job.show)
        if result.tally.stats is not None and found.verdict != "unreadable":
            result.tally.stats.add(fields, found)
        if is_undecided:
            result.undecided.append((number, Separation(found.verdict, found.grammar, reason=found.reason)))
        if problem:
            if job.only_new:
                result.lines.append(b"{}")
            continue
        columns = separator.fill(found)
        if found.verdict == "unreadable":
            # The row may have columns of these names, which stay.
            columns = {name: value for name, value in columns.items() if name not in fields}
        if not job.only_new:
            for name in _find_bytes(fields) if block.rows else ():
                result.tally.add_note(f"the column {name[:40]!r} has bytes, which are written in base64")
            fields.update(columns)
            columns = fields
        result.lines.append(_encode_lenient(columns) if is_lenient else _encode_row(columns))
    return result


def _list_rows(block: Block) -> Iterator[tuple[int, dict[str, Any], str, bool]]:
    """The number, the fields, or the problem, of each row; and whether its JSON is not strict."""
    if not block.lines:
        rows = [(number, fields, "", False) for number, fields in block.rows]
        rows += [(number, {}, problem, False) for number, problem in block.problems]
        yield from sorted(rows, key=_get_number)
        return
    for number, line in enumerate(block.lines, block.first):
        try:
            if not line.isascii():
                line.decode()  # the fields are not checked one by one
            yield number, _decode_fields(line), "", False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not line.strip():
                continue
            try:
                yield number, parse_line(line), "", True
            except ValueError as error:
                yield number, {}, str(error), False
    for number, problem in block.problems:
        yield number, {}, problem, False


def _find_bytes(fields: dict[str, Any]) -> list[str]:
    """The columns with bytes, which only Parquet has."""
    return [name for name, value in fields.items() if _holds_bytes(value)]


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_bytes, value))
    return isinstance(value, bytes) or (isinstance(value, dict) and any(map(_holds_bytes, value.values())))


def _get_number(row: tuple[int, dict[str, Any], str, bool]) -> int:
    return row[0]


def _encode_row(row: dict[str, Any]) -> bytes:
    try:
        return _encode(row)
    except (UnicodeEncodeError, TypeError):  # lone surrogate, from CSV
        return _encode_lenient(row)


def _encode_lenient(row: dict[str, Any]) -> bytes:
    """A row with values that JSON does not have, such as NaN, as Python wrote them."""
    plain = {name: json.loads(bytes(value)) if type(value) is msgspec.Raw else value for name, value in row.items()}
    return json.dumps(plain, default=encode_bytes).encode()


def check_first_block(block: Block, separator: RowSeparator) -> None:
    """Raise ConfigError if no row of the first block can be right: its columns have other names."""
    rows = [fields for _, fields, problem, _ in _list_rows(block) if not problem]
    if not rows:
        return
    source = separator.source
    names = list(dict.fromkeys(name for fields in rows for name in fields))
    if source is not None and source not in names:
        known = ", ".join(name[:40] for name in names[:20])
        raise ConfigError(f"no row has a column {source[:40]!r}. Pass one of {known}.")
    for name in separator.names:
        if name in names and name not in (source, separator.target):
            raise ConfigError(f"the rows have a column {name[:40]!r} already. Pass another name for the new column.")
