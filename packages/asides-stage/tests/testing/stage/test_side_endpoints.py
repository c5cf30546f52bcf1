"""The endpoints beside replies and lists: counted tokens, one model."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import asides
from asides.values.model_info import ModelInfo
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected, get, post_to

MESSAGES = {"anthropic-version": "2023-06-01"}


def post_json(stage: Stage, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body), headers or {})
        return Answer(connection.getresponse())


# --- counted tokens ---------------------------------------------------------------------------------------------------


def test_counted_tokens_are_those_that_the_reply_reports(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    body = {"model": "any", "system": "be kind", "messages": [{"role": "user", "content": "one two three"}]}
    counted = post_json(opened, "/v1/messages/count_tokens?beta=true", body)
    reply = post_json(opened, "/v1/messages?beta=true", {**body, "max_tokens": 9})
    assert counted.json == {"input_tokens": 5}
    assert reply.json["usage"]["input_tokens"] == 5


def test_the_tokens_of_a_response_are_counted(stage: OpenStage) -> None:
    counted = post_json(stage(), "/v1/responses/input_tokens", {"model": "any", "input": "one two three"})
    assert counted.json == {"object": "response.input_tokens", "input_tokens": 3}


def test_a_request_that_cannot_be_read_is_not_counted(stage: OpenStage) -> None:
    answer = post_json(stage(), "/v1/messages/count_tokens", {"model": "any"})
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")


# --- one model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "maker/model", "with space"])
def test_one_model_is_shown_in_the_dialect_of_the_request(stage: OpenStage, name: str) -> None:
    opened = stage(models=("other", ModelInfo(name, context=5)))
    path = f"/v1/models/{name.replace('/', '%2F').replace(' ', '%20')}"
    plain, messages = get(opened, path).json, get(opened, path, headers=MESSAGES).json
    assert (plain["object"], plain["id"]) == ("model", name)
    assert (messages["type"], messages["id"], messages["max_input_tokens"]) == ("model", name, 5)


def test_an_unknown_model_is_refused_in_the_dialect_of_the_request(stage: OpenStage) -> None:
    opened = stage(models=("a",))
    plain, messages = get(opened, "/v1/models/b"), get(opened, "/v1/models/b", headers=MESSAGES)
    assert (plain.status, plain.json["error"]["code"]) == (404, "model_not_found")
    assert (messages.status, messages.json["error"]["type"]) == (404, "not_found_error")


# --- gemini, bedrock and cohere ---------------------------------------------------------------------------------------

CONTENTS = [{"role": "user", "parts": [{"text": "one two three"}]}]
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "one two three"}]}], "system": [{"text": "be kind"}]}


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"contents": CONTENTS}, 3),
        ({"generateContentRequest": {"model": "models/m", "contents": CONTENTS}}, 3),
        ({"generate_content_request": {"contents": CONTENTS, "system_instruction": "be kind"}}, 5),
    ],
)
def test_the_tokens_of_contents_are_counted(stage: OpenStage, body: Any, count: int) -> None:
    assert post_json(stage(), "/v1beta/models/m:countTokens", body).json["totalTokens"] == count


@pytest.mark.parametrize("scene", [Say("It is warm.", thinking="Look.", piece=3), Say("")])
def test_a_stream_of_contents_is_a_list_unless_events_are_asked_for(stage: OpenStage, scene: Say) -> None:
    opened = stage(scene)
    path = "/v1beta/models/gemini-3.8-flash:streamGenerateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    plain, events = post_to(opened, path, body), post_to(opened, f"{path}?alt=sse", body)
    assert (plain.headers["content-type"], events.headers["content-type"]) == ("application/json", "text/event-stream")
    chunks = [json.loads(payload) | {"responseId": ""} for payload in events.payloads]
    assert [chunk | {"responseId": ""} for chunk in plain.json] == chunks


def test_the_tokens_of_a_conversation_are_counted(stage: OpenStage) -> None:
    answer = post_json(stage(), "/model/us.anthropic.claude%3A0/count-tokens", {"input": {"converse": CONVERSE}})
    assert answer.json == {"inputTokens": 5}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1beta/models/m:countTokens", {}),
        ("/v1beta/models/m:countTokens", {"generateContentRequest": 3}),
        ("/v1beta/models/m:countTokens", {"contents": [3]}),
        ("/model/m/count-tokens", {}),
        ("/model/m/count-tokens", {"input": 3}),
        ("/model/m/count-tokens", {"input": {"invokeModel": {"body": "e30="}}}),
        ("/model/m/count-tokens", {"input": {"converse": {"messages": 3}}}),
        ("/v1/tokenize", {}),
        ("/v1/tokenize", {"text": 3}),
        ("/api/show", {"model": 3}),
        ("/api/generate", {"model": "m", "prompt": 3}),
        ("/api/generate", {"model": "m", "images": ["%"]}),
        ("/api/generate", {"prompt": "hi"}),
        ("/api/generate", []),
        ("/api/chat", {"model": "m", "messages": 3}),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_dialect_of_the_path(stage: OpenStage, path: str, body: Any) -> None:
    answer = post_json(stage(), path, body)
    assert answer.status == 400
    assert {"error", "message"} & answer.json.keys()


def test_a_model_is_shown_in_the_dialect_of_its_caller(stage: OpenStage) -> None:
    opened = stage(models=(ModelInfo("m", context=5),))
    assert get(opened, "/v1beta/models/m").json["name"] == "models/m"
    assert get(opened, "/v1/models/m", headers={"x-goog-api-key": "k"}).json["inputTokenLimit"] == 5
    assert get(opened, "/v1/models/m", headers={"x-fern-sdk-name": "cohere"}).json["context_length"] == 5
    absent = get(opened, "/v1beta/models/absent")
    assert (absent.status, absent.json["error"]["status"]) == (404, "NOT_FOUND")


def test_a_text_is_cut_into_its_words(stage: OpenStage) -> None:
    answer = post_json(stage(), "/v1/tokenize", {"text": "one  two\nthree", "model": "m"})
    assert answer.json["token_strings"] == ["one", "  two", "\nthree"]


# --- ollama -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_generate_answers_in_lines_with_its_thinking_apart(stage: OpenStage, prefix: str) -> None:
    opened = stage(Say(thinking="hm", text="It is 42."))
    answer = post_json(opened, f"{prefix}/api/generate", {"model": "m", "prompt": "?"})
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [line["done"] for line in lines] == [False, False, True]
    assert "".join(line["response"] for line in lines) == "It is 42."
    assert "".join(line.get("thinking", "") for line in lines) == "hm"
    assert not any("message" in line for line in lines)
    whole = post_json(opened, f"{prefix}/api/generate", {"model": "m", "prompt": "?", "stream": False}).json
    assert (whole["response"], whole["thinking"], whole["done_reason"]) == ("It is 42.", "hm", "stop")


def test_generate_reads_back_through_our_own_decoder(stage: OpenStage) -> None:
    opened = stage(Say(thinking="hm", text="It is 42.", piece=3))
    for stream in (True, False):
        body = post_json(opened, "/api/generate", {"model": "m", "prompt": "?", "stream": stream}).body
        reply = asides.decode("ollama", body)
        assert (reply.text, reply.thinking and reply.thinking.text) == ("It is 42.", "hm")


def test_the_version_is_shown(stage: OpenStage) -> None:
    assert set(get(stage(), "/api/version").json) == {"version"}


@pytest.mark.parametrize(("path", "allowed"), [("/api/show", "POST"), ("/api/ps", "GET"), ("/api/generate", "POST")])
def test_a_wrong_method_is_refused(stage: OpenStage, path: str, allowed: str) -> None:
    answer = get(stage(), path, "PUT")
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert isinstance(answer.json["error"], str)


# --- stored responses -------------------------------------------------------------------------------------------------


def test_a_stored_response_can_be_read_listed_and_deleted(stage: OpenStage) -> None:
    opened = stage(Say("hi"), Say("again"))
    sent = post_json(opened, "/v1/responses", {"model": "any", "input": "one"}).json
    path = f"/v1/responses/{sent['id']}"
    assert get(opened, path).json == sent
    listed = get(opened, f"{path}/input_items").json
    assert [item["content"] for item in listed["data"]] == [[{"type": "input_text", "text": "one"}]]
    assert listed["first_id"] == listed["last_id"] == listed["data"][0]["id"]
    assert get(opened, path, "DELETE").json == {"id": sent["id"], "object": "response", "deleted": True}
    assert (get(opened, path).status, get(opened, path, "DELETE").status) == (404, 404)
    later = post_json(opened, "/v1/responses", {"model": "any", "input": "two", "previous_response_id": sent["id"]})
    assert later.json["error"]["code"] == "previous_response_not_found"


def test_a_streamed_response_is_stored_as_well(stage: OpenStage) -> None:
    opened = stage(Say("hi", thinking="plan"))
    answer = post_json(opened, "/v1/responses", {"model": "any", "input": "one", "stream": True})
    final = json.loads(answer.payloads[-1])["response"]
    assert get(opened, f"/v1/responses/{final['id']}").json == final


def test_a_response_that_is_not_stored_cannot_be_read(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    sent = post_json(opened, "/v1/responses", {"model": "any", "input": "one", "store": False}).json
    for path in (f"/v1/responses/{sent['id']}", f"/v1/responses/{sent['id']}/input_items", "/v1/responses/other"):
        assert get(opened, path).status == 404


def test_the_tokens_of_a_response_need_no_model(stage: OpenStage) -> None:
    assert post_json(stage(), "/v1/responses/input_tokens", {"input": "one two"}).json["input_tokens"] == 2
    assert post_json(stage(), "/v1/responses/input_tokens", {}).json["input_tokens"] == 0


def test_a_provider_compacts_a_conversation_and_takes_it_back(stage: OpenStage) -> None:
    server = stage(Say(thinking="a plan", text="One."))
    row = msgspec.structs.replace(asides.find_provider("openai-responses"), base_url=server.url)
    with asides.Client(providers=[row], api_key="any") as client:
        chat = asides.Conversation("openai-responses:gpt-5.4", client=client)
        for question in ("first?", "second?"):
            chat.ask(question)
        chat.compact(by="provider")
        assert [message.text for message in chat.messages if message.role == "user"] == ["first?", "second?"]
        with server.expect_no_refusals():
            chat.ask("third?")
    assert [item["type"] for item in server.requests[-1].json["input"] if "encrypted_content" in item] == ["compaction"]
