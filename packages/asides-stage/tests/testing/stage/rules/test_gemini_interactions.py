"""Interactions on the stage: what it stores, and signatures that hold for their model and account."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides import ToolCall
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

MODEL = "gemini-interactions:gemini-3-pro-preview"
GO: Wire = {"type": "user_input", "content": [{"type": "text", "text": "go"}]}
LOOKS = Say(thinking="hm", tool_calls=(ToolCall("c1", "look", {"at": 1}),))
RESULT: Wire = {"type": "function_result", "call_id": "c1", "result": "blue"}


def post(stage: Stage, body: Wire, *, key: str = "one") -> Answer:
    with connected(stage) as connection:
        named = {"model": "gemini-3-pro-preview", "input": [GO], **body}
        connection.request("POST", "/v1beta/interactions", json.dumps(named), {"x-goog-api-key": key})
        return Answer(connection.getresponse())


def assert_refused(stage: Stage, answer: Answer, kind: str, words: str) -> None:
    assert answer.status == 400, answer.body
    assert words in answer.json["error"]["message"]
    assert answer.json["error"]["code"] == "invalid_request"
    assert stage.refusals[-1].kind == kind


def test_a_turn_continues_what_is_stored(stage: OpenStage) -> None:
    server = stage([LOOKS, Say(text="42")])
    first = post(server, {}).json
    assert first["status"] == "requires_action"
    assert [step["type"] for step in first["steps"]] == ["thought", "function_call"]
    second = post(server, {"previous_interaction_id": first["id"], "input": [RESULT]})
    assert second.status == 200
    other = {"type": "function_result", "call_id": "c9", "result": "blue"}
    answer = post(server, {"previous_interaction_id": first["id"], "input": [other]})
    assert_refused(server, answer, "tool_result_orphaned", "call_id 'c9'")


def test_what_is_not_stored_cannot_be_continued(stage: OpenStage) -> None:
    server = stage([Say(text="42")])
    first = post(server, {"store": False}).json
    assert first["id"] == ""
    answer = post(server, {"previous_interaction_id": "v1_gone"})
    assert_refused(server, answer, "previous_response_missing", "Invalid turn token: v1_gone")


def test_a_signature_holds_for_its_model_and_its_account(stage: OpenStage) -> None:
    server = stage([LOOKS, Say(text="42"), Say(text="42")])
    steps = post(server, {"store": False}).json["steps"]
    again = {"store": False, "input": [GO, *steps, RESULT]}
    assert post(server, again).status == 200
    for answer in (post(server, again, key="two"), post(server, {**again, "model": "gemini-3-flash-preview"})):
        assert_refused(server, answer, "thought_signature_invalid", "Thought signature is not valid")
    steps[0]["signature"] = "skip_thought_signature_validator"
    assert post(server, again).status == 200


def test_a_call_without_its_thought_is_refused(stage: OpenStage) -> None:
    server = stage([LOOKS])
    steps = post(server, {"store": False}).json["steps"]
    answer = post(server, {"input": [GO, steps[1], RESULT]})
    assert_refused(server, answer, "thought_signature_missing", "invalid argument")


# --- healing ----------------------------------------------------------------------------------------------------------


def ask_again(stage: Stage, **options: Any) -> asides.Reply:
    with asides.Client() as client:
        given: dict[str, Any] = {"base_url": stage.url, "api_key": "one"}
        first = client.ask(MODEL, "One?", store=True, **given)
        history: list[Any] = [asides.user("One?"), first, asides.user("Two?")]
        return client.ask(MODEL, history, store=True, **given, **options)


def test_an_expired_interaction_is_healed_with_the_history(stage: OpenStage) -> None:
    server = stage([Say(text="a"), Say(text="b")])
    reply = ask_again(server, previous_response_id="v1_gone")
    assert reply.text == "b"
    assert "parent_rejected" in [notice.code for notice in reply.warnings]
    refused, sent = server.requests[1:]
    assert (refused.json["previous_interaction_id"], len(refused.json["input"])) == ("v1_gone", 1)
    assert "previous_interaction_id" not in sent.json
    assert [step["type"] for step in sent.json["input"]] == ["user_input", "thought", "model_output", "user_input"]
    assert [received.problem for received in server.requests] == [None, "Invalid turn token: v1_gone", None]


def test_a_stored_conversation_sends_only_what_is_new(stage: OpenStage) -> None:
    server = stage([Say(text="a"), Say(text="b")])
    assert ask_again(server, stateful=True).text == "b"
    sent = server.requests[1].json
    assert (len(sent["input"]), bool(sent["previous_interaction_id"])) == (1, True)


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_an_agent_continues_with_tools_in_both_ways(stage: OpenStage, way: str) -> None:
    def look(at: int) -> str:
        """Look."""
        return f"blue at {at}"

    tools: list[Callable[..., Any]] = [look]
    server = stage([LOOKS, Say(text="42")])
    with asides.Client() as client:
        agent = asides.Agent(MODEL, tools=tools, client=client, base_url=server.url, api_key="one", thinking="low")
        if way == "whole":
            result = agent.run("Look.")
            assert result.output == "42"
        else:
            with agent.stream("Look.") as events:
                for _ in events:
                    pass
    assert [received.problem for received in server.requests] == [None, None]
    assert [step["type"] for step in server.requests[1].json["input"]] == [
        "user_input",
        "thought",
        "function_call",
        "function_result",
    ]
