"""Money is exact in databases, and short for people."""

from __future__ import annotations

from decimal import Decimal

import pytest

from asides.values.money import format_billionths, format_cost, to_billionths, to_dollars

_DOLLAR = 10**9


@pytest.mark.parametrize(
    ("dollars", "billionths"), [("0", 0), ("1", _DOLLAR), ("0.0000000001", 1), ("2.5", 25 * 10**8)]
)
def test_money_is_rounded_up_and_exact(dollars: str, billionths: int) -> None:
    assert to_billionths(Decimal(dollars)) == billionths
    assert to_dollars(billionths) >= Decimal(dollars)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "$0"), (1, "$0.000000001"), (_DOLLAR, "$1"), (12 * 10**8, "$1.2"), (100 * _DOLLAR, "$100")],
)
def test_an_exact_amount_is_as_short_as_it_can_be(amount: int, shown: str) -> None:
    assert format_billionths(amount) == shown


@pytest.mark.parametrize(("cost", "shown"), [("0", "-"), ("0.00001", "$0.0000"), ("9.12071", "$9.1207")])
def test_costs_of_a_table_have_the_same_digits(cost: str, shown: str) -> None:
    assert format_cost(Decimal(cost)) == shown
