"""Metering of callers with limits: `MeteredUse`, the reserved and the actual use in tokens and US dollars.

The use is reserved before each target is asked, at its price, and settled before the caller gets the end of the reply.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from asides.flows.call import Call
from asides.flows.cost_bounds import (
    estimate_input,
    estimate_output,
    find_most_cost,
    find_most_output,
    list_priced_names,
    may_write_for_hour,
)
from asides.flows.steps import Flow
from asides.relay.allowed_models import find_more_models
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_request import CallerLimits
from asides.relay.steps import ReserveUse, SettleUse, Use
from asides.values.errors import AsidesError, IdleTimeout, ProtocolError
from asides.values.reply import Reply
from asides.values.usage import Usage, find_cost

_log = logging.getLogger("asides")

_USUAL_OUTPUT, _LIKELY_OUTPUT = 1_000, 4_096
"""The output tokens that the limit by the minute expects: if the request sets no limit, and at most. The count is
corrected later."""
_TOKENS_PER_SECOND = 150
"""How many tokens a model may write in a second unseen: providers hide thinking, and charge for it."""
_USUAL_TIERS = frozenset({"auto", "default", "standard", "standard_only", "flex", "scale", "on_demand"})
"""Tiers of service at the list price, or below it."""


class MeteredUse:
    """One request of a caller with limits."""

    def __init__(self, limits: CallerLimits) -> None:
        self._limits = limits
        self._call: Call | None = None
        self._input = self._most = 0
        self._bound: Decimal | None = None
        self._find_partial: Callable[[], Reply | None] = _find_nothing
        self._is_reserved = self._is_lost = self._is_asked = False

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of the caller count, by the minute or as money."""
        return self._limits.has_budget or self._limits.has_token_rate

    def reserve(
        self, call: Call, body: bytes, extra: Mapping[str, Any], find_partial: Callable[[], Reply | None]
    ) -> Flow[None]:
        """Reserve what a call may use. Raises an error for the caller if that is too much, or the price is unknown.
        `body`: the caller's. `extra`: the fields of its request that asides does not read. `find_partial`: the reply so
        far.
        """
        limits = self._limits
        if limits.has_budget:
            _refuse_unknown_cost({**extra, **call.prompt.extra})
        lost = self._measure(None, has_failed=True).cost if self._is_reserved else None
        self._call, self._find_partial = call, find_partial
        self._is_reserved = self._is_lost = self._is_asked = False
        prompt, target, replies, likely = call.prompt, call.target, _count_replies(extra), 0
        if self.counts_tokens:
            self._input = estimate_input(prompt, target, body)
            likely = min(prompt.max_tokens or _USUAL_OUTPUT, _LIKELY_OUTPUT) * replies
        if limits.has_budget:
            self._most = find_most_output(prompt, target) * replies
            self._bound = find_most_cost(
                target, self._input, self._most, writes_for_hour=may_write_for_hour(prompt.cache, body)
            )
            if self._bound is None:
                raise refuse_unpriced(call.model)
        problem = yield ReserveUse(call.model, self._input + likely, self._bound, self.find_used, lost or Decimal())
        if problem is not None:
            raise problem
        self._is_reserved = True

    def note_asked(self) -> None:
        """Note that a request was sent to the provider."""
        self._is_asked = True

    def note_problem(self, problem: AsidesError) -> None:
        """Note that a target has failed. One that timed out after it took the request may go on, and charge for it. One
        whose response cannot be decoded has answered, and charges for all of it.
        """
        is_unread = isinstance(problem, ProtocolError) and self._is_asked
        self._is_lost = is_unread or isinstance(problem, IdleTimeout)

    def price_as(self, call: Call | None) -> None:
        """Settle at the price of this call, which answered instead of the reserved one; None: no change."""
        self._call = call or self._call

    def count_request(self) -> Flow[None]:
        """Count a request that costs nothing, such as a count of tokens."""
        problem = yield ReserveUse("", 0, Decimal(), lambda _: Use())
        if problem is not None:
            raise problem
        yield SettleUse(Use())

    def settle(self, reply: Reply | None, *, has_failed: bool = False, is_cut: bool = False) -> Flow[None]:
        """Replace what is reserved with what a reply used; a reply that failed before anything came used nothing. A
        second call does nothing. `is_cut`: the reply is not whole, so that what it reports is not all.
        """
        if self._is_reserved:
            self._is_reserved = False
            used = self._measure(reply, has_failed=has_failed, is_cut=is_cut)
            if used.is_estimate and used.cost:
                _log.info("%s reported no usage: its cost is an estimate", self._call and self._call.model)
            yield SettleUse(used)

    def settle_body(self, body: bytes | None) -> Flow[None]:
        """The same for a response that is not read as a reply, but may report its tokens. None: it failed."""
        if body is None and self._is_reserved:
            self._is_reserved = False
            yield SettleUse(Use())
        elif body is not None:
            yield from self.settle_usage(_read_usage(body))

    def settle_usage(self, usage: Usage) -> Flow[None]:
        """The same for counts. Missing counts are estimated; without any, the reply costs its upper bound."""
        if self._is_reserved:
            self._is_reserved = False
            if usage.input is None and usage.output is None:
                yield SettleUse(Use(self._input, self._bound, True))
                return
            is_estimate = usage.input is None or usage.output is None
            if is_estimate:
                usage = self._complete(usage, None, 0)
            yield SettleUse(self._price(usage, (), is_estimate=is_estimate))

    def find_used(self, seconds: float) -> Use:
        """Usage after `seconds`, for callers that disconnect."""
        if not self._is_asked or self._call is None:
            return Use()
        # Without a stream the provider generates the whole reply.
        unseen = min(int(seconds * _TOKENS_PER_SECOND), self._most) if self._call.prompt.stream else self._most
        return self._measure(self._find_partial(), has_failed=False, is_cut=True, unseen=unseen)

    def _measure(self, reply: Reply | None, *, has_failed: bool, is_cut: bool = False, unseen: int = 0) -> Use:
        if has_failed and not self._is_lost and (reply is None or not reply.parts):
            return Use()
        usage = Usage() if reply is None else reply.usage
        if has_failed or is_cut or usage.output is None or usage.input is None:
            usage = self._complete(usage, reply, self._most if self._is_lost else unseen)
            is_estimate = True
        else:
            is_estimate = usage.origin == "estimated"
        return self._price(usage, () if reply is None else (reply.model or "",), is_estimate=is_estimate)

    def _complete(self, usage: Usage, reply: Reply | None, unseen: int) -> Usage:
        """The counts of a reply that reported none, or broke off before they were final. `unseen`: tokens that
        the model may have written after the client disconnected.
        """
        sent = usage.input if usage.input is not None else self._input
        received = 0 if reply is None else estimate_output(reply)
        received = max(received, usage.output or 0, unseen)
        return msgspec.structs.replace(
            usage, input=sent, output=received, total=sent + received, origin="estimated", thinking=None
        )

    def _price(self, usage: Usage, models: tuple[str, ...], *, is_estimate: bool) -> Use:
        tokens = (usage.input or 0) + (usage.output or 0)
        if self._call is None or not self._limits.has_budget:
            return Use(tokens, None, is_estimate)
        target = self._call.target
        cost = find_cost(
            usage, [name for name in (*models, *list_priced_names(target)) if name], target.provider.prices
        )
        # Without a price, use the reserved upper bound.
        return Use(tokens, self._bound if cost is None else cost.amount, is_estimate or cost is None)


