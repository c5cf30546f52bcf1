"""The price of a usual reply, from rates that are looked up once: `find_usual_cost(usage, models, priced_by)`.

The estimate of `find_cost` takes up to a millisecond, which is too much for every request of a gateway. Below the
lengths at which makers ask higher prices it is a sum of tokens times rates, so that a few estimates give the rates.
Where that does not hold, and for long requests, each reply gets its own estimate.
"""

from __future__ import annotations

import time
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from asides.values.usage import Usage, find_cost

_LONG = 100_000
"""The tokens from which on a reply gets its own estimate. No maker's higher prices begin below (genai-prices 2026-11);
a model for which they do is found out by `_is_linear`."""
_UNIT = 1000
_SECONDS = 600
"""How long rates hold. Some makers have other prices by night, from a full or half hour on."""


class _Rates(NamedTuple):
    """Dollars: for each request, and for each token by its kind."""

    request: Decimal
    fresh: Decimal
    cached: Decimal
    written: Decimal
    answer: Decimal
    thinking: Decimal

    def price(self, usage: Usage) -> Decimal:
        cached, written, thinking = usage.cached or 0, usage.cache_written or 0, usage.thinking or 0
        fresh, answer = (usage.input or 0) - cached - written, (usage.output or 0) - thinking
        return (
            self.request
            + self.fresh * fresh
            + self.cached * cached
            + self.written * written
            + self.answer * answer
            + self.thinking * thinking
        )


def find_usual_cost(usage: Usage, models: tuple[str, ...], priced_by: str | None) -> Decimal | None:
    """The cost in US dollars: as the provider reported it, or estimated as `find_cost` does; None if it is unknown."""
    if usage.cost is not None:
        return usage.cost
    if not priced_by or not models or usage.input is None or usage.output is None:
        return None
    if not _is_usual(usage):
        return _estimate(usage, models, priced_by)
    rates = _find_rates(models, priced_by, int(time.time() // _SECONDS))
    if isinstance(rates, _Rates):
        return rates.price(usage)
    return None if rates == "unknown" else _estimate(usage, models, priced_by)


def _is_usual(usage: Usage) -> bool:
    counts = (usage.input or 0, usage.output or 0, usage.cached or 0, usage.cache_written or 0, usage.thinking or 0)
    sent, received, cached, written, thinking = counts
    if usage.cache_written_hour or usage.tier is not None:
        return False
    return min(counts) >= 0 and max(counts) < _LONG and cached + written <= sent and thinking <= received


def _estimate(usage: Usage, models: tuple[str, ...], priced_by: str) -> Decimal | None:
    cost = find_cost(usage, models, priced_by)
    return None if cost is None else cost.amount


@lru_cache(maxsize=512)
def _find_rates(models: tuple[str, ...], priced_by: str, period: int) -> _Rates | str:  # noqa: ARG001 - rates change
    """The rates of a model now; "unknown" if it has no price, "other" if its price is not a sum of rates."""

    def price(sent: int, received: int, *, cached: int = 0, written: int = 0, thinking: int = 0) -> Decimal | None:
        usage = Usage(input=sent, output=received, cached=cached, cache_written=written, thinking=thinking)
        return _estimate(usage, models, priced_by)

    found = (
        price(0, 0),
        price(_UNIT, 0),
        price(_UNIT, 0, cached=_UNIT),
        price(_UNIT, 0, written=_UNIT),
        price(0, _UNIT),
        price(0, _UNIT, thinking=_UNIT),
    )
    request, *units = found
    if request is None:
        return "unknown"
    if any(unit is None for unit in units):
        return "other"
    rates = _Rates(request, *((unit - request) / _UNIT for unit in units if unit is not None))
    mixed = Usage(input=3 * _UNIT, output=2 * _UNIT, cached=_UNIT, cache_written=_UNIT, thinking=_UNIT)
    long = Usage(input=_LONG - 1, output=_LONG - 1, cached=_UNIT, thinking=_UNIT)
    is_linear = all(rates.price(each) == _estimate(each, models, priced_by) for each in (mixed, long))
    return rates if is_linear else "other"
