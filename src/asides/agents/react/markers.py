"""The syntax of ReAct: lines, labels that begin a section, and code fences, in which a label is just text.

A label counts at the beginning of a line: in upper or lower case, in bold or after a heading's `#`, numbered or not,
with an ASCII or a full-width colon.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

MOST_HELD = 120
"""The most characters of a line that are held back; no label is longer."""


class Label(Enum):
    """The labels of ReAct."""

    THOUGHT = "thought"
    ACTION = "action"
    INPUT = "actioninput"
    OBSERVATION = "observation"
    ANSWER = "finalanswer"


class Marker(NamedTuple):
    """A label at the beginning of a line."""

    label: Label
    end: int
    """The index at which the content of the section begins."""
    emphasis: str
    """Bold marks that open before the label and do not close with it. They belong to the content."""


_LABELS = (
    "thought",
    "action",
    *(f"action{between}input" for between in (" ", "_", "-", "")),
    "observation",
    *(f"final{between}answer" for between in (" ", "_", "-", "")),
)
_LEAD = re.compile(r" {0,3}(?:#{1,6}[ \t]*)?[*_]{0,3}")
_MARKER = re.compile(
    r" {0,3}(?P<heading>#{1,6}[ \t]*)?(?P<bold>[*_]{1,3})?"
    r"(?P<label>thought|action[ _-]?input|action|(?P<observation>observation)|(?P<answer>final[ _-]?answer))"
    r"(?:[ \t]*\#?\d{1,3})?(?(observation)(?:[ \t]*\([^()\n]*\))?)"
    r"(?:[ \t]*(?:(?P<before_colon>[*_]{1,3})[ \t]*)?[:\uff1a](?(before_colon)|(?(bold)(?P<after_colon>[*_]{1,3})?))"
    # Only this label is often written as a heading, without a colon.
    r"|(?(answer)[ \t]*(?P<alone>[*_]{1,3}[ \t]*|)\r?(?=\n)|(?!)))",
    re.IGNORECASE,
)
# The text that may follow a label before it is clear whether it is one.
_TAIL = re.compile(
    r"[ \t]*(?:\#?\d{1,3}[ \t]*|\#[ \t]*)?(?:\([^()\n]*(?:\)[ \t]*)?)?(?:[*_]{1,3}[ \t]*)?(?:[:\uff1a][*_]{0,3})?\r?"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_MAYBE_FENCE = re.compile(r" {0,3}(?:`{1,2}|~{1,2})?")

FenceEnd: TypeAlias = Literal["yes", "no", "later"]


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their line feeds; only these end a line. The last line may have none."""
    if "\n" not in text:
        return [text] if text else []
    return [line for line in re.split(r"(?<=\n)", text) if line]


def find_marker(line: str, *, complete: bool) -> Marker | Literal["later"] | None:
    """Find the label at the beginning of a line; "later" when that needs more of it. `complete`: the line is whole."""
    found = _MARKER.match(line)
    if found is not None:
        if found.end() > MOST_HELD:
            return None
        decorated = found["bold"] or found["heading"]
        if found["alone"] is not None and not decorated:
            return None
        # The bold marks may still close after the colon.
        open_bold = found["bold"] and not found["before_colon"]
        if open_bold and found.end() == len(line) and not complete and found["alone"] is None:
            return "later"
        label = Label(re.sub(r"[ _-]", "", found["label"].lower()))
        emphasis = found["bold"] if open_bold and not found["after_colon"] and not found["alone"] else ""
        return Marker(label, found.end(), emphasis or "")
    return None if complete or not _may_become_marker(line) else "later"


def _may_become_marker(line: str) -> bool:
    if len(line) > MOST_HELD:
        return False
    lead = _LEAD.match(line)
    rest = line[lead.end() if lead else 0 :].lower()
    if not rest:
        return True
    if rest[0] not in "taof":
        return False
    return any(
        label.startswith(rest) or (rest.startswith(label) and _TAIL.fullmatch(rest, len(label)) is not None)
        for label in _LABELS
    )


def find_fence(line: str, *, complete: bool) -> str | None:
    """Find the marks with which a line opens a fence; "later" when that needs more of the line."""
    line = line[: MOST_HELD + 1]
    found = _FENCE.match(line)
    if found is None:
        undecided = not complete and _MAYBE_FENCE.fullmatch(line) is not None
        return "later" if undecided else None
    if not complete and len(line) <= MOST_HELD:
        return "later"
    # Backticks that close on the same line are inline code.
    inline = found[1][0] == "`" and "`" in found[2]
    return None if inline else found[1]


def check_fence_end(line: str, fence: str, *, complete: bool) -> FenceEnd:
    """Check whether a line closes the fence that these marks opened."""
    found = _FENCE.match(line)
    if found is None:
        return "later" if not complete and _MAYBE_FENCE.fullmatch(line) is not None else "no"
    if found[1][0] != fence[0] or found[2].strip() or len(line) > MOST_HELD:
        return "no"
    if not complete:
        return "later"
    return "yes" if len(found[1]) >= len(fence) else "no"
