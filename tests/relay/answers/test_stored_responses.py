"""Responses that the relay stores: continued, shown, listed and deleted."""

from __future__ import annotations

import socket
from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.streams.step_handlers import RecordStore
from asides.values.parts import ToolCall
from asides_stage import Stage
from asides_stage.stage import Say
from tests.loopback import ReceivedRequest, serving, whole_response
from tests.relay.relaying import Door, load


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "upstream", ["anthropic:claude-opus-4-5", "gemini:gemini-3-pro-preview", "deepseek:deepseek-v4-pro"]
)
def test_a_conversation_continues_from_a_stored_response(upstream: str, stream: bool) -> None:
    call = ToolCall("call_aB3dE5fG7h", "get_weather", {"city": "Rome"})
    scenes = [Say(thinking="t1", tool_calls=(call,)), Say(thinking="t2", text="Sunny."), Say(text="You asked.")]
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    common = {"model": upstream, "tools": [tool], "stream": stream, "reasoning": {"effort": "high", "summary": "auto"}}
    with Stage(scenes) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        first = _response(door.post("/v1/responses", {**common, "input": "Weather?"}).body)
        called = next(item for item in first["output"] if item["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": called["call_id"], "output": "sunny"}
        second = _response(
            door.post("/v1/responses", {**common, "previous_response_id": first["id"], "input": [output]}).body
        )
        assert second["output"][-1]["content"][0]["text"] == "Sunny."
        third = _response(
            door.post(
                "/v1/responses", {**common, "previous_response_id": second["id"], "input": "What did I ask?"}
            ).body
        )
        last = stage.requests[-1].served
    assert third["output"][-1]["content"][0]["text"] == "You asked."
    assert last is not None
    roles = [message.role for message in last.prompt.messages]
    assert roles.count("assistant") == 2
    assert "Weather?" in last.prompt.messages[0].text
    shown = door.get(f"/v1/responses/{second['id']}")
    assert shown.json["output"][-1]["content"][0]["text"] == "Sunny."
    assert shown.json["id"] == second["id"]
    items = door.get(f"/v1/responses/{second['id']}/input_items", query="order=asc").json
    assert items["data"][0]["call_id"] == called["call_id"]
    assert items["data"][0]["id"]
    assert door.post(f"/v1/responses/{second['id']}/cancel", b"").status == 400
    deleted = door.get(f"/v1/responses/{second['id']}", method="DELETE")
    assert deleted.json == {"id": second["id"], "object": "response", "deleted": True}
    assert door.get(f"/v1/responses/{second['id']}").status == 404


def _response(body: bytes) -> dict[str, Any]:
    if body.startswith(b"{"):
        return msgspec.json.decode(body)  # type: ignore[no-any-return]
    events = [msgspec.json.decode(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    assert events[-1]["type"] == "response.completed", events[-1]
    return events[-1]["response"]  # type: ignore[no-any-return]


def test_responses_of_others_are_not_there(vault: RecordStore) -> None:
    body = {"model": "openai-compatible:any", "input": "?"}
    with Stage(Say(text="Hi")) as stage:
        keys = RelayKeys.generate()
        door = Door(stage, records=vault, keys=keys)
        first = door.post("/v1/responses", body, tenant="a").json
        later = {**body, "previous_response_id": first["id"]}
        assert door.post("/v1/responses", later, tenant="a").status == 200
        other = Door(stage, records=vault, keys=keys).post("/v1/responses", later, tenant="b")
        assert other.status == 400
        assert other.json["error"]["code"] == "previous_response_not_found"
        assert other.json["error"]["param"] == "previous_response_id"
        assert other.json["error"]["message"] == f"Previous response with id '{first['id']}' not found."
        assert door.get(f"/v1/responses/{first['id']}", tenant="b").status == 404
        unstored = door.post("/v1/responses", {**body, "store": False}, tenant="a").json
        assert door.get(f"/v1/responses/{unstored['id']}", tenant="a").status == 404
        restarted = Door(stage, records=vault, keys=keys)
        assert restarted.post("/v1/responses", later, tenant="a").status == 200


def test_a_provider_that_stores_itself_is_asked() -> None:
    with Stage() as stage:
        home = Options(base_url=stage.url, api_key="sk-test")
        door = Door(None, home="openai-responses", home_options=home)
        first = door.post("/v1/responses", {"model": "gpt-5.2", "input": "6*7?", "store": True})
        assert first.outcome is not None
        assert first.outcome.mode == "forward"
        again = door.post(
            "/v1/responses",
            {"model": "gpt-5.2", "input": "And?", "store": True, "previous_response_id": first.json["id"]},
        )
        assert again.status == 200
        assert stage.requests[-1].json["previous_response_id"] == first.json["id"]
        shown = door.get(f"/v1/responses/{first.json['id']}")
        assert shown.json["id"] == first.json["id"]
        assert door.get(f"/v1/responses/{first.json['id']}", method="DELETE").json["deleted"] is True


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "deepseek:deepseek-v4-pro", "openai-responses:gpt-5.2"])
@pytest.mark.parametrize("policy", [True, False])
def test_a_stored_response_shows_no_more_than_its_caller_saw(model: str, policy: bool) -> None:
    settings = load(visibility={"gateway": []}) if policy else None
    own: dict[str, Any] = {} if policy else {"asides": {"visibility": []}}
    with Stage(Say(text="Warm.", thinking="kumquat"), rules="lenient") as stage:
        door = Door(stage, settings=settings, sink="gateway", forwards=False)
        body = {"model": model, "input": "The weather?", "reasoning": {"effort": "low", "summary": "auto"}, **own}
        first = door.post("/v1/responses", body)
        assert first.status == 200
        assert b"kumquat" not in first.body
        shown = door.get(f"/v1/responses/{first.json['id']}")
    assert shown.json["output"][-1]["content"][0]["text"] == "Warm."
    assert b"kumquat" not in shown.body
    assert b"encrypted_content" not in shown.body


_ODD_IDS = ["..", "../input_items", "..%2F..%2Ffiles%2Ffile-1", "%2e%2e%2Ffiles", "a%3Fb", "a?b", "a#b", "a%0d%0ax"]


@pytest.mark.parametrize("path", _ODD_IDS)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_odd_id_leads_to_no_other_endpoint_of_the_home(path: str, method: str) -> None:
    with Stage() as stage:
        door = Door(None, home="openai-responses", home_options=Options(base_url=stage.url, api_key="sk-test"))
        assert door.get(f"/v1/responses/{path}", method=method).status in (404, 405)
        assert not stage.requests


def test_the_key_of_a_caller_in_its_query_stays_behind() -> None:
    received: list[str] = []

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        received.append(request.line)
        connection.sendall(whole_response(b'{"key": "sk-of-the-operator"}', **{"x-api-key": "sk-of-the-operator"}))
        return True

    with serving(answer) as server:
        home = Options(base_url=server.url, api_key="sk-of-the-operator")
        door = Door(None, home="openai-responses", home_options=home)
        query = "include=usage&key=sk-of-the-caller&api-key=sk-of-the-caller&limit=3"
        shown = door.get("/v1/responses/resp_1/input_items", query=query)
    assert received[0].split()[1].endswith("/responses/resp_1/input_items?include=usage&limit=3")
    assert shown.json == {"key": "***"}
    assert "x-api-key" not in shown.headers


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", ["anthropic:claude-opus-4-5", "deepseek:deepseek-v4-pro"])
def test_a_response_says_what_it_continues_and_whether_it_is_stored(upstream: str, stream: bool) -> None:
    with Stage([Say(text="Yes.")]) as stage:
        door = Door(stage)
        body = {"model": upstream, "input": "6*7?", "stream": stream, "metadata": {"a": "b"}, "instructions": "Be kind"}
        first = _response(door.post("/v1/responses", body).body)
        second = _response(door.post("/v1/responses", {**body, "previous_response_id": first["id"]}).body)
        unstored = _response(door.post("/v1/responses", {**body, "store": False}).body)
        assert stage.requests[-2].json.get("previous_response_id") is None
        shown = door.get(f"/v1/responses/{second['id']}").json
    assert [each["store"] for each in (first, second, unstored, shown)] == [True, True, False, True]
    assert [each["previous_response_id"] for each in (first, second, unstored)] == [None, first["id"], None]
    names = ("previous_response_id", "metadata", "instructions", "output", "usage", "created_at", "model", "tools")
    assert {name: shown[name] for name in names} == {name: second[name] for name in names}
