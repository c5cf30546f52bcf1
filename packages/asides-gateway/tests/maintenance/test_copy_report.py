"""A report counts, and names the first of what differs."""

from __future__ import annotations

from asides_gateway.maintenance.copy_report import CopyReport


def test_a_report_names_only_the_first_that_differ() -> None:
    report = CopyReport("vault")
    report.count("copied", "", 5)
    assert report.is_whole
    for number in range(50):
        report.count("different", f"name {number}")
    report.note_missing("name 0")
    assert (report.total, report.different, report.missing, report.is_whole) == (55, 50, 1, False)
    assert report.names == [f"name {number}" for number in range(10)]
