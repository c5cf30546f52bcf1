"""The arguments of a call that come in pieces, each with the place it belongs to: `$.items[0].name`.

Not here: calls that come whole, and the event they become.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from asides.dialects.gemini.wire import PartialArg

Step: TypeAlias = str | int

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
# A place in a list further out than this is no list that a model wrote.
_FARTHEST = 10_000


class PartialArguments:
    """One call's arguments, while they grow."""

    __slots__ = ("_growing", "_pieces", "_value")

    def __init__(self) -> None:
        self._value: dict[str, Any] = {}
        self._growing: str | None = None
        """The path of a text of which more is to come."""
        self._pieces: list[str] = []

    def take(self, piece: PartialArg) -> bool:
        """Add a piece; False when its path does not read."""
        path = _steps(piece.json_path)
        if path is None:
            return False
        value = _value_of(piece)
        if self._growing != piece.json_path or not isinstance(value, str):
            self._settle()
            _put(self._value, path, value)
            self._growing = piece.json_path
        if isinstance(value, str):
            self._pieces.append(value)
        if not piece.will_continue:
            self._settle()
        return True

    def _settle(self) -> None:
        """The text that was growing is whole; its pieces are joined once."""
        path = _steps(self._growing) if self._growing is not None else None
        if path is not None and self._pieces:
            _put(self._value, path, "".join(self._pieces))
        self._growing, self._pieces = None, []

    def merge(self, whole: dict[str, Any]) -> None:
        """Add arguments that came whole after all."""
        self._value |= whole

    def json(self, *, whole: bool) -> str:
        """The arguments as JSON. Of a call that broke off, JSON that breaks off too: nobody shall take it for all."""
        self._settle()
        text = msgspec.json.encode(self._value).decode()
        return text if whole else text[:-1]


def _steps(path: str) -> list[Step] | None:
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


def _value_of(piece: PartialArg) -> Any:
    if piece.string_value is not None:
        return piece.string_value
    if piece.bool_value is not None:
        return piece.bool_value
    number = piece.number_value
    # Numbers travel as floats; one without a fraction was written as an integer.
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _put(holder: Any, path: list[Step], value: Any) -> None:
    """Put a value at its place, and make what is on the way; where something else stands, nothing is done."""
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(step, int):
            if not isinstance(holder, list):
                return
            holder.extend([None] * (step + 1 - len(holder)))
        elif not isinstance(holder, dict):
            return
        else:
            holder.setdefault(step, None)
        place: Any = holder
        if following is None:
            place[step] = value
        elif not isinstance(place[step], (dict, list)):
            place[step] = [] if isinstance(following, int) else {}
        holder = place[step]
