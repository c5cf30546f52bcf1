"""Timings and costs: what a timer makes of moves and times, and where a cost comes from."""

from __future__ import annotations

import json
import socket
import sys
import time
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import asides
from asides.providers.find import list_providers
from asides.testing.stage import Fail, OpenStage, Say
from asides.values.fold import Fold
from asides.values.reply import CallContext
from asides.values.usage import Cost, ReplyTimer, Timing, Usage, find_cost, join_timings, read_cost, sum_costs
from tests.shells import KEY, MODEL, Shell, both_shells


def timed(*batches: tuple[float, list[Any]]) -> asides.Reply:
    """The reply of events that came at these times, in a call that began at 10."""
    fold = Fold()
    fold.timer = ReplyTimer(10.0)
    for now, events in batches:
        fold.feed(events)
        fold.stamp(now)
    return fold.reply(streamed=True)


def think(text: str, block: int = 0) -> asides.ThinkingDelta:
    return asides.ThinkingDelta(text, block)


def test_a_timing_has_the_firsts_the_thinking_and_the_total() -> None:
    reply = timed(
        (11.0, [asides.ReplyStarted()]),
        (12.0, [think("a")]),
        (13.0, [think("b")]),
        (14.5, [asides.TextDelta("4", 1)]),
        (15.0, [asides.TextDelta("2", 1)]),
        (16.0, [asides.ReplyEnded()]),
    )
    assert reply.timing == Timing(1.0, 2.0, 4.5, 2.5, 6.0)
    assert reply.thinking
    assert reply.thinking.seconds == 2.5


def test_each_thought_has_its_own_seconds_until_something_else_comes() -> None:
    reply = timed(
        (11.0, [think("a")]),
        (12.0, [asides.ThoughtSealed(asides.Seal("signature", "s"))]),
        (20.0, [asides.ToolCallDelta(1, "c", "look")]),
        (21.0, [think("b", 2)]),
        (24.0, [asides.ToolCallDelta(3, "d", "look"), asides.ReplyEnded()]),
    )
    assert [part.seconds for part in reply.parts if isinstance(part, asides.Thought)] == [1.0, 3.0]
    assert reply.timing == Timing(1.0, 1.0, None, 4.0, 14.0)


def test_a_thought_that_goes_on_later_is_counted_without_the_pause() -> None:
    reply = timed(
        (11.0, [think("a")]), (12.0, [asides.TextDelta("x", 1)]), (15.0, [think("b")]), (17.0, [asides.ReplyEnded()])
    )
    assert reply.timing is not None
    assert reply.timing.thinking == 3.0


def test_a_reply_in_one_piece_does_not_show_when_the_model_thought() -> None:
    reply = timed((13.0, [asides.ReplyStarted(), think("a"), asides.TextDelta("42", 1), asides.ReplyEnded()]))
    assert reply.timing == Timing(3.0, 3.0, 3.0, None, 3.0)
    assert reply.thinking
    assert reply.thinking.seconds is None


def test_without_a_clock_there_is_no_timing_and_time_is_not_compared() -> None:
    events: list[Any] = [asides.ReplyStarted(), think("a"), asides.TextDelta("42", 1), asides.ReplyEnded()]
    folded = asides.fold(events)
    assert folded.timing is None
    assert folded == timed((11.0, events[:2]), (12.0, events[2:]))


def test_the_timings_of_a_run_follow_each_other() -> None:
    first, second = Timing(1, 2, None, 3.0, 5.0), Timing(1, None, 2.0, None, 4.0)
    assert join_timings([first, None, second]) == Timing(1, 2, 7.0, 3.0, 9.0)
    assert join_timings([None]) is None


# --- over sockets -----------------------------------------------------------------------------------------------------


@both_shells
def test_a_stream_is_measured_from_the_start_of_the_call_with_its_retries(shell: Shell, stage: OpenStage) -> None:
    # The pauses are long, so that no busy machine reads two pieces at once.
    slow = Say(thinking="a thought of some length", text="the answer", piece=12, pause=0.2)
    outcome = shell(stage(Fail(503, retry_after=0.2), slow).url)
    assert outcome.reply is not None
    timing, thought = outcome.reply.timing, outcome.reply.thinking
    assert timing is not None
    assert timing.first_event is not None
    assert timing.first_thought is not None
    assert timing.first_word is not None
    assert timing.thinking is not None
    assert timing.total is not None
    assert 0.2 < timing.first_event <= timing.first_thought < timing.first_word < timing.total
    assert 0.1 < timing.thinking <= timing.total - timing.first_event
    assert thought is not None
    assert thought.seconds == timing.thinking


