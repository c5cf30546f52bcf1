"""`audit(rows)`: finds thinking where it must not be, in rows, messages and texts that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from asides.datasets.audit_text import FoundChannel, FoundInText, FoundKind, Tag
from asides.datasets.audit_walk import AuditSettings, FoundPlace, TooDeep, check_document, parse_inner
from asides.values.errors import ConfigError
from asides.values.json_form import JsonForm
from asides.wire.inline_tags import Position, Splitter


class AuditFinding(msgspec.Struct, JsonForm, frozen=True, kw_only=True):
    """Thinking or commentary in a text that should hold the answer only. `repr` and `to_dict` hold no content."""

    _private = {"text": "thinking"}

    row: int
    """The number of the row or the line, from 1; the rowid in a database."""
    path: str
    """The place in the row, as a JSON path: `$.messages[2].content`."""
    channel: FoundChannel
    grammar: str
    """The name of the grammar of its tags; "" for a copy of reasoning that is stored beside the text."""
    kind: FoundKind
    characters: int
    """The length of what was found."""
    text: str
    is_removed: bool
    """Whether it is removed in a cleaned copy."""
    model: str | None = None
    file: str = ""
    table: str = ""

    def __repr__(self) -> str:
        names = ("file", "table", "row", "path", "channel", "grammar", "kind", "characters")
        fields = [f"{name}={value!r}" for name in names if (value := getattr(self, name))]
        return f"AuditFinding({', '.join(fields)})"


def make_settings(tags: Sequence[Tag] | None, position: Position, model: str | None) -> AuditSettings:
    """Check the settings. Raises ConfigError."""
    chosen = None if tags is None else tuple(tag if isinstance(tag, str) else (tag[0], tag[1]) for tag in tags)
    try:
        Splitter(chosen, position)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    return AuditSettings(chosen, position, model)


def make_finding(place: FoundPlace, row: int, file: str = "", table: str = "") -> AuditFinding:
    """A finding at its place in a row."""
    channel, grammar, kind, text, is_removed = place.found
    return AuditFinding(
        row=row,
        path=place.path,
        channel=channel,
        grammar=grammar,
        kind=kind,
        characters=len(text),
        text=text,
        is_removed=is_removed,
        model=place.model,
        file=file,
        table=table,
    )


def audit(
    rows: Iterable[object],
    *,
    tags: Sequence[str | tuple[str, str]] | None = None,
    position: Position = "auto",
    model: str | None = None,
) -> Iterator[AuditFinding]:
    """Find thinking where it must not be: tags in the text of an answer, lone closing tags, and copies of reasoning.

    A row is a dict or a list as JSON has them, a message of asides or of another library, a line of JSON lines, or the
    text of an answer. Rows are read one by one and not kept. Reasoning in a place of its own, such as
    `reasoning_content` or a block of thinking, is not reported; neither is what users, systems and tools wrote. No row
    raises: one that cannot be read is a finding of the kind "unreadable".

    `tags` and `position` are those of `separate`. `model` is the model of rows that name none.
    """
    return _audit(rows, make_settings(tags, position, model))


def _audit(rows: Iterable[object], settings: AuditSettings) -> Iterator[AuditFinding]:
    for number, row in enumerate(rows, 1):
        try:
            places = check_document(_read_row(row), settings).found
        except (TooDeep, TypeError):
            places = (_UNREADABLE,)
        for place in places:
            yield make_finding(place, number)


_UNREADABLE = FoundPlace("$", None, FoundInText("thinking", "", "unreadable", "", is_removed=False))


def _read_row(row: object) -> Any:
    """The row as JSON has it. Raises TypeError if it is of an unknown type."""
    if isinstance(row, bytes | bytearray):
        row = bytes(row).decode("utf-8", "replace")
    if isinstance(row, str):
        document = parse_inner(row.strip())
        return row if document is None else document
    if row is None or isinstance(row, Mapping | list | int | float):
        return cast("Any", row)
    if isinstance(row, tuple):
        return list(row)
    if isinstance(row, msgspec.Struct):
        return msgspec.json.decode(msgspec.json.encode(row))
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(type(row).__name__)
