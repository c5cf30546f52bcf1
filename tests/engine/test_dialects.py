"""One model, one server, every language that it and asides speak: equal answers, thoughts and calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

import asides
from tests.engine.engines import MODEL, SAME_SERVER, SPOKEN, SUM, WEATHER, WEATHER_TOOL, Essence, asking_over, essence
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(params=SPOKEN)
def client(request: pytest.FixtureRequest) -> Iterator[asides.Client]:
    with asking_over(request.param) as asking:
        yield asking


@cache
def in_its_own_row(question: str) -> Essence:
    return essence(asides.ask(MODEL, question, tools=[WEATHER_TOOL] if question == WEATHER else None, max_tokens=600))


@STREAM
@pytest.mark.parametrize("question", [SUM, "Why is the sky blue?"])
def test_an_answer_is_the_same_in_every_language(client: asides.Client, stream: bool, question: str) -> None:
    reply = client.ask(SAME_SERVER, question, max_tokens=600, stream=stream)
    assert essence(reply) == in_its_own_row(question)


@STREAM
def test_a_call_is_the_same_in_every_language(client: asides.Client, stream: bool) -> None:
    reply = client.ask(SAME_SERVER, WEATHER, tools=[WEATHER_TOOL], max_tokens=600, stream=stream)
    assert essence(reply) == in_its_own_row(WEATHER)


@STREAM
def test_the_turn_behind_a_call_is_accepted_in_every_language(client: asides.Client, stream: bool) -> None:
    said: list[asides.Message | asides.Reply] = [asides.user(WEATHER)]
    first = client.ask(SAME_SERVER, said, tools=[WEATHER_TOOL], max_tokens=600, stream=stream)
    (call,) = first.tool_calls
    result = asides.ToolResult(call.id, '{"temperature": 18, "condition": "sunny"}', call.name)
    said += [first, asides.Message("tool", (result,))]
    second = client.ask(SAME_SERVER, said, tools=[WEATHER_TOOL], max_tokens=600, stream=stream)
    assert "18 degrees and sunny in Paris" in second.text
    assert second.thinking


@STREAM
def test_a_thought_cut_short_is_no_answer_in_any_language(client: asides.Client, stream: bool) -> None:
    reply = client.ask(SAME_SERVER, SUM, max_tokens=20, stream=stream)
    assert reply.text == ""
    assert reply.thinking
    assert reply.thinking.text.strip().startswith("I need the sum of 47 and 85.")
    assert reply.outcome in ("starved", "unterminated")
