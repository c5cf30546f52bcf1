"""Token counts: server figures are normalised and added up, estimates are marked as such."""

from __future__ import annotations

import pytest

from asides.values.messages import user
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage, estimate_usage, normalise_usage


@pytest.mark.requirement("S4-REQ-002.1", "FT-23")
def test_the_figures_of_the_server_add_up() -> None:
    assert Usage(10, 5, 2, 0, 15) + Usage(10, 5, 2, 0, 15) == Usage(20, 10, 4, 0, 30)


@pytest.mark.requirement("S4-REQ-002.2")
def test_an_estimate_is_marked_and_a_sum_with_one_is_an_estimate() -> None:
    reply = Reply((Thought("six times seven"), Text("forty-two, as everybody knows")))
    estimate = estimate_usage((user("What is six times seven?"),), reply)
    assert estimate == Usage(6, 10, 3, None, 16, "estimated")
    assert (Usage(10, 5) + estimate).origin == "estimated"


def test_a_sum_of_counts_that_were_not_reported_stays_unknown() -> None:
    assert Usage() + Usage() == Usage()


def test_a_later_snapshot_replaces_only_the_counts_that_it_has() -> None:
    assert Usage(10, 5, 2, 1, 15).merge(Usage(output=9)) == Usage(10, 9, 2, 1, 15)


@pytest.mark.parametrize(
    ("total", "excludes_thinking", "expected"),
    [
        (15, True, Usage(10, 5, 2, None, 15)),
        (17, False, Usage(10, 7, 2, None, 17, "derived")),
        (None, True, Usage(10, 7, 2, None, 17, "derived")),
        (None, False, Usage(10, 5, 2, None, 15, "derived")),
    ],
)
def test_the_total_decides_whether_output_includes_thinking_and_else_the_row_does(
    total: int | None, excludes_thinking: bool, expected: Usage
) -> None:
    usage = normalise_usage(input=10, output=5, thinking=2, total=total, excludes_thinking=excludes_thinking)
    assert usage == expected


def test_the_answer_is_the_output_without_the_thinking() -> None:
    assert (Usage(output=9, thinking=4).answer, Usage(output=9).answer) == (5, None)
