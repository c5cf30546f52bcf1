"""Callers of Interactions at the relay: translated, forwarded, and told what cannot be done."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.vault.memory_vault import MemoryVault
from asides_stage import OpenStage, Say
from tests.decoding import sse
from tests.dialects.gemini_interactions.interactions import GO
from tests.loopback import saying, serving, whole_response
from tests.relay.relaying import Door, Response

CLAUDE, OWN = "anthropic:claude-opus-4-5", "google-interactions:gemini-3-pro-preview"


def post(door: Door, model: str, **fields: Any) -> Response:
    return door.post("/v1beta/interactions", {"model": model, "input": [GO], **fields})


def test_another_provider_answers_and_its_thinking_comes_back(stage: OpenStage) -> None:
    server = stage([Say(thinking="hm", text="a"), Say(text="b")])
    door = Door(server)
    config = {"thinking_level": "high", "thinking_summaries": "auto"}
    first = post(door, CLAUDE, generation_config=config).json
    thought, answer = first["steps"]
    assert (thought["summary"][0]["text"], answer["content"][0]["text"]) == ("hm", "a")
    assert first["id"].startswith("v1_"), "the relay stores it"
    again = post(door, CLAUDE, input=[GO, thought, answer, GO], generation_config=config)
    assert again.status == 200
    blocks = server.requests[1].json["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text"]
    assert [received.problem for received in server.requests] == [None, None]


def test_an_own_provider_gets_the_request_as_it_is_and_continues_what_it_stored(stage: OpenStage) -> None:
    server = stage([Say(text="a"), Say(text="b")])
    door = Door(server)
    first = post(door, OWN).json
    second = post(door, OWN, previous_interaction_id=first["id"], x_new={"a": 1})
    assert second.status == 200
    assert server.requests[1].json == {
        "model": "gemini-3-pro-preview",
        "input": [GO],
        "previous_interaction_id": first["id"],
        "x_new": {"a": 1},
    }
    gone = post(door, OWN, previous_interaction_id="v1_gone")
    assert (gone.status, gone.json["error"]["message"]) == (400, "Invalid turn token: v1_gone")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"background": True}, "background cannot be translated"),
        ({"continuation_token": "t"}, "continuation_token cannot be translated"),
        ({"previous_interaction_id": "v1_1"}, "Invalid turn token: v1_1"),
        ({"previous_interaction_id": ""}, "previous_interaction_id is empty"),
    ],
    ids=str,
)
def test_what_only_google_can_do_is_refused(stage: OpenStage, fields: dict[str, Any], words: str) -> None:
    refused = post(Door(stage([Say(text="a")])), CLAUDE, **fields)
    assert refused.status == 400
    assert words in refused.json["error"]["message"]
    assert refused.json["error"]["code"] == "invalid_request"


CHANGES: list[dict[str, Any]] = [{"thinking": "low"}, {"forward": False}, {"visibility": []}]
"""Options that keep the caller's bytes from passing."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [CLAUDE, "deepseek:deepseek-v4-pro", OWN])
def test_the_relay_stores_what_no_provider_does_and_continues_it(stage: OpenStage, model: str, stream: bool) -> None:
    server = stage([Say(thinking="hm", text="a"), Say(text="b"), Say(text="c")])
    door = Door(server)
    fields: dict[str, Any] = {"stream": stream, "asides": {"forward": False}}
    first = read_interaction(post(door, model, input="Remember kumquat.", **fields))
    second = read_interaction(post(door, model, previous_interaction_id=first["id"], **fields))
    third = read_interaction(post(door, model, previous_interaction_id=second["id"], **fields))
    assert third["status"] == "completed"
    last = server.requests[-1]
    assert last.served is not None
    assert [message.role for message in last.served.prompt.messages] == [*("user", "assistant") * 2, "user"]
    assert last.served.prompt.messages[0].text == "Remember kumquat."
    assert last.json.get("store") is (False if model == OWN else None)
    assert [received.problem for received in server.requests] == [None] * 3
    place = f"/v1beta/interactions/{second['id']}"
    shown = door.get(place).json
    assert (shown["id"], shown["status"]) == (second["id"], "completed")
    assert shown["steps"][-1] == {"type": "model_output", "content": [{"type": "text", "text": "b"}]}
    assert door.post(place + "/cancel", b"").status == 400
    assert door.get(f"/v1/responses/{second['id']}").status == 404, "a document of the other dialect"
    assert (deleted := door.get(place, method="DELETE")).json == {}
    assert deleted.status == 200
    gone = door.get(place)
    assert (gone.status, gone.json["error"]["message"]) == (404, f"Interaction with id '{second['id']}' not found.")
    broken = post(door, model, previous_interaction_id=third["id"])
    assert broken.status == 400, "one of its turns is not there"


