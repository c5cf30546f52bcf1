"""Sums of two numbers: every step of the working is true, and longer expressions are left alone."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides_stage.stage.sums import find_sum


@pytest.mark.parametrize(
    "text", ["2 + 3 * 4", "(1 + 2) * 3", "2 * (3 + 4)", "2026-11-15", "v1.2 - rc3", "2 ^ 3 + 1", "a - b"]
)
def test_more_than_one_operation_is_not_answered_by_half(text: str) -> None:
    assert find_sum(text) is None


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-(10**15) + 1, 10**15 - 1), st.sampled_from("+-*"))
def test_every_step_of_every_sum_is_true(left: int, right: int, operator: str) -> None:
    found = find_sum(f"{left} {operator} {right}")
    assert found is not None
    truth = {"+": left + right, "-": left - right, "*": left * right}[operator]
    assert found.result.endswith(f" = {truth}")
    for step in found.steps:
        if " = " in step:
            claim, result = step.removeprefix("Check: ").removesuffix(".").rsplit(" = ", 1)
            assert evaluate(claim) == Fraction(result), step


def evaluate(claim: str) -> Fraction:
    """Evaluate a sum of numbers, or a product of two, as the steps write them."""
    sign = "×" if "×" in claim else "+"
    numbers = [Fraction(number) for number in re.findall(r"-?\d+(?:\.\d+)?", claim)]
    return sum(numbers, Fraction(0)) if sign == "+" else numbers[0] * numbers[1]
