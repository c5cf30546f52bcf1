"""Every row of the table passes the suite in every dialect that it speaks."""

from __future__ import annotations

import pytest

from asides.providers.find import list_providers
from asides.providers.provider import Provider
from asides_stage import examine

SPOKEN = [
    (row, dialect) for row in list_providers() for dialect in (row.dialect, *(other.dialect for other in row.also))
]
# The newest models of OpenAI take tools only at its other endpoint, or with the effort "none".
_TOOLS_ELSEWHERE = "To use function tools, use /v1/responses"
# The checks that may be skipped, and why; every other check must run for every row.
_MAY_BE_SKIPPED: dict[str, tuple[str, ...]] = {
    "the_capability_is_declared": ("nothing is declared",),
    "thinking_can_be_asked_for": ("cannot ask this host for thinking",),
    "thinking_can_be_switched_off": ("unless it is asked",),
    "an_amount_is_sent_or_reported": ("does not think",),
    "a_call_and_its_result_go_back": ("takes no tools",),
    "models_can_be_listed": ("there is no list",),
    "seals_return": ("no server of this dialect seals", _TOOLS_ELSEWHERE),
    "bytes_after_the_end_change_nothing": ("nothing can follow the end",),
    "examples_are_read": ("no examples were given",),
    "sync_is_async": ("addresses of a cloud",),
    "a_server_accepts_the_next_turn": ("addresses of a cloud", "those of stricter hosts", _TOOLS_ELSEWHERE),
    "errors_carry_the_partial_reply": ("addresses of a cloud",),
}


def test_there_are_rows_to_examine() -> None:
    assert len(SPOKEN) >= 90


@pytest.mark.parametrize(("row", "dialect"), SPOKEN, ids=[f"{row.name}-{dialect}" for row, dialect in SPOKEN])
def test_a_row_conforms(row: Provider, dialect: str) -> None:
    report = examine(row, dialect=dialect, quick=True)
    report.raise_on_failure()
    for finding in report.skipped:
        assert any(words in finding.reason for words in _MAY_BE_SKIPPED.get(finding.check, ())), finding
