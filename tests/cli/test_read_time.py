"""Times in options: spans before or after now, and dates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from asides.cli.read_time import read_time

NOW = 1_790_000_000.0


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("24h", 86_400), (" 7d ", 604_800), ("2w", 1_209_600)])
def test_a_span_lies_before_or_after_now(text: str, seconds: int) -> None:
    assert read_time(text, NOW, "before") == NOW - seconds
    assert read_time(text, NOW, "after") == NOW + seconds


def test_a_date_without_a_zone_is_of_utc() -> None:
    assert read_time("2027-01-31", NOW, "after") == datetime(2027, 1, 31, tzinfo=UTC).timestamp()
    assert read_time("2027-01-31T12:00+02:00", NOW, "after") == datetime(2027, 1, 31, 10, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["", "soon", "7", "7y", "1234567d", "2027-02-30", "-7d"])
def test_anything_else_is_no_time(text: str) -> None:
    assert read_time(text, NOW, "before") is None
