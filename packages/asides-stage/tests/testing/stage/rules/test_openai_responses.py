"""The stage refuses what OpenAI's Responses endpoint refuses, in its words, and answers as it answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.messages import user
from asides.values.parts import ToolCall
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

FIRST = {"model": "gpt-5", "input": "What is 2 + 3?", "store": False, "reasoning": {"effort": "low", "summary": "auto"}}


def post(stage: Stage, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body).encode(), headers or {})
        return Answer(connection.getresponse())


def items(stage: Stage, **fields: Any) -> list[dict[str, Any]]:
    answer = post(stage, "/v1/responses", {**FIRST, **fields})
    assert answer.status == 200
    output = answer.json["output"]
    assert isinstance(output, list)
    return output


def refusal(stage: Stage, sent: list[dict[str, Any]], **fields: Any) -> str:
    answer = post(stage, "/v1/responses", {**FIRST, "input": [*sent, {"role": "user", "content": "?"}], **fields})
    return "" if answer.status == 200 else str(answer.json["error"]["message"])


def test_a_turn_that_goes_back_unchanged_is_accepted(stage: OpenStage) -> None:
    open_stage = stage()
    thought, message = items(open_stage)
    assert (thought["type"], message["type"]) == ("reasoning", "message")
    assert refusal(open_stage, [thought, message]) == ""
    bare = {name: value for name, value in thought.items() if name != "id"}
    assert refusal(open_stage, [bare, {"role": "assistant", "content": "5"}]) == ""


def test_a_request_that_breaks_a_rule_is_refused(stage: OpenStage) -> None:
    open_stage = stage()
    thought, message = items(open_stage)
    later_thought, later = items(open_stage)
    assert "without its required following item" in refusal(open_stage, [thought])
    assert "without its required following item" in refusal(open_stage, [thought, later])
    assert "without its required 'reasoning' item" in refusal(open_stage, [message])
    assert refusal(open_stage, [later_thought, later]) == ""
    no_summary = {name: value for name, value in thought.items() if name != "summary"}
    assert refusal(open_stage, [no_summary, message]) == "Missing required parameter: 'input[0].summary'."
    tampered = {**thought, "encrypted_content": thought["encrypted_content"][:-1] + "x"}
    assert "could not be verified" in refusal(open_stage, [tampered, message])
    assert "could not be verified" in refusal(open_stage, [thought, message], model="gpt-5-mini")
    foreign, _ = items(stage())
    assert "could not be verified" in refusal(open_stage, [foreign, {"role": "assistant", "content": "5"}])
    empty = {name: value for name, value in thought.items() if name != "encrypted_content"}
    assert "Items are not persisted when `store` is set to false" in refusal(open_stage, [empty, message])
    assert refusal(open_stage, [], top_k=3) == "Unknown parameter: 'top_k'."
    assert "Mutually exclusive" in refusal(open_stage, [], previous_response_id="a", conversation="b")
    assert "Previous response with id 'resp_x' not found" in refusal(open_stage, [], previous_response_id="resp_x")


def test_a_conversation_continues_from_a_stored_turn_only(stage: OpenStage) -> None:
    open_stage = stage()
    stored = post(open_stage, "/v1/responses", {**FIRST, "store": True}).json
    assert stored["store"] is True
    assert refusal(open_stage, [], previous_response_id=stored["id"]) == ""
    assert (
        refusal(
            open_stage, [{"type": "reasoning", "id": stored["output"][0]["id"], "summary": []}, stored["output"][1]]
        )
        == ""
    )
    gone = post(open_stage, "/v1/responses", FIRST).json
    assert "not found" in refusal(open_stage, [], previous_response_id=gone["id"])


@pytest.mark.parametrize("name", ["item_reference", None])
def test_a_reference_counts_as_the_item_that_it_names(stage: OpenStage, name: str | None) -> None:
    def refer(item: dict[str, Any]) -> dict[str, Any]:
        return {"id": item["id"]} if name is None else {"type": name, "id": item["id"]}

    open_stage = stage()
    thought, message = items(open_stage, store=True)
    _, later = items(open_stage, store=True)
    for sent in ([refer(thought), refer(message)], [refer(thought), message], [thought, refer(message)]):
        assert refusal(open_stage, sent) == ""
    for _ in range(2):
        assert refusal(open_stage, [refer(thought), refer(message)], model="gpt-5-mini", store=True) == ""
    assert "without its required 'reasoning' item" in refusal(open_stage, [refer(message)])
    assert "without its required following item" in refusal(open_stage, [refer(thought), refer(later)])
    assert "without its required following item" in refusal(open_stage, [refer(thought)])
    open_stage = stage(Say(thinking="t", tool_calls=(ToolCall("c1", "f", {}),)))
    thought, call = items(open_stage, store=True)
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    assert refusal(open_stage, [refer(thought), refer(call), output]) == ""
    assert "No tool output found" in refusal(open_stage, [refer(thought), refer(call)])


def test_calls_and_their_outputs_belong_together(stage: OpenStage) -> None:
    open_stage = stage()
    called = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    assert refusal(open_stage, [called, output]) == ""
    assert refusal(open_stage, [called]) == "No tool output found for function call c1."
    assert refusal(open_stage, [output]) == "No tool call found for function call output with call_id c1."


def test_without_a_summary_the_thought_is_hidden_and_its_state_is_there(stage: OpenStage) -> None:
    open_stage = stage(Say(thinking="plan", text="42"))
    thought, _ = items(open_stage, reasoning={"effort": "low"})
    assert thought["summary"] == []
    assert thought["encrypted_content"]
    shown, _ = items(open_stage)
    assert shown["summary"] == [{"type": "summary_text", "text": "plan"}]


def test_an_organisation_that_is_not_verified_gets_no_summary(stage: OpenStage) -> None:
    open_stage = stage()
    headers = {"Authorization": "Bearer sk-unverified"}
    answer = post(open_stage, "/v1/responses", FIRST, headers)
    assert answer.status == 400
    assert "must be verified to generate reasoning summaries" in answer.json["error"]["message"]


def test_pain_D5_chat_refuses_tools_beside_an_effort_of_newer_models(stage: OpenStage) -> None:
    open_stage = stage()
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {
        "model": "gpt-5.6",
        "messages": [{"role": "user", "content": "?"}],
        "tools": [tool],
        "reasoning_effort": "high",
    }
    answer = post(open_stage, "/v1/chat/completions", body)
    assert answer.status == 400
    assert "use /v1/responses" in answer.json["error"]["message"]
    assert post(open_stage, "/v1/chat/completions", {**body, "reasoning_effort": "none"}).status == 200
    assert post(open_stage, "/v1/chat/completions", {**body, "model": "gpt-5.1"}).status == 200


def test_a_stream_has_the_events_of_the_real_one(stage: OpenStage) -> None:
    answer = post(stage(Say(thinking="plan", text="42")), "/v1/responses", {**FIRST, "stream": True})
    kinds = [line.partition(b": ")[2].decode() for line in answer.body.splitlines() if line.startswith(b"event: ")]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_the_actor_calls_tools_here_too(stage: OpenStage) -> None:
    def get_weather(location: str) -> str:
        """The weather."""
        return location

    served = stage()
    reply = asides.ask(
        "openai-responses:gpt-5",
        [user("What is the weather in Paris?")],
        base_url=served.url,
        tools=[get_weather],
        api_key="k-123456",
    )
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("get_weather", {"location": "Paris"})]


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"top_k": 3}, "top_k", "unknown_parameter"),
        ({"reasoning": {"made_up": 1}}, "reasoning.made_up", "unknown_parameter"),
        ({"previous_response_id": "resp_x"}, "previous_response_id", "previous_response_not_found"),
        ({"input": [{"type": "reasoning"}]}, "input[0].summary", "missing_required_parameter"),
    ],
)
def test_an_error_names_the_field_and_its_code(stage: OpenStage, fields: dict[str, Any], param: str, code: str) -> None:
    answer = post(stage(), "/v1/responses", {**FIRST, **fields})
    error = answer.json["error"]
    assert (answer.status, error["param"], error["code"]) == (400, param, code)


# Fields that the endpoint accepts, with a value of their kind.
ACCEPTED: dict[str, Any] = {
    "access_programs": ["made-up"],
    "client_metadata": {"session": "1"},
    "context_management": [{"type": "compaction"}],
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "k",
    "prompt_cache_options": {},
    "safety_identifier": "s",
    "service_tier": "auto",
    "stream_options": {"include_obfuscation": False},
    "text": {"verbosity": "low", "format": {"type": "text"}},
    "tool_choice": "auto",
    "truncation": "auto",
    "tools": [
        {"type": "web_search", "external_web_access": False},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]},
        {"type": "local_shell"},
        {"type": "custom", "name": "c"},
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
    ],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_endpoint_accepts_is_accepted(stage: OpenStage, name: str) -> None:
    assert post(stage(), "/v1/responses", {**FIRST, name: ACCEPTED[name]}).status == 200


def test_a_developer_may_speak_anywhere(stage: OpenStage) -> None:
    developer = {
        "type": "message",
        "id": "msg_1",
        "role": "developer",
        "content": [{"type": "input_text", "text": "x"}],
    }
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is 2 + 3?"}]}
    again = {**developer, "id": "msg_2"}
    answer = post(stage(), "/v1/responses", {**FIRST, "input": [developer, asked, again, asked]})
    assert answer.status == 200
