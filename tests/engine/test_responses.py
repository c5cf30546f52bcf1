"""llama.cpp's server over /v1/responses, by its own row: raw thoughts live, and a cut that it does not admit."""

from __future__ import annotations

import pytest

import asides
from tests.engine.engines import MODEL, SUM, WEATHER, WEATHER_TOOL, essence
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_and_its_thinking_come_apart(stream: bool) -> None:
    reply = asides.ask(MODEL, SUM, endpoint="responses", stream=stream)
    assert essence(reply) == essence(asides.ask(MODEL, SUM))
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.source) == ("raw", "responses_raw")
    assert reply.warnings == asides.ask(MODEL, SUM).warnings


def test_thoughts_come_before_the_answer_and_one_by_one() -> None:
    with asides.stream(MODEL, SUM, endpoint="responses") as events:
        kinds = [type(event) for event in events]
    assert kinds.count(asides.ThinkingDelta) > 20
    assert kinds.index(asides.ThinkingDelta) < kinds.index(asides.TextDelta)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_cut_in_its_thought_is_starved_though_it_claims_to_be_complete(stream: bool) -> None:
    reply = asides.ask(MODEL, SUM, endpoint="responses", stream=stream, max_tokens=20)
    assert (reply.text, reply.outcome, reply.stop.raw) == ("", "starved", "completed")
    assert reply.thinking
    assert not reply.thinking.complete


def test_the_turn_behind_a_call_is_accepted_with_its_thought() -> None:
    said: list[asides.Message | asides.Reply] = [asides.user(WEATHER)]
    first = asides.ask(MODEL, said, endpoint="responses", tools=[WEATHER_TOOL])
    (call,) = first.tool_calls
    said += [first, asides.Message("tool", (asides.ToolResult(call.id, "18 degrees and sunny"),))]
    told = asides.explain(MODEL, said, endpoint="responses", tools=[WEATHER_TOOL])
    assert [item.get("type") for item in told.body["input"]] == [
        None,
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert "18 degrees" in asides.ask(MODEL, said, endpoint="responses", tools=[WEATHER_TOOL]).text
