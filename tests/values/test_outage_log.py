"""An outage is reported once when it begins and once when it ends."""

from __future__ import annotations

from asides.values.outage_log import OutageLog


def test_the_begin_and_the_end_are_reported_once_each() -> None:
    told: list[str] = []
    outage = OutageLog(told.append, "the store fails ({reason})", "the store works again")
    assert not outage.end()
    assert [outage.begin(TimeoutError("SECRET")), outage.begin("other"), outage.is_down] == [True, False, True]
    assert [outage.end(), outage.end(), outage.is_down] == [True, False, False]
    assert told == ["the store fails (TimeoutError)", "the store works again"]
    assert outage.begin("its disk is full")
    assert told[2:] == ["the store fails (its disk is full)"]


def test_an_end_without_words_is_silent() -> None:
    told: list[str] = []
    outage = OutageLog(told.append, "down")
    outage.begin()
    assert outage.end()
    assert told == ["down"]
