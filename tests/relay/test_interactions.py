"""Callers of Interactions at the relay: translated, forwarded, and told what cannot be done."""

from __future__ import annotations

from typing import Any

import pytest

from asides_stage import OpenStage, Say
from tests.dialects.gemini_interactions.interactions import GO
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
    assert first["id"] == "", "it cannot be continued, so it has no id"
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
        ({"previous_interaction_id": "v1_1"}, "'v1_1' not found"),
    ],
    ids=str,
)
def test_what_only_google_can_do_is_refused(stage: OpenStage, fields: dict[str, Any], words: str) -> None:
    refused = post(Door(stage([Say(text="a")])), CLAUDE, **fields)
    assert refused.status == 400
    assert words in refused.json["error"]["message"]
    assert refused.json["error"]["code"] == "invalid_request"
