"""Prices from rates, against the estimate for each reply: random usages of every model that has a price."""

from __future__ import annotations

import random
import time
from decimal import Decimal

import pytest

from asides.values.usage import Usage, find_cost
from asides_gateway import usual_prices
from asides_gateway.usual_prices import find_usual_cost

genai_prices = pytest.importorskip("genai_prices")

_MODELS = (
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-opus-4-1"),
    ("openai", "gpt-4o"),
    ("openai", "gpt-5"),
    ("google", "gemini-2.5-pro"),
    ("google", "gemini-2.5-flash"),
    ("deepseek", "deepseek-chat"),
    ("deepseek", "deepseek-reasoner"),
    ("groq", "openai/gpt-oss-120b"),
    ("x-ai", "grok-4"),
    ("mistral", "mistral-large-latest"),
)


def _make_usage(chance: random.Random) -> Usage:
    size = chance.choice((10, 1000, 90_000, 150_000, 400_000))
    sent, received = chance.randrange(size), chance.randrange(size)
    cached = chance.choice((None, 0, chance.randrange(sent + 1)))
    written = chance.choice((None, 0, chance.randrange(sent + 1 - (cached or 0))))
    thinking = chance.choice((None, 0, received, chance.randrange(received + 1)))
    return Usage(input=sent, output=received, cached=cached, cache_written=written, thinking=thinking)


@pytest.mark.parametrize(("provider", "model"), _MODELS)
def test_rates_give_what_the_estimate_gives(provider: str, model: str) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    for _ in range(30):
        usage = _make_usage(chance)
        exact = find_cost(usage, [model], provider)
        found = find_usual_cost(usage, (model,), provider)
        assert found == (None if exact is None else exact.amount), f"seed {seed}: {usage}"


def test_some_models_have_a_price() -> None:
    assert sum(find_usual_cost(Usage(input=1, output=1), (model,), name) is not None for name, model in _MODELS) > 6


def test_what_the_provider_reports_counts() -> None:
    assert find_usual_cost(Usage(input=1, output=1, cost=Decimal("0.25")), (), None) == Decimal("0.25")


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(input=1),
        Usage(output=1),
        Usage(input=-1, output=1),
        Usage(input=1, output=1, cached=5, thinking=9),
    ],
)
def test_counts_that_contradict_each_other_are_left_to_the_estimate(usage: Usage) -> None:
    exact = find_cost(usage, ["gpt-4o"], "openai")
    assert find_usual_cost(usage, ("gpt-4o",), "openai") == (None if exact is None else exact.amount)


def test_nobody_knows_the_price_of_an_unknown_model() -> None:
    usage = Usage(input=1, output=1)
    assert find_usual_cost(usage, ("no-such-model",), "openai") is None
    assert find_usual_cost(usage, ("gpt-4o",), None) is None
    assert find_usual_cost(usage, (), "openai") is None


def test_rates_are_looked_up_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = usual_prices._estimate

    def count(usage: Usage, models: tuple[str, ...], priced_by: str) -> Decimal | None:
        calls.append(1)
        return real(usage, models, priced_by)

    monkeypatch.setattr(usual_prices, "_estimate", count)
    now = time.time() + 10**7
    monkeypatch.setattr(time, "time", lambda: now)
    for _ in range(50):
        find_usual_cost(Usage(input=5, output=5), ("gpt-4o",), "openai")
    first = len(calls)
    assert first < 10
    now += 601
    find_usual_cost(Usage(input=5, output=5), ("gpt-4o",), "openai")
    assert len(calls) > first
