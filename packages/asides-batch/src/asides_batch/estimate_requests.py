"""`RequestEstimator`: what a request may take, before it is sent: its tokens, and the most that it can cost.

Prices are the list prices of genai-prices, where it is installed.
"""

from __future__ import annotations

from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from asides.batch_rows import Question, encode_canonical
from asides.flows.cost_bounds import (
    estimate_media,
    find_most_cost,
    find_output_limit,
    list_priced_names,
    may_write_for_hour,
)
from asides.history.trim import CHARACTERS_PER_TOKEN
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Prompt
from asides.values.money import to_billionths
from asides.values.usage import Usage, find_cost
from asides_batch.batch_plan import BatchPlan, decode_request
from asides_batch.ledger_values import RequestEstimate

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder


class RequestEstimator:
    """Estimates the requests of a plan."""

    def __init__(self, plan: BatchPlan, builder: CallBuilder, *, needs_price: bool) -> None:
        """`needs_price`: whether a model without a known price is an error, since a limit of cost is set."""
        self._plan = plan
        self._builder = builder
        self._needs_price = needs_price
        shared = {name: plan.options[name] for name in ("system", "output", "tools") if name in plan.options}
        self._shared = len(encode_canonical(shared)) if shared else 0

    def estimate(self, request: bytes) -> RequestEstimate:
        """Estimate a request of the ledger. Raises a ConfigError if its price is needed and not known."""
        return self.estimate_question(decode_request(request, 0), request)

    def estimate_question(self, question: Question, request: bytes) -> RequestEstimate:
        """Estimate a row; `request` is what the ledger keeps of it.

        No token is shorter than a byte, so that the bytes bound the text of the input.
        """
        size = len(request) + self._shared
        for_hour = may_write_for_hour(self._plan.options.get("cache"), b"" if _is_plain(question) else request)
        limits: list[int | None] = []
        bound: int | None = 0
        media = 0
        for model in self._plan.find_models(question):
            target = self._plan.find_target(self._builder, model)
            media = max(media, self._estimate_media(question, target))
            limit = find_output_limit(self._find_max_tokens(question), target)
            limits.append(limit)
            cost = None if limit is None else find_most_cost(target, size + media, limit, writes_for_hour=for_hour)
            if cost is None and self._needs_price:
                raise self._build_price_error(model, limit)
            bound = None if cost is None or bound is None else bound + to_billionths(cost)
        known = [limit for limit in limits if limit is not None]
        most_output = max(known) if len(known) == len(limits) else None
        return RequestEstimate(size // CHARACTERS_PER_TOKEN + media, most_output, bound or 0, bound is not None)

    def estimate_input(self, question: Question, request: bytes) -> tuple[int, Decimal | None]:
        """The input tokens to expect, and what they cost; None if the price is not known."""
        target = self._plan.find_target(self._builder, self._plan.find_models(question)[0])
        tokens = (len(request) + self._shared) // CHARACTERS_PER_TOKEN + self._estimate_media(question, target)
        cost = find_cost(Usage(tokens, 0), list_priced_names(target), target.provider.prices)
        return tokens, None if cost is None else cost.amount

    def _find_max_tokens(self, question: Question) -> int | None:
        given: Any = question.options.get("max_tokens")
        if given is None and isinstance(question.prompt, Prompt):
            given = question.prompt.max_tokens
        if given is None:
            given = self._plan.options.get("max_tokens")
        return given if isinstance(given, int) else None

    def _estimate_media(self, question: Question, target: Target) -> int:
        """The tokens of pictures and files, beyond those of the bytes of the row."""
        if _is_plain(question):
            return 0
        try:
            return estimate_media(self._plan.build(self._builder, question, {}, needs_key=False).prompt, target)
        except AsidesError:
            return 0  # The row cannot be asked, so it costs nothing.

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


def _is_plain(question: Question) -> bool:
    """Whether it is text alone."""
    return isinstance(question.prompt, str)
