"""A turn of the page in the inspector and in the figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from asides.providers.provider import Provider
from asides.relay.relay_request import RelayRequest
from asides.settings_tables import RouteTable
from asides_gateway.embedded import Gateway
from asides_gateway.request_record import RequestRecord
from asides_gateway.watcher import RequestWatcher
from asides_stage import Fail, OpenStage, Say
from tests.gateway.page_client import PageClient, find, join, page_gateway, without_settings

_CANARY = "canary-of-a-thought"


def wait_for(page: PageClient, state: str) -> Any:
    """The last request in the inspector, once it has this state."""
    deadline = time.perf_counter() + 30
    while True:
        requests = page.get("/requests")["requests"]
        if requests and requests[0]["state"] == state:
            return requests[0]
        assert time.perf_counter() < deadline, requests
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _rules(stage: OpenStage) -> None:
    stage.expect_no_refusals()


def test_a_turn_is_shown_with_its_figures_and_its_plan(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASIDES_STAGE", stage(Say(text="One.", thinking=_CANARY), Say(text="Two.")).url)
    with page_gateway(tmp_path) as page:
        conversation = page.create("anthropic:claude-opus-5-5", thinking="high")
        page.ask(conversation, "First?")
        started = find(page.ask(conversation, "Second?"), "started")
        summary = wait_for(page, "done")
        detail = page.get(f"/requests/{summary['id']}")
        listed = page.get("/requests")["requests"]
    assert summary["id"] == started["request_id"]
    assert len(listed) == 2
    assert {name: summary[name] for name in ("dialect", "mode", "model_asked", "model", "attempts", "status")} == {
        "dialect": "page",
        "mode": "own",
        "model_asked": "anthropic:claude-opus-5-5",
        "model": "anthropic:claude-opus-5-5",
        "attempts": 1,
        "status": 200,
    }
    assert summary["usage"]["output"] > 0
    assert [decision["action"] for decision in detail["decisions"]], "the thought of the first turn was decided about"
    assert len(detail["sent"]) == 1
    assert _CANARY not in repr(detail)


def test_who_leaves_and_who_fails_are_told_apart(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", stage(Say(text="word " * 200, piece=5, pause=0.01), Fail(status=500)).url)
    with page_gateway(None, without_settings(retries=0)) as page:
        conversation = page.create("deepseek:deepseek-v4-pro")
        with page.open(conversation, "messages", {"text": "?"}) as events:
            next(event for event in events if event[0] == "text")
        wait_for(page, "left")
        other = page.create("deepseek:deepseek-v4-pro")
        page.ask(other, "?")
        assert wait_for(page, "failed")["error"]["code"] == "Overloaded"


def test_the_target_that_answered_is_shown(stage: OpenStage) -> None:
    first, second = stage(Fail(status=503)), stage(Say(text="Yes."))
    rows = tuple(
        Provider(name=name, title=name, base_url=opened.url, key="optional")
        for name, opened in (("one", first), ("two", second))
    )
    routes = {"best": RouteTable(targets=("one:m", "two:m"))}
    with page_gateway(None, without_settings(providers=rows, routes=routes, retries=0)) as page:
        conversation = page.create("best")
        assert join(page.ask(conversation, "?"), "text") == "Yes."
        summary = wait_for(page, "done")
    assert (summary["model_asked"], summary["model"], summary["attempts"]) == ("best", "two:m", 2)


def test_one_who_looks_on_and_fails_costs_no_answer(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(RequestWatcher):
        def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
            raise RuntimeError("broken")

        change = begin_reply = end = begin  # type: ignore[assignment]

    monkeypatch.setenv("ASIDES_STAGE", stage(Say(text="Yes.")).url)
    with Gateway(None, without_settings(), watchers=(Broken(),)) as gateway:
        page = PageClient(gateway.url)
        assert join(page.ask(page.create("deepseek:deepseek-v4-pro"), "?"), "text") == "Yes."


def test_turns_beyond_the_bound_of_requests_are_refused(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", stage(Say(text="word " * 50, piece=5, pause=0.01)).url)
    with page_gateway(None, max_requests=1) as page:
        one, two = page.create("deepseek:deepseek-v4-pro"), page.create("deepseek:deepseek-v4-pro")
        with page.open(one, "messages", {"text": "?"}) as events:
            next(event for event in events if event[0] == "text")
            answer = page.send("POST", f"/conversations/{two}/messages", {"text": "?"})
            assert (answer.status, answer.body["error"]["code"]) == (503, "too_many")
            list(events)
        assert find(page.ask(two, "?"), "ended")
