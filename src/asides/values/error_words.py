"""Hints for error messages: the name that was probably meant, and the type of a value."""

from __future__ import annotations

from collections.abc import Iterable

_CUTOFF = 0.6
"""Minimum similarity of two names, from 0 to 1."""


def find_near_names(name: str, known: Iterable[str], *, most: int, cutoff: float = _CUTOFF) -> list[str]:
    """The known names that are like this one, the nearest first."""
    from difflib import get_close_matches  # Only errors need it.

    return get_close_matches(name, list(known), n=most, cutoff=cutoff)


def find_near_name(name: str, known: Iterable[str], *, cutoff: float = _CUTOFF) -> str | None:
    """The known name that is nearest to this one; None if none is near."""
    return next(iter(find_near_names(name, known, most=1, cutoff=cutoff)), None)


def suggest_name(name: str, known: Iterable[str], otherwise: str, *, cutoff: float = _CUTOFF) -> str:
    """ "did you mean NAME?" with the nearest known name, or the other words if none is near."""
    near = find_near_name(name, known, cutoff=cutoff)
    return otherwise if near is None else f"did you mean {near}?"


def describe_type(value: object) -> str:
    """The type of a value with its article: "an int"; "None" for None."""
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
