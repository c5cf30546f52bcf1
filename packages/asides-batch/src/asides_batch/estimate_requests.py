"""`RequestEstimator`: what a request may take, before it is sent: its tokens, and the most that it can cost.

Prices are the list prices of genai-prices, where it is installed.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from asides.batch_rows import Question, encode_canonical
from asides.history.trim import CHARACTERS_PER_TOKEN
from asides.providers.provider import Target
from asides.values.errors import ConfigError
from asides.values.messages import Prompt
from asides.values.money import to_billionths, to_dollars
from asides.values.usage import Usage, find_cost
from asides_batch.batch_plan import BatchPlan, decode_request
from asides_batch.ledger_values import RequestEstimate

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

_ROUND = 256
"""Prices are looked up for numbers of tokens that are rounded up to this, so that few lookups differ."""


class RequestEstimator:
    """Estimates the requests of a plan."""

    def __init__(self, plan: BatchPlan, builder: CallBuilder, *, needs_price: bool) -> None:
        """`needs_price`: whether a model without a known price is an error, since a limit of cost is set."""
        self._plan = plan
        self._builder = builder
        self._needs_price = needs_price
        shared = {name: plan.options[name] for name in ("system", "output", "tools") if name in plan.options}
        self._shared = len(encode_canonical(shared)) if shared else 0
        self._price = lru_cache(maxsize=4096)(self._find_price)

    def estimate(self, request: bytes) -> RequestEstimate:
        """Estimate a request of the ledger. Raises a ConfigError if its price is needed and not known."""
        return self.estimate_question(decode_request(request, 0), len(request))

    def estimate_question(self, question: Question, size: int) -> RequestEstimate:
        """Estimate a row; `size` is that of its request in bytes.

        No token is shorter than a byte, so that the bytes bound the input. Pictures behind a URL are not counted.
        """
        most = self._find_most_output(question)
        size += self._shared
        bound: int | None = 0
        for model in self._plan.find_models(question):
            price = None if most is None else self._price(model, -(-size // _ROUND) * _ROUND, most)
            if price is None and self._needs_price:
                raise self._build_price_error(model, most)
            bound = None if price is None or bound is None else bound + price
        return RequestEstimate(size // CHARACTERS_PER_TOKEN, most, bound or 0, bound is not None)

    def estimate_input(self, question: Question, size: int) -> tuple[int, Decimal | None]:
        """The input tokens to expect, and what they cost; None if the price is not known."""
        tokens = (size + self._shared) // CHARACTERS_PER_TOKEN
        price = self._price(self._plan.find_models(question)[0], tokens, 0)
        return tokens, None if price is None else to_dollars(price)

    def _find_most_output(self, question: Question) -> int | None:
        given: Any = question.options.get("max_tokens")
        if given is None and isinstance(question.prompt, Prompt):
            given = question.prompt.max_tokens
        if given is None:
            given = self._plan.options.get("max_tokens")
        if isinstance(given, int):
            return given
        limits = [self._find_target(model).rule.max_output for model in self._plan.find_models(question)]
        known = [limit for limit in limits if limit is not None]
        return max(known) if len(known) == len(limits) else None

    def _find_target(self, model: str) -> Target:
        return self._plan.find_target(self._builder, model)

    def _find_price(self, model: str, tokens: int, output: int) -> int | None:
        target = self._find_target(model)
        cost = find_cost(Usage(tokens, output), [target.model], target.provider.prices or None)
        return None if cost is None else to_billionths(cost.amount)

    def _build_price_error(self, model: str, most: int | None) -> ConfigError:
        if most is None:
            return ConfigError(
                f"--max-cost (max_cost=) needs a limit of output, and none is known for {model}. Set --max-tokens "
                "(max_tokens=)."
            )
        if find_spec("genai_prices") is None:
            return ConfigError(
                "--max-cost (max_cost=) needs prices, and genai-prices is not installed. "
                "Run pip install 'asides[prices]'."
            )
        return ConfigError(
            f"--max-cost (max_cost=) needs prices, and none is known for {model}. Choose a model that has one, or omit "
            "the limit."
        )
