"""The endpoint `/responses/compact`: at a provider that has it, and elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.usage import Usage
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door
from tests.relay.test_compacted_exchange import ELSEWHERE, OPENAI, SUMMARY, TALK


@pytest.mark.parametrize("upstream", ELSEWHERE)
def test_a_model_sums_up_where_the_provider_cannot_compact(upstream: str) -> None:
    with Stage([Say(thinking="canary", text=SUMMARY, usage=Usage(120, 30)), Say(text="Ada.")]) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        compacted = door.post("/v1/responses/compact", {"model": upstream, "input": TALK, "instructions": "Be kind."})
        assert compacted.status == 200, compacted.body
        document = compacted.json
        *kept, item = document["output"]
        assert [each["role"] for each in kept] == ["developer", "user"]
        assert kept[1]["content"] == TALK[1]["content"]
        assert item["type"] == "compaction"
        assert b"canary" not in compacted.body
        assert document["object"] == "response.compaction"
        assert document["usage"]["total_tokens"] == 150
        question: dict[str, Any] = {"role": "user", "content": "My name?"}
        answered = door.post("/v1/responses", {"model": upstream, "input": [*document["output"], question]})
        assert answered.status == 200, answered.body
        assert SUMMARY.encode() in stage.requests[1].body
        assert b"asd1." not in stage.requests[1].body


def test_openai_compacts_itself() -> None:
    body = {"model": OPENAI, "input": TALK, "new_field": 1}
    with Stage([Say(text=SUMMARY)]) as stage:
        door = Door(stage)
        compacted = door.post("/v1/responses/compact", body)
        assert stage.requests[0].path.endswith("/responses/compact")
        assert stage.requests[0].json == {**body, "model": "gpt-5.2"}
        assert compacted.json["output"][-1]["type"] == "compaction"
        (item,) = door.post("/v1/responses/compact", {"model": "anthropic:claude-opus-4-5", "input": TALK}).json[
            "output"
        ][-1:]
        again = door.post("/v1/responses/compact", {"model": OPENAI, "input": [item, TALK[1]]})
        sent = stage.requests[-1]
    assert again.status == 200
    assert sent.path.endswith("/responses/compact")
    assert SUMMARY.encode() in sent.body
    assert b"asd1." not in sent.body


def test_a_stored_response_is_compacted_with_all_before_it() -> None:
    with Stage([Say(text="Hello, Ada."), Say(text=SUMMARY)]) as stage:
        door = Door(stage)
        common = {"model": "deepseek:deepseek-v4-pro"}
        first = door.post("/v1/responses", {**common, "input": "I am Ada."}).json
        compacted = door.post("/v1/responses/compact", {**common, "previous_response_id": first["id"]})
        assert compacted.status == 200, compacted.body
        assert b"Hello, Ada." in stage.requests[1].body
        assert compacted.json["output"][0]["content"] == [{"type": "input_text", "text": "I am Ada."}]
        unknown = door.post("/v1/responses/compact", {**common, "previous_response_id": "resp_unknown"})
    assert unknown.status == 400
    assert unknown.json["error"]["code"] == "previous_response_not_found"


def test_a_conversation_at_the_provider_is_no_tenants() -> None:
    """All tenants share the account of the provider, and with it what the account has stored."""
    body = {"model": OPENAI, "input": TALK, "conversation": "conv_of_another"}
    with Stage([Say(text=SUMMARY)]) as stage:
        refused = Door(stage).post("/v1/responses/compact", body, tenant="a")
        assert stage.requests == []
        assert (refused.status, refused.json["error"]["code"]) == (404, "conversation_not_found")
        assert Door(stage).post("/v1/responses/compact", body).status == 200


def test_a_bad_request_is_told() -> None:
    with Stage() as stage:
        door = Door(stage)
        assert door.post("/v1/responses/compact", {"model": ELSEWHERE[0]}).status == 400
        assert door.post("/v1/responses/compact", {"input": "hi"}).status == 400
        assert door.post("/v1/responses/compact", b"[").status == 400
        assert not stage.requests
