"""Finds regular expressions whose time grows faster than their text: `find_slow(pattern)`. Not a test.

From the parse tree of a pattern it builds texts that match up to a repeat, go on with many of one character, and then
fail. The ratio of the times of a text and of one twice as long decides, so the speed of the machine does not.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_SIZES = (20, 40, 80, 160, 400, 800)
_SUSPICIOUS = 0.0004
"""The seconds that are worth a second look: linear patterns take a tenth of it for such a text."""
_STEEP = 3.0
"""Twice the text takes a linear pattern twice the time, and a quadratic one four times."""
_MANY = 1500
_ENDS = ("\0", "\n\0", "(")
_COMMON = " \t-*_`~#|:.)'1a"


def find_slow(pattern: re.Pattern[str], *, searches: bool) -> str | None:
    """A text on which the pattern takes more than linear time; None if none was found. `searches`: whether it may
    begin anywhere in a text, or at its beginning only.
    """
    run = pattern.search if searches else pattern.match
    for build in _build_attacks(pattern):
        size = next((size for size in _SIZES if _measure(run, build(size)) > _SUSPICIOUS), None)
        # Another process may have had the processor: each time is the best of three, twice over.
        if size is not None and all(_find_ratio(run, build, size) > _STEEP for _ in range(2)):
            return build(5)
    return None


def _find_ratio(run: Callable[[str], object], build: Callable[[int], str], size: int) -> float:
    short = min(_measure(run, build(size)) for _ in range(3))
    return min(_measure(run, build(2 * size)) for _ in range(3)) / max(short, 1e-9)


def _measure(run: Callable[[str], object], text: str) -> float:
    started = time.perf_counter()
    run(text)
    return time.perf_counter() - started


def _build_attacks(pattern: re.Pattern[str]) -> Iterator[Callable[[int], str]]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    seen = set[tuple[str, str, str]]()
    signs = _find_signs(tree)
    for start in dict.fromkeys(["", *_list_starts(tree)]):
        for sign in signs:
            for end in _ENDS:
                key = start, sign, end
                if key not in seen and len(seen) < _MANY:
                    seen.add(key)
                    yield partial(_write_attack, *key)


def _write_attack(start: str, sign: str, end: str, size: int) -> str:
    return start + sign * size + end


def _find_signs(tree: Any) -> list[str]:
    """What is worth repeating: the characters of the pattern, and its smallest texts."""
    found = dict.fromkeys(_COMMON)
    for operation, value in _walk(tree):
        if operation is constants.LITERAL and value < 0x10000:
            found[chr(value)] = None
    return list(found)[:30]


def _walk(tree: Any) -> Iterator[tuple[Any, Any]]:
    for operation, value in tree:
        yield operation, value
        if operation is constants.IN:
            yield from ((each, what) for each, what in value)
        for inner in _list_inner(operation, value):
            yield from _walk(inner)


def _list_inner(operation: Any, value: Any) -> list[Any]:
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
        return [value[2]]
    if operation is constants.SUBPATTERN:
        return [value[3]]
    if operation is constants.BRANCH:
        return list(value[1])
    if operation is constants.ATOMIC_GROUP:
        return [value]
    if operation is constants.GROUPREF_EXISTS:
        return [each for each in value[1:] if each is not None]
    return []


def _list_starts(tree: Any, before: str = "") -> Iterator[str]:
    """The smallest texts that match up to each repeat."""
    for place, (operation, value) in enumerate(tree):
        start = before + _write_least(tree[:place])
        if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            yield start
        for inner in _list_inner(operation, value):
            yield from _list_starts(inner, start)


def _write_least(tree: Any) -> str:
    """A small text that a part of a pattern matches, as far as this can tell."""
    text = ""
    for operation, value in tree:
        if operation is constants.LITERAL:
            text += chr(value)
        elif operation is constants.IN:
            text += _pick(value)
        elif operation in (constants.ANY, constants.NOT_LITERAL):
            text += "a" if value != ord("a") else "b"
        elif operation in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            text += _write_least(value[2]) * value[0]
        elif inner := _list_inner(operation, value):
            text += _write_least(inner[0])
    return text


_OF_CATEGORY = {
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_WORD: "a",
    constants.CATEGORY_NOT_SPACE: "a",
}


def _pick(members: Any) -> str:
    """One character of a set. Of those that say what is not in them: a letter or a blank."""
    if members[0][0] is constants.NEGATE:
        excluded = {chr(value) for operation, value in members if operation is constants.LITERAL}
        return next(sign for sign in "a b#(" if sign not in excluded)
    operation, value = members[0]
    if operation is constants.LITERAL:
        return chr(value)
    return chr(value[0]) if operation is constants.RANGE else _OF_CATEGORY.get(value, "a")
