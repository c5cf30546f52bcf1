"""Responses that a provider stores belong to the tenant whose request made them."""

from __future__ import annotations

from typing import Any

import pytest

from asides.options import Options
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.streams.step_handlers import RecordStore
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door, Response
from tests.relay.responses_items import read_response

OPENAI = "openai-responses:gpt-5.2"


class Home:
    """A gateway before OpenAI: no home, one key for all tenants."""

    def __init__(self, stage: Stage, **more: Any) -> None:
        self.door = Door(stage, **more)

    def ask(self, tenant: str, **fields: Any) -> Response:
        return self.door.post("/v1/responses", {"model": OPENAI, "input": "Hi", **fields}, tenant=tenant)

    def each_way(self, response_id: str, tenant: str) -> list[Response]:
        """Everything that one can do with an id."""
        place = f"/v1/responses/{response_id}"
        return [
            self.door.get(place, tenant=tenant),
            self.door.get(f"{place}/input_items", tenant=tenant),
            self.door.post(f"{place}/cancel", b"", tenant=tenant),
            self.ask(tenant, previous_response_id=response_id),
            self.door.get(place, method="DELETE", tenant=tenant),
        ]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_response_of_one_tenant_does_not_exist_for_another(stream: bool) -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage)
        first = gateway.ask("ada", stream=stream)
        assert first.outcome is not None
        assert first.outcome.mode == "forward"
        response_id = read_response(first.body)["id"]
        before = len(stage.requests)
        refused = gateway.each_way(response_id, "bob")
        unknown = gateway.each_way("resp_" + "0" * (len(response_id) - 5), "bob")
        assert len(stage.requests) == before
        assert [each.status for each in refused] == [404, 404, 404, 400, 404]
        for one, other in zip(refused, unknown, strict=True):
            assert one.status == other.status
            assert _without_id(one) == _without_id(other)
            assert one.headers.keys() == other.headers.keys()
        shown = gateway.door.get(f"/v1/responses/{response_id}", tenant="ada")
        assert (shown.status, shown.json["id"]) == (200, response_id)
        assert gateway.ask("ada", previous_response_id=response_id).status == 200
        assert stage.requests[-1].json["previous_response_id"] == response_id
        assert gateway.door.get(f"/v1/responses/{response_id}", method="DELETE", tenant="ada").status == 200
        assert gateway.door.get(f"/v1/responses/{response_id}", tenant="ada").status == 404


def _without_id(response: Response) -> str:
    message: str = response.json["error"]["message"]
    return message.partition("'")[0] + message.rpartition("'")[2]


def test_the_owner_is_known_to_another_instance_and_before_the_stream_ends(vault: RecordStore) -> None:
    keys, records = RelayKeys.generate(), vault
    with Stage([Say(text="Hello. " * 50, piece=5)]) as stage:
        gateway = Home(stage, keys=keys, records=records)
        response_id = read_response(gateway.ask("ada", stream=True).body)["id"]
        other = Home(stage, keys=keys, records=records)
        assert other.ask("ada", previous_response_id=response_id).status == 200
        assert other.ask("eve", previous_response_id=response_id).status == 400


def test_a_request_that_cannot_be_read_is_checked_too() -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage)
        response_id = gateway.ask("ada").json["id"]
        before = len(stage.requests)
        # A field of another type than we know: such a body is forwarded as it is.
        for odd in ({"include": "all"}, {"metadata": 1}, {"parallel_tool_calls": "yes"}):
            refused = gateway.ask("bob", previous_response_id=response_id, **odd)
            assert refused.status == 400
            assert refused.json["error"]["code"] == "previous_response_not_found"
        for odd_id in ([response_id], {"id": response_id}, 1):
            assert gateway.ask("bob", previous_response_id=odd_id).status == 400
        assert len(stage.requests) == before


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_conversations_of_the_account_are_nobodys(conversation: Any) -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage)
        for odd in ({}, {"metadata": 1}):
            refused = gateway.ask("bob", conversation=conversation, **odd)
            assert refused.status == 404
            assert refused.json["error"]["code"] == "conversation_not_found"
        assert not stage.requests


def test_without_a_store_a_tenant_owns_nothing() -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage, store=False)
        response_id = gateway.ask("ada").json["id"]
        assert gateway.ask("ada", previous_response_id=response_id).status == 400
        assert gateway.door.get(f"/v1/responses/{response_id}", tenant="ada").status == 404


def test_in_process_nothing_changes() -> None:
    with Stage([Say(text="Hello.")]) as stage:
        home = Options(base_url=stage.url, api_key="sk-test")
        gateway = Home(stage, store=False, home="openai-responses", home_options=home)
        response_id = gateway.ask("").json["id"]
        assert gateway.ask("", previous_response_id=response_id).status == 200
        assert gateway.door.get(f"/v1/responses/{response_id}").json["id"] == response_id


def test_the_owner_of_a_gateway_without_keys_reads_what_it_forwarded() -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage)
        response_id = gateway.ask("").json["id"]
        assert gateway.door.get(f"/v1/responses/{response_id}").json["id"] == response_id


def test_what_is_not_stored_is_not_recorded() -> None:
    with Stage([Say(text="Hello.")]) as stage:
        gateway = Home(stage)
        response_id = gateway.ask("ada", store=False).json["id"]
        assert gateway.door.get(f"/v1/responses/{response_id}", tenant="ada").status == 404
        assert len(stage.requests) == 1
