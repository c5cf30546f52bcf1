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
from asides.values.usage import Usage, find_cost
from asides_batch.batch_plan import read_plan
from asides_batch.estimate_requests import RequestEstimator

pytest.importorskip("genai_prices")


def estimator(model: str = "openai:gpt-4o", *, needs_price: bool = True, **options: Any) -> RequestEstimator:
    builder = CallBuilder(settings=Settings())
    return RequestEstimator(read_plan(model, cast("Options", options), builder)[0], builder, needs_price=needs_price)


def vendor_row(**body: Any) -> bytes:
    return json.dumps({"url": "/v1/chat/completions", "body": {"model": "gpt-4o", **body}}).encode()


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
    with pytest.raises(asides.ConfigError, match=r"Set --max-tokens"):
        estimator("groq:unheard-of").estimate(row())
    with pytest.raises(asides.ConfigError, match="none is known for groq:unheard-of"):
        estimator("groq:unheard-of", max_tokens=5).estimate(row())
    estimate = estimator("groq:unheard-of", needs_price=False).estimate(row())
    assert (estimate.most_cost, estimate.is_cost_known) == (0, False)


CLAUDE = "anthropic:claude-sonnet-4-5"


def test_writing_to_a_cache_is_within_the_bound() -> None:
    bound = estimator(CLAUDE, max_tokens=10).estimate(row()).most_cost
    for_an_hour = estimator(CLAUDE, max_tokens=10, cache="1h").estimate(row()).most_cost
    size = len(row())
    for usage, most in (
        (Usage(size, 10, cache_written=size), bound),
        (Usage(size, 10, cache_written=size, cache_written_hour=size), for_an_hour),
    ):
        cost = find_cost(usage, ["claude-sonnet-4-5"], "anthropic")
        assert cost is not None
        assert cost.amount <= to_dollars(most)


def test_pictures_and_files_behind_an_address_are_within_the_bound() -> None:
    text = {"role": "user", "content": "What is this?"}
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}
    plain, shown = (
        estimator(CLAUDE, max_tokens=10).estimate(vendor_row(messages=[message]))
        for message in (text, {**text, "content": [picture]})
    )
    assert shown.tokens - plain.tokens >= 5000
    assert to_dollars(shown.most_cost) - to_dollars(plain.most_cost) > 0.015


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_servers_take_as_none_bounds_nothing(limit: int) -> None:
    unlimited = estimator(CLAUDE).estimate(row())
    assert estimator(CLAUDE).estimate(row(max_tokens=limit)).most_output == unlimited.most_output
    assert estimator(CLAUDE, max_tokens=limit).estimate(row()).most_cost == unlimited.most_cost > 0
