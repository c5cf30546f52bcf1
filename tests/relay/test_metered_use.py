"""What a request may use and what it used: bounds that are rather too high, and counts for what was not reported."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from asides.flows.call import Call
from asides.flows.steps import Flow
from asides.providers.find import find_target
from asides.relay.error_response import RelayRefusal
from asides.relay.metered_use import (
    MeteredUse,
    refuse_unpriced,
)
from asides.relay.relay_request import CallerLimits
from asides.relay.steps import ReserveUse, SettleUse, Use
from asides.values.errors import ConnectionLost, IdleTimeout, ProtocolError
from asides.values.messages import Prompt, user
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.usage import Usage

CLAUDE = find_target("anthropic:claude-sonnet-4-5")
UNPRICED = find_target("ollama:somebodys")
BUDGET = CallerLimits(has_budget=True)


def build_call(text: str = "hello", target: Any = CLAUDE, **fields: Any) -> Call:
    return Call(Prompt((user(text),), **fields), target)


def carry_out(flow: Flow[None], answer: Callable[[Any], Any] = lambda _: None) -> list[Any]:
    steps: list[Any] = []
    value: Any = None
    while True:
        try:
            step = flow.send(value)
        except StopIteration:
            return steps
        steps.append(step)
        value = answer(step)


def reserve(use: MeteredUse, call: Call, extra: dict[str, Any] | None = None, reply: Reply | None = None) -> ReserveUse:
    [step] = carry_out(use.reserve(call, b"", extra or {}, lambda: reply))
    assert isinstance(step, ReserveUse)
    return step


def settle(use: MeteredUse, reply: Reply | None, **how: bool) -> Use:
    [step] = carry_out(use.settle(reply, **how))
    assert isinstance(step, SettleUse)
    return step.use


def build_reply(text: str = "42", **fields: Any) -> Reply:
    return msgspec.structs.replace(Reply((Text(text),)), **fields)


def test_the_bound_is_the_input_and_the_most_output_at_the_price_of_the_target() -> None:
    step = reserve(MeteredUse(BUDGET), build_call(max_tokens=1000))
    assert step.model == "anthropic:claude-sonnet-4-5"
    # 1000 tokens at 15 dollars for a million, and some for the question.
    assert step.cost is not None
    assert Decimal("0.015") < step.cost < Decimal("0.0165")
    many = reserve(MeteredUse(BUDGET), build_call(max_tokens=1000), {"n": 5})
    assert many.cost is not None
    assert Decimal("0.075") < many.cost < Decimal("0.077")
    assert reserve(MeteredUse(BUDGET), build_call(max_tokens=1000), {"n": "five"}).cost == step.cost


def test_a_target_without_a_price_is_refused_only_where_money_counts() -> None:
    with pytest.raises(RelayRefusal, match="price of ollama:somebodys is not known") as caught:
        carry_out(MeteredUse(BUDGET).reserve(build_call(target=UNPRICED), b"", {}, lambda: None))
    assert (caught.value.status, str(caught.value)) == (403, str(refuse_unpriced("ollama:somebodys")))
    limits = CallerLimits(has_rate=True, has_token_rate=True)
    assert reserve(MeteredUse(limits), build_call(target=UNPRICED)).cost is None


def test_tokens_are_estimated_only_where_they_count() -> None:
    assert reserve(MeteredUse(CallerLimits(has_rate=True)), build_call()).tokens == 0
    counted = CallerLimits(has_token_rate=True)
    assert 1000 < reserve(MeteredUse(counted), build_call()).tokens < 1300
    assert 4096 < reserve(MeteredUse(counted), build_call(max_tokens=64000)).tokens < 4400


def test_a_refusal_is_raised_and_nothing_is_settled_after_it() -> None:
    use = MeteredUse(BUDGET)
    refusal = RelayRefusal("no", status=429)
    with pytest.raises(RelayRefusal, match="no"):
        carry_out(use.reserve(build_call(), b"", {}, lambda: None), lambda _: refusal)
    assert carry_out(use.settle(None, has_failed=True)) == []


def test_a_reply_is_settled_once_with_what_it_reports() -> None:
    use = MeteredUse(BUDGET)
    reserve(use, build_call())
    reply = build_reply(usage=Usage(1000, 100))
    assert settle(use, reply) == Use(1100, Decimal("0.0045"))
    assert carry_out(use.settle(reply)) == []


def test_a_cost_that_the_provider_reports_wins() -> None:
    use = MeteredUse(BUDGET)
    reserve(use, build_call())
    assert settle(use, build_reply(usage=Usage(1000, 100, cost=Decimal("0.5")))).cost == Decimal("0.5")


def test_a_reply_without_counts_is_settled_by_an_estimate() -> None:
    use = MeteredUse(BUDGET)
    reserve(use, build_call("word " * 3000))
    used = settle(use, build_reply("word " * 300))
    assert used.is_estimate
    assert 5000 < used.tokens < 6500
    assert used.cost is not None
    assert used.cost > Decimal("0.02")


def test_a_failure_before_anything_came_costs_nothing_and_after_it_what_came() -> None:
    use = MeteredUse(BUDGET)
    reserve(use, build_call())
    assert settle(use, None, has_failed=True) == Use()
    reserve(use, build_call())
    assert settle(use, Reply(()), has_failed=True) == Use()
    reserve(use, build_call())
    used = settle(use, build_reply("word " * 300, usage=Usage(50, 1)), has_failed=True)
    assert used.is_estimate
    assert 500 < used.tokens < 700, "one token was reported before it broke off"


def test_whoever_leaves_pays_for_what_was_sent_and_came_and_for_nothing_before() -> None:
    use = MeteredUse(BUDGET)
    step = reserve(use, build_call("word " * 3000), reply=build_reply("word " * 300))
    assert step.find_used(0) == Use()
    use.note_asked()
    used = step.find_used(0)
    assert used.is_estimate
    assert used.tokens > 5000


def test_a_response_that_is_no_reply_is_settled_by_what_its_body_reports() -> None:
    use = MeteredUse(BUDGET)
    step = reserve(use, build_call())
    [settled] = carry_out(use.settle_body(b'{"usage": {"input_tokens": 1000, "output_tokens": 100}}'))
    assert settled.use == Use(1100, Decimal("0.0045"))
    for body in (b"no json", b"{}", b'{"usage": {"input_tokens": -1}}', b'{"usage": null}'):
        reserve(use, build_call())
        [settled] = carry_out(use.settle_body(body))
        assert settled.use.cost == step.cost, "what it may cost at most"
    reserve(use, build_call())
    [settled] = carry_out(use.settle_body(None))
    assert settled.use == Use()


def test_a_request_that_costs_nothing_is_only_counted() -> None:
    first, second = carry_out(MeteredUse(BUDGET).count_request())
    assert (first.tokens, first.cost, second) == (0, 0, SettleUse(Use()))
    with pytest.raises(RelayRefusal):
        carry_out(MeteredUse(BUDGET).count_request(), lambda _: RelayRefusal("no"))


def test_what_is_charged_later_is_not_for_callers_with_a_budget() -> None:
    with pytest.raises(RelayRefusal, match="background"):
        carry_out(MeteredUse(BUDGET).reserve(build_call(), b"", {"background": True}, lambda: None))
    limits = CallerLimits(has_rate=True)
    assert carry_out(MeteredUse(limits).reserve(build_call(), b"", {"background": True}, lambda: None))


def test_the_one_that_answered_sets_the_price() -> None:
    use = MeteredUse(BUDGET)
    reserve(use, build_call())
    use.price_as(None)
    use.price_as(build_call(target=find_target("openai:gpt-4o-mini")))
    assert settle(use, build_reply(usage=Usage(1000, 100))).cost == Decimal("0.00021")


@pytest.mark.parametrize(
    "extra",
    [
        {"service_tier": "priority"},
        {"service_tier": 7},
        {"serviceTier": {"type": "priority"}},
        {"speed": "fast"},
        {"performanceConfig": {"latency": "optimized"}},
        {"inference_geo": "us"},
    ],
)
def test_what_costs_more_than_the_list_price_is_not_for_callers_with_a_budget(extra: dict[str, Any]) -> None:
    with pytest.raises(RelayRefusal, match="list price"):
        reserve(MeteredUse(BUDGET), build_call(), extra)
    with pytest.raises(RelayRefusal, match="list price"):
        reserve(MeteredUse(BUDGET), build_call(extra=extra))
    assert reserve(MeteredUse(CallerLimits(has_rate=True)), build_call(), extra).cost is None


@pytest.mark.parametrize("extra", [{"service_tier": "auto"}, {"service_tier": "FLEX"}, {"speed": "standard"}])
def test_the_usual_tiers_are_for_all(extra: dict[str, Any]) -> None:
    assert reserve(MeteredUse(BUDGET), build_call(), extra).cost


def test_every_reply_that_is_asked_for_is_bounded() -> None:
    one = reserve(MeteredUse(BUDGET), build_call(max_tokens=1000)).cost
    assert one is not None
    ways: list[dict[str, Any]] = [{"n": count} for count in (500, 500.0, "500")]
    for more in (*ways, *({"generationConfig": {"candidateCount": count}} for count in (500, "500"))):
        many = reserve(MeteredUse(BUDGET), build_call(max_tokens=1000), more).cost
        assert many is not None
        assert many > one * 400
    for odd in (-3, 0, "nine", "-9", "nan", "inf", True, None, float("inf"), float("nan"), [2]):
        assert reserve(MeteredUse(BUDGET), build_call(max_tokens=1000), {"n": odd}).cost == one


def test_whoever_leaves_a_whole_reply_pays_its_bound_since_nobody_stops_the_model() -> None:
    use = MeteredUse(BUDGET)
    step = reserve(use, build_call(max_tokens=5000, stream=False))
    use.note_asked()
    used = step.find_used(0).cost
    assert used is not None
    assert used > Decimal("0.075"), "5000 tokens at 15 dollars for a million"
    assert step.cost is not None
    assert used <= step.cost


def test_whoever_leaves_a_stream_pays_for_the_time_that_a_model_may_have_thought() -> None:
    use = MeteredUse(BUDGET)
    step = reserve(use, build_call(max_tokens=5000, stream=True), reply=build_reply("42"))
    use.note_asked()
    at_once = step.find_used(0).tokens
    assert 1000 < step.find_used(10).tokens - at_once < 3000
    assert step.find_used(10_000).tokens - at_once <= 5000


def test_a_target_that_was_not_waited_for_is_paid_and_one_that_refused_is_not() -> None:
    use = MeteredUse(BUDGET)
    bound = reserve(use, build_call(max_tokens=5000, stream=False)).cost
    use.note_asked()
    use.note_problem(IdleTimeout("it is silent."))
    lost = settle(use, None, has_failed=True).cost
    assert lost is not None
    assert bound is not None
    assert Decimal("0.075") < lost <= bound
    reserve(use, build_call(max_tokens=5000, stream=False))
    use.note_asked()
    use.note_problem(IdleTimeout("it is silent."))
    assert reserve(use, build_call()).lost == lost, "another target is asked"
    use.note_asked()
    use.note_problem(ConnectionLost("it was refused."))
    assert reserve(use, build_call(max_tokens=5000, stream=False)).lost == 0
    use.note_problem(ProtocolError("nothing was asked."))
    assert settle(use, None, has_failed=True) == Use()
    reserve(use, build_call(max_tokens=5000, stream=False))
    use.note_asked()
    use.note_problem(ProtocolError("it cannot be decoded."))
    assert settle(use, None, has_failed=True).cost == lost


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-4-6"}]},
        {"tools": [{"type": "image_generation", "model": "gpt-image-1"}]},
        {"plugins": [{"id": "router", "allowed_models": ["openai/gpt-5-pro"]}]},
        {"models": ["openai/gpt-5-pro"]},
        {"preset": "mine"},
    ],
)
def test_models_that_a_host_asks_by_itself_are_not_for_callers_with_a_budget(extra: dict[str, Any]) -> None:
    with pytest.raises(RelayRefusal, match="a model that its host chooses"):
        reserve(MeteredUse(BUDGET), build_call(), extra)
    assert reserve(MeteredUse(CallerLimits(has_rate=True)), build_call(), extra).cost is None


def test_tools_of_a_provider_that_name_no_model_are_for_all() -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}, {"name": "model", "input_schema": {"model": {}}}]
    assert reserve(MeteredUse(BUDGET), build_call(), {"tools": tools}).cost


def test_what_a_cache_keeps_for_an_hour_is_reserved_and_settled() -> None:
    for body, is_hour in ((b"{}", False), (b'{"ttl": "1h"}', True), (b'{"ttl": "\\u0031h"}', True)):
        [step] = carry_out(MeteredUse(BUDGET).reserve(build_call("hello" * 999), body, {}, lambda: None))
        [plain] = carry_out(MeteredUse(BUDGET).reserve(build_call("hello" * 999), b"", {}, lambda: None))
        assert (step.cost > plain.cost) is is_hour
    use = MeteredUse(BUDGET)
    reserve(use, build_call())
    used = settle(use, build_reply(usage=Usage(1000, 0, cache_written=1000, cache_written_hour=1000)))
    assert used.cost == Decimal("0.006")
