"""Two keys never see what belongs to the other: state, stored responses, conversations, requests, usage. Two keys of
one tenant share it. No key is in anything that the gateway writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides_gateway.access.key_store import list_keys, make_key, revoke_key
from asides_gateway.authenticate import derive_record_tenant, derive_tenant
from asides_stage import Say
from tests.gateway.access.key_records import AddedKey, build_record
from tests.gateway.access.limited_gateway import CLAUDE, Limited, PlayedStage, limited
from tests.gateway.http_client import QUESTION, ask, chat, message, wait_for
from tests.gateway.page_client import PageClient


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("tenants"))
        return
    server = request.getfixturevalue("postgres_server")
    yield server.create_database("tenants", template="template")
    server.drop_database("tenants")


@pytest.fixture(scope="module")
def stage() -> Iterator[PlayedStage]:
    played = PlayedStage()
    with played.stage:
        yield played


@pytest.fixture(scope="module")
def gateway(stage: PlayedStage, place: str) -> Iterator[Limited]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASIDES_RELAY_KEY", "00" * 32)
        with limited(stage, place) as gateway:
            yield gateway


class Keys:
    """One key, another, and one that shares with the first."""

    def __init__(self, gateway: Limited, name: str) -> None:
        self.one = gateway.add_key(f"{name} one", tenant=name)
        self.other = gateway.add_key(f"{name} other")
        self.same = gateway.add_key(f"{name} same", tenant=name)


@pytest.fixture
def keys(gateway: Limited, request: pytest.FixtureRequest) -> Keys:
    return Keys(gateway, request.node.name)


def test_tenants_of_all_kinds_differ() -> None:
    one, other = build_record("one"), build_record("other")
    named = build_record("named", tenant=one.record.id)
    again = build_record("again", tenant=one.record.id)
    found = [derive_record_tenant(each.record) for each in (one, other, named)]
    assert len({*found, derive_tenant(one.key), derive_tenant(one.record.id), ""}) == 6
    assert derive_record_tenant(again.record) == derive_record_tenant(named.record)
    assert one.record.id not in found[0]


def test_a_stored_response_is_the_tenants_own(gateway: Limited, stage: PlayedStage, keys: Keys) -> None:
    stage.play(*[Say(text="42")] * 4)
    body = {"model": CLAUDE, "input": "six times seven?", "max_output_tokens": 50}
    made = gateway.ask(keys.one, "/v1/responses", body).json["id"]
    for added, status in ((keys.one, 200), (keys.same, 200), (keys.other, 404)):
        assert gateway.ask(added, f"/v1/responses/{made}", method="GET").status == status
        assert gateway.ask(added, f"/v1/responses/{made}/input_items", method="GET").status == status
    follow = {**body, "previous_response_id": made}
    refused = gateway.ask(keys.other, "/v1/responses", follow)
    assert refused.status in (400, 404)
    assert gateway.ask(keys.same, "/v1/responses", follow).status == 200
    assert gateway.ask(keys.other, f"/v1/responses/{made}", method="DELETE").status == 404
    assert gateway.ask(keys.one, f"/v1/responses/{made}", method="DELETE").status == 200


def test_reasoning_state_is_the_tenants_own(gateway: Limited, stage: PlayedStage, keys: Keys) -> None:
    """The second turn brings an answer without its thinking: only its own tenant gets that back."""

    def ask_again(added: AddedKey) -> str:
        stage.play(Say(text="again"))
        history = [*QUESTION, {"role": "assistant", "content": answered}, {"role": "user", "content": "and half?"}]
        body = {**chat(), "model": CLAUDE, "reasoning_effort": "low", "messages": history}
        assert gateway.ask(added, "/v1/chat/completions", body).status == 200
        return stage.stage.requests[-1].body.decode()

    answered = f"forty-two, {time.time()}"
    stage.play(Say(thinking="SECRET-THOUGHT six sevens", text=answered))
    first = {**chat(), "model": CLAUDE, "reasoning_effort": "low"}
    assert gateway.ask(keys.one, "/v1/chat/completions", first).status == 200
    assert "SECRET-THOUGHT" not in ask_again(keys.other)
    assert "SECRET-THOUGHT" in ask_again(keys.same)
    assert "SECRET-THOUGHT" in ask_again(keys.one)


def test_conversations_of_the_page_are_the_tenants_own(gateway: Limited, stage: PlayedStage, keys: Keys) -> None:
    one, other, same = (PageClient(gateway.gateway.url, each.key) for each in (keys.one, keys.other, keys.same))
    made = one.create(CLAUDE, title="mine alone")
    stage.play(Say(text="42"))
    assert one.send("POST", f"/conversations/{made}/messages", {"text": "six times seven?"}).status == 200
    assert [each["id"] for each in same.get("/conversations")["conversations"]] == [made]
    assert other.get("/conversations")["conversations"] == []
    assert other.get("/conversations?search=mine")["conversations"] == []
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "stolen"}),
        ("DELETE", "", None),
        ("POST", "/messages", {"text": "hello"}),
        ("POST", "/continue", {}),
        ("POST", "/fork", {"before": 1}),
    ):
        assert other.send(method, f"/conversations/{made}{path}", body).status == 404
    assert same.get(f"/conversations/{made}")["title"] == "mine alone"


def test_requests_of_the_inspector_are_the_tenants_own(gateway: Limited, stage: PlayedStage, keys: Keys) -> None:
    stage.play(Say(text="42"))
    assert gateway.ask(keys.one, "/v1/messages", {**message(), "model": CLAUDE}).status == 200
    one, other, same = (PageClient(gateway.gateway.url, each.key) for each in (keys.one, keys.other, keys.same))
    assert wait_for(lambda: len(one.get("/requests")["requests"]) == 1, 10)
    [seen] = one.get("/requests")["requests"]
    assert same.get(f"/requests/{seen['id']}")["id"] == seen["id"]
    assert other.get("/requests")["requests"] == []
    assert other.send("GET", f"/requests/{seen['id']}").status == 404
    assert other.send("PUT", "/requests/settings", {"captures_bodies": True}).status == 200
    assert one.get("/session")["inspector"]["captures_bodies"] is False


def test_what_one_key_spends_is_not_spent_by_another_of_the_tenant(gateway: Limited, stage: PlayedStage) -> None:
    one = gateway.add_key("payer", tenant="payers", budget_day="1")
    same = gateway.add_key("guest", tenant="payers", budget_day="1")
    stage.play(Say(text="42"))
    assert gateway.ask(one, "/v1/messages", {**message(), "model": CLAUDE}).status == 200
    assert gateway.spending(one).day > 0
    assert gateway.spending(same).day == 0


def test_turns_of_the_page_count_against_their_key(gateway: Limited, stage: PlayedStage) -> None:
    rich = gateway.add_key("rich page", budget_day="1", models=("anthropic:*",))
    page = PageClient(gateway.gateway.url, rich.key)
    made = page.create(CLAUDE)
    stage.play(Say(text="42"))
    assert b"event: ended" in page.send("POST", f"/conversations/{made}/messages", {"text": "six?"}).body
    spent = gateway.spending(rich)
    assert spent.day > 0
    assert spent.reserved == 0
    refused = page.send("POST", f"/conversations/{made}/messages", {"text": "?", "model": "openai:gpt-5"})
    assert refused.status == 403
    assert {each["provider"] for each in page.get("/models")["models"]} <= {"anthropic"}
    poor = PageClient(gateway.gateway.url, gateway.add_key("poor page", budget_day="0.0001").key)
    before = stage.count
    answer = poor.send("POST", f"/conversations/{poor.create(CLAUDE)}/messages", {"text": "six?"}).body
    assert b"event: error" in answer
    assert b"budget" in answer
    assert stage.count == before
    quick = gateway.add_key("quick page", rpm=1)
    page = PageClient(gateway.gateway.url, quick.key)
    stage.play(Say(text="42"))
    made = page.create(CLAUDE)
    assert b"event: ended" in page.send("POST", f"/conversations/{made}/messages", {"text": "six?"}).body
    made = page.create(CLAUDE)  # The first one may be held for a moment yet.
    assert b"in a minute" in page.send("POST", f"/conversations/{made}/messages", {"text": "six?"}).body


def test_no_key_is_in_anything_that_the_gateway_writes(
    gateway: Limited, stage: PlayedStage, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    caplog.set_level(logging.DEBUG)
    good, spent = gateway.add_key("canary", rpm=3), gateway.add_key("canary spent", budget_day="0.000001")
    revoked, unknown = gateway.add_key("canary revoked"), AddedKey(make_key().key, good.record)
    gateway.database.run(lambda: revoke_key(revoked.record.id, time.time()))
    written: list[bytes] = []
    for added in (good, spent, revoked, unknown):
        for path, body in (
            ("/v1/messages", {**message(), "model": CLAUDE}),
            ("/v1/chat/completions", {**chat(), "model": f"nobody:{added.key}"}),
            (f"/v1/models?key={added.key}", None),
            (f"/v1/{added.key}", {}),
        ):
            stage.play(Say(text="42"))
            answer = gateway.ask(added, path, body, "GET" if body is None else "POST")
            written += [answer.body, repr(answer.headers).encode()]
        page = PageClient(gateway.gateway.url, added.key)
        for where in ("/session", "/requests", "/models", "/conversations"):
            written.append(repr(page.send("GET", where)).encode())
    written += [request.body + repr(request.headers).encode() for request in stage.stage.requests[-20:]]
    service = gateway.gateway.service
    written.append(
        repr((service.keys, service.authenticator, service.meters, service.meters.open(good.record))).encode()
    )
    written.append(repr(gateway.database.run(list_keys, writes=False)).encode())
    written.append(caplog.text.encode())
    everything = b"".join(written)
    if "://" not in place:
        everything += b"".join(path.read_bytes() for path in Path(place).glob("*") if path.is_file())
    for added in (good, spent, revoked, unknown):
        secret = added.key[len("sk-asides-xxxxxxxx-") :].encode()
        count = everything.count(secret)
        # The model and the path that a caller names are repeated to that caller alone, in the error.
        own = sum(body.count(secret) for body in written if b"nobody:" in body or b"unknown path" in body)
        assert count == own, [body for body in written if secret in body]


def test_unknown_revoked_and_expired_keys_get_one_answer(gateway: Limited) -> None:
    revoked = gateway.add_key("answer revoked")
    gateway.database.run(lambda: revoke_key(revoked.record.id, time.time()))
    expired = gateway.add_key("answer expired", expires=time.time() - 1)
    stranger = AddedKey(make_key().key, revoked.record)
    answers = [gateway.ask(each, "/v1/models", method="GET") for each in (revoked, expired, stranger) for _ in range(2)]
    assert {(answer.status, answer.body) for answer in answers} == {(401, answers[0].body)}
    bare = ask(gateway.gateway, "GET", "/v1/models")
    assert (bare.status, bare.body) == (401, answers[0].body)


def test_a_key_works_at_once_and_is_refused_soon_after_it_is_revoked(gateway: Limited, stage: PlayedStage) -> None:
    added = gateway.add_key("short life")
    assert gateway.ask(added, "/v1/models", method="GET").status == 200
    gateway.database.run(lambda: revoke_key(added.record.id, time.time()))
    assert wait_for(lambda: gateway.ask(added, "/v1/models", method="GET").status == 401, 10)
