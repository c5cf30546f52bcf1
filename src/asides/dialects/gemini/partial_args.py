"""Assembles the arguments of a call from pieces, each with its path: `$.items[0].name`.

Not here: calls that come whole, and their events.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from asides.dialects.gemini.wire import PartialArg

Step: TypeAlias = str | int

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
# A larger list index is no index that a model wrote.
_FARTHEST = 10_000
# The empty items before those indexes, in all lists of a call.
_MOST_PADDING = 100_000


class PartialArguments:
    """The arguments of one call, while they arrive."""

    __slots__ = ("_growing", "_padding", "_path", "_pieces", "_value")

    def __init__(self) -> None:
        self._value: dict[str, Any] = {}
        self._growing: str | None = None
        """The path of the text that is still open."""
        self._path: list[Step] = []
        """The steps of that path."""
        self._pieces: list[str] = []
        self._padding = _MOST_PADDING

    def add(self, piece: PartialArg) -> bool:
        """Add a piece; False when its path cannot be parsed."""
        value = _read_value(piece)
        if self._growing != piece.json_path or not isinstance(value, str):
            path = _parse_path(piece.json_path)
            if path is None:
                return False
            self._finish_text()
            if not self._put(path, value):
                return False
            self._growing, self._path = piece.json_path, path
        if isinstance(value, str):
            self._pieces.append(value)
        if not piece.will_continue:
            self._finish_text()
        return True

    def _finish_text(self) -> None:
        """Join the pieces of the open text: it is complete."""
        if self._growing is not None and self._pieces:
            self._put(self._path, "".join(self._pieces))
        self._growing, self._pieces = None, []

    def _put(self, path: list[Step], value: Any) -> bool:
        """Put a value at its path and create the objects and lists on the way; do nothing where another type is.

        False when the path needs more empty items than a call may have.
        """
        holder: Any = self._value
        for step, following in zip(path, (*path[1:], None), strict=True):
            if isinstance(step, int):
                if not isinstance(holder, list):
                    return True
                missing = step + 1 - len(holder)
                if missing > 1:
                    self._padding -= missing - 1
                    if self._padding < 0:
                        return False
                holder.extend([None] * missing)
            elif not isinstance(holder, dict):
                return True
            else:
                holder.setdefault(step, None)
            place: Any = holder
            if following is None:
                place[step] = value
            elif not isinstance(place[step], (dict, list)):
                place[step] = [] if isinstance(following, int) else {}
            holder = place[step]
        return True

    def merge(self, whole: dict[str, Any]) -> None:
        """Add arguments that came whole."""
        self._value |= whole

    def to_json(self, *, whole: bool) -> str:
        """Return the arguments as JSON. Those of a call that was cut off are cut off too, so that they do not parse."""
        self._finish_text()
        text = msgspec.json.encode(self._value).decode()
        return text if whole else text[:-1]


def _parse_path(path: str) -> list[Step] | None:
    rest = path.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps: list[Step] = []
    start = 0
    while start < len(rest):
        found = _STEP.match(rest, start)
        if found is None:
            return None
        name, place, single, double = found.groups()
        if place is not None:
            if int(place) > _FARTHEST:
                return None
            steps.append(int(place))
        else:
            steps.append(name or re.sub(r"\\(.)", r"\1", single if single is not None else double or ""))
        start = found.end()
    return steps or None


def _read_value(piece: PartialArg) -> Any:
    if piece.string_value is not None:
        return piece.string_value
    if piece.bool_value is not None:
        return piece.bool_value
    number = piece.number_value
    # Numbers come as floats; one without a fraction was an integer.
    return int(number) if isinstance(number, float) and number.is_integer() else number
