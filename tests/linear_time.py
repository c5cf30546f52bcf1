"""`check_linear(measure, size)`: time that grows with the text and not faster. Not a test."""

from __future__ import annotations

from collections.abc import Callable

_GROWTH = 8
_MARGIN = 4
_CLOCK_SECONDS = 0.02


def check_linear(measure: Callable[[int], float], size: int) -> None:
    """Compare the seconds for this size and for 8 times as much; twice, if the machine was busy the first time."""
    times: list[tuple[float, float]] = []
    for _ in range(2):
        small, large = measure(size), measure(size * _GROWTH)
        if large < _GROWTH * _MARGIN * small + _CLOCK_SECONDS:
            return
        times.append((small, large))
    raise AssertionError(f"{_GROWTH} times the text takes more than {_GROWTH * _MARGIN} times as long: {times}")
