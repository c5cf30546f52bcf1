"""Money: whole billionths of a US dollar, as databases keep it, and dollars for people.

The price of a token is a small part of a cent. Whole numbers of billionths are exact, and so are their sums.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

_BILLION = 10**9


def to_billionths(dollars: Decimal) -> int:
    """Dollars as whole billionths, rounded up."""
    return int((dollars * _BILLION).to_integral_value(ROUND_CEILING))


def to_dollars(billionths: int) -> Decimal:
    """Billionths as dollars."""
    return Decimal(billionths) / _BILLION


def format_billionths(billionths: int) -> str:
    """Billionths for people, with as many digits as they need: `$0.000012`."""
    return "$" + f"{to_dollars(billionths):.9f}".rstrip("0").rstrip(".")


def format_cost(dollars: Decimal) -> str:
    """A cost for a table, to a hundredth of a cent: `$9.1207`; `-` for 0."""
    return f"${dollars:.4f}" if dollars else "-"
