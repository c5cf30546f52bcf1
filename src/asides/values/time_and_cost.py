"""What a reply took: its time (`Timing`), and its price (`Cost`), reported by the provider or estimated.

Not here: when the time is measured (fold, flows/exchange), and the tokens (usage).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from asides.values.json_form import JsonForm

if TYPE_CHECKING:
    from asides.values.usage import Usage


# --- time -------------------------------------------------------------------------------------------------------------


class Timing(msgspec.Struct, JsonForm, frozen=True):
    """Seconds from the start of the call, retries included; None: it did not happen, or nobody could see when."""

    first_event: float | None = None
    """Until the first event."""
    first_thought: float | None = None
    """Until the first thinking that can be read."""
    first_word: float | None = None
    """Until the answer began."""
    thinking: float | None = None
    """In thinking that could be seen: each thought from its first text until something else came. None for a reply that
    came in one piece, since it does not show when the model thought."""
    total: float | None = None
    """Until the end of the reply, or of what had arrived of it."""


class ReplyTimer:
    """Measures a reply. A fold tells it what came (`move_to`), and a flow that has a clock when (`stamp`)."""

    # The state at the beginning belongs to the class: a timer is made for each reply, and few replies are measured.
    began: float | None = None
    """The time of the start; None: the reply is not measured."""
    _last = 0.0
    _block = _NOWHERE = -1
    _thought: tuple[int, float] | None = None
    """The block that is being thought, and since when."""

    def __init__(self) -> None:
        self.moves: list[tuple[int, str]] = []
        """The blocks that came since the last stamp, and their kinds."""
        self.seconds: dict[int, float] = {}
        """How long each thought took, by its block. Not of one that came in one piece with what followed it."""
        self._first: dict[str, float] = {}

    def move_to(self, block: int, kind: str) -> None:
        """Take note that content of this block comes now, if it was another's before."""
        if block != self._block:
            self._block = block
            self.moves.append((block, kind))

    def end_block(self) -> None:
        """Take note that nothing more belongs to the block of the last move."""
        self.move_to(self._NOWHERE, "end")

    def stamp(self, now: float | None) -> None:
        """Record the time of the moves since the last stamp; None: there is no clock."""
        moves, self.moves = self.moves, []
        if now is None or self.began is None:
            return
        self._last = now
        elapsed = now - self.began
        self._first.setdefault("event", elapsed)
        for block, kind in moves:
            if self._thought is not None and now > self._thought[1]:
                before, since = self._thought
                self.seconds[before] = self.seconds.get(before, 0.0) + now - since
            self._thought = (block, now) if kind == "thought" else None
            self._first.setdefault(kind, elapsed)

    def build_timing(self) -> Timing | None:
        """Return the figures so far; None before the first event, and if nothing is measured."""
        if self.began is None or not self._first:
            return None
        return Timing(
            self._first.get("event"),
            self._first.get("thought"),
            self._first.get("text"),
            sum(self.seconds.values()) if self.seconds else None,
            self._last - self.began,
        )


def join_timings(timings: Iterable[Timing | None]) -> Timing | None:
    """Join the timings of replies, one after the other; None when none is known. Time between them does not count."""
    known = [timing for timing in timings if timing is not None]
    if not known:
        return None
    before = 0.0
    first: dict[str, float | None] = dict.fromkeys(("first_event", "first_thought", "first_word"))
    for timing in known:
        for name, seconds in first.items():
            own: float | None = getattr(timing, name)
            if seconds is None and own is not None:
                first[name] = before + own
        before += timing.total or 0.0
    thinking = [timing.thinking for timing in known if timing.thinking is not None]
    return Timing(**first, thinking=sum(thinking) if thinking else None, total=before)


# --- cost -------------------------------------------------------------------------------------------------------------

CostOrigin: TypeAlias = Literal["reported", "estimated"]


class Cost(msgspec.Struct, JsonForm, frozen=True):
    """The price of a reply, or of several: `sum(costs)` works."""

    amount: Decimal
    currency: str = "USD"
    thinking: Decimal | None = None
    """The share of the amount that paid for thinking; None when it is not known."""
    origin: CostOrigin = "reported"
    """reported: by the provider. estimated: tokens times list prices, or a sum with such a part."""

    def __add__(self, other: Cost) -> Cost:
        """Add two costs. Raises ValueError for different currencies."""
        if self.currency != other.currency:
            raise ValueError(f"{self.currency} and {other.currency} cannot be added.")
        is_known = self.thinking is not None and other.thinking is not None
        thinking = (self.thinking or Decimal()) + (other.thinking or Decimal()) if is_known else None
        origin: CostOrigin = "estimated" if "estimated" in (self.origin, other.origin) else "reported"
        return Cost(self.amount + other.amount, self.currency, thinking, origin)

    def __radd__(self, other: Cost | int) -> Cost:
        # `sum` begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """Add costs; None when one of them is not known, since the sum would be too low, or when there is none."""
    known = list(costs)
    if not known or None in known:
        return None
    return sum((cost for cost in known if cost is not None), start=Cost(Decimal(), thinking=Decimal()))


def find_cost(usage: Usage, models: Sequence[str], priced_by: str | None) -> Cost | None:
    """The cost that the provider reported; else an estimate from the list prices of genai-prices, where it is installed
    and knows one of the `models` of the provider that it calls `priced_by`; else None.
    """
    reported = usage.cost
    if reported is not None and (not reported or usage.thinking == 0):
        return Cost(reported, thinking=Decimal())
    estimate = _estimate(usage, models, priced_by)
    if reported is None:
        return estimate
    share = None
    if estimate is not None and estimate.thinking is not None and estimate.amount:
        share = reported * estimate.thinking / estimate.amount
    return Cost(reported, thinking=share)


def _estimate(usage: Usage, models: Sequence[str], priced_by: str | None) -> Cost | None:
    if not priced_by or usage.input is None or usage.output is None:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    counts: dict[str, int | None] = {
        "input_tokens": usage.input,
        "cache_read_tokens": usage.cached,
        "cache_write_tokens": usage.cache_written,
    }

    def price(model: str, output: int, thinking: int) -> Any:
        # It reads the prices that it was installed with. It fetches others only if the program has told it to.
        tokens = genai_prices.Usage(**counts, output_tokens=output, output_reasoning_tokens=thinking)
        return genai_prices.calc_price(tokens, model, provider_id=priced_by)

    for model in models:
        try:
            whole = price(model, usage.output, usage.thinking or 0)
            # With the same input, since a price may depend on its length.
            share = None if usage.thinking is None else price(model, usage.thinking, usage.thinking).output_price
        except (LookupError, ValueError, TypeError, AttributeError):
            continue  # it does not know the model, or the counts contradict each other
        return Cost(whole.total_price, thinking=share, origin="estimated")
    return None
