"""Metrics of a reply: its tokens (`Usage`), its time (`Timing`) and its price (`Cost`).

`input` includes cached tokens, `output` includes thinking. None means not reported, 0 means zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from asides.values.json_form import JsonForm

if TYPE_CHECKING:
    from asides.values.messages import Message
    from asides.values.reply import Reply

UsageOrigin: TypeAlias = Literal["reported", "derived", "estimated"]

_RANK: dict[UsageOrigin, int] = {"reported": 0, "derived": 1, "estimated": 2}
_CHARACTERS_PER_TOKEN = 4


class Usage(msgspec.Struct, JsonForm, frozen=True):
    """The tokens of a reply, or of several: `sum(usages)` works.

    `origin`: figures from the server, figures derived from them, or an estimate.
    """

    input: int | None = None
    """Includes cache reads and writes."""
    output: int | None = None
    """Includes thinking."""
    thinking: int | None = None
    cached: int | None = None
    """Input that was read from the provider's cache."""
    total: int | None = None
    origin: UsageOrigin = "reported"
    cache_written: int | None = None
    """Input that was written to the provider's cache."""
    cost: Decimal | None = None
    """The price in US dollars, where the provider reports one. `reply.cost` has it, or an estimate."""
    cache_written_hour: int | None = None
    """Of `cache_written`, what the cache keeps for an hour. It costs more."""
    tool_requests: int | None = None
    """Searches and other requests of tools that the provider ran, which it bills besides the tokens."""
    tier: str | None = None
    """The tier or the speed of the service, where it is not the usual one: tokens have another price there."""

    @property
    def answer(self) -> int | None:
        """Output tokens without thinking."""
        if self.output is None or self.thinking is None:
            return None
        return max(self.output - self.thinking, 0)

    def merge(self, later: Usage) -> Usage:
        """Return these counts, replaced by those of a later snapshot where it has any."""
        return Usage(
            input=self.input if later.input is None else later.input,
            output=self.output if later.output is None else later.output,
            thinking=self.thinking if later.thinking is None else later.thinking,
            cached=self.cached if later.cached is None else later.cached,
            total=self.total if later.total is None else later.total,
            origin=later.origin,
            cache_written=self.cache_written if later.cache_written is None else later.cache_written,
            cost=self.cost if later.cost is None else later.cost,
            cache_written_hour=(
                self.cache_written_hour if later.cache_written_hour is None else later.cache_written_hour
            ),
            tool_requests=self.tool_requests if later.tool_requests is None else later.tool_requests,
            tier=later.tier or self.tier,
        )

    def __add__(self, other: Usage) -> Usage:
        """Add the counts of two replies; a count that neither reported stays None."""
        if not isinstance(other, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented

        def plus(left: int | None, right: int | None) -> int | None:
            return None if left is None and right is None else (left or 0) + (right or 0)

        cost = None
        if self.cost is not None or other.cost is not None:
            cost = (self.cost or Decimal()) + (other.cost or Decimal())

        return Usage(
            input=plus(self.input, other.input),
            output=plus(self.output, other.output),
            thinking=plus(self.thinking, other.thinking),
            cached=plus(self.cached, other.cached),
            total=plus(self.total, other.total),
            origin=max(self.origin, other.origin, key=_RANK.__getitem__),
            cache_written=plus(self.cache_written, other.cache_written),
            cost=cost,
            cache_written_hour=plus(self.cache_written_hour, other.cache_written_hour),
            tool_requests=plus(self.tool_requests, other.tool_requests),
            tier=self.tier or other.tier,
        )

    def __radd__(self, other: Usage | int) -> Usage:
        # `sum` begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def normalise_usage(
    *,
    input: int | None,  # noqa: A002 - the public name of the field
    output: int | None,
    thinking: int | None = None,
    cached: int | None = None,
    total: int | None = None,
    excludes_thinking: bool = False,
    cache_written: int | None = None,
    cost: Decimal | None = None,
    cache_written_hour: int | None = None,
    tool_requests: int | None = None,
    tiers: Iterable[Any] = (),
) -> Usage:
    """Convert a server's counts to one meaning: `output` includes thinking, `total` is input and output.

    Servers disagree on whether output includes thinking. Their total decides where it can; otherwise
    `excludes_thinking`, a fact of the provider's row, does.
    """
    origin: UsageOrigin = "reported"
    if thinking and input is not None and output is not None and total is not None:
        if total == input + output:
            excludes_thinking = False
        elif total == input + output + thinking:
            excludes_thinking = True
    if excludes_thinking and thinking and output is not None:
        output += thinking
        origin = "derived"
    if total is None and input is not None and output is not None:
        total = input + output
        origin = "derived"
    # Zero requests mean nothing: many servers send the field with every reply.
    more = (cost, cache_written_hour, tool_requests or None, _find_tier(tiers))
    return Usage(input, output, thinking, cached, total, origin, cache_written, *more)


_USUAL_TIERS = frozenset({"standard", "default", "auto", "on_demand", "traffic_type_unspecified"})


def _find_tier(tiers: Iterable[Any]) -> str | None:
    """Return the first tier that is not a usual one."""
    words = (tier.lower() for tier in tiers if isinstance(tier, str) and tier)
    return next((word for word in words if word not in _USUAL_TIERS), None)


# 1 dollar in the unit of xAI (docs.x.ai, cost tracking, 2026-11).
_TICKS = 10**10
_MAX_DIGITS = 30


