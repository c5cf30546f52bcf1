"""A reply that stands wholly in a code fence, without the fence: small models like to quote the form they were shown.

Not here: what the text says (sections). The result is a function of the text alone: any chunking gives the same.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Literal

from asides.agents.react.markers import MOST_HELD, Marker, closes_fence, find_marker, opens_fence

# What tells stands at the beginning: the fence, and a label in the next line.
_HEAD = 4 * MOST_HELD


class _State(Enum):
    HEAD = auto()
    INSIDE = auto()
    PASSING = auto()


class Unwrapper:
    """Passes text on; a fence in front of the first label is left out, and so is the one that closes it."""

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._held = ""
        self._fence = ""
        self._inner: str | None = None
        self._fresh = True

    def feed(self, text: str) -> str:
        """Take the next text; return what is certain now."""
        if self._state is _State.PASSING:
            return text
        if self._state is _State.INSIDE:
            return self._inside(text)
        self._held += text
        return self._decide(complete=False)

    def finish(self) -> str:
        """The text is complete: return what was held."""
        rest = self._decide(complete=True) if self._state is _State.HEAD else ""
        held, self._held = self._held, ""
        if self._state is _State.INSIDE and held and closes_fence(held, self._fence, complete=True) == "yes":
            held = ""
        self._state = _State.PASSING
        return rest + held

    def _decide(self, *, complete: bool) -> str:
        window = self._held[:_HEAD]
        over = len(self._held) >= _HEAD
        found = _wrapped(window, complete=complete and not over)
        if isinstance(found, tuple):
            self._state = _State.INSIDE
            self._fence, body = found
            said, self._held = self._held[len(window) - len(body) :], ""
            return self._inside(said)
        if found is None or over or complete:
            self._state = _State.PASSING
            said, self._held = self._held, ""
            return said
        return ""

    def _inside(self, text: str) -> str:
        out: list[str] = []
        lines = _lines(text)
        for place, piece in enumerate(lines):
            if not self._fresh:
                out.append(piece)
                self._fresh = piece.endswith("\n")
                continue
            line, self._held = self._held + piece, ""
            bare, complete = line.rstrip("\r\n"), line.endswith("\n")
            if self._inner is not None:
                closes = closes_fence(bare, self._inner, complete=complete)
                if closes == "later":
                    self._held = line
                    continue
                self._inner = None if closes == "yes" else self._inner
            else:
                opens = opens_fence(bare, complete=complete)
                if opens == "later":
                    self._held = line
                    continue
                if opens is not None and closes_fence(bare, self._fence, complete=True) == "yes":
                    self._state = _State.PASSING
                    return "".join((*out, *lines[place + 1 :]))
                self._inner = opens
            out.append(line)
            self._fresh = complete
        return "".join(out)


def _lines(text: str) -> list[str]:
    """Lines end with a line feed and with nothing else."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [last for last in (text.rpartition("\n")[2],) if last]


def _wrapped(text: str, *, complete: bool) -> tuple[str, str] | Literal["later"] | None:
    """The fence that a text begins with and what stands in it, when that begins with a label; None when there is no
    such thing, "later" when more of the text decides.
    """
    undecided: Literal["later"] | None = None if complete else "later"
    rest = text.lstrip()
    if not rest:
        return undecided
    first, ended, behind = rest.partition("\n")
    opens = opens_fence(first.rstrip("\r"), complete=bool(ended) or complete)
    if opens is None:
        return None
    body = behind.lstrip("\r\n")
    if opens == "later" or not body:
        return undecided
    line, more, _ = body.partition("\n")
    marker = find_marker(line + more, complete=bool(more) or complete)
    if marker == "later":
        return undecided
    return (opens, body) if isinstance(marker, Marker) else None
