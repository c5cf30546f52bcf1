"""Bounds that are rather too high: tokens of a request, and the most that it can cost."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from asides.flows.cost_bounds import (
    MOST_OUTPUT,
    estimate_input,
    estimate_output,
    find_most_cost,
    find_most_output,
    find_output_limit,
    forget_prices,
    load_prices,
)
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage, find_cost

CLAUDE = find_target("anthropic:claude-sonnet-4-5")
UNPRICED = find_target("ollama:somebodys")


FILES: list[tuple[File | Image, int, int]] = [
    (File(data=b"%PDF-1.7\n" + b"x" * 900_000), 199_000, 220_000),
    (File(data=b"%PDF-1.7\n" + b"x" * 90_000), 29_000, 40_000),
    (File(data=b"x" * 90_000), 29_000, 40_000),
    (File(url="https://a.example/a.pdf"), 199_000, 220_000),
    (File(id="file_1"), 199_000, 220_000),
    (Image(url="https://a.example/a.png"), 4_900, 8_000),
]
"""Files, and the tokens that they may have."""


@pytest.mark.parametrize(
    "text", ["a plain question of some words " * 50, "六乘以七是多少" * 100, "çà et là " * 100, "🙂" * 100]
)
def test_an_estimate_of_the_input_is_rather_too_high(text: str) -> None:
    tokens = estimate_input(Prompt((user(text),)), CLAUDE, b"")
    assert tokens >= len(text.encode()) // 3
    assert tokens <= len(text.encode()) // 2 + 300


def test_what_cannot_be_counted_is_estimated_by_its_bytes() -> None:
    assert estimate_input(Prompt(()), CLAUDE, b"x" * 3000) >= 64


def test_without_a_limit_of_the_request_the_output_has_one_all_the_same() -> None:
    assert find_most_output(Prompt((), max_tokens=7), CLAUDE) == 7
    assert find_most_output(Prompt(()), CLAUDE) == MOST_OUTPUT
    small = msgspec.structs.replace(CLAUDE, rule=msgspec.structs.replace(CLAUDE.rule, max_output=4096))
    assert find_most_output(Prompt(()), small) == 4096
    short = msgspec.structs.replace(CLAUDE, rule=msgspec.structs.replace(CLAUDE.rule, context=8192))
    assert find_most_output(Prompt(()), short) == 8192
    assert find_most_output(Prompt(()), find_target("openai:gpt-4o-mini")) == 16_384
    assert find_most_output(Prompt(()), find_target("openai:gpt-5.2")) == MOST_OUTPUT


def test_the_limit_of_a_model_is_known_or_not() -> None:
    assert find_output_limit(7, UNPRICED) == 7
    assert find_output_limit(None, UNPRICED) is None
    assert find_output_limit(-1, find_target("openai:gpt-4o-mini")) == 16_384


def test_writing_to_a_cache_may_cost_more_than_sending() -> None:
    load_prices()
    most = find_most_cost(CLAUDE, 1_000_000, 0)
    assert most is not None
    assert most >= Decimal("3.75")
    assert find_most_cost(UNPRICED, 1, 1) is None


def test_a_bound_is_never_below_the_exact_price_and_is_not_looked_up_again() -> None:
    forget_prices()
    for sent in (0, 1, 31, 32, 33, 1000, 99_999):
        exact = find_cost(Usage(sent, 77), ["claude-sonnet-4-5"], "anthropic")
        most = find_most_cost(CLAUDE, sent, 77)
        assert exact is not None
        assert most is not None
        assert exact.amount <= most <= exact.amount * Decimal("1.4")
        assert find_most_cost(CLAUDE, sent, 77) is most
    forget_prices()


def test_thinking_and_calls_are_output_too() -> None:
    parts = (Thought("x" * 300), Text("y" * 300), ToolCall("1", "add", {"a": "z" * 300}))
    assert estimate_output(Reply(parts)) >= 300


@pytest.mark.parametrize("limit", [0, -1, -(10**9)])
def test_a_limit_that_is_none_bounds_nothing(limit: int) -> None:
    assert find_most_output(Prompt((), max_tokens=limit), CLAUDE) == MOST_OUTPUT


@pytest.mark.parametrize(("file", "least", "most"), FILES)
def test_a_file_is_bounded_by_its_size_or_by_what_a_model_reads(file: File | Image, least: int, most: int) -> None:
    asked = user("?")
    call = Message("assistant", (ToolCall("call_1", "read", {}),))
    without = estimate_input(Prompt((asked, call, Message("user", (ToolResult("call_1", "-"),)))), CLAUDE, b"")
    for message in (Message("user", (file,)), Message("user", (ToolResult("call_1", (file,)),))):
        more = estimate_input(Prompt((asked, call, message)), CLAUDE, b"") - without
        assert least <= more <= most


def test_what_a_cache_keeps_for_an_hour_costs_more() -> None:
    most = find_most_cost(CLAUDE, 1_000, 0, writes_for_hour=True)
    usual = find_most_cost(CLAUDE, 1_000, 0)
    assert most is not None
    assert usual is not None
    assert most == usual * 2 / Decimal("1.25")