@both_shells
def test_a_whole_reply_has_one_moment_and_equals_the_streamed_one(shell: Shell, stage: OpenStage) -> None:
    opened = stage(Say(thinking="plan", text="42", id="r", delay=0.05, piece=1, pause=0.01))
    whole, streamed = shell(opened.url, stream=False).reply, shell(opened.url, stream=True).reply
    assert whole is not None
    assert streamed is not None
    assert whole.timing is not None
    assert whole.timing.first_event == whole.timing.first_word == whole.timing.total
    assert whole.timing.thinking is None
    assert whole.timing != streamed.timing
    assert whole == streamed


@both_shells
def test_a_stream_that_breaks_has_the_time_of_what_arrived(shell: Shell, stage: OpenStage) -> None:
    scene = Say(thinking="a thought of some length", text="the answer", piece=8, pause=0.03, cut_after=900)
    partial = shell(stage(scene).url).partial
    assert partial is not None
    assert partial.timing is not None
    assert partial.timing.first_thought is not None


def test_a_run_has_the_time_of_its_model_and_the_cost_of_its_steps(stage: OpenStage) -> None:
    priced = Usage(10, 5, 2, 1, 15, cost=Decimal("0.25"), cache_written=4)
    opened = stage(
        Say(tool_calls=(asides.ToolCall("c", "look", {}),), usage=priced), Say(thinking="hm", text="42", usage=priced)
    )

    @asides.tool
    def look() -> str:
        """Looks."""
        time.sleep(0.2)
        return "blue"

    result = asides.Agent(MODEL, tools=[look], base_url=opened.url, api_key=KEY).send("?")
    assert result.timing is not None
    assert result.timing.total == sum(step.reply.timing.total or 0 for step in result.steps if step.reply.timing)
    assert result.cost is not None
    assert result.cost.amount == Decimal("0.5")
    assert (result.usage.cost, result.usage.cache_written) == (Decimal("0.5"), 8)
    assert result.to_dict()["cost"]["amount"] == 0.5


def test_react_is_measured_as_it_is_read(stage: OpenStage) -> None:
    opened = stage(Say(text="Thought: I know it well.\nFinal Answer: noon", piece=12, pause=0.2))
    result = asides.Agent(MODEL, mode="react", base_url=opened.url, api_key=KEY, stream=True).send("?")
    assert result.timing is not None
    assert result.timing.first_thought is not None
    assert result.timing.first_word is not None
    assert result.timing.first_thought < result.timing.first_word


def test_an_own_row_may_name_its_prices_and_a_foreign_address_has_none(stage: OpenStage) -> None:
    pytest.importorskip("genai_prices")
    opened = stage(Say(text="42", usage=Usage(1_000_000, 0, total=1_000_000)))
    row = asides.Provider(name="mine", base_url=opened.url, key="optional", prices="openai")
    with asides.Client(providers=[row]) as client:
        cost = client.ask("mine:gpt-5", "?").cost
    assert cost == Cost(Decimal("1.25"), origin="estimated")
    assert asides.ask("openai:gpt-5", "?", base_url=opened.url, api_key=KEY, endpoint="chat").cost is None


def test_the_usage_of_a_conversation_keeps_costs_and_writes(stage: OpenStage, tmp_path: Path) -> None:
    usage = Usage(10, 5, None, None, 15, cost=Decimal("0.001"), cache_written=4)
    chat = asides.Conversation(MODEL, base_url=stage(Say(text="42", usage=usage)).url, api_key=KEY)
    chat.ask("?")
    chat.ask("?")
    assert (chat.usage.cost, chat.usage.cache_written) == (Decimal("0.002"), 8)
    chat.save(tmp_path / "chat.json")
    assert asides.Conversation.load(tmp_path / "chat.json").usage == chat.usage