def _refuse_unknown_cost(extra: Mapping[str, Any]) -> None:
    """Raise RelayRefusal for a field with which a request costs more than its tokens at the list price, or later."""
    tier = extra.get("service_tier", extra.get("serviceTier"))
    tier = tier.get("type") if isinstance(tier, dict) else tier
    latency = extra.get("performanceConfig")
    more = find_more_models(extra)
    reasons = {
        more or "": more is not None,
        "background": bool(extra.get("background")),
        "service_tier": tier is not None and str(tier).lower() not in _USUAL_TIERS,
        "speed": extra.get("speed") not in (None, "standard"),
        "inference_geo": extra.get("inference_geo") not in (None, "", "global"),
        "performanceConfig": isinstance(latency, dict) and latency.get("latency") not in (None, "standard"),
    }
    found = next((name for name, is_so in reasons.items() if is_so), None)
    if found is not None:
        why = "is known later" if found == "background" else "is more than the list price"
        why = "depends on a model that its host chooses" if found == more else why
        raise RelayRefusal(
            f"{found} is not allowed for this key, which has a budget: the cost of such a request {why}. Leave it out.",
            param=found,
        )


def refuse_unpriced(model: str) -> RelayRefusal:
    """The error if a caller with a budget asks a model without a known price."""
    return RelayRefusal(
        f"this key has a budget, and the price of {model[:200]} is not known here. Ask a model with a known "
        "price, or use a key without a budget. The operator of the gateway can install asides[prices], or set the "
        "provider's prices in its row.",
        status=403,
        code="model_without_price",
        param="model",
    )


class _Reported(msgspec.Struct):
    usage: dict[str, Any] = {}


def _read_usage(body: bytes) -> Usage:
    """The tokens that a response reports."""
    try:
        found = msgspec.json.decode(body, type=_Reported).usage
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Usage()
    names = ("prompt_tokens", "completion_tokens") if "prompt_tokens" in found else ("input_tokens", "output_tokens")
    # Embeddings report what they read, and write nothing.
    counts = [found.get(name, 0 if name == "completion_tokens" else None) for name in names]
    sent, received = (count if type(count) is int and count >= 0 else None for count in counts)
    return Usage(sent, received)


def _count_replies(extra: Mapping[str, Any]) -> int:
    """How many replies a forwarded request asks for."""
    config = extra.get("generationConfig")
    counts = [extra.get("n"), extra.get("best_of"), config.get("candidateCount") if isinstance(config, dict) else None]
    return max(1, *map(_read_count, counts))


def _read_count(given: Any) -> int:
    """A count as hosts read it: some take a text with a number for one."""
    try:
        count = float(given) if isinstance(given, (int, float, str)) else 0.0
    except (ValueError, OverflowError):
        return 0
    return math.ceil(count) if 0 < count < math.inf else 0


def _find_nothing() -> Reply | None:
    return None
