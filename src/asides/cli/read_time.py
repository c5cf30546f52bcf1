"""`read_time`: a time as written in an option: a span before or after now, such as 30d, or a date."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def read_time(text: str, now: float, side: Literal["before", "after"]) -> float | None:
    """The time in seconds since 1970; None if it cannot be read. `side`: whether a span lies before or after now.

    A date without a zone is of UTC.
    """
    if (span := _SPAN.fullmatch(text.strip())) is not None:
        seconds = int(span[1]) * _SECONDS[span[2]]
        return now - seconds if side == "before" else now + seconds
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    return None
