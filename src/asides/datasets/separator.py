"""`RowSeparator` adds the columns answer, thinking and commentary to rows; `separate_many` does so for many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import msgspec

from asides.datasets.rows import read_value
from asides.datasets.separation import (
    DEFAULT_UNDECIDED,
    Separation,
    TagSettings,
    Verdict,
    separate_text,
)
from asides.values.errors import ConfigError
from asides.wire.inline_tags import Position, StartsInside


class RowSeparator(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A function from a row to its new columns. It can be pickled: `dataset.map(RowSeparator(column="response"))`.

    Of `column`, `messages` and `response` one says where a row has what the model said.
    """

    column: str | None = None
    """The column with the text of a model. With `response`: the column with the body."""
    messages: str | None = None
    """The column with a list of messages, or with a conversation as text."""
    response: bool = False
    """The row, or its `column`, is the body of a recorded response."""
    tags: tuple[str | tuple[str, str], ...] | None = None
    position: Position = "auto"
    starts_inside: StartsInside = "auto"
    answer: str = "answer"
    """The column for the answer; for `messages` each value is a list, with one for each turn of the model."""
    thinking: str = "thinking"
    commentary: str = "commentary"
    verdict: str | None = None
    """The name of a column that says what was found in the row, such as "closed" or "unclosed"; None: no column."""
    to: str | None = None
    """The format in which the conversation is written as well; see `asides.datasets.formats`."""
    into: str | None = None
    """The column for that; None: the column that was read."""
    prompt: str | None = None
    """With `column` and `to`: the column with the question before it."""
    undecided: tuple[Verdict, ...] = DEFAULT_UNDECIDED
    """The verdicts of rows that a person has to look at."""

    def __post_init__(self) -> None:
        if (self.column is None) is (self.messages is None) and not (self.response and self.messages is None):
            raise ConfigError("separate_many takes one of column=, messages= and response=. Pass one of them.")
        self.settings.make_splitter()
        if self.to is not None:
            from asides.datasets.formats import find_format

            find_format(self.to)
            if self.response:
                raise ConfigError("to= goes with column= or messages=. Leave it out for recorded responses.")
        if len(set(self.names)) < len(self.names):
            raise ConfigError("two of the new columns have the same name. Give each its own.")

    @cached_property
    def settings(self) -> TagSettings:
        """How tags are read."""
        return TagSettings(self.tags, self.position, self.starts_inside)

    @cached_property
    def source(self) -> str | None:
        """The column that is read; None: the whole row."""
        return self.messages if self.column is None else self.column

    @cached_property
    def target(self) -> str | None:
        """The column for the conversation in the format `to`; None without one."""
        return None if self.to is None else self.into or self.source

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The new columns."""
        names = (self.answer, self.thinking, self.commentary, self.verdict, self.target)
        return tuple(name for name in names if name is not None)

    @cached_property
    def _added(self) -> tuple[str, ...]:
        """The columns that a row must not have."""
        return tuple(name for name in self.names if name not in (self.source, self.target))

    @cached_property
    def _is_plain(self) -> bool:
        """Whether it only separates texts."""
        return self.to is None and not self.response and self.messages is None

    def __call__(self, row: object) -> dict[str, Any]:
        """The new columns of a row, or of a text. The verdict of anything else is "unreadable"."""
        if isinstance(row, Mapping):
            found = self.separate(cast("Mapping[str, Any]", row), self.source)
        elif isinstance(row, str) or self.source == "":
            found = self.separate({"": row}, "")
        else:
            found = Separation("unreadable", reason=f"the row is not an object but {type(row).__name__}")
        return self.fill(found)

    def separate(self, row: Mapping[str, Any], source: str | None) -> Separation:
        """Separate the value of a row."""
        if source is not None and source not in row:
            return Separation("unreadable", reason=f"the row has no column {source[:40]!r}")
        for name in self._added:
            if name in row:
                return Separation("unreadable", reason=f"the row has a column {name[:40]!r} already")
        value = row if source is None else read_value(row[source])
        if isinstance(value, bytes):  # Parquet may hold text as bytes.
            try:
                value = value.decode()
            except UnicodeDecodeError:
                return Separation("unreadable", reason="the value is not text but bytes")
        if self._is_plain:
            return separate_text(value, self.settings)
        if self.response:
            from asides.datasets.responses import separate_response

            return separate_response(value, self.settings)
        from asides.datasets.conversations import separate_conversation

        prompt = read_value(row.get(self.prompt)) if self.prompt is not None else None
        return separate_conversation(value, self.settings, to=self.to, is_text=self.column is not None, prompt=prompt)

    def fill(self, found: Separation) -> dict[str, Any]:
        """The new columns of a result."""
        columns: dict[str, Any] = {
            self.answer: found.answer,
            self.thinking: found.thinking,
            self.commentary: found.commentary,
        }
        if self.verdict is not None:
            columns[self.verdict] = found.verdict
        if self.target is not None and found.turns is not None:
            columns[self.target] = found.turns
        return columns

    def is_undecided(self, found: Separation) -> bool:
        """Whether a person has to look at the row."""
        return found.verdict in self.undecided


def separate_many(
    rows: Iterable[Mapping[str, Any] | str],
    column: str | None = None,
    *,
    messages: str | None = None,
    response: bool = False,
    tags: tuple[str | tuple[str, str], ...] | None = None,
    position: Position = "auto",
    starts_inside: StartsInside = "auto",
    answer: str = "answer",
    thinking: str = "thinking",
    commentary: str = "commentary",
    verdict: str | None = "verdict",
    to: str | None = None,
    into: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Separate rows one at a time, in order: each comes back with the columns answer, thinking, commentary and verdict.

    `rows` are texts, or dicts with the text of a model in `column`, with a conversation in `messages`, or which are
    recorded responses. The rows themselves stay as they are, and no row raises: the verdict of one that cannot be read
    is "unreadable". The arguments are those of `RowSeparator`.
    """
    separator = RowSeparator(
        column=column if column is not None or messages is not None or response else "",
        messages=messages,
        response=response,
        tags=None if tags is None else tuple(tags),
        position=position,
        starts_inside=starts_inside,
        answer=answer,
        thinking=thinking,
        commentary=commentary,
        verdict=verdict,
        to=to,
        into=into,
    )
    return _separate(rows, separator)


def _separate(rows: Iterable[Mapping[str, Any] | str], separator: RowSeparator) -> Iterator[dict[str, Any]]:
    for row in rows:
        columns = separator(row)
        yield {**row, **columns} if isinstance(row, Mapping) else columns