# --- the cost that a provider reports ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.00125}, "0.00125"),
        ({"cost": 2e-05}, "0.00002"),
        ({"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 2}}, "2.1"),
        ({"cost": 0.1, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.1}}, "0.1"),
        ({"cost": "0.001592"}, "0.001592"),
        ({"cost": {"input_tokens_cost": 0.00001, "request_cost": 0.005, "total_cost": 0.00501}}, "0.00501"),
        ({"cost_in_usd_ticks": 37756000}, "0.0037756"),
        ({"estimated_cost": 0.0000268}, "0.0000268"),
        ({"cost": 0}, "0"),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "much"}, None),
        ({"cost": []}, None),
        ({"cost": {"diem": 3}}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_a_reported_cost_is_read_in_every_form_of_it(dialect: str, usage: dict[str, Any], cost: str | None) -> None:
    bodies: dict[str, Any] = {
        "openai_chat": {"choices": [{"message": {"content": "42"}, "finish_reason": "stop"}]},
        "openai_responses": {
            "id": "r",
            "model": "m",
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}],
        },
    }
    body = {**bodies[dialect], "usage": {"input_tokens": 3, "output_tokens": 2, **usage}}
    reply = asides.decode(dialect, json.dumps(body))
    assert reply.text == "42"
    expected = None if cost is None else Decimal(cost)
    assert reply.usage.cost == expected
    assert (None if reply.cost is None else (reply.cost.amount, reply.cost.origin)) == (
        None if expected is None else (expected, "reported")
    )


def test_amounts_that_are_no_numbers_are_no_cost() -> None:
    assert read_cost(float("nan")) is None
    assert read_cost("Infinity") is None
    assert read_cost(None, ticks="x") is None


# --- cache writes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            "anthropic",
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "42"}],
                "stop_reason": "end_turn",
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 3,
                    "cache_creation_input_tokens": 2,
                    "output_tokens": 1,
                },
            },
        ),
        (
            "bedrock",
            {
                "output": {"message": {"role": "assistant", "content": [{"text": "42"}]}},
                "stopReason": "end_turn",
                "usage": {
                    "inputTokens": 5,
                    "outputTokens": 1,
                    "totalTokens": 11,
                    "cacheReadInputTokens": 3,
                    "cacheWriteInputTokens": 2,
                },
            },
        ),
        (
            "openai_chat",
            {
                "choices": [{"message": {"content": "42"}, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": 10,
                    "completion_tokens": 1,
                    "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                },
            },
        ),
        (
            "openai_responses",
            {
                "id": "r",
                "model": "m",
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}],
                "usage": {
                    "input_tokens": 10,
                    "output_tokens": 1,
                    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                },
            },
        ),
    ],
)
def test_tokens_written_to_a_cache_are_counted_and_are_input(dialect: str, body: dict[str, Any]) -> None:
    usage = asides.decode(dialect, json.dumps(body)).usage
    assert (usage.input, usage.cached, usage.cache_written, usage.output) == (10, 3, 2, 1)


# --- estimates --------------------------------------------------------------------------------------------------------


def test_an_estimate_comes_from_list_prices_with_the_share_of_thinking() -> None:
    pytest.importorskip("genai_prices")
    cost = find_cost(Usage(1_000_000, 1_000_000, 250_000, 0), ["gpt-5"], "openai")
    assert cost == Cost(Decimal("11.25"), "USD", Decimal("2.5"), "estimated")
    cached = find_cost(Usage(1_000_000, 0, None, 500_000, cache_written=100_000), ["claude-opus-4-5"], "anthropic")
    assert cached == Cost(Decimal("0.4") * 5 + Decimal("0.25") + Decimal("0.625"), "USD", None, "estimated")


@pytest.mark.parametrize(
    ("usage", "models", "provider"),
    [
        (Usage(1, 1), ["no-such-model"], "openai"),
        (Usage(1, 1), ["gpt-5"], "no-such-provider"),
        (Usage(1, 1), ["gpt-5"], None),
        (Usage(1, 1), [], "openai"),
        (Usage(), ["gpt-5"], "openai"),
        (Usage(input=1, output=1, cached=7), ["gpt-5"], "openai"),
    ],
)
def test_what_is_not_known_has_no_cost(usage: Usage, models: list[str], provider: str | None) -> None:
    assert find_cost(usage, models, provider) is None


def test_a_reported_cost_wins_and_list_prices_only_tell_the_share_of_thinking() -> None:
    pytest.importorskip("genai_prices")
    usage = Usage(0, 1000, 250, cost=Decimal(4))
    assert find_cost(usage, ["gpt-5"], "openai") == Cost(Decimal(4), "USD", Decimal(1), "reported")
    assert find_cost(usage, ["gpt-5"], None) == Cost(Decimal(4))
    assert find_cost(Usage(1, 1, 0, cost=Decimal(4)), [], None) == Cost(Decimal(4), thinking=Decimal(0))


