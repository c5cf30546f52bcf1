"""Token counts: `input` includes cached tokens, `output` includes thinking. None means not reported, 0 means zero."""

from __future__ import annotations

from collections.abc import Mapping
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
    """With those that a cache read or wrote."""
    output: int | None = None
    """With thinking."""
    thinking: int | None = None
    cached: int | None = None
    """Input that was read from the provider's cache."""
    total: int | None = None
    origin: UsageOrigin = "reported"
    cache_written: int | None = None
    """Input that was written to the provider's cache."""
    cost: Decimal | None = None
    """The price in US dollars, where the provider reports one. `reply.cost` has it, or an estimate."""

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
    return Usage(input, output, thinking, cached, total, origin, cache_written, cost)


# 1 dollar in the unit of xAI (docs.x.ai, cost tracking, 2026-11).
_TICKS = 10**10


def read_cost(reported: Any, *, ticks: Any = None, upstream: Any = None) -> Decimal | None:
    """Read a cost in US dollars in the forms that hosts use; None for anything else. Those that report one do it in
    dollars: a number (OpenRouter, whose credits are dollars; DeepInfra), text (Vercel), an object with `total_cost`
    (Perplexity) or `usd` (Venice), or `ticks` (xAI). Their documents and recordings, 2026-11.

    `upstream`: what the user's own account at the upstream provider pays besides (OpenRouter with the user's key).
    """
    if isinstance(reported, Mapping):
        reported = reported.get("total_cost", reported.get("usd"))
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
    return amount if amount.is_finite() and amount >= 0 else None


def estimate_usage(messages: tuple[Message, ...], reply: Reply) -> Usage:
    """Estimate the tokens of a reply from the length of its texts; the result is marked as an estimate."""
    sent = sum(len(message.text) for message in messages) // _CHARACTERS_PER_TOKEN
    thinking = len(reply.thinking.text) // _CHARACTERS_PER_TOKEN if reply.thinking else 0
    output = len(reply.text) // _CHARACTERS_PER_TOKEN + thinking
    return Usage(sent, output, thinking, None, sent + output, "estimated")
