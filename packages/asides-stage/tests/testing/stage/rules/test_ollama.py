"""The stage as a strict reader of Ollama's chat: each result follows its call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

USER: Wire = {"role": "user", "content": "look"}
SO: Wire = {"role": "user", "content": "so?"}


def called(*ids: str, arguments: object = None) -> Wire:
    function = {"name": "look", "arguments": {"at": 1} if arguments is None else arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": name, "function": function} for name in ids]}


def result(name: str, **fields: Any) -> Wire:
    return {"role": "tool", "content": "fine", "tool_name": "look", "tool_call_id": name} | fields


def asked(stage: Stage, *messages: Wire, **fields: Any) -> Answer:
    body = json.dumps({"model": "qwen3", "messages": messages, "stream": False, **fields}).encode()
    with connected(stage) as connection:
        connection.request("POST", "/api/chat", body)
        return Answer(connection.getresponse())


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ([USER, called("a"), SO], "unanswered: a"),
        ([USER, result("a")], "unasked: a"),
        ([USER, called("a"), result("a"), result("a")], "twice: a"),
        ([USER, called("a", "b"), result("", tool_call_id=None), SO], "unanswered: b"),
        ([USER, called("a"), result("", tool_call_id=None), result("", tool_call_id=None)], "unasked: "),
        ([USER, called("a"), result("a", tool_name="feel")], "not the one that was called"),
        ([USER, {"role": "assistant", "content": ""}, SO], "says nothing"),
        (
            [USER, called("a", arguments='{"at":1}'), result("a")],
            "cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls",
        ),
    ],
)
def test_a_history_that_a_template_cannot_read_is_refused(stage: OpenStage, history: list[Wire], words: str) -> None:
    answer = asked(stage(Say(text="42")), *history)
    assert answer.status == 400
    assert words in answer.json["error"]


def test_pairs_are_accepted_with_ids_and_without(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    assert asked(opened, USER, called("a", "b"), result("b"), result("a"), SO).status == 200
    bare = called("")
    del bare["tool_calls"][0]["id"]
    unnamed = result("")
    del unnamed["tool_call_id"]
    assert asked(opened, USER, bare, unnamed, SO).status == 200
    assert asked(opened, USER, called("a", "b"), unnamed, unnamed, SO).status == 200
    assert asked(opened, USER, called("a", "b"), result("b"), unnamed, SO).status == 200


@pytest.mark.parametrize("names", [("look", "feel"), ("feel", "look"), ("look", "look", "feel"), ("feel",)])
def test_results_of_parallel_calls_without_ids_may_name_their_tools(stage: OpenStage, names: tuple[str, ...]) -> None:
    calls = [{"function": {"name": name, "arguments": {}}} for name in names]
    results = [{"role": "tool", "tool_name": name, "content": "fine"} for name in names]
    assistant = {"role": "assistant", "content": "", "tool_calls": calls}
    assert asked(stage(Say(text="42")), USER, assistant, *results).status == 200


def test_a_result_without_its_call_is_accepted_if_it_names_none(stage: OpenStage) -> None:
    """LiteLLM sends the results of a loop and leaves out the calls."""
    opened = stage(Say(text="42"))
    thought = {"role": "assistant", "content": "", "thinking": "Look."}
    assert asked(opened, USER, thought, {"role": "tool", "content": "fine"}).status == 200
    assert asked(opened, USER, thought, {"role": "tool", "content": "fine"}, SO, called("a"), result("a")).status == 200
    assert asked(opened, USER, thought, result("a")).status == 400


@pytest.mark.parametrize("name", ["", None])
def test_a_result_need_not_name_its_tool(stage: OpenStage, name: str | None) -> None:
    opened = stage(Say(text="42"))
    assert asked(opened, USER, called("a"), result("a", tool_name=name), SO).status == 200
    absent = result("a")
    del absent["tool_name"]
    assert asked(opened, USER, called("a"), absent).status == 200
    del absent["tool_call_id"]
    assert asked(opened, USER, called("a"), absent).status == 200


@pytest.mark.parametrize(
    ("model", "think", "legal", "kind", "error", "date"),
    [
        (
            "qwen3-coder:30b",
            True,
            False,
            "thinking_unsupported_model",
            '"qwen3-coder:30b" does not support thinking',
            None,
        ),
        (
            "llama3.1",
            True,
            None,
            "thinking_unsupported_model",
            "registry.ollama.ai/library/llama3.1 does not support thinking",
            "2025-07-16",
        ),
        (
            "qwen3",
            "true",
            True,
            "effort_unsupported_value",
            'invalid think value: "true" (must be "high", "medium", "low", "max", true, or false)',
            None,
        ),
        (
            "gpt-oss",
            "max",
            "high",
            "effort_unsupported_value",
            'invalid think value: "max" (must be "high", "medium", "low", true, or false)',
            "2025-12-22",
        ),
        (
            "qwen3",
            "high",
            True,
            "effort_unsupported_value",
            'think value "high" is not supported for this model',
            "2025-12-22",
        ),
    ],
)
def test_think_is_checked_against_the_model(
    stage: OpenStage, model: str, think: object, legal: object, kind: str, error: str, date: str | None
) -> None:
    opened = stage(Say(text="42"), date=date)
    answer = asked(opened, USER, model=model, think=think)
    assert (answer.status, answer.json) == (400, {"error": error})
    assert opened.refusals[-1].kind == kind
    assert asked(opened, USER, model=model, think=legal).status == 200


def test_newer_servers_take_levels_for_every_model_that_thinks(stage: OpenStage) -> None:
    assert asked(stage(Say(text="42")), USER, think="high").status == 200
