"""The metrics of calls, and that nobody can add series without end."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.telemetry.client_metrics import OTHER, BoundedNames
from asides.values.usage import Usage
from asides_stage.stage import Fail, Say, Stage
from tests.telemetry.recorded import Recorded, recording

MODEL = "openai-compatible:m"


def _sum(points: list[Any], **labels: str) -> float:
    wanted = {name.replace("__", "."): value for name, value in labels.items()}
    return sum(float(point.sum) for point in points if wanted.items() <= dict(point.attributes).items())


def test_a_stream_is_recorded_with_its_tokens_and_times() -> None:
    say = Say(text="two words", thinking="hm", usage=Usage(input=11, output=7, thinking=3), pause=0.01)
    with recording() as recorded, Stage([say]) as stage, asides.Client() as client:
        assert client.stream(MODEL, "?", base_url=stage.url, api_key="k").reply.text == "two words"
    metrics = recorded.list_metrics()
    tokens = metrics["gen_ai.client.token.usage"]
    assert _sum(tokens, gen_ai__token__type="input") == 11
    assert _sum(tokens, gen_ai__token__type="output") == 7
    assert _sum(metrics["asides.client.reasoning_token.usage"]) == 3
    (duration,) = metrics["gen_ai.client.operation.duration"]
    assert dict(duration.attributes)["gen_ai.request.model"] == "m"
    first = [
        _sum(metrics[name])
        for name in (
            "gen_ai.client.operation.time_to_first_chunk",
            "asides.client.operation.time_to_first_thought",
            "asides.client.operation.time_to_first_answer",
        )
    ]
    assert 0 < first[0] <= first[1] <= first[2] <= duration.sum


def test_an_error_is_a_label_of_the_duration_and_counts_no_tokens() -> None:
    with recording() as recorded, Stage([Fail(429)]) as stage, pytest.raises(asides.RateLimited):
        asides.ask(MODEL, "?", base_url=stage.url, api_key="k", retries=0)
    metrics = recorded.list_metrics()
    (point,) = metrics["gen_ai.client.operation.duration"]
    assert dict(point.attributes)["error.type"] == "RateLimited"
    assert "gen_ai.client.token.usage" not in metrics


def test_a_tool_and_a_run_are_recorded() -> None:
    @asides.tool
    def add() -> int:
        """Add."""
        return 3

    says = [Say(tool_calls=(asides.ToolCall("c", "add", {}),)), Say(text="3")]
    with recording() as recorded, Stage(says) as stage:
        asides.Agent(MODEL, tools=[add], base_url=stage.url, api_key="k").run("?")
    points = recorded.list_metrics()["gen_ai.client.operation.duration"]
    kinds = {dict(point.attributes)["gen_ai.operation.name"]: point for point in points}
    assert {name: point.count for name, point in kinds.items()} == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}
    assert dict(kinds["execute_tool"].attributes)["gen_ai.tool.name"] == "add"


def test_the_names_of_models_add_only_so_many_series() -> None:
    names = BoundedNames(2)
    assert [names.bound(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]


def test_many_models_are_few_series() -> None:
    with recording() as recorded, Stage() as stage, asides.Client(base_url=stage.url, api_key="k") as client:
        for number in range(230):
            client.ask(f"openai-compatible:m{number}", "?")
    models = _list_models(recorded)
    assert len(models) == 201
    assert OTHER in models


def _list_models(recorded: Recorded) -> set[str]:
    points = recorded.list_metrics()["gen_ai.client.operation.duration"]
    return {dict(point.attributes)["gen_ai.request.model"] for point in points}
