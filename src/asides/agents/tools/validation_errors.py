"""A value that does not fit its type: where in it, and what is wrong there, as msgspec or pydantic found it.

Not here: the words around it that a model is told (call_arguments; outputs for answers). No content is among them.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

Problem: TypeAlias = tuple[str, str]
"""Where in a value (`"[0].city"`; `""` for all of it), and what is wrong there."""

_MOST_PROBLEMS = 5
_MSGSPEC_WORDS = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<where>.*)`)?", re.DOTALL)


class TypeMisfit(Exception):
    """A value is not of its type."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{where or 'it'}: {what}" for where, what in problems))
        self.problems = problems


def parse_msgspec_error(problem: Exception) -> Problem:
    """The one problem that msgspec has found."""
    words = str(problem)
    read = _MSGSPEC_WORDS.fullmatch(words)
    if read is None:
        return "", words
    return read["where"] or "", f"{read['what']}{' as a key' if read['key'] else ''}"


def parse_pydantic_error(problem: Any) -> tuple[Problem, ...]:
    """The first few of all that pydantic has found, without what it found there."""
    found = problem.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        ("".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"]), str(each["msg"]))
        for each in found[:_MOST_PROBLEMS]
    )
