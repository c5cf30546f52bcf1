"""`MemoryWindows`: the rate windows of one process."""

from __future__ import annotations

import time
from collections.abc import Callable

from asides_gateway.access import CountedRequest, KeyLimits
from asides_gateway.access.rate_windows import KeyWindow, count_left, fit_tokens

_SWEEP_AFTER = 4096


class MemoryWindows:
    """Windows in memory. They belong to one event loop, and no method waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, KeyWindow] = {}
        self._since_sweep = 0

    async def take(self, key_id: str, limits: KeyLimits, tokens: int) -> CountedRequest | float:
        """Count a request and its tokens if they fit; else return the seconds to wait."""
        return self.take_now(key_id, limits, tokens)

    def take_now(self, key_id: str, limits: KeyLimits, tokens: int) -> CountedRequest | float:
        """Synchronous version of `take`."""
        if not limits.has_rate:
            return CountedRequest()
        now, tokens = self._now(), fit_tokens(tokens, limits.tpm)
        wait, requests, in_window = self._find(key_id).take(now, limits.rpm, limits.tpm, tokens)
        if wait:
            return wait / 1000
        return CountedRequest(count_left(limits.rpm, requests), count_left(limits.tpm, in_window), tokens, now)

    def note(self, key_id: str, tokens: int) -> int:
        """Count a request that Redis let pass, so that this process knows it in an outage. Returns the time."""
        now = self._now()
        self._find(key_id).note(now, tokens)
        return now

    async def correct(self, key_id: str, counted: CountedRequest, used: int) -> None:
        """Replace the tokens that a request was counted with by those that it used."""
        self.correct_now(key_id, counted, used)

    def correct_now(self, key_id: str, counted: CountedRequest, used: int) -> None:
        """Synchronous version of `correct`."""
        if counted.tokens != used and counted.tokens_left is not None:
            self._find(key_id).correct(self._now(), counted.at, counted.tokens, used)

    def _find(self, key_id: str) -> KeyWindow:
        self._since_sweep += 1
        if self._since_sweep >= max(_SWEEP_AFTER, 4 * len(self._windows)):
            self._sweep()
        window = self._windows.get(key_id)
        if window is None:
            window = self._windows[key_id] = KeyWindow()
        return window

    def _sweep(self) -> None:
        """Forget the keys that have not asked for a minute."""
        self._since_sweep = 0
        now = self._now()
        for key_id in [key for key, window in self._windows.items() if window.is_idle(now)]:
            del self._windows[key_id]

    def _now(self) -> int:
        return int(self._clock() * 1000)

    async def close(self) -> None:
        """Nothing is open."""

    def __repr__(self) -> str:
        return f"MemoryWindows({len(self._windows)} keys)"
