"""Windows of a minute for the limits of a key: the arithmetic that memory and Redis share, and `open_windows`.

A window slides, and is kept as buckets of half a second. A bucket holds requests, tokens, and the time of its last
request, and counts as a whole until that time is a minute old. So:

- No minute, wherever it begins, sees more than the limit. The usual approximations let up to twice as much pass: two
  weighted buckets of a minute, when requests come in bursts, and GCRA, when bursts as large as the limit are allowed.
- A request waits at most half a second longer than with an exact log, and no longer where a bucket has one request.
- A key takes at most 121 buckets, however high its limits are. A log takes an entry for each request.

Tokens are reserved by an estimate, and corrected when the reply has ended: tokens that were not used are given back to
their bucket, and tokens beyond the estimate count from then on. An estimate above the limit itself reserves the whole
limit: the request waits for an empty window, not for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asides_gateway.access import RateWindows
    from asides_gateway.access.redis_link import RedisLink

WINDOW_MS = 60_000
BUCKET_MS = 500
MOST_TOKENS = 10**12
"""Above any limit, and small enough that sums stay exact in the numbers of Lua."""


class KeyWindow:
    """The window of one key. Times are milliseconds of any one clock."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: dict[int, list[int]] = {}
        """Requests, tokens, and the time of the last request, by the number of the bucket."""

    def take(self, now: int, rpm: int | None, tpm: int | None, tokens: int) -> tuple[int, int, int]:
        """Count one request and its tokens if they fit. Returns the milliseconds to wait, 0 if they were counted, and
        the requests and tokens in the window."""
        self._drop_old(now)
        buckets = self._buckets.values()
        requests, counted = sum(bucket[0] for bucket in buckets), sum(bucket[1] for bucket in buckets)

        def fits() -> bool:
            return (rpm is None or requests < rpm) and (tpm is None or counted + tokens <= tpm)

        if fits():
            self.note(now, tokens)
            return 0, requests + 1, counted + tokens
        for bucket in sorted(buckets, key=lambda bucket: bucket[2]):
            requests -= bucket[0]
            counted -= bucket[1]
            if fits():
                return bucket[2] + WINDOW_MS - now, 0, 0
        return WINDOW_MS, 0, 0  # A limit of 0.

    def note(self, now: int, tokens: int, requests: int = 1) -> None:
        """Count a request, whatever the limits are."""
        bucket = self._buckets.setdefault(now // BUCKET_MS, [0, 0, now])
        bucket[0] += requests
        bucket[1] += tokens
        bucket[2] = max(bucket[2], now)

    def correct(self, now: int, at: int, counted: int, used: int) -> None:
        """Replace the tokens that were counted at a time by those that were used."""
        if used > counted:
            self._drop_old(now)
            self.note(now, used - counted, requests=0)
        elif (bucket := self._buckets.get(at // BUCKET_MS)) is not None:
            bucket[1] = max(bucket[1] + used - counted, 0)

    def is_idle(self, now: int) -> bool:
        """Whether nothing counts any more."""
        self._drop_old(now)
        return not self._buckets

    def _drop_old(self, now: int) -> None:
        current = now // BUCKET_MS
        for number in [number for number, bucket in self._buckets.items() if bucket[2] + WINDOW_MS <= now]:
            del self._buckets[number]
        # The clock went back: move later buckets to now, so that they do not count for longer than a minute.
        for number in [number for number in self._buckets if number > current]:
            requests, tokens, _ = self._buckets.pop(number)
            self.note(now, tokens, requests)


def fit_tokens(tokens: int, tpm: int | None) -> int:
    """The tokens that a request reserves: from 0 to the limit."""
    return max(min(tokens, MOST_TOKENS if tpm is None else min(tpm, MOST_TOKENS)), 0)


def count_left(limit: int | None, counted: int) -> int | None:
    """The remainder of a limit; None without a limit."""
    return None if limit is None else max(limit - counted, 0)


def open_windows(link: RedisLink | None) -> RateWindows:
    """The windows of a gateway: those that instances share in Redis, or those of this process."""
    if link is None:
        from asides_gateway.access.memory_windows import MemoryWindows

        return MemoryWindows()
    from asides_gateway.access.redis_windows import RedisWindows

    return RedisWindows(link)