def read_interaction(response: Response) -> dict[str, Any]:
    assert response.status == 200, response.body
    if response.body.startswith(b"{"):
        return msgspec.json.decode(response.body)  # type: ignore[no-any-return]
    events = [msgspec.json.decode(line[6:]) for line in response.body.splitlines() if line.startswith(b"data: {")]
    ids = {event["interaction"]["id"] for event in events if "interaction" in event}
    assert len(ids) == 1
    return events[-1]["interaction"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("store", [True, False], ids=["store", "carry-only"])
def test_options_change_nothing_about_what_can_be_continued(
    stage: OpenStage, changes: dict[str, Any], store: bool
) -> None:
    server = stage([Say(text=str(number)) for number in range(4)])
    door = Door(server, store=store)
    given: dict[str, Any] = {}
    for options in ({}, changes, changes, {}):
        response = post(door, OWN, **given, **({"asides": options} if options else {}))
        assert response.status == 200, response.body
        if not response.json["id"]:
            assert options == {"visibility": []}, "hidden thinking is not stored at the provider"
            assert server.requests[-1].json["store"] is False
            return
        given = {"previous_interaction_id": response.json["id"]}
    assert [received.problem for received in server.requests] == [None] * 4


@pytest.mark.parametrize("options", [{}, {"thinking": "low"}, {"forward": False}], ids=str)
def test_an_interaction_belongs_to_the_tenant_that_made_it(stage: OpenStage, options: dict[str, Any]) -> None:
    server = stage([Say(text=str(number)) for number in range(4)])
    door = Door(server)
    more: dict[str, Any] = {"asides": options} if options else {}

    def ask(tenant: str, **fields: Any) -> Response:
        return door.post("/v1beta/interactions", {"model": OWN, "input": [GO], **fields}, tenant=tenant)

    first = ask("alice", **more).json["id"]
    for shape in ({}, {"x_new": 1}, {"input": 7}, {"asides": {"thinking": "low"}}):
        refused = ask("bob", previous_interaction_id=first, **shape)
        assert (refused.status, refused.json["error"]["message"]) == (400, f"Invalid turn token: {first}")
    assert door.get(f"/v1beta/interactions/{first}", tenant="bob").status == 404
    assert len(server.requests) == 1
    second = ask("alice", previous_interaction_id=first, asides={"thinking": "low"})
    assert second.status == 200
    assert ask("bob", previous_interaction_id=second.json["id"]).status == 400
    assert ask("alice", previous_interaction_id=second.json["id"]).status == 200


def test_a_reply_that_is_not_stored_has_no_id(stage: OpenStage) -> None:
    door = Door(stage([Say(text="a"), Say(text="b")]))
    for model in (OWN, CLAUDE):
        assert post(door, model, store=False, asides={"forward": False}).json["id"] == ""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_next_turn_continues_the_last_interaction_of_a_reply(stream: bool) -> None:
    def write(number: int, **ended: Any) -> bytes:
        named = {"id": f"v1_{number}", "object": "interaction", "model": "gemini-3-pro-preview"}
        step = {"type": "model_output", "content": [{"type": "text", "text": f"{number} "}]}
        if not stream:
            return whole_response(msgspec.json.encode({**named, **ended, "steps": [step]}))
        body = sse(
            {"event_type": "interaction.created", "interaction": {**named, "status": "in_progress"}},
            {"event_type": "step.start", "index": 0, "step": step},
            {"event_type": "step.stop", "index": 0},
            {"event_type": "interaction.completed", "interaction": {**named, **ended}},
        )
        return whole_response(body, "text/event-stream")

    hops = (
        write(0, status="requires_continuation", continuation_token="t"),
        write(1, status="completed"),
        write(2, status="completed"),
    )
    with serving(saying(*hops)) as server:
        options = Options(base_url=server.url, api_key="k")
        door = Door(None, options=options, records=MemoryVault(), stores_responses=False)
        body = {"model": OWN, "input": [GO], "stream": stream, "asides": {"forward": False}}
        response = door.post("/v1beta/interactions", body, tenant="alice")
        assert response.status == 200, response.body
        assert b'"0 ' in response.body
        ids = re.findall(rb'"id":"(v1_\d)"', response.body)
        assert ids[-1] == b"v1_1"
        again = {**body, "previous_interaction_id": "v1_1", "asides": {"forward": False}}
        assert door.post("/v1beta/interactions", again, tenant="bob").status == 400
        assert door.post("/v1beta/interactions", again, tenant="alice").status == 200
        sent = [msgspec.json.decode(request.body) for request in server.heard]
    assert [request.get("previous_interaction_id") for request in sent] == [None, "v1_0", "v1_1"]
