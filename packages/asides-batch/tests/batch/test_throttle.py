"""How a batch slows down, and speeds up again."""

from __future__ import annotations

import pytest

import asides
from asides_batch.throttle import Throttle, is_limit


def test_a_limit_halves_what_is_sent_at_once_and_replies_bring_it_back() -> None:
    throttle = Throttle(8)
    wait = throttle.note_limit(asides.RateLimited("slow", retry_after=4.0), 100.0)
    assert 4.0 <= wait <= 5.0
    assert (throttle.limit, throttle.limited_since) == (4, 100.0)
    # Those that were under way with it are not news.
    throttle.note_limit(asides.RateLimited("slow", retry_after=1.0), 100.1)
    assert (throttle.limit, throttle.paused_until >= 104.0) == (4, True)
    for _ in range(4):
        throttle.note_reply()
    assert (throttle.limit, throttle.limited_since) == (4, None)
    for _ in range(100):
        throttle.note_reply()
    assert throttle.limit == 8


def test_without_advice_the_pauses_grow_to_a_minute() -> None:
    throttle, now = Throttle(8), 0.0
    waits: list[float] = []
    for _ in range(9):
        waits.append(throttle.note_limit(asides.Overloaded("busy", status=529), now))
        now = throttle.paused_until
    assert waits[0] < 1.3
    assert waits[1] >= 2.0
    assert 60.0 <= waits[-1] <= 61.0
    assert throttle.limit == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (asides.RateLimited("x", status=429), True),
        (asides.Overloaded("x", status=529), True),
        (asides.Overloaded("x", status=503), True),
        (asides.Overloaded("x", status=500, retry_after=1), True),
        (asides.Overloaded("x", status=500), False),
        (asides.BadRequest("x", status=400), False),
        (asides.ConnectionLost("x"), False),
    ],
)
def test_what_is_a_limit(error: asides.AsidesError, expected: bool) -> None:
    assert is_limit(error) is expected