@pytest.mark.parametrize("amount", ["1e999999999", "9" * 5000, "1e-999999999"])
def test_no_reported_amount_is_an_error_later(amount: str) -> None:
    pytest.importorskip("genai_prices")
    for cost in (read_cost(amount), read_cost(None, ticks=amount), read_cost("1", upstream=amount)):
        usage = Usage(10, 10, 5, cost=cost)
        found = find_cost(usage + usage, ["gpt-5"], "openai")
        assert found is not None
        json.dumps([found.to_dict(), (found + found).to_dict()], allow_nan=False)


def test_the_share_of_thinking_is_never_more_than_the_whole() -> None:
    pytest.importorskip("genai_prices")
    found = find_cost(Usage(10, 10, 999), ["gpt-5"], "openai")
    assert found is not None
    assert found.thinking
    assert found.thinking <= found.amount


class _Broken(ModuleType):
    """A package that was installed halfway."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def _raise(*_: object, **__: object) -> Any:
    raise OSError("no such file")


def test_a_broken_package_costs_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (_Broken("genai_prices"), SimpleNamespace(Usage=dict, calc_price=_raise)):
        monkeypatch.setitem(sys.modules, "genai_prices", package)
        reply = asides.Reply(usage=Usage(10, 10), model="gpt-5", call=CallContext(priced_by="openai"))
        assert reply.cost is None
        assert json.loads(reply.to_json())["cost"] is None


def test_without_the_package_there_is_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert find_cost(Usage(1, 1), ["gpt-5"], "openai") is None


def test_an_estimate_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert find_cost(Usage(1, 1), ["gpt-5"], "openai") is not None


PRICED = [row for row in list_providers() if row.prices]
# A model of each provider whose price is known: (row, model).
KNOWN = [
    ("openai", "gpt-5"),
    ("openai-responses", "gpt-5"),
    ("anthropic", "claude-opus-4-5"),
    ("google", "gemini-2.5-pro"),
    ("vertex-anthropic", "claude-sonnet-4-5@20250929"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("deepseek", "deepseek-reasoner"),
    ("xai", "grok-4-fast-reasoning"),
    ("moonshot", "kimi-k2-thinking"),
    ("zai", "glm-4.6"),
    ("groq", "openai/gpt-oss-120b"),
    ("openrouter", "anthropic/claude-haiku-4.5"),
    ("fireworks", "accounts/fireworks/models/deepseek-v3p2"),
    ("mistral", "magistral-medium-2509"),
    ("azure", "gpt-4o"),
]


@pytest.mark.parametrize("row", PRICED, ids=lambda row: row.name)
def test_every_row_names_a_provider_that_the_prices_have(row: asides.Provider) -> None:
    snapshot = pytest.importorskip("genai_prices.data_snapshot").get_snapshot()
    assert row.prices in {provider.id for provider in snapshot.providers}


@pytest.mark.parametrize(("name", "model"), KNOWN, ids=lambda value: value)
def test_a_model_of_a_row_has_a_price(name: str, model: str) -> None:
    pytest.importorskip("genai_prices")
    row = asides.find_provider(name)
    cost = find_cost(Usage(1000, 500, 100, 10), [model], row.prices)
    assert cost is not None
    assert cost.thinking is not None
    assert 0 < cost.thinking < cost.amount


def test_servers_of_ones_own_have_no_price() -> None:
    own = [row.name for row in list_providers() if "localhost" in row.base_url or "127.0.0.1" in row.base_url]
    assert own
    assert not {row.name for row in PRICED} & set(own)


def test_costs_add_up_and_say_when_a_part_is_an_estimate() -> None:
    reported, estimated = Cost(Decimal(1), thinking=Decimal("0.5")), Cost(Decimal(2), origin="estimated")
    assert sum([reported, reported]) == Cost(Decimal(2), thinking=Decimal(1))
    assert reported + estimated == Cost(Decimal(3), "USD", None, "estimated")
    assert sum_costs([reported, None]) is None
    assert sum_costs([]) is None
    assert sum_costs([reported, reported]) == Cost(Decimal(2), thinking=Decimal(1))
    with pytest.raises(ValueError, match="cannot be added"):
        _ = reported + Cost(Decimal(1), "EUR")
    with pytest.raises(TypeError):
        _ = 3 + reported
