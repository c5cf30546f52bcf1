"""What a request may take: estimates, and bounds that no reply passes."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

import asides
from asides.batch.batch_plan import read_plan
from asides.batch.weigh_requests import Scale
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.settings import Settings
from asides.values.money import to_dollars

pytest.importorskip("genai_prices")


def scale(model: str = "openai:gpt-4o", *, needs_price: bool = True, **options: Any) -> Scale:
    builder = CallBuilder(settings=Settings())
    return Scale(read_plan(model, cast("Options", options), builder)[0], builder, needs_price=needs_price)


def row(**fields: Any) -> bytes:
    return json.dumps({"prompt": "a" * 1000, **fields}).encode()


def test_the_bound_covers_all_input_and_all_output() -> None:
    weight = scale(max_tokens=1000).weigh(row())
    # 2.50 dollars for a million tokens in, 10 for a million out (platform.openai.com, pricing, 2026-11).
    assert 0.0125 <= to_dollars(weight.bound) < 0.0135
    assert (weight.most_output, 250 <= weight.tokens < 270) == (1000, True)
    assert scale(max_tokens=10).weigh(row(max_tokens=2000)).bound > weight.bound
    assert scale(max_tokens=1000, system="s" * 4000).weigh(row()).bound > weight.bound


def test_what_cannot_be_bound_is_told_where_it_matters() -> None:
    with pytest.raises(asides.ConfigError, match="set max_tokens"):
        scale("groq:unheard-of").weigh(row())
    with pytest.raises(asides.ConfigError, match="none is known for groq:unheard-of"):
        scale("groq:unheard-of", max_tokens=5).weigh(row())
    weight = scale("groq:unheard-of", needs_price=False).weigh(row())
    assert (weight.bound, weight.is_bound_known) == (0, False)
