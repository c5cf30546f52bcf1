"""What a request may take: estimates, and bounds that no reply passes."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

import asides
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.settings import Settings
from asides.values.money import to_dollars
from asides_batch.batch_plan import read_plan
from asides_batch.estimate_requests import RequestEstimator

pytest.importorskip("genai_prices")


def estimator(model: str = "openai:gpt-4o", *, needs_price: bool = True, **options: Any) -> RequestEstimator:
    builder = CallBuilder(settings=Settings())
    return RequestEstimator(read_plan(model, cast("Options", options), builder)[0], builder, needs_price=needs_price)


def row(**fields: Any) -> bytes:
    return json.dumps({"prompt": "a" * 1000, **fields}).encode()


def test_the_bound_covers_all_input_and_all_output() -> None:
    estimate = estimator(max_tokens=1000).estimate(row())
    # 2.50 dollars for a million tokens in, 10 for a million out (platform.openai.com, pricing, 2026-11).
    assert 0.0125 <= to_dollars(estimate.most_cost) < 0.0135
    assert (estimate.most_output, 250 <= estimate.tokens < 270) == (1000, True)
    assert estimator(max_tokens=10).estimate(row(max_tokens=2000)).most_cost > estimate.most_cost
    assert estimator(max_tokens=1000, system="s" * 4000).estimate(row()).most_cost > estimate.most_cost


def test_what_cannot_be_bound_is_told_where_it_matters() -> None:
    with pytest.raises(asides.ConfigError, match=r"[Ss]et max_tokens"):
        estimator("groq:unheard-of").estimate(row())
    with pytest.raises(asides.ConfigError, match="none is known for groq:unheard-of"):
        estimator("groq:unheard-of", max_tokens=5).estimate(row())
    estimate = estimator("groq:unheard-of", needs_price=False).estimate(row())
    assert (estimate.most_cost, estimate.is_cost_known) == (0, False)
