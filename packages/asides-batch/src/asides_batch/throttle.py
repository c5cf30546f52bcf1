"""`Throttle`: how many requests may be under way, and until when none may be sent.

A provider that asks to wait slows down all requests: half as many may be under way after each such error, and one more
after a round of good replies.
"""

from __future__ import annotations

import random

from asides.values.errors import AsidesError, Overloaded, RateLimited

_BUSY = (503, 529)
"""Statuses of a server that has too much to do. 529 is Anthropic's (docs.anthropic.com, errors, 2026-11)."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class Throttle:
    """The state of one run. Times are those of the caller's clock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._pauses = 0
        self.paused_until = 0.0
        """Nothing is sent before this time."""
        self.limited_since: float | None = None
        """Since when no request has got through; None if the last one did."""

    @property
    def limit(self) -> int:
        """How many may be under way."""
        return int(self._limit)

    def note_reply(self) -> None:
        """Note that a request got a reply."""
        self._pauses = 0
        self.limited_since = None
        self._limit = min(float(self._most), self._limit + 1.0 / max(self._limit, 1.0))

    def note_limit(self, error: AsidesError, now: float) -> float:
        """Note that the provider asked to wait. Returns the seconds. Requests under way at the same time count once."""
        if self.limited_since is None:
            self.limited_since = now
        asked = getattr(error, "retry_after", None)
        if now >= self.paused_until:
            self._limit = max(1.0, self._limit / 2)
            self._pauses += 1
        pause = min(_FIRST_PAUSE * 2.0 ** min(self._pauses - 1, 10), _LONGEST_PAUSE) if asked is None else asked
        # With some jitter: not all that wait return together.
        until = now + max(pause, 0.0) + random.uniform(0, 0.25 * min(pause, 4.0))
        self.paused_until = max(self.paused_until, until)
        return self.paused_until - now


def is_limit(error: AsidesError) -> bool:
    """Whether an error asks all requests to slow down. After a mere failure, only this request is tried again."""
    if isinstance(error, Overloaded):
        return error.status in _BUSY or error.retry_after is not None
    return isinstance(error, RateLimited)
