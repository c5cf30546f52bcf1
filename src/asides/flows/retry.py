"""Whether to try again, and when: a verdict from what happened. Pure; the waiting is the shell's."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from asides.flows.call import Policy
from asides.values.errors import AsidesError, ConnectionLost, ConnectTimeout, Overloaded, RateLimited

_PASSING = frozenset({408, 409, 429})


class Retry(msgspec.Struct, frozen=True):
    """Try again after this many seconds."""

    seconds: float


class GiveUp(msgspec.Struct, frozen=True):
    """Do not try again. `why` is a sentence for the error, "" where the failure speaks for itself."""

    why: str = ""


def verdict(
    failure: int | AsidesError,
    headers: Mapping[str, str],
    *,
    attempt: int,
    policy: Policy,
    jitter: float,
    received: float = 0.0,
) -> Retry | GiveUp:
    """What to do after the `attempt`-th try (the first is 1) failed, before anything was handed to the caller.

    `failure` is a status, or the error where there was none or a good one; header names are in lower case; `jitter` is
    a number from 0 to 1; `received` is the Unix time at which the response came.
    """
    told = headers.get("x-should-retry", "").strip().lower()
    if told == "false" or not (told == "true" or _passes(failure)):
        return GiveUp()
    if attempt > policy.retries:
        return GiveUp(f"Given up after {attempt} attempts." if attempt > 1 else "")
    demanded = wait_demanded(headers, received)
    if demanded is None:
        demanded = getattr(failure, "retry_after", None)
    if demanded is None:
        wait = min(policy.backoff * 2.0 ** (attempt - 1), policy.max_backoff)
        # Down to half of it, so that clients that failed together do not come back together.
        return Retry(wait * (1 - jitter / 2))
    if demanded > policy.max_wait:
        return GiveUp(f"Not tried again: they ask to wait {demanded:g} s, more than max_wait ({policy.max_wait:g} s).")
    return Retry(demanded)


def _passes(failure: int | AsidesError) -> bool:
    """Whether the same request may fare better later.

    Silence (IdleTimeout) is not among these: the model may be at work on the first request, and be paid for it.
    """
    if isinstance(failure, int):
        return failure in _PASSING or failure >= 500
    return isinstance(failure, (ConnectTimeout, ConnectionLost, RateLimited, Overloaded))


def wait_demanded(headers: Mapping[str, str], received: float = 0.0) -> float | None:
    """The seconds that a server asks us to wait; None when it does not ask, or cannot be understood."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        told = headers.get(name, "").strip()
        if not told:
            continue
        try:
            seconds = float(told) / unit
        except ValueError:
            moment = _moment(told)
            if moment is None:
                continue
            # Their clock against their clock, where they say what time it is there.
            now = _moment(headers.get("date", "")) or received
            seconds = max(moment - now, 0.0) if now else math.nan
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _moment(date: str) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
