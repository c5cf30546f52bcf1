"""Findings and reports: what they print, what they raise, and that they are values."""

from __future__ import annotations

import msgspec
import pytest

from asides_stage import Finding, Nonconformance, Report
from asides_stage.conformance.report import CheckFailed, expect

FAILED = Finding("nothing_leaks", "failed", "this", "that", "look")
SKIPPED = Finding("examples_are_read", "skipped", reason="no")
REPORT = Report("mine", "one", "toy", (FAILED, Finding("seals_return", "passed"), SKIPPED))


def test_a_report_is_a_value() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT


def test_a_report_counts_and_prints_its_findings() -> None:
    assert (REPORT.passed, REPORT.failures, REPORT.skipped) == (False, (FAILED,), (SKIPPED,))
    assert str(REPORT).splitlines() == [
        "mine:one (toy): 1 of 3 checks failed, 1 skipped",
        "FAILED   nothing_leaks",
        "           expected: this",
        "           actual:   that",
        "           to do:    look",
        "passed   seals_return",
        "skipped  examples_are_read: no",
    ]


def test_only_failures_are_raised() -> None:
    with pytest.raises(Nonconformance) as caught:
        REPORT.raise_on_failure()
    assert "actual:   that" in str(caught.value)
    assert "seals_return" not in str(caught.value)
    good = Report("mine", "one", "toy", REPORT.findings[1:])
    assert good.raise_on_failure() is good


def test_an_expectation_that_does_not_hold_ends_the_check() -> None:
    expect(True, expected="this", actual="this", to_do="nothing")
    with pytest.raises(CheckFailed, match=r"expected this; actual: that\. Look"):
        expect(False, expected="this", actual="that", to_do="look")
