"""Strips the code fence around a whole reply: small models often quote the form that they were shown.

Not here: the parsing of the text (parser). The result depends on the text alone: any chunking gives the same.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Literal

from asides.agents.react.markers import MOST_HELD, Marker, check_fence_end, find_fence, find_marker

# The beginning decides: a fence, and a label in the next line.
_HEAD = 4 * MOST_HELD


class _State(Enum):
    HEAD = auto()
    INSIDE = auto()
    PASSING = auto()


class FenceStripper:
    """Passes text on, without a fence before the first label and without the fence that closes it."""

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._held = ""
        self._fence = ""
        self._inner: str | None = None
        self._fresh = True

    def feed(self, text: str) -> str:
        """Take the next text; return the text that is certain now."""
        if self._state is _State.PASSING:
            return text
        if self._state is _State.INSIDE:
            return self._inside(text)
        self._held += text
        return self._decide(complete=False)

    def finish(self) -> str:
        """The text is complete: return the text that was held back."""
        rest = self._decide(complete=True) if self._state is _State.HEAD else ""
        held, self._held = self._held, ""
        if self._state is _State.INSIDE and held and check_fence_end(held, self._fence, complete=True) == "yes":
            held = ""
        self._state = _State.PASSING
        return rest + held

    def _decide(self, *, complete: bool) -> str:
        window = self._held[:_HEAD]
        over = len(self._held) >= _HEAD
        found = _find_body(window, complete=complete and not over)
        if isinstance(found, tuple):
            self._state = _State.INSIDE
            self._fence, body = found
            text, self._held = self._held[len(window) - len(body) :], ""
            return self._inside(text)
        if found is None or over or complete:
            self._state = _State.PASSING
            text, self._held = self._held, ""
            return text
        return ""

    def _inside(self, text: str) -> str:
        out: list[str] = []
        lines = _split_lines(text)
        for place, piece in enumerate(lines):
            if not self._fresh:
                out.append(piece)
                self._fresh = piece.endswith("\n")
                continue
            line, self._held = self._held + piece, ""
            bare, complete = line.rstrip("\r\n"), line.endswith("\n")
            if self._inner is not None:
                closes = check_fence_end(bare, self._inner, complete=complete)
                if closes == "later":
                    self._held = line
                    continue
                self._inner = None if closes == "yes" else self._inner
            else:
                opens = find_fence(bare, complete=complete)
                if opens == "later":
                    self._held = line
                    continue
                if opens is not None and check_fence_end(bare, self._fence, complete=True) == "yes":
                    self._state = _State.PASSING
                    return "".join((*out, *lines[place + 1 :]))
                self._inner = opens
            out.append(line)
            self._fresh = complete
        return "".join(out)


def _split_lines(text: str) -> list[str]:
    """The lines of a text. Only a line feed ends a line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [last for last in (text.rpartition("\n")[2],) if last]


def _find_body(text: str, *, complete: bool) -> tuple[str, str] | Literal["later"] | None:
    """The fence at the beginning of a text, and the text inside it. None when that does not begin with a label, "later"
    when the decision needs more of the text.
    """
    undecided: Literal["later"] | None = None if complete else "later"
    rest = text.lstrip()
    if not rest:
        return undecided
    first, ended, below = rest.partition("\n")
    opens = find_fence(first.rstrip("\r"), complete=bool(ended) or complete)
    if opens is None:
        return None
    body = below.lstrip("\r\n")
    if opens == "later" or not body:
        return undecided
    line, more, _ = body.partition("\n")
    marker = find_marker(line + more, complete=bool(more) or complete)
    if marker == "later":
        return undecided
    return (opens, body) if isinstance(marker, Marker) else None
