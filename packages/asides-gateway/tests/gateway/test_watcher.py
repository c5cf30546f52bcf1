"""Several watchers of requests, and what each of them sees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import enumerate as enumerate_threads
from threading import get_ident
from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayRequest
from asides_gateway.loop_observer import LoopObserver
from asides_gateway.watcher import LARGE_BODY, ObserverGroup, RequestInfo, RequestWatcher, begin_watching
from asides_stage import Say, Stage
from tests.gateway.http_client import MODEL, ask, chat, gateway_before

INFO = RequestInfo("req_1", "POST", "/v1/messages", "anthropic", "claude-cli/2.1", "", 0.0, 0.0)


class Noting(RelayObserver):
    """Notes every call."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def see_target(self, call: Any, mode: Any, reason: str) -> None:
        self.seen.append(f"target {call.model} {mode}")

    def see_plan(self, decisions: Sequence[Any]) -> None:
        self.seen.append("plan")

    def see_request(self, request: Any) -> None:
        self.seen.append(f"request {request.method}")

    def see_events(self, events: Sequence[Any]) -> None:
        self.seen.append("events")


class Watching(RequestWatcher):
    def __init__(self, observer: RelayObserver | None) -> None:
        self.observer = observer

    def begin(self, info: RequestInfo) -> RelayObserver | None:
        return self.observer


def test_nobody_who_wants_to_see_costs_nothing() -> None:
    assert begin_watching([], INFO) is None
    assert begin_watching([RequestWatcher(), Watching(None)], INFO) is None


def test_one_who_wants_to_see_is_asked_directly() -> None:
    observer = Noting()
    assert begin_watching([RequestWatcher(), Watching(observer)], INFO) is observer


def test_every_method_of_an_observer_reaches_all_of_them() -> None:
    group = begin_watching([Watching(first := Noting()), Watching(second := Noting())], INFO)
    assert isinstance(group, ObserverGroup)
    own = {name for name in vars(RelayObserver) if not name.startswith("_")}
    assert own == {name for name in vars(ObserverGroup) if not name.startswith("_")}, "a method is not passed on"
    group.see_plan(())
    group.see_events([])
    assert first.seen == second.seen == ["plan", "events"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_two_watchers_of_one_request_see_the_same(stream: bool) -> None:
    first, second = Noting(), Noting()
    watchers = (Watching(first), RequestWatcher(), Watching(second))
    with Stage([Say(thinking="hm", text="42")]) as stage, gateway_before(stage, *watchers) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", chat(stream)).status == 200
    assert first.seen == second.seen
    assert f"target {MODEL} translate" in first.seen
    assert "request POST" in first.seen
    assert "events" in first.seen


def test_nothing_of_the_content_is_shown() -> None:
    info = msgspec.structs.replace(INFO, request=RelayRequest("", "POST", "/", body=b"SECRET"))
    assert "SECRET" not in repr(info)


async def test_a_large_request_is_observed_in_its_event_loop() -> None:
    """It is planned in a thread, and what watches it may belong to the loop."""
    threads: list[int] = []

    class Threads(Noting):
        def see_request(self, request: Any) -> None:
            threads.append(get_ident())
            super().see_request(request)

        def see_events(self, events: Sequence[Any]) -> None:
            raise LookupError("broken")

    request = RelayRequest("", "POST", "/v1/messages", body=b"x" * LARGE_BODY)
    seen = Threads()
    observer = begin_watching([Watching(seen)], msgspec.structs.replace(INFO, request=request))
    assert isinstance(observer, LoopObserver)
    own = {name for name in vars(RelayObserver) if not name.startswith("_")}
    assert own == {name for name in vars(LoopObserver) if not name.startswith("_")}, "a method is not passed on"
    sent = HttpRequest("POST", "http://a.test", {}, b"", None)
    observer.see_request(sent)
    await asyncio.to_thread(observer.see_request, sent)
    assert threads == [get_ident()] * 2
    with pytest.raises(LookupError):
        await asyncio.to_thread(observer.see_events, [])


def test_a_gateway_plans_a_large_request_in_a_thread_and_a_small_one_in_its_loop() -> None:
    planning: list[bool] = []

    class Naming(RelayObserver):
        def see_request(self, request: Any) -> None:
            planning.append(any(thread.name.startswith("asides-plan") for thread in enumerate_threads()))

    with Stage([Say(text="42")] * 2) as stage, gateway_before(stage, Watching(Naming())) as gateway:
        for text in ("?", "x" * LARGE_BODY):
            body = {**chat(), "messages": [{"role": "user", "content": text}]}
            assert ask(gateway, "POST", "/v1/chat/completions", body).status == 200
    assert planning == [False, True]