def read_cost(reported: Any, *, ticks: Any = None, upstream: Any = None) -> Decimal | None:
    """Read a cost in US dollars in the forms that hosts use; None for anything else. Those that report one do it in
    dollars: a number or its text (OpenRouter, whose credits are dollars; Vercel, Avian, DeepInfra), an object with
    `total_cost` (Perplexity), or `ticks` (xAI). From their documents and recordings, 2026-11.

    `upstream`: what the user's own account at the upstream provider pays besides (OpenRouter with the user's key).
    """
    if isinstance(reported, Mapping):
        reported = reported.get("total_cost")
    cost = _read_amount(reported)
    if cost is None and (count := _read_amount(ticks)) is not None:
        return count / _TICKS
    more = _read_amount(upstream)
    return cost if cost is None or more is None else cost + more


def _read_amount(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return None
    # Sums and shares of larger amounts would overflow.
    return amount if amount.is_finite() and amount >= 0 and amount.adjusted() < _MAX_DIGITS else None


def estimate_usage(messages: tuple[Message, ...], reply: Reply) -> Usage:
    """Estimate the tokens of a reply from the length of its texts; the result is marked as an estimate."""
    sent = sum(len(message.text) for message in messages) // _CHARACTERS_PER_TOKEN
    thinking = len(reply.thinking.text) // _CHARACTERS_PER_TOKEN
    output = (len(reply.text) + len(reply.commentary)) // _CHARACTERS_PER_TOKEN + thinking
    return Usage(sent, output, thinking, None, sent + output, "estimated")


# --- time -------------------------------------------------------------------------------------------------------------


class Timing(msgspec.Struct, JsonForm, frozen=True):
    """Seconds from the start of the call, retries included; None: it did not happen, or was not measured."""

    first_event: float | None = None
    """Until the first event."""
    first_thought: float | None = None
    """Until the first thinking that can be read."""
    first_word: float | None = None
    """Until the answer began."""
    thinking: float | None = None
    """Time of visible thinking: each thought from its first text until other content arrived. None for a reply that
    came in one piece, since it does not show when the model thought."""
    total: float | None = None
    """Until the end of the reply, or of the part that arrived."""


class ReplyTimer:
    """Measures a reply: the fold reports what arrived, a flow with a clock reports when."""

    __slots__ = ("_began", "_first", "_last", "_thought", "seconds")

    def __init__(self, began: float) -> None:
        """`began`: start of the call."""
        self._began = self._last = began
        self._first: dict[str, float] = {}
        self._thought: tuple[int, float] | None = None
        """The current block of thinking and its start."""
        self.seconds: dict[int, float] = {}
        """Duration of each thought by block, except thoughts that arrived together with what follows."""

    def stamp(self, now: float, moves: Iterable[tuple[int, str]]) -> None:
        """Record that these blocks arrived now, in this order, each with the kind of its content."""
        self._last = now
        elapsed = now - self._began
        self._first.setdefault("event", elapsed)
        for block, kind in moves:
            if self._thought is not None and now > self._thought[1]:
                before, since = self._thought
                self.seconds[before] = self.seconds.get(before, 0.0) + now - since
            self._thought = (block, now) if kind == "thought" else None
            self._first.setdefault(kind, elapsed)

    def reclassify(self, block: int, *, is_thought: bool = True) -> None:
        """What was taken for the first words of the answer was this thought, or commentary. How long it took is not
        known.
        """
        first = self._first.pop("text", None)
        if first is not None and is_thought:
            self._first.setdefault("thought", first)
        self.seconds.pop(block, None)

    def build_timing(self) -> Timing | None:
        """Return the figures so far; None before the first event."""
        if not self._first:
            return None
        return Timing(
            self._first.get("event"),
            self._first.get("thought"),
            self._first.get("text"),
            sum(self.seconds.values()) if self.seconds else None,
            self._last - self._began,
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

    def discount(self, share: Decimal) -> Cost:
        """An estimate at this share of the list price. What the provider reported stays as it is."""
        if self.origin == "reported":
            return self
        thinking = None if self.thinking is None else self.thinking * share
        return Cost(self.amount * share, self.currency, thinking, self.origin)

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
    """Add costs; None if there are none, or if one is unknown, since the sum would be too low."""
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
    if not priced_by or usage.input is None or usage.output is None or usage.tier is not None:
        return None  # the list has the prices of the usual tier
    try:
        import genai_prices
    except Exception:  # noqa: BLE001 - it is not installed, or it is broken, which costs no reply
        return None
    counts: dict[str, int | None] = {
        "input_tokens": usage.input,
        "cache_read_tokens": usage.cached,
        "cache_write_tokens": usage.cache_written,
    }
    if usage.cache_written_hour:
        # Older tables of prices do not know this one.
        counts["cache_write_1h_tokens"] = usage.cache_written_hour

    def price(model: str, output: int, thinking: int) -> Any:
        # It uses the prices it was installed with, and fetches others only if the program asks for that.
        tokens = genai_prices.Usage(**counts, output_tokens=output, output_reasoning_tokens=thinking)
        return genai_prices.calc_price(tokens, model, provider_id=priced_by)

    for model in models:
        try:
            whole = price(model, usage.output, usage.thinking or 0)
            # With the same input, since a price may depend on its length.
            thinking = None if usage.thinking is None else min(usage.thinking, usage.output)
            share = None if thinking is None else price(model, thinking, thinking).output_price
            return Cost(Decimal(whole.total_price), thinking=share, origin="estimated")
        except Exception:  # noqa: BLE001, S112
            continue  # the model is unknown, the counts are inconsistent, or the library failed
    return None
